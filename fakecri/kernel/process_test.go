package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

func TestStartErrorsReadAsRuncs(t *testing.T) {
	r := newRig(t)
	c := r.container(nil)
	v := c.View()
	must(t, v.WriteFile("/plain", []byte("x"), 0o644))
	must(t, v.WriteFile("/binary", []byte("\x7fELF other"), 0o755))
	must(t, v.WriteFile("/script", []byte("#!/no/interp\n"), 0o755))
	must(t, v.WriteFile("/private", kernel.ELF("sleep"), 0o700))
	for _, k := range []struct {
		argv string
		cred kernel.Cred
		dir  string
		want string
	}{
		{"/no/such", kernel.Cred{}, "", `exec: "/no/such": stat /no/such: no such file or directory`},
		{"nosuch", kernel.Cred{}, "", `exec: "nosuch": executable file not found in $PATH`},
		{"/plain", kernel.Cred{}, "", `exec: "/plain": permission denied`},
		{"/private", kernel.Cred{UID: 5}, "", `exec: "/private": permission denied`},
		{"/bin", kernel.Cred{}, "", `exec: "/bin": permission denied`},
		{"/binary", kernel.Cred{}, "", `exec /binary: exec format error`},
		{"/script", kernel.Cred{}, "", `exec /script: no such file or directory`},
		{"sleep", kernel.Cred{}, "/plain", `chdir to cwd ("/plain") set in config.json failed: not a directory`},
		{"sleep", kernel.Cred{UID: 5}, "/root", `chdir to cwd ("/root") set in config.json failed: permission denied`},
	} {
		s := argv(k.argv)
		s.Cred, s.Dir = k.cred, k.dir
		if _, err := c.Start(s); err == nil || err.Error() != k.want {
			t.Errorf("%s: %v, want %s", k.argv, err, k.want)
		}
	}
	if len(c.Processes()) != 0 {
		t.Error("a process came to be")
	}
	if _, err := c.Start(argv("sleep")); err != nil {
		t.Error(err)
	}
}

