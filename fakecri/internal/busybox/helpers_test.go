package busybox_test

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox"
	"github.com/drydock-sim/drydock/fakecri/internal/shell"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/fakecri/kernel/rootfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// rig is a machine with one container of a busybox image.
type rig struct {
	t   testing.TB
	l   *loop.Loop
	m   *kernel.Machine
	c   *kernel.Container
	fs  *memfs.FS
	img *memfs.Image
}

func newRig(t testing.TB, change func(*kernel.ContainerOptions)) *rig {
	before := runtime.NumGoroutine()
	l := loop.New(loop.Options{Name: "node-0"})
	r := &rig{t: t, l: l, fs: memfs.New(memfs.Options{Loop: l})}
	t.Cleanup(func() {
		l.Close()
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines are left", n-before)
		}
	})
	r.m = kernel.New(kernel.Options{Loop: l, FS: r.fs, Hostname: "node-0", HostIP: "10.0.0.1", Memory: 4 << 30, CPUs: 2})
	img, err := rootfs.BusyboxImage(append(busybox.Applets(), "sh"))
	if err != nil {
		t.Fatal(err)
	}
	r.img = img
	r.c = r.container("10.1.0.2", change)
	return r
}

func (r *rig) container(ip string, change func(*kernel.ContainerOptions)) *kernel.Container {
	cmds := busybox.Commands()
	cmds["sh"] = shell.Command()
	o := kernel.ContainerOptions{Root: r.m.NewView(kernel.ViewOptions{Image: r.img}), Hostname: "pod", Commands: cmds, Net: r.m.NewNet(ip)}
	if change != nil {
		change(&o)
	}
	return r.m.NewContainer(o)
}

// output is a File that keeps what is written.
type output struct{ b []byte }

func (o *output) Read(context.Context, []byte) (int, error) { return 0, io.EOF }
func (o *output) Write(_ context.Context, b []byte) (int, error) {
	o.b = append(o.b, b...)
	return len(b), nil
}
func (o *output) Close() error     { return nil }
func (o *output) Dup() kernel.File { return o }

// input is a File with a text.
type input struct{ r *strings.Reader }

func (i input) Read(_ context.Context, b []byte) (int, error)  { return i.r.Read(b) }
func (i input) Write(_ context.Context, b []byte) (int, error) { return len(b), nil }
func (i input) Close() error                                   { return nil }
func (i input) Dup() kernel.File                               { return i }

// running is a started process.
type running struct {
	out   *output
	exit  *kernel.Exit
	proc  *kernel.Process
	ended time.Time
}

func (r *rig) start(c *kernel.Container, cred kernel.Cred, stdin, dir string, argv ...string) *running {
	r.t.Helper()
	p := &running{out: &output{}}
	spec := kernel.Spec{
		Argv: argv, Env: []string{"PATH=/bin"}, Dir: dir, Cred: cred,
		FDs:  []kernel.File{input{strings.NewReader(stdin)}, p.out, p.out},
		Done: func(e kernel.Exit) { p.exit = &e; p.ended = r.l.Now() },
	}
	var err error
	if p.proc, err = c.Start(spec); err != nil {
		r.t.Fatalf("%v: %v", argv, err)
	}
	return p
}

func (r *rig) run(d time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(r.l.Now().Add(d)); err != nil {
		r.t.Fatal(err)
	}
}

// sh runs a script as the first process of a fresh container of the rig, up to
// an hour.
func (r *rig) sh(script string) (string, int) {
	r.t.Helper()
	p := r.start(r.c, kernel.Cred{}, "", "", "sh", "-c", script)
	r.run(time.Hour)
	if p.exit == nil {
		r.t.Fatalf("%s: still running; it wrote %q", script, p.out.b)
	}
	return string(p.out.b), p.exit.Code
}

func sh(t testing.TB, script string) (string, int) {
	t.Helper()
	return newRig(t, nil).sh(script)
}
