package kernel_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// readTree reads all that a tree lists and returns how many files that were.
func readTree(t *testing.T, v *kernel.View, dir string) int {
	entries, err := v.ReadDir(dir)
	if err != nil {
		t.Errorf("%s: %v", dir, err)
		return 0
	}
	n := 0
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		i, err := v.Lstat(at)
		if err != nil || i.Mode().Type() != e.Type() {
			t.Errorf("%s: %v, listed as %v: %v", at, i, e, err)
			continue
		}
		switch e.Type() {
		case fs.ModeDir:
			n += readTree(t, v, at)
		case 0:
			if _, err := v.ReadFile(at); err != nil {
				t.Error(err)
			}
			n++
		}
	}
	return n
}

func TestWhatIsListedCanBeRead(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		r := newRig(t)
		o := *r.m.Options()
		o.CgroupV2 = v2
		r.m = kernel.New(o)
		c := r.container(func(o *kernel.ContainerOptions) { o.CPUShares, o.CPUQuota, o.MemoryLimit = 512, 20000, 64<<20 })
		_, e := r.start(c, argv("sleep"))
		r.as(kernel.Cred{}, r.container(func(o *kernel.ContainerOptions) { o.PIDs = c.PIDs() }), func(_ context.Context, p *kernel.Process) int {
			if n := readTree(t, p.View(), "/proc"); n < 40 {
				t.Errorf("%d files in /proc", n)
			}
			if n := readTree(t, p.View(), "/sys"); n < 10 {
				t.Errorf("%d files in /sys", n)
			}
			return 0
		})
		want := map[string]string{"/sys/fs/cgroup/cpu/cpu.shares": "512\n", "/sys/fs/cgroup/cpuacct/cpu.cfs_quota_us": "20000\n", "/sys/fs/cgroup/pids/cgroup.procs": "1\n"}
		if v2 {
			want = map[string]string{"/sys/fs/cgroup/cpu.max": "20000 100000\n", "/sys/fs/cgroup/cpu.weight": "20\n", "/sys/fs/cgroup/memory.max": "67108864\n", "/sys/fs/cgroup/cgroup.procs": "1\n"}
		}
		for name, text := range want {
			if got := content(c.View(), name); got != text {
				t.Errorf("%s: %q, want %q", name, got, text)
			}
		}
		c.KillAll()
		if *e == nil {
			t.Error("it lives")
		}
	}
}

func TestLowerLimits(t *testing.T) {
	r := newRig(t)
	pod := r.m.NewCgroup(0)
	c := r.container(func(o *kernel.ContainerOptions) { o.Cgroup = pod })
	eat := func(ctx context.Context, p *kernel.Process) int {
		_ = p.Alloc(ctx, 50<<20)
		_ = p.Sleep(ctx, time.Hour)
		return 0
	}
	r.cmds["child"] = eat
	_, first := r.start(c, argv("sleep"))
	_, a := r.start(c, argv("child"))
	_, b := r.start(c, argv("child"))
	r.run(time.Second)
	c.SetMemoryLimit(200 << 20)
	if *a != nil || *b != nil || pod.Usage() != c.MemoryUsage() {
		t.Fatal("killed too early")
	}
	c.SetMemoryLimit(80 << 20)
	if *b == nil || !(*b).OOM || *a != nil {
		t.Error("the container's limit", *a, *b)
	}
	pod.SetLimit(10 << 20)
	if *a == nil || !(*a).OOM || *first != nil || pod.Limit() != 10<<20 {
		t.Error("the pod's limit", *a, *first)
	}
}

// TestInterruptAtATerminal: ^C is a new line for a shell that waits at its prompt, and ends what
// the shell has started, even if that waits for input too.
func TestInterruptAtATerminal(t *testing.T) {
	r := newRig(t)
	var log []string
	read := func(ctx context.Context, p *kernel.Process) {
		b := make([]byte, 64)
		n, err := p.FD(0).Read(ctx, b)
		log = append(log, fmt.Sprintf("%s reads %q, %v", p.Argv[0], b[:n], err))
	}
	r.cmds["cat"] = func(ctx context.Context, p *kernel.Process) int {
		read(ctx, p)
		return 0
	}
	r.cmds["sh"] = func(ctx context.Context, p *kernel.Process) int {
		kernel.Prompts(p.FD(0))
		read(ctx, p)
		child, err := p.Spawn(ctx, kernel.Spec{Path: "/bin/cat", Argv: []string{"cat"}})
		must(t, err)
		e, _ := p.Wait(ctx, child)
		log = append(log, fmt.Sprint("cat ends with ", e.Code))
		read(ctx, p)
		return 3
	}
	tty := r.m.NewTTY(&output{})
	c := r.container(nil)
	_, first := r.start(c, argv("sleep"))
	spec := argv("sh")
	spec.FDs = []kernel.File{tty.Slave(), tty.Slave(), tty.Slave()}
	p, e := r.start(c, spec)
	tty.SetLeader(p)
	for range 3 {
		r.run(time.Second)
		r.l.Root().Go("types", func(ctx context.Context) { _, _ = tty.Keyboard().Write(ctx, []byte{3}) })
	}
	r.run(time.Second)
	if got, want := strings.Join(log, "; "), `sh reads "\n", <nil>; cat ends with 130; sh reads "\n", <nil>`; got != want || *e == nil || (*e).Code != 3 || *first != nil {
		t.Errorf("%s; want %s; %v", got, want, *e)
	}
}

