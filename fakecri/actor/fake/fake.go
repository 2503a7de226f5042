// Package fake runs the test program in the containers of the fake runtime: it
// is the World of package fakecri/actor on the kernel of package
// fakecri/kernel.
package fake

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Commands returns the programs of the test images.
func Commands() kernel.Commands {
	return kernel.Commands{path.Base(actor.Program): run, path.Base(actor.PauseProgram): run}
}

// world is a process. Its first task waits for signals and for the end; the
// program's own tasks know nothing of either.
type world struct {
	p    *kernel.Process
	kept []int
	// sigs are the signals that came and were kept, in order.
	sigs  []int
	came  loop.Signal
	ended loop.Event
	code  int
}

var _ actor.World = (*world)(nil)

// run is the body of the program.
func run(ctx context.Context, p *kernel.Process) int {
	w := &world{p: p}
	for _, sig := range actor.Fatal() {
		p.Disposition(sig, kernel.Catch)
	}
	p.Disposition(kernel.SIGPIPE, kernel.Ignore)
	p.Group().Go("main", func(ctx context.Context) { w.Exit(ctx, actor.Main(ctx, w)) })
	for {
		i, err := loop.WaitAny(ctx, &w.ended, p.Signalled())
		if err != nil || i == 0 {
			return w.code
		}
		for sig, ok := p.NextSignal(); ok; sig, ok = p.NextSignal() {
			if !slices.Contains(w.kept, sig) {
				return 128 + sig
			}
			w.sigs = append(w.sigs, sig)
			w.came.Notify()
		}
	}
}

func (w *world) Args() []string { return w.p.Argv }
func (w *world) Env() []string  { return w.p.Env }
func (w *world) PID() int       { return w.p.PID() }
func (w *world) PPID() int      { return w.p.PPID() }

func (w *world) Identity() (uid, gid int, groups []int) {
	return w.p.Cred.UID, w.p.Cred.GID, w.p.Cred.Groups
}

func (w *world) Hostname() string { return w.p.Container().Hostname() }
func (w *world) Dir() string      { return w.p.Dir }
func (w *world) Now() time.Time   { return w.p.Now() }

func (w *world) Sleep(ctx context.Context, d time.Duration) { _ = w.p.Loop().Sleep(ctx, d) }

func (w *world) Go(name string, fn func(ctx context.Context)) { w.p.Group().Go(name, fn) }

// Exit has the first task end the process, and waits for that.
func (w *world) Exit(ctx context.Context, code int) {
	if !w.ended.Fired() {
		w.code = code
		w.ended.Fire()
	}
	_ = new(loop.Event).Wait(ctx)
}

func (w *world) Signals(list ...int) {
	w.kept = list
	for _, sig := range list {
		w.p.Disposition(sig, kernel.Catch)
	}
}

func (w *world) Signal(ctx context.Context, d time.Duration) int {
	if len(w.sigs) == 0 && d >= 0 {
		if d == 0 { // whoever runs at this instant may still send one
			_ = w.p.Loop().Yield(ctx)
		} else {
			wait, cancel := loop.WithTimeout(ctx, d)
			_ = w.came.Wait(wait)
			cancel()
		}
	}
	for len(w.sigs) == 0 {
		if d >= 0 || w.came.Wait(ctx) != nil {
			return 0
		}
	}
	sig := w.sigs[0]
	w.sigs = w.sigs[1:]
	return sig
}

func (w *world) Kill(pid, sig int) error { return w.p.Kill(pid, sig) }

func (w *world) Spawn(ctx context.Context, args ...string) (int, error) {
	c, err := w.p.Spawn(ctx, kernel.Spec{Argv: append([]string{w.p.Argv[0]}, args...)})
	if err != nil {
		var xerr *kernel.ExecError
		if errors.As(err, &xerr) {
			return 0, xerr.Errno
		}
		return 0, err
	}
	return c.PID(), nil
}

func (w *world) fd(n int) actor.File {
	if f := w.p.FD(n); f != nil {
		return f
	}
	return closed{}
}

func (w *world) Stdin() actor.File  { return w.fd(0) }
func (w *world) Stdout() actor.File { return w.fd(1) }
func (w *world) Stderr() actor.File { return w.fd(2) }

func (w *world) IsTerminal(f actor.File) bool {
	k, ok := f.(kernel.File)
	return ok && kernel.IsTTY(k)
}

func (w *world) Open(name string, flag int, perm fs.FileMode) (actor.File, error) {
	f, err := w.p.View().Open(name, flag, perm)
	if err != nil {
		return nil, err
	}
	w.p.Own(f)
	return &file{f, w.p}, nil
}

func (w *world) Stat(name string) (actor.Info, error) {
	fi, err := w.p.View().Stat(name)
	if err != nil {
		return actor.Info{}, err
	}
	out := actor.Info{Mode: fi.Mode(), Size: fi.Size()}
	if sys, ok := fi.Sys().(*memfs.Sys); ok {
		out.UID, out.GID = sys.UID, sys.GID
	}
	return out, nil
}

func (w *world) ReadDir(name string) ([]string, error) {
	list, err := w.p.View().ReadDir(name)
	if err != nil {
		return nil, err
	}
	out := lists.Map(list, func(e fs.DirEntry) string { return e.Name() })
	return out, nil
}

func (w *world) Readlink(name string) (string, error)      { return w.p.View().Readlink(name) }
func (w *world) Mkdir(name string, perm fs.FileMode) error { return w.p.View().Mkdir(name, perm) }
func (w *world) Remove(name string) error                  { return w.p.View().Remove(name) }
func (w *world) Chmod(name string, mode fs.FileMode) error { return w.p.View().Chmod(name, mode) }
func (w *world) Chtimes(name string, t time.Time) error    { return w.p.View().Chtimes(name, t) }
func (w *world) Symlink(target, name string) error         { return w.p.View().Symlink(target, name) }
func (w *world) Rename(from, to string) error              { return w.p.View().Rename(from, to) }

// chunk is how much memory is taken at once, in bytes.
const chunk = 16 << 20

func (w *world) Alloc(ctx context.Context, n int64) error {
	for ; n > 0; n -= chunk {
		if err := w.p.Alloc(ctx, min(n, chunk)); err != nil {
			return err
		}
		_ = w.p.Step(ctx, time.Millisecond)
	}
	return nil
}

// Burn computes until the process ends.
func (w *world) Burn(_ context.Context, milli int) { w.p.Burn(int64(milli)) }

// file is a file that the process has opened: it is closed with it.
type file struct {
	kernel.File
	p *kernel.Process
}

func (f *file) Close() error {
	f.p.Disown(f.File)
	return f.File.Close()
}

// closed is a descriptor that the process has not.
type closed struct{}

func (closed) Read(context.Context, []byte) (int, error)      { return 0, io.EOF }
func (closed) Write(_ context.Context, b []byte) (int, error) { return len(b), nil }
func (closed) Close() error                                   { return nil }