func TestFirstProcessEndsTheContainer(t *testing.T) {
	r := newRig(t)
	c := r.container(nil)
	_, first := r.start(c, argv("sleep"))
	second, exec := r.start(c, argv("/bin/sleep"))
	r.run(time.Second)
	if second.PID() != 2 || second.PPID() != 0 || *first != nil || *exec != nil {
		t.Fatalf("pid %d, ppid %d", second.PID(), second.PPID())
	}
	c.Signal(kernel.SIGTERM) // pid 1 has no handler
	r.run(time.Second)
	if *first != nil {
		t.Fatal("pid 1 died of SIGTERM")
	}
	c.Signal(kernel.SIGKILL)
	if *first == nil || **first != (kernel.Exit{Code: 137, Signal: 9}) || *exec == nil || (*exec).Code != 137 {
		t.Fatalf("%v, %v", *first, *exec)
	}
	if _, err := c.Start(argv("sleep")); err != kernel.ErrStopped {
		t.Error(err)
	}
	if n := len(r.m.HostPIDs().Processes()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestSpawnWaitAndOrphans(t *testing.T) {
	r := newRig(t)
	var log []string
	say := func(f string, a ...any) { log = append(log, fmt.Sprintf(f, a...)) }
	r.cmds["child"] = func(ctx context.Context, p *kernel.Process) int {
		say("child %d of %d: %s in %s", p.PID(), p.PPID(), strings.Join(p.Argv, " "), p.Dir)
		g := p.Fork("sub", nil, func(ctx context.Context, p *kernel.Process) int {
			_ = p.Sleep(ctx, 5*time.Second)
			say("orphan %d of %d", p.PID(), p.PPID())
			return 0
		})
		_ = g
		_ = p.Sleep(ctx, time.Second)
		return 300
	}
	c := r.container(nil)
	e := r.as(kernel.Cred{}, c, func(ctx context.Context, p *kernel.Process) int {
		must(t, p.Chdir("/etc"))
		a, err := p.Spawn(ctx, kernel.Spec{Argv: []string{"/bin/child", "x"}})
		must(t, err)
		b := p.Fork("quick", nil, func(context.Context, *kernel.Process) int { return 7 })
		got, exit, err := p.WaitAny(ctx)
		say("first: %v %d %v", got == b, exit.Code, err)
		exit, err = p.Wait(ctx, a)
		say("then: %d %v", exit.Code, err)
		_, err = p.Wait(ctx, a)
		say("again: %v", err)
		if _, err := p.Spawn(ctx, kernel.Spec{Argv: []string{"/bin/nosuch"}}); !errors.Is(err, linux.ENOENT) {
			t.Error(err)
		}
		_ = p.Sleep(ctx, 10*time.Second)
		return 3
	})
	want := "first: true 7 <nil>\nchild 2 of 1: /bin/child x in /etc\nthen: 44 <nil>\nagain: no child processes\norphan 4 of 1"
	if got := strings.Join(log, "\n"); got != want || e.Code != 3 {
		t.Errorf("%v\n%s\nwant\n%s", e, got, want)
	}
}

func TestSignals(t *testing.T) {
	r := newRig(t)
	c := r.container(nil)
	var log []string
	say := func(f string, a ...any) { log = append(log, fmt.Sprintf(f, a...)) }
	r.cmds["child"] = func(ctx context.Context, p *kernel.Process) int {
		_ = p.Sleep(ctx, time.Hour)
		return 0
	}
	e := r.as(kernel.Cred{}, c, func(ctx context.Context, p *kernel.Process) int {
		p.Disposition(kernel.SIGTERM, kernel.Catch)
		p.Disposition(kernel.SIGUSR1, kernel.Ignore)
		a, _ := p.Spawn(ctx, kernel.Spec{Argv: []string{"/bin/child"}})
		say("ignored is handed down: %v, caught is not: %v", a.DispositionOf(kernel.SIGUSR1), a.DispositionOf(kernel.SIGTERM))
		must(t, p.Kill(a.PID(), kernel.SIGUSR1))
		must(t, p.Kill(a.PID(), kernel.SIGTERM))
		x, err := p.Wait(ctx, a)
		say("%v %v", x, err)
		say("none: %v, bad: %v", p.Kill(99, 15), p.Kill(a.PID(), 70))
		r.l.Root().After(time.Second, func() { c.Signal(kernel.SIGTERM); c.Signal(kernel.SIGTERM) })
		say("sleep: %v after %s", p.Sleep(ctx, time.Minute), time.Duration(r.l.UnixNano()%1e9).Round(time.Millisecond))
		sig, ok := p.NextSignal()
		_, more := p.NextSignal()
		say("%d %v %v", sig, ok, more)
		say("sleep: %v", p.Sleep(ctx, time.Second))
		must(t, p.Kill(p.PID(), kernel.SIGKILL)) // spares pid 1
		b, _ := p.Spawn(ctx, kernel.Spec{Argv: []string{"/bin/child"}})
		must(t, p.Kill(0, kernel.SIGHUP))
		x, _ = p.Wait(ctx, b)
		say("%v", x)
		return 0
	})
	want := "ignored is handed down: 1, caught is not: 0\n{143 15 false} <nil>\nnone: no such process, bad: invalid argument\n" +
		"sleep: interrupted system call after 1ms\n15 true false\nsleep: <nil>\n{129 1 false}"
	if got := strings.Join(log, "\n"); got != want || e.Code != 0 {
		t.Errorf("%v\n%s\nwant\n%s", e, got, want)
	}
}

func TestKillNeedsPermission(t *testing.T) {
	r := newRig(t)
	c := r.container(nil)
	r.cmds["other"] = func(ctx context.Context, p *kernel.Process) int {
		if err := p.Kill(1, 15); err != linux.EPERM {
			t.Error(err)
		}
		return 9
	}
	_, first := r.start(c, argv("sleep"))
	s := argv("other")
	s.Cred.UID = 1000
	_, e := r.start(c, s)
	r.run(time.Second)
	if *first != nil || *e == nil || (*e).Code != 9 {
		t.Error(*first, *e)
	}
}

func TestSharedPIDs(t *testing.T) {
	r := newRig(t)
	pids := r.m.NewPIDs()
	pids.AddStated("/pause")
	share := func(o *kernel.ContainerOptions) { o.PIDs = pids }
	a, b := r.container(share), r.container(share)
	pa, ea := r.start(a, argv("sleep", "1"))
	pb, eb := r.start(b, argv("sleep", "2"))
	r.run(time.Second)
	if pa.PID() != 2 || pb.PID() != 3 {
		t.Fatal(pa.PID(), pb.PID())
	}
	if data, err := pa.View().ReadFile("/proc/3/cmdline"); string(data) != "sleep\x002\x00" {
		t.Errorf("%q %v", data, err)
	}
	if data, _ := pa.View().ReadFile("/proc/1/cmdline"); string(data) != "/pause\x00" {
		t.Errorf("%q", data)
	}
	a.Signal(kernel.SIGTERM)
	if *ea == nil || (*ea).Code != 143 || *eb != nil {
		t.Errorf("%v %v", *ea, *eb)
	}
}

func TestPowerCut(t *testing.T) {
	r := newRig(t)
	g := r.l.NewGroup("container")
	c := r.container(func(o *kernel.ContainerOptions) { o.Group = g })
	_, e := r.start(c, argv("sleep"))
	r.run(time.Second)
	g.Kill()
	r.run(time.Second)
	if *e != nil || len(r.m.HostPIDs().Processes()) != 0 || len(c.Processes()) != 0 {
		t.Error("something is left", *e)
	}
}

func TestPipes(t *testing.T) {
	r := newRig(t)
	var log []string
	e := r.as(kernel.Cred{}, r.container(nil), func(ctx context.Context, p *kernel.Process) int {
		rd, wr := r.m.Pipe()
		w := p.Fork("writer", []kernel.File{nil, wr}, func(ctx context.Context, p *kernel.Process) int {
			n, err := p.FD(1).Write(ctx, make([]byte, 200_000))
			log = append(log, fmt.Sprint("wrote ", n, err))
			return 0
		})
		must(t, wr.Close())
		_ = p.Sleep(ctx, time.Second)
		if _, ended := w.Ended(); ended {
			t.Error("200 KB fitted into a pipe")
		}
		got, err := readAll(ctx, rd)
		log = append(log, fmt.Sprint("read ", len(got), err))
		_, _ = p.Wait(ctx, w)
		_ = rd.Close()

		rd, wr = r.m.Pipe()
		w = p.Fork("yes", []kernel.File{nil, wr}, func(ctx context.Context, p *kernel.Process) int {
			for {
				if _, err := p.FD(1).Write(ctx, []byte("y\n")); err != nil {
					return 1
				}
			}
		})
		_ = wr.Close()
		_, _ = rd.Read(ctx, make([]byte, 2))
		_ = rd.Close()
		x, _ := p.Wait(ctx, w)
		log = append(log, fmt.Sprint("yes ", x))

		rd, wr = r.m.Pipe()
		_ = rd.Close()
		p.Disposition(kernel.SIGPIPE, kernel.Ignore)
		_, err = wr.Write(ctx, []byte("x"))
		log = append(log, fmt.Sprint(err))

		rd, wr = r.m.Pipe()
		p.Disposition(kernel.SIGALRM, kernel.Catch)
		r.l.Root().After(time.Second, func() { _ = p.Kill(1, kernel.SIGALRM) })
		_, err = rd.Read(ctx, make([]byte, 1))
		log = append(log, fmt.Sprint(err))
		_ = wr.Close()
		return 0
	})
	want := "wrote 200000 <nil>\nread 200000 <nil>\nyes {141 13 false}\nbroken pipe\ninterrupted system call"
	if got := strings.Join(log, "\n"); got != want || e.Code != 0 {
		t.Errorf("%v\n%s\nwant\n%s", e, got, want)
	}
}

func TestExecAndScripts(t *testing.T) {
	r := newRig(t)
	var log []string
	r.cmds["sh"] = func(ctx context.Context, p *kernel.Process) int {
		log = append(log, strings.Join(p.Argv, " "))
		if len(p.Argv) > 3 {
			code, err := p.Exec(ctx, "", []string{"/bin/busybox", "other", "z"}, nil)
			if err != nil {
				t.Error(err)
			}
			return code
		}
		return 1
	}
	r.cmds["other"] = func(_ context.Context, p *kernel.Process) int {
		log = append(log, strings.Join(p.Argv, " "))
		return 6
	}
	c := r.container(nil)
	must(t, c.View().WriteFile("/run.sh", []byte("#! /bin/sh -e\necho\n"), 0o755))
	_, e := r.start(c, argv("/run.sh", "a"))
	r.run(time.Second)
	if got := strings.Join(log, "\n"); got != "/bin/sh -e /run.sh a\nother z" || *e == nil || (*e).Code != 6 {
		t.Errorf("%s %v", got, *e)
	}
}

func TestUnknownCommand(t *testing.T) {
	r := newRig(t)
	out := &output{}
	var told string
	c := r.container(func(o *kernel.ContainerOptions) { o.UnknownCommand = func(n string) { told = n } })
	s := argv("cat")
	s.FDs = []kernel.File{nil, nil, out}
	_, e := r.start(c, s)
	r.run(time.Second)
	if told != "cat" || *e == nil || (*e).Code != 127 || string(out.b) != "cat: applet not found\n" {
		t.Errorf("%q %v %q", told, *e, out.b)
	}
}

func TestOOM(t *testing.T) {
	for _, k := range []struct {
		name       string
		group      bool
		podLimit   int64
		main, kids string
	}{
		{"the biggest", false, 0, "{5 0 false}", "[{137 9 true} {0 0 false}]"},
		{"all", true, 0, "{137 9 true}", "[]"},
		{"the pod's limit", false, 64 << 20, "{5 0 false}", "[{137 9 true} {0 0 false}]"},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := newRig(t)
			victims := 0
			c := r.container(func(o *kernel.ContainerOptions) {
				o.MemoryLimit = 64 << 20
				if k.podLimit > 0 {
					o.MemoryLimit, o.Cgroup = 0, r.m.NewCgroup(k.podLimit)
				}
				o.OOMGroup = k.group
				o.OOM = func(*kernel.Process) { victims++ }
			})
			var kids []kernel.Exit
			e := r.as(kernel.Cred{}, c, func(ctx context.Context, p *kernel.Process) int {
				big := p.Fork("big", nil, func(ctx context.Context, p *kernel.Process) int {
					for range 100 {
						_ = p.Alloc(ctx, 1<<20)
						_ = p.Step(ctx, time.Millisecond)
					}
					t.Error("it lives")
					return 0
				})
				small := p.Fork("small", nil, func(ctx context.Context, p *kernel.Process) int {
					_ = p.Alloc(ctx, 1<<20)
					_ = p.Sleep(ctx, time.Second)
					return 0
				})
				for _, k := range []*kernel.Process{big, small} {
					x, _ := p.Wait(ctx, k)
					kids = append(kids, x)
				}
				return 5
			})
			if fmt.Sprint(e) != k.main || fmt.Sprint(kids) != k.kids || victims == 0 {
				t.Errorf("%v %v, %d victims", e, kids, victims)
			}
			if c.MemoryUsage() != 0 {
				t.Errorf("%d bytes are left", c.MemoryUsage())
			}
		})
	}
}

