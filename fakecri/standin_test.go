package fakecri

import (
	"errors"
	"strings"
	"testing"
)

// Commands that nobody knows exit 0 beside a program of which nobody knows the
// image's files, with a warning; where the image's commands are known they are
// missing.
func TestUnknownCommandsInExecs(t *testing.T) {
	for _, tc := range []struct {
		image string
		cmd   []string
		out   string
		code  int    // the exit code, if it runs
		fails string // what the error has, if it doesn't
		warns string
	}{
		{image: "redis:7", cmd: []string{"redis-cli", "-h", "localhost", "ping"}, out: "PONG\n"},
		{image: "redis:7", cmd: []string{"sh", "-c", `[ "$(redis-cli ping)" = PONG ] && redis-cli ping | grep -c PONG`}, out: "1\n"},
		{image: "redis:7", cmd: []string{"redis-cli", "shutdown"}, warns: "redis-cli"},
		{image: "quay.io/x/postgresql:16", cmd: []string{"sh", "-c", `exec pg_isready -U "$USER" -h 127.0.0.1`}, out: "/var/run/postgresql:5432 - accepting connections\n"},
		{image: "ghcr.io/acme/api:1", cmd: []string{"/app/health"}, warns: "the command /app/health is not known here"},
		{image: "ghcr.io/acme/api:1", cmd: []string{"sh", "-c", "/app/health && frob || echo no"}, warns: "frob"},
		{image: "ghcr.io/acme/api:1", cmd: []string{"sh", "-c", "cat /missing; false"}, code: 1},
		{image: "ghcr.io/acme/api:1", cmd: []string{"/etc/passwd"}, fails: "permission denied"},
		{image: "nginx:1.27", cmd: []string{"sh", "-c", `. /etc/os-release; echo "$ID $VERSION_ID"`}, out: "debian 12\n"},
		{image: "nginx:1.27", cmd: []string{"nginx", "-s", "quit"}, warns: "nginx"},
		{image: "registry.k8s.io/pause:3.10", cmd: []string{"frob"}, fails: "executable file not found in $PATH"},
	} {
		t.Run(tc.image+" "+strings.Join(tc.cmd, " "), func(t *testing.T) {
			opts, warned := socketOptions, ""
			opts.Warn = func(text string) { warned += text + "\n" }
			run(t, opts, func(e *env) {
				e.pull(tc.image)
				cfg := containerConfig("web", "main", 0)
				cfg.Image = spec(tc.image)
				id, err := e.c.CreateContainer(e.ctx, e.sandbox("web", 0), cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				out, _, err := e.c.ExecSync(e.ctx, id, tc.cmd, 0)
				code := 0
				var exit *ExitError
				if errors.As(err, &exit) {
					code, err = exit.Code, nil
				}
				if tc.fails != "" {
					if err == nil || !strings.Contains(err.Error(), tc.fails) {
						t.Errorf("error %v, want %q", err, tc.fails)
					}
					return
				}
				e.ok(err)
				if string(out) != tc.out || code != tc.code {
					t.Errorf("%q and code %d, want %q and %d", out, code, tc.out, tc.code)
				}
				if warned == "" != (tc.warns == "") || !strings.Contains(warned, tc.warns) {
					t.Errorf("warnings %q, want %q", warned, tc.warns)
				}
			})
		})
	}
}
