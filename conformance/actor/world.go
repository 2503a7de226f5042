//go:build linux

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drydock-sim/drydock/fakecri/actor"
	"github.com/drydock-sim/drydock/ground/lists"
)

// world is the real machine. One lock makes tasks take turns: a task holds it
// while it runs, and lets go of it where it waits. It is actor.World made of system calls;
// package fakecri/actor/fake has the other one. Methods without wait may be called only with the
// lock, which every task has while it runs.
type world struct {
	mu   sync.Mutex
	args []string

	signals chan os.Signal // those that are kept
	// fatal: those that are not, and end the program.
	fatal  chan os.Signal
	stdin  *file
	stdout *file
	stderr *file
	// memory keeps what Alloc mapped from being unmapped.
	memory [][]byte
}

var _ actor.World = (*world)(nil)

// newWorld takes over this process: its signals, files and arguments. Output to a pipe that
// nobody reads ends in an error rather than in the program's death.
func newWorld(args []string) *world {
	w := &world{args: args, signals: make(chan os.Signal, 64), fatal: make(chan os.Signal, 1)}
	w.stdin, w.stdout, w.stderr = &file{w, os.Stdin}, &file{w, os.Stdout}, &file{w, os.Stderr}
	signal.Ignore(syscall.SIGPIPE) // a write says so too
	for _, sig := range actor.Fatal() {
		// Process 1 of a pid namespace is not killed by a signal without a handler, so a program
		// that should die of one must do it by itself.
		signal.Notify(w.fatal, syscall.Signal(sig))
	}
	go func() {
		sig := <-w.fatal
		os.Exit(128 + int(sig.(syscall.Signal)))
	}()
	return w
}

// wait runs what may take time without the lock. Every wait of the actor passes here. Whoever
// runs next is the Go runtime's choice: on a real machine nothing is repeatable anyway.
func (w *world) wait(fn func()) {
	w.mu.Unlock()
	defer w.mu.Lock()
	fn()
}

func (w *world) Args() []string { return w.args }
func (w *world) Env() []string  { return os.Environ() }
func (w *world) PID() int       { return os.Getpid() }
func (w *world) PPID() int      { return os.Getppid() }

func (w *world) Identity() (uid, gid int, groups []int) {
	groups, _ = os.Getgroups()
	return os.Getuid(), os.Getgid(), groups
}

func (w *world) Hostname() string {
	name, _ := os.Hostname()
	return name
}

func (w *world) Dir() string {
	dir, _ := syscall.Getwd()
	return dir
}

func (w *world) Now() time.Time { return time.Now() }

func (w *world) Sleep(_ context.Context, d time.Duration) { w.wait(func() { time.Sleep(d) }) }

// Go implements actor.World: a goroutine that runs when it is its turn.
func (w *world) Go(_ string, fn func(ctx context.Context)) {
	go func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		fn(context.Background())
	}()
}

// Deferred calls of other tasks don't run, as with exit(2).
func (w *world) Exit(_ context.Context, code int) { os.Exit(code) }

// Signals implements actor.World. A program that keeps any and is the first of
// its pid namespace reaps what it inherits.
func (w *world) Signals(list ...int) {
	signal.Stop(w.fatal)
	for _, sig := range actor.Fatal() {
		if !slices.Contains(list, sig) {
			signal.Notify(w.fatal, syscall.Signal(sig))
		}
	}
	for _, sig := range list {
		signal.Notify(w.signals, syscall.Signal(sig))
	}
	if os.Getpid() == 1 {
		go reap()
	}
}

// reap waits for every child that ends. The first process of a container is
// everyone's parent in the end. Several children may have ended for one SIGCHLD, hence the inner
// loop.
func reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
	}
}

