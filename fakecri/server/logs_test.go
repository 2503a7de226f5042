//go:build linux

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
)

// logLine is the CRI's format.
var logLine = regexp.MustCompile(`^(\S+) (stdout|stderr) ([PF]) (.*)$`)

// logged returns the lines of a log file without their times, which it checks.
func (r *rig) logged(name string) (out []string) {
	r.Helper()
	b, err := os.ReadFile(name)
	r.ok(err)
	text := string(b)
	if text != "" && !strings.HasSuffix(text, "\n") {
		r.Errorf("%s does not end with a line: %q", name, text)
	}
	for line := range strings.Lines(text) {
		m := logLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			r.Errorf("%s has a line %q", name, line)
			continue
		}
		if _, err := time.Parse(time.RFC3339Nano, m[1]); err != nil {
			r.Errorf("%s: %v", name, err)
		}
		out = append(out, m[2]+" "+m[3]+" "+m[4])
	}
	return out
}

func (r *rig) exit(id string) int32 {
	r.Helper()
	for range 100 {
		resp, err := r.c.ContainerStatus(r.ctx, id, false)
		r.ok(err)
		if resp.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			return resp.Status.ExitCode
		}
		r.ok(r.l.Sleep(r.ctx, time.Second))
	}
	panic("container " + id + " does not end")
}

func TestLogFiles(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	stated := fakecri.Program{Match: fakecri.Match{Image: "app"}, Behaviour: fakecri.Behaviour{
		RunFor: fakecri.Exactly(5 * time.Second), Logs: []fakecri.LogLine{{Text: "tick", Every: time.Second, Count: 2}, {Text: "oops", Stream: "stderr", At: time.Second}},
	}}
	for _, tc := range []struct {
		name  string
		image string
		cmd   string
		want  []string
	}{
		{"nothing", "busybox", "true", nil},
		{"both streams", "busybox", "echo a; echo b >&2; echo c", []string{"stdout F a", "stderr F b", "stdout F c"}},
		{"an empty line", "busybox", "echo", []string{"stdout F "}},
		{"no end", "busybox", "printf 'a\\nb'", []string{"stdout F a", "stdout P b"}},
		{"just fits", "busybox", "printf '%s\\n' " + long, []string{"stdout F " + long}},
		{"long", "busybox", "printf '%s\\n' " + long + "yz", []string{"stdout P " + long, "stdout F yz"}},
		{"stated", "app", "", []string{"stdout F tick", "stdout F tick", "stderr F oops"}},
	} {
		onMachine(t, fakecri.Options{Programs: []fakecri.Program{stated}}, func(r *rig) {
			sb := r.sandbox(nil)
			cfg := r.config("sh", "-c", tc.cmd)
			cfg.Image.Image = tc.image
			cfg.LogPath = "main/0.log"
			id, err := r.c.CreateContainer(r.ctx, sb, cfg, nil)
			r.ok(err)
			file := filepath.Join(r.dir, "logs-1/main/0.log")
			if _, err := os.Stat(file); err == nil {
				r.Errorf("%s: there is a log before the start", tc.name)
			}
			r.ok(r.c.StartContainer(r.ctx, id))
			i, err := os.Stat(file)
			r.ok(err)
			if i.Mode().Perm()&^0o640 != 0 || i.Mode().Perm()&0o600 != 0o600 {
				r.Errorf("%s: the log has mode %o", tc.name, i.Mode())
			}
			r.exit(id)
			if got := r.logged(file); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				r.Errorf("%s: log %.200q, want %.200q", tc.name, got, tc.want)
			}
			if n := len(r.logs.open); n != 0 {
				r.Errorf("%s: %d logs are open after the end", tc.name, n)
			}
		})
	}
}

func TestLogsAreReopened(t *testing.T) {
	onMachine(t, fakecri.Options{}, func(r *rig) {
		sb := r.sandbox(nil)
		cfg := r.config("sh", "-c", "while true; do echo x; sleep 1; done")
		id := r.start(sb, cfg)
		other := r.start(sb, r.config("sh", "-c", "while true; do echo other; sleep 1; done"))
		_ = other
		file := filepath.Join(r.dir, "logs-1", cfg.LogPath)
		r.ok(r.l.Sleep(r.ctx, 5*time.Second))
		r.ok(os.Rename(file, file+".1"))
		r.ok(r.l.Sleep(r.ctx, 3*time.Second))
		if _, err := os.Stat(file); err == nil {
			r.Errorf("the log is there before it was reopened")
		}
		r.ok(r.c.ReopenContainerLog(r.ctx, id))
		if _, err := os.Stat(file); err != nil {
			r.Errorf("after reopening: %v", err)
		}
		old := len(r.logged(file + ".1"))
		r.ok(r.l.Sleep(r.ctx, 5*time.Second))
		if n := len(r.logged(file + ".1")); n != old || n < 8 {
			r.Errorf("the renamed log went from %d lines to %d", old, n)
		}
		if n := len(r.logged(file)); n < 4 {
			r.Errorf("the new log has %d lines", n)
		}
		for _, l := range r.logged(file) {
			if l != "stdout F x" {
				r.Errorf("the log has %q", l)
			}
		}
		r.ok(r.c.StopContainer(r.ctx, id, 0))
		if err := r.c.ReopenContainerLog(r.ctx, id); err == nil {
			r.Errorf("the log of a container that has ended is reopened")
		}
	})
}

func TestLogsThatCantBe(t *testing.T) {
	onMachine(t, fakecri.Options{}, func(r *rig) {
		r.file("logs-1", "in the way")
		id, err := r.c.CreateContainer(r.ctx, r.sandbox(nil), r.config("true"), nil)
		r.ok(err)
		if err := r.c.StartContainer(r.ctx, id); err == nil || !strings.Contains(err.Error(), "failed to open log file") {
			r.Errorf("start: %v", err)
		}
		for _, change := range []func(*runtimeapi.PodSandboxConfig, *runtimeapi.ContainerConfig){
			func(p *runtimeapi.PodSandboxConfig, _ *runtimeapi.ContainerConfig) { p.LogDirectory = "" },
			func(_ *runtimeapi.PodSandboxConfig, c *runtimeapi.ContainerConfig) { c.LogPath = "" },
		} {
			cfg := r.config("echo", "x")
			sb := r.sandbox(func(p *runtimeapi.PodSandboxConfig) { change(p, cfg) })
			id := r.start(sb, cfg)
			if code := r.exit(id); code != 0 {
				r.Errorf("without a log the container ends with %d", code)
			}
			if list, _ := filepath.Glob(r.dir + "/*/*"); len(list) != 0 {
				r.Errorf("without a log there is %v", list)
			}
		}
	})
}