func TestKilledLeavesNothingHalfDone(t *testing.T) {
	r := newRig(t)
	c := r.container(nil)
	_, e := r.start(c, argv("sleep"))
	undone := false
	r.cmds["other"] = func(ctx context.Context, p *kernel.Process) int {
		defer func() {
			p.Free(1 << 20)
			if w := p.FD(1); w != nil {
				_ = w.Close()
			}
			undone = true
		}()
		_ = p.Alloc(ctx, 1<<20)
		_ = p.Kill(p.PID(), kernel.SIGTERM)
		t.Error("Kill returned to the dead")
		return 0
	}
	_, x := r.start(c, argv("other"))
	r.run(time.Second)
	if *e != nil || *x == nil || (*x).Signal != 15 || !undone || c.MemoryUsage() != 512<<10 {
		t.Error(*x, undone, c.MemoryUsage())
	}
}

func TestDeterminism(t *testing.T) {
	draw := func() string {
		r := newRig(t)
		out := ""
		r.as(kernel.Cred{}, r.container(nil), func(ctx context.Context, p *kernel.Process) int {
			f, err := p.View().Open("/dev/urandom", 0, 0)
			must(t, err)
			b := make([]byte, 20)
			_, _ = f.Read(ctx, b)
			id, _ := p.View().ReadFile("/proc/sys/kernel/random/uuid")
			out = fmt.Sprintf("%x %s", b, id)
			return 0
		})
		return out
	}
	if a, b := draw(), draw(); a != b || len(a) < 70 {
		t.Errorf("%s, %s", a, b)
	}
}