// TestTmpfsOfTheKubelet: its options are in the container's table of mounts; noswap needs a
// kernel of 6.4 (KEP-2400).
func TestTmpfsOfTheKubelet(t *testing.T) {
	for release, want := range map[string]string{
		"":               "rw,relatime,size=1024k",
		"6.3.13-generic": "rw,relatime,size=1024k",
		"6.4.0":          "rw,relatime,size=1024k,noswap",
		"6.10.1":         "rw,relatime,size=1024k,noswap",
		"7.0":            "rw,relatime,size=1024k,noswap",
		"5.15.0":         "rw,relatime,size=1024k",
		"x":              "rw,relatime,size=1024k",
	} {
		r := newRig(t)
		o := *r.m.Options()
		o.Kernel = release
		r.m = kernel.New(o)
		must(t, r.fs.MkdirAll("/secret", 0o755))
		must(t, r.fs.MountTmpfsSize("/secret", 1<<20))
		c := r.container(nil)
		must(t, c.View().Namespace().Bind("/s", r.fs, "/secret", false))
		got := ""
		r.as(kernel.Cred{}, c, func(_ context.Context, p *kernel.Process) int {
			for line := range strings.Lines(content(p.View(), "/proc/mounts")) {
				if f := strings.Fields(line); f[1] == "/s" {
					got = f[2] + " " + f[3]
				}
			}
			return 0
		})
		if got != "tmpfs "+want {
			t.Errorf("kernel %q: %s, want %s", release, got, want)
		}
	}
}

func TestHostPIDs(t *testing.T) {
	r := newRig(t)
	r.m.HostPIDs().AddStated("/usr/bin/containerd")
	c := r.container(nil)
	_, e := r.start(c, argv("sleep"))
	r.as(kernel.Cred{}, r.container(func(o *kernel.ContainerOptions) { o.PIDs = r.m.HostPIDs() }), func(ctx context.Context, p *kernel.Process) int {
		var names []string
		for _, o := range r.m.HostPIDs().Processes() {
			names = append(names, fmt.Sprint(o.PIDIn(r.m.HostPIDs()), " ", o.Comm()))
		}
		if got := strings.Join(names, ", "); got != "1201 containerd, 1202 sleep, 1203 main" || p.PID() != 1203 {
			t.Error(got, p.PID())
		}
		must(t, p.Kill(1202, kernel.SIGTERM)) // pid 1 of its own
		if *e != nil {
			t.Error("killed by a signal without a handler")
		}
		must(t, p.Kill(1202, kernel.SIGKILL))
		return 0
	})
	if *e == nil || (*e).Code != 137 {
		t.Error(*e)
	}
}

func TestNamespaceIsTakenAway(t *testing.T) {
	r := newRig(t)
	n := r.m.NewNet("10.1.0.1")
	c := r.container(func(o *kernel.ContainerOptions) { o.Net = n })
	var log []string
	r.cmds["child"] = func(ctx context.Context, p *kernel.Process) int {
		l, err := p.Listen(ctx, 80)
		must(t, err)
		if _, err := p.Listen(ctx, 80); err != linux.EADDRINUSE {
			t.Error(err)
		}
		_, err = l.Accept(ctx)
		log = append(log, fmt.Sprint(err))
		return 0
	}
	_, _ = r.start(c, argv("child"))
	r.run(time.Second)
	if fmt.Sprint(n.Ports()) != "[80]" || !n.Listening(80) {
		t.Error(n.Ports())
	}
	n.Close()
	r.l.Root().Go("client", func(ctx context.Context) {
		_, err := r.m.HostNet().Dial(ctx, "10.1.0.1", 80)
		log = append(log, fmt.Sprint(err))
	})
	r.run(time.Minute)
	if got := strings.Join(log, ", "); got != "invalid argument, no route to host" {
		t.Error(got)
	}
}

func TestFileDescriptors(t *testing.T) {
	r := newRig(t)
	r.as(kernel.Cred{}, r.container(nil), func(ctx context.Context, p *kernel.Process) int {
		f, err := p.View().Open("/tmp/x", os.O_RDWR|os.O_CREATE, 0o644)
		must(t, err)
		p.SetFD(5, f)
		rd, wr := r.m.Pipe()
		p.SetFD(6, wr)
		if got := list(t, p.View(), "/proc/self/fd"); got != "5 6" {
			t.Error(got)
		}
		if l, _ := p.View().Readlink("/proc/self/fd/5"); l != "/tmp/x" {
			t.Error(l)
		}
		k := p.Fork("kid", nil, func(ctx context.Context, p *kernel.Process) int {
			_, _ = p.FD(6).Write(ctx, []byte("kid"))
			_, _ = p.FD(5).Write(ctx, []byte("kid"))
			return 0
		})
		p.SetFD(6, nil) // the kid has the other reference
		got, err := readAll(ctx, rd)
		if got != "kid" || err != nil {
			t.Error(got, err)
		}
		_, _ = p.Wait(ctx, k)
		_, _ = p.FD(5).Write(ctx, []byte("+")) // the offset is shared
		if got := content(p.View(), "/tmp/x"); got != "kid+" {
			t.Error(got)
		}
		if p.FD(6) != nil || p.FD(99) != nil || p.FD(-1) != nil {
			t.Error("a closed file is there")
		}
		return 0
	})
}
