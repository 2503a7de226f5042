//go:build linux

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mistake is told in one line, before anything is asked of a runtime.
func TestConformanceMistakes(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	const socket = "/nowhere/cri.sock"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "drydock: --runtime-endpoint: which runtime?"},
		{[]string{"--runtime-endpoint", "containerd"}, `drydock: --runtime-endpoint: "containerd" is no socket: unix:///PATH is meant`},
		{[]string{"--runtime-endpoint", "tcp://127.0.0.1:1"}, `drydock: --runtime-endpoint: "tcp://127.0.0.1:1" is no socket`},
		{[]string{"--runtime-endpoint", "unix://" + plain}, "drydock: --runtime-endpoint: " + plain + " is there and is no socket"},
		{[]string{"--runtime-endpoint", plain + "/x"}, "drydock: --runtime-endpoint: stat " + plain + "/x: not a directory"},
		{[]string{"--runtime-endpoint", socket, "--image-endpoint", "x"}, `drydock: --image-endpoint: "x" is no socket`},
		{[]string{"--runtime-endpoint", socket, "--focus", "("}, "drydock: --focus: error parsing regexp"},
		{[]string{"--runtime-endpoint", socket, "--skip", "[a"}, "drydock: --skip: error parsing regexp"},
		{[]string{"--runtime-endpoint", socket, "--focus", "no-such-check"}, "drydock: no check has a name that"},
		{[]string{"--runtime-endpoint", socket, "--parallel", "0"}, "drydock: --parallel: 0 is less than 1"},
		{[]string{"--runtime-endpoint", socket, "--timeout", "0"}, "drydock: --timeout: 0s is no time"},
		{[]string{"--runtime-endpoint", socket, "--timeout", "x"}, `drydock: invalid argument "x" for "--timeout" flag`},
		{[]string{"--runtime-endpoint", socket, "--report-json", dir}, "drydock: --report-json: open " + dir + ": is a directory"},
		{[]string{"--runtime-endpoint", socket, "--report-junit", plain + "/x"}, "drydock: --report-junit: open " + plain + "/x: not a directory"},
		{[]string{"--runtime-endpoint", "x", "--report-json", plain, "--report-junit", filepath.Join(dir, "new")}, "drydock: --runtime-endpoint: "},
		{[]string{"--runtime-endpoint", socket, "more"}, "drydock: unknown command"},
	} {
		var out notes
		code := execute(context.Background(), append([]string{"conformance"}, tc.args...), io.Discard, &out)
		if got := out.String(); code != exitBadInput || !strings.HasPrefix(got, tc.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%v: exit code %d\n got %swant %s", tc.args, code, got, tc.want)
		}
	}
	// A report that is not written leaves what is there.
	if text, err := os.ReadFile(plain); err != nil || string(text) != "as it was" {
		t.Errorf("%s has %q, %v", plain, text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Errorf("a report was made: %v", err)
	}
}