func TestFromContext(t *testing.T) {
	r := newRig(t)
	r.as(kernel.Cred{}, r.container(nil), func(ctx context.Context, p *kernel.Process) int {
		tctx, cancel := loop.WithTimeout(ctx, time.Second)
		defer cancel()
		if kernel.From(tctx) != p || kernel.From(r.l.Root().Background()) != nil {
			t.Error("From finds another")
		}
		if err := p.Sleep(tctx, time.Minute); err != context.DeadlineExceeded {
			t.Error(err)
		}
		return 0
	})
}

func TestTmpfsTakesMemory(t *testing.T) {
	r := newRig(t)
	c := r.container(func(o *kernel.ContainerOptions) { o.MemoryLimit = 32 << 20 })
	must(t, c.View().Namespace().Tmpfs("/t", 0))
	var exits []kernel.Exit
	e := r.as(kernel.Cred{}, c, func(ctx context.Context, p *kernel.Process) int {
		fill := func(name string, n int64) {
			k := p.Fork("dd", nil, func(ctx context.Context, p *kernel.Process) int {
				_ = p.Alloc(ctx, 1<<20)
				f, err := p.View().Open(name, os.O_WRONLY|os.O_CREATE, 0o644)
				must(t, err)
				if err := f.(kernel.ZeroWriter).WriteZeros(ctx, n); err != nil {
					return 1
				}
				return 0
			})
			x, _ := p.Wait(ctx, k)
			exits = append(exits, x)
		}
		fill("/t/a", 20<<20)
		if got := c.MemoryUsage(); got < 20<<20 || got > 21<<20 {
			t.Errorf("%d bytes are used", got)
		}
		fill("/t/b", 20<<20)
		must(t, p.View().Remove("/t/a"))
		fill("/t/c", 16<<20)
		fill("/etc/d", 100<<20)
		return 0
	})
	if fmt.Sprint(e, exits) != "{0 0 false} [{0 0 false} {137 9 true} {0 0 false} {0 0 false}]" {
		t.Error(e, exits)
	}
}

