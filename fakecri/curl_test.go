package fakecri

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/program"
)

// TestCurl runs curl's command lines against servers of the same pod.
func TestCurl(t *testing.T) {
	opts := Options{
		Interpret: true,
		Programs: []Program{{Match: Match{Container: "server"}, Behaviour: Behaviour{Ports: []Port{
			{Port: 8080, HTTP: []HTTPAnswer{
				{Path: "/hello", Body: "hello"}, {Path: "/no", Status: 404, Body: "nothing"}, {Path: "/busy", Status: 503, Body: "busy", Until: 5 * time.Second}, {Path: "/busy", Body: "well"},
			}},
			{Port: 8081, Latency: Exactly(3 * time.Second)},
			{Port: 8082, Raw: true},
			{Port: 8083, Answer: func(a program.Asked) (int, string) {
				var b strings.Builder
				_ = a.Req.Write(&b)
				return 200, b.String()
			}},
		}}}},
	}
	for _, tc := range []struct {
		script, out string
		code        int
	}{
		{script: "curl localhost:8080/hello", out: "hello"},
		{script: "curl -sf http://127.0.0.1:8080/hello", out: "hello"},
		{script: "curl -s localhost:8080/no", out: "nothing"},
		{script: "curl -f localhost:8080/no 2>&1", out: "curl: (22) The requested URL returned error: 404\n", code: 22},
		{script: "curl -fsS localhost:8080/no 2>&1", out: "curl: (22) The requested URL returned error: 404\n", code: 22},
		{script: "curl -fs localhost:8080/no 2>&1", code: 22},
		{script: "curl -s -o /dev/null -w '%{http_code} %{size_download}\\n' localhost:8080/no", out: "404 7\n"},
		{script: "curl -s -o /tmp/x -w '%{http_code}' localhost:8080/hello && cat /tmp/x", out: "200hello"},
		{script: "curl -sI localhost:8080/hello | head -n 1 | tr -d '\\r'", out: "HTTP/1.1 200 OK\n"},
		{script: "curl -s -i localhost:8080/hello | tr -d '\\r'", out: "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"},
		{script: "curl -s localhost:8079 2>&1; curl localhost:8079 2>&1", out: "curl: (7) Failed to connect to localhost port 8079 after 0 ms: Couldn't connect to server\n", code: 7},
		{script: "curl -sS nobody 2>&1", out: "curl: (6) Could not resolve host: nobody\n", code: 6},
		{script: "curl -sS localhost:8082 2>&1", out: "curl: (52) Empty reply from server\n", code: 52},
		{script: "curl -sS -m 1 localhost:8081 2>&1", out: "curl: (28) Operation timed out after 1000 milliseconds with 0 bytes received\n", code: 28},
		{script: "curl -sS --connect-timeout 1 10.99.0.1 2>&1", out: "curl: (28) Connection timed out after 1000 milliseconds\n", code: 28},
		{script: "curl -sf --retry 5 localhost:8080/busy", out: "well"},
		{script: "curl -f --retry 1 localhost:8080/busy 2>&1", out: "Warning: Problem: HTTP error. Will retry in 1 seconds. 1 retries left.\ncurl: (22) The requested URL returned error: 503\n", code: 22},
		{script: "curl -s --retry 2 --retry-delay 1 --retry-connrefused -w '%{exitcode} %{errormsg}' localhost:1 | cut -c1-20", out: "7 Failed to connect \n"},
		{script: "curl 2>&1", out: "curl: (2) no URL specified\n", code: 2},
		{script: "curl --frob x 2>&1 | head -n 1", out: "curl: option --frob: is unknown\n"},
		{script: "curl -sq x 2>&1 | head -n 1", out: "curl: option -q: is unknown\n"},
		{script: "curl -sS ftp://localhost 2>&1", out: "curl: (1) Protocol \"ftp\" not supported\n", code: 1},
		{script: "curl -s -X PUT -H 'X-A: b' -A me -d a=1 -d b=2 localhost:8083/p?q=1 | tr -d '\\r' | sort", out: "\n\nContent-Length: 7\nContent-Type: application/x-www-form-urlencoded\nHost: localhost:8083\nPUT /p?q=1 HTTP/1.1\nUser-Agent: me\nAccept: */*\nX-A: b\na=1&b=2"},
		{script: "curl -sk https://localhost:8080/hello", out: "hello"},
		{script: "curl -s -G -d a=1 -u me:x localhost:8083/p | grep -c -e '^GET /p?a=1 ' -e '^Authorization: Basic bWU6eA=='", out: "2\n"},
	} {
		t.Run(tc.script, func(t *testing.T) {
			run(t, opts, func(e *env) {
				e.pull("app:1")
				e.pull("curlimages/curl:8.9.1")
				sb := e.sandbox("web", 0)
				e.start(sb, "web", "server", 0)
				cfg := containerConfig("web", "client", 0)
				cfg.Image, cfg.Command = spec("curlimages/curl:8.9.1"), []string{"sleep", "1h"}
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				out, _, err := e.c.ExecSync(e.ctx, id, []string{"sh", "-c", tc.script}, 0)
				code := 0
				var exit *ExitError
				if errors.As(err, &exit) {
					code, err = exit.Code, nil
				}
				e.ok(err)
				got := string(out)
				if strings.Contains(tc.script, "| sort") {
					got = sorted(got)
					tc.out = sorted(tc.out)
				}
				if got != tc.out || code != tc.code {
					t.Errorf("%q and %d, want %q and %d", got, code, tc.out, tc.code)
				}
			})
		})
	}
}

// TestCurlImage: its arguments are curl's, and it ends with curl's code.
func TestCurlImage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int32
	}{{[]string{"-sS", "http://127.0.0.1:8080/"}, 7}, {[]string{"http://127.0.0.1:8080/"}, 7}, {[]string{"sh", "-c", "exit 3"}, 3}} {
		run(t, Options{}, func(e *env) {
			e.pull("curlimages/curl:8.9.1")
			cfg := containerConfig("web", "client", 0)
			cfg.Image, cfg.Args = spec("curlimages/curl:8.9.1"), tc.args
			id, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
			e.ok(err)
			e.ok(e.c.StartContainer(e.ctx, id))
			e.sleep(time.Second)
			e.exited(id, tc.code, "Error")
		})
	}
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
