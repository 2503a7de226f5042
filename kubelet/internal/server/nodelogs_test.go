package server

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testLogs has files, and a journal that knows kubelet.service and shows how it was asked.
func testLogs(t *testing.T, dir string) http.Handler {
	t.Helper()
	for name, text := range map[string]string{"boot": "of boot\n", "cron.log": "of cron\n", "app/app.log": "of app\n", "kubelet.log": "not in the journal\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return http.StripPrefix("/logs/", &nodeLogs{
		dir: dir, files: http.FileServer(http.Dir(dir)), unsafe: regexp.MustCompile(`[^a-zA-Z\-_.:0-9@]`),
		journalctl: func(_ context.Context, w io.Writer, args ...string) error {
			if args[0] == "--field" {
				fmt.Fprintln(w, "init.scope\nkubelet.service")
				return nil
			}
			fmt.Fprintln(w, strings.Join(args, " "))
			return nil
		},
	})
}

func TestNodeLogQuery(t *testing.T) {
	h := testLogs(t, t.TempDir())
	for _, tc := range []struct {
		path, query string
		code        int
		body        string // a part of it
	}{
		{"/logs/", "", 200, `<a href="cron.log">cron.log</a>`},
		{"/logs/cron.log", "", 200, "of cron\n"},
		{"/logs/", "query=./cron.log", 200, "of cron\n"},
		{"/logs/", "query=boot", 200, "of boot\n"},
		{"/logs/", "query=cron", 200, "of cron\n"},
		{"/logs/", "query=app", 200, "of app\n"},
		{"/logs/", "query=none", 200, "\nlog not found for none\n"},
		{"/logs/", "query=kubelet", 200, "--utc --no-pager --output=short-precise --unit=kubelet\n"},
		{"/logs/", "query=kubelet&query=cron", 200, "--unit=kubelet\nof cron\n"},
		{"/logs/", "query=kubelet&tailLines=3&boot=-1&pattern=a.b&sinceTime=2026-01-02T03:04:05Z&untilTime=2026-01-02T03:04:06Z", 200,
			"--since=2026-1-2 03:4:5 --until=2026-1-2 03:4:6 --pager-end --lines=3 --unit=kubelet --grep=a.b --boot -1\n"},
		{"/logs/", "query=cron&tailLines=3", 200, "\noptions present and query resolved to log files for [cron]\ntry without specifying options\n"},
		{"/logs/", "query=", 400, `query: Invalid value: [""]: may not be empty`},
		{"/logs/", "query=kubelet&sinceTime=now", 400, `sinceTime: Invalid value: "now": invalid time format`},
		{"/logs/", "query=kubelet&tailLines=x", 400, `tailLines: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax`},
		{"/logs/cron.log", "query=kubelet", 406, "path not allowed in query mode\n"},
		{"/logs/", "tailLines=3", 406, "query: Required value: cannot be empty with options\n"},
		{"/logs/", "query=./cron.log&query=kubelet", 406, "cannot specify a file and service\n"},
		{"/logs/", "query=./cron.log&query=/boot", 406, "cannot specify more than one file\n"},
		{"/logs/", "query=./cron.log&tailLines=3", 406, "cannot specify file with options\n"},
		{"/logs/", "query=./../../../etc/passwd", 406, "path escapes from parent\n"},
		{"/logs/", "query=/cron.log", 406, "path escapes from parent\n"}, // as upstream, since it looks with os.Root
		{"/logs/", "query=./nothing", 406, "no such file or directory\n"},
		{"/logs/", "query=" + url.QueryEscape("a b"), 406, "input contains unsupported characters\n"},
		{"/logs/", "query=a&query=b&query=c&query=d&query=e", 406, "query: Too many: 5: must have at most 4 items\n"},
		{"/logs/", "query=kubelet&boot=1", 406, "boot: Invalid value: 1: must be less than 1\n"},
		{"/logs/", "query=kubelet&tailLines=100001", 406, "tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive\n"},
		{"/logs/", "query=kubelet&pattern=(", 406, "pattern: Invalid value: \"(\": error parsing regexp: missing closing ): `(`\n"},
		{"/logs/", "query=kubelet&sinceTime=2026-01-02T03:04:06Z&untilTime=2026-01-02T03:04:05Z", 406, "must be after `sinceTime`\n"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", tc.path+"?"+tc.query, nil))
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%s?%s: %d %q, want %d %q", tc.path, tc.query, w.Code, w.Body, tc.code, tc.body)
		}
	}
	req := httptest.NewRequest("GET", "/logs/?query=cron", nil)
	req.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != "of cron\n" || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("compressed: %q, %v, %v", text, err, w.Header())
	}
}