func TestFirstPIDTakesItsNamespaceAlong(t *testing.T) {
	r := newRig(t)
	a := r.container(nil)
	b := r.container(func(o *kernel.ContainerOptions) { o.PIDs = a.PIDs() }) // as an ephemeral container
	_, ea := r.start(a, argv("sleep"))
	pb, eb := r.start(b, argv("sleep"))
	r.run(time.Second)
	if pb.PID() != 2 {
		t.Error(pb.PID())
	}
	a.Signal(kernel.SIGKILL)
	if *ea == nil || *eb == nil || (*eb).Code != 137 {
		t.Error(*ea, *eb)
	}
}

func TestNamedPipes(t *testing.T) {
	r := newRig(t)
	must(t, r.fs.MkdirAll("/shared", 0o755))
	a, b := r.container(nil), r.container(nil)
	must(t, a.View().Namespace().Bind("/s", r.fs, "/shared", false))
	must(t, b.View().Namespace().Bind("/s", r.fs, "/shared", false))
	var log []string
	r.cmds["other"] = func(ctx context.Context, p *kernel.Process) int {
		_ = p.Sleep(ctx, 2*time.Second)
		f, err := p.View().Open("/s/p", os.O_WRONLY, 0)
		must(t, err)
		_, _ = f.Write(ctx, []byte("hello"))
		_ = f.Close()
		return 0
	}
	_, _ = r.start(b, argv("other"))
	e := r.as(kernel.Cred{}, a, func(ctx context.Context, p *kernel.Process) int {
		must(t, p.View().Mkfifo("/s/p", 0o644))
		f, err := p.View().Open("/s/p", os.O_RDONLY, 0)
		log = append(log, fmt.Sprint(err, " ", r.l.Since(loop.Epoch()).Round(time.Second)))
		got, err := readAll(ctx, f)
		log = append(log, fmt.Sprint(got, " ", err))
		_ = f.Close()
		p.Disposition(kernel.SIGALRM, kernel.Catch)
		r.l.Root().After(time.Second, func() { a.Signal(kernel.SIGALRM) })
		_, err = p.View().Open("/s/p", os.O_WRONLY, 0)
		log = append(log, fmt.Sprint(err))
		done := false
		p.Go("second", func(ctx context.Context) { done = kernel.From(ctx) == p })
		_ = p.Step(ctx, time.Second)
		log = append(log, fmt.Sprint(done))
		return 0
	})
	if got := strings.Join(log, "; "); e.Code != 0 || got != "<nil> 2s; hello <nil>; open /s/p: interrupted system call; true" {
		t.Error(e, got)
	}
}
