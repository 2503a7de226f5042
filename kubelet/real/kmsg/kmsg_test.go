//go:build linux

package kmsg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/oom"
)

func TestParser(t *testing.T) {
	const (
		start  = "usemem invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=968"
		killed = "Memory cgroup out of memory: Killed process 1204 (use mem(1)) total-vm:1052kB, anon-rss:0kB, UID:0 pgtables:40kB oom_score_adj:968"
	)
	for _, tc := range []struct {
		name  string
		lines []string
		want  oom.Kill
	}{
		{"a container's limit",
			[]string{start, "CPU: 1 PID: 1204", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,oom_memcg=/kubepods/burstable/podu/c1,task_memcg=/kubepods/burstable/podu/c1/x,task=usemem,pid=1204,uid=0", killed},
			oom.Kill{Process: "use mem(1)", PID: 1204, Container: "/kubepods/burstable/podu/c1", Victim: "/kubepods/burstable/podu/c1/x"}},
		{"the machine has no memory left",
			[]string{start, "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=c1,mems_allowed=0,global_oom,task_memcg=/kubepods/besteffort/podu/c1,task=foo,pid=123,uid=1000", "Out of memory: Killed process 123 (foo) total-vm:1kB"},
			oom.Kill{Process: "foo", PID: 123, Container: "/", Victim: "/kubepods/besteffort/podu/c1"}},
		{"an older kernel",
			[]string{start, "Task in /mem2 killed as a result of limit of /mem3", "Killed process 19667 (evil-program2) total-vm:1460016kB"},
			oom.Kill{Process: "evil-program2", PID: 19667, Container: "/mem3", Victim: "/mem2"}},
		{"an older kernel tells no cgroup",
			[]string{start, "Killed process 7, UID 1000, (x) total-vm:1kB"}, oom.Kill{Process: "x", PID: 7, Container: "/", Victim: "/"}},
	} {
		var p parser
		for i, line := range tc.lines {
			got, ok := p.line(line)
			if done := i == len(tc.lines)-1; ok != done || ok && got != tc.want {
				t.Errorf("%s: line %d: %+v, %v", tc.name, i, got, ok)
			}
		}
		if _, ok := p.line(killed); ok { // the rest of a group
			t.Errorf("%s: told twice", tc.name)
		}
	}
}

func TestRecord(t *testing.T) {
	at, text, ok := record([]byte("6,1234,0,-;the text; more\n SUBSYSTEM=x\n"))
	up := time.Since(at)
	if !ok || text != "the text; more" || up <= 0 {
		t.Errorf("%v %q %v", at, text, ok)
	}
	for _, bad := range []string{"", "6,1;x", "6,1,x,-;text", "no record"} {
		if _, _, ok := record([]byte(bad)); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

// watch runs do while a source of the file is watched, until there is a kill that
// fits or the time is over.
func watch(t *testing.T, file string, fits func(oom.Kill) bool, do func()) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	g := l.NewGroup("kubelet")
	s := New(l, g, t.Logf)
	s.file = file
	found := false
	l.Root().Go("test", func(ctx context.Context) {
		if err := s.WatchOOM(func(k oom.Kill) {
			if fits(k) {
				found = true
				cancel()
			}
		}); err != nil {
			t.Error(err)
			cancel()
			return
		}
		_, _ = loop.Await(ctx, func(context.Context) (struct{}, error) { do(); return struct{}{}, nil })
	})
	_ = l.RunReal(ctx)
	g.Kill()
	if !found {
		t.Error("no kill was told")
	}
}

// TestRealKill has the kernel kill a process for want of memory, in a cgroup
// with a limit.
func TestRealKill(t *testing.T) {
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil || os.Geteuid() != 0 {
		t.Skip("it needs root and cgroup v1")
	}
	if f, err := os.Open(device); err != nil {
		t.Skipf("the kernel's log can't be read: %v", err)
	} else {
		_ = f.Close()
	}
	name := fmt.Sprintf("/drydock-kmsg-%d", os.Getpid())
	dir := "/sys/fs/cgroup/memory" + name
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err)
	}
	defer func() { _ = os.Remove(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte("8388608"), 0); err != nil {
		t.Fatal(err)
	}
	watch(t, device, func(k oom.Kill) bool { return k.Container == name && k.Victim == name && k.PID > 0 }, func() {
		// The shell enters the cgroup and becomes what takes too much.
		cmd := exec.Command("sh", "-c", "echo $$ >"+dir+"/cgroup.procs && exec dd if=/dev/zero of=/dev/null bs=64M count=1")
		if err := cmd.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Logf("it ended with %v", err)
		}
	})
}

func TestNoKernelLog(t *testing.T) {
	l := loop.NewReal(loop.Options{Name: t.Name()})
	defer l.Close()
	s := New(l, l.NewGroup("kubelet"), nil)
	s.file = filepath.Join(t.TempDir(), "none")
	if err := s.WatchOOM(func(oom.Kill) {}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
}
