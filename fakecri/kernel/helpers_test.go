package kernel_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/fakecri/kernel/rootfs"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// rig is a machine with one busybox image.
type rig struct {
	t    testing.TB
	l    *loop.Loop
	fs   *memfs.FS
	m    *kernel.Machine
	img  *memfs.Image
	cmds kernel.Commands
}

func newRig(t testing.TB) *rig {
	before := runtime.NumGoroutine()
	l := loop.New(loop.Options{Name: "node-0"})
	r := &rig{t: t, l: l, fs: memfs.New(memfs.Options{Loop: l}), cmds: kernel.Commands{}}
	r.m = kernel.New(kernel.Options{Loop: l, FS: r.fs, Hostname: "node-0", HostIP: "10.0.0.1", Memory: 4 << 30})
	var err error
	r.img, err = rootfs.BusyboxImage([]string{"sh", "sleep", "cat", "main", "child", "other"})
	must(t, err)
	t.Cleanup(func() {
		l.Close()
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("%d goroutines are left", n-before)
		}
	})
	r.cmds["sleep"] = func(ctx context.Context, p *kernel.Process) int {
		_ = p.Sleep(ctx, time.Hour)
		return 0
	}
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) run(d time.Duration) {
	r.t.Helper()
	must(r.t, r.l.RunUntil(r.l.Now().Add(d)))
}

func (r *rig) container(change func(*kernel.ContainerOptions)) *kernel.Container {
	o := kernel.ContainerOptions{Root: r.m.NewView(kernel.ViewOptions{Image: r.img}), Hostname: "pod", Commands: r.cmds}
	if change != nil {
		change(&o)
	}
	return r.m.NewContainer(o)
}

// start runs argv in a container and says how it ended, nil while it runs.
func (r *rig) start(c *kernel.Container, spec kernel.Spec) (*kernel.Process, **kernel.Exit) {
	r.t.Helper()
	var out *kernel.Exit
	spec.Done = func(e kernel.Exit) {
		if out != nil {
			r.t.Error("Done twice")
		}
		out = &e
	}
	p, err := c.Start(spec)
	must(r.t, err)
	return p, &out
}

func argv(a ...string) kernel.Spec {
	return kernel.Spec{Argv: a, Env: []string{"PATH=/bin"}}
}

// as runs body as the first process of a container of its own and waits for its
// end.
func (r *rig) as(cred kernel.Cred, c *kernel.Container, body kernel.Command) kernel.Exit {
	r.t.Helper()
	r.cmds["main"] = body
	spec := argv("main")
	spec.Cred = cred
	_, e := r.start(c, spec)
	r.run(time.Hour)
	if *e == nil {
		r.t.Fatal("it runs on")
	}
	return **e
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

func readAll(ctx context.Context, f kernel.File) (string, error) {
	var out []byte
	b := make([]byte, 1000)
	for {
		n, err := f.Read(ctx, b)
		out = append(out, b[:n]...)
		if err == io.EOF {
			return string(out), nil
		}
		if err != nil {
			return string(out), err
		}
	}
}

func isErrno(err error, want linux.Errno) bool {
	if want == 0 {
		return err == nil
	}
	return errors.Is(err, want)
}