// Signal waits for one that is kept; a negative d waits for ever, and 0 is returned after d. A
// signal that comes while nobody waits is kept, up to the channel's size.
func (w *world) Signal(_ context.Context, d time.Duration) (sig int) {
	w.wait(func() {
		var over <-chan time.Time
		if d >= 0 {
			t := time.NewTimer(d)
			defer t.Stop()
			over = t.C
		}
		select {
		case s := <-w.signals:
			sig = int(s.(syscall.Signal))
		case <-over:
		}
	})
	return sig
}

func (w *world) Kill(pid, sig int) error { return syscall.Kill(pid, syscall.Signal(sig)) }

// Spawn implements actor.World: this program again, with other arguments. Nobody waits for the
// child here; reap does, where it runs.
func (w *world) Spawn(_ context.Context, args ...string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = w.args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

func (w *world) Stdin() actor.File  { return w.stdin }
func (w *world) Stdout() actor.File { return w.stdout }
func (w *world) Stderr() actor.File { return w.stderr }

// The ioctl is what isatty(3) asks.
func (w *world) IsTerminal(f actor.File) bool {
	o, ok := f.(*file)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(o.f.Fd()), unix.TCGETS)
	return err == nil
}

func (w *world) Open(name string, flag int, perm fs.FileMode) (actor.File, error) {
	var f *os.File
	var err error
	w.wait(func() { f, err = os.OpenFile(name, flag, perm) })
	if err != nil {
		return nil, err
	}
	return &file{w, f}, nil
}

func (w *world) Stat(name string) (actor.Info, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return actor.Info{}, err
	}
	out := actor.Info{Mode: fi.Mode(), Size: fi.Size()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		out.UID, out.GID = int(st.Uid), int(st.Gid)
	}
	return out, nil
}

func (w *world) ReadDir(name string) ([]string, error) {
	list, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	out := lists.Map(list, func(e os.DirEntry) string { return e.Name() })
	return out, nil
}

func (w *world) Readlink(name string) (string, error)      { return os.Readlink(name) }
func (w *world) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
func (w *world) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }
func (w *world) Chtimes(name string, t time.Time) error    { return os.Chtimes(name, t, t) }
func (w *world) Symlink(target, name string) error         { return os.Symlink(target, name) }
func (w *world) Rename(from, to string) error              { return os.Rename(from, to) }

// Remove is os.Remove with the error of the kind of file that is there. os.Remove hides which of
// the two calls failed. unlink(2) of a directory fails with EISDIR on Linux and EPERM elsewhere.
func (w *world) Remove(name string) error {
	err := syscall.Unlink(name)
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EPERM) {
		if derr := syscall.Rmdir(name); !errors.Is(derr, syscall.ENOTDIR) {
			err = derr
		}
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// Alloc maps memory and writes to each page. It stays until the program ends. Writing makes the
// pages resident, so that they count against a limit. A private mapping: the limit counts it as
// anonymous memory.
func (w *world) Alloc(_ context.Context, n int64) (err error) {
	w.wait(func() {
		var b []byte
		if b, err = unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
			return
		}
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
		w.memory = append(w.memory, b)
	})
	return err
}

// Burn computes for a part of each tenth of a second, on as many threads as it
// takes. A thread can use one core at most. The threads never end; the container does.
func (w *world) Burn(_ context.Context, millis int) {
	for left := millis; left > 0; left -= 1000 {
		share := time.Duration(min(left, 1000)) * time.Millisecond / 10
		go func() {
			const period = 100 * time.Millisecond
			for {
				start := time.Now()
				for time.Since(start) < share {
				}
				time.Sleep(period - time.Since(start))
			}
		}()
	}
}

// file is an open file. Reading from a terminal or a pipe may take for ever, so it waits without
// the lock.
type file struct {
	w *world
	f *os.File
}

func (f *file) Read(_ context.Context, b []byte) (n int, err error) {
	f.w.wait(func() { n, err = f.f.Read(b) })
	return n, err
}

func (f *file) Write(_ context.Context, b []byte) (n int, err error) {
	f.w.wait(func() { n, err = f.f.Write(b) })
	return n, err
}

func (f *file) Close() error { return f.f.Close() }
