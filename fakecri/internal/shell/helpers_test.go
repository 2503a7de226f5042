package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/fakecri/kernel/rootfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// capture is a File that keeps what is written to it.
type capture struct {
	bytes.Buffer
	// at notes when each write came.
	at []time.Duration
	l  *loop.Loop
}

func (c *capture) Read(context.Context, []byte) (int, error) { return 0, io.EOF }
func (c *capture) Write(_ context.Context, b []byte) (int, error) {
	c.at = append(c.at, c.l.Now().Sub(loop.Epoch()))
	if c.Len() > 1<<20 {
		return len(b), nil
	}
	return c.Buffer.Write(b)
}
func (c *capture) Close() error     { return nil }
func (c *capture) Dup() kernel.File { return c }

// text is a File to read from.
type text struct{ r *strings.Reader }

func (t text) Read(_ context.Context, b []byte) (int, error)  { return t.r.Read(b) }
func (t text) Write(_ context.Context, b []byte) (int, error) { return 0, io.ErrClosedPipe }
func (t text) Close() error                                   { return nil }
func (t text) Dup() kernel.File                               { return t }

// applets are the few programs that the tests' scripts use.
func applets() kernel.Commands {
	out := func(ctx context.Context, p *kernel.Process, t string) int {
		if p.FD(1) == nil {
			return 1
		}
		if _, err := p.FD(1).Write(ctx, []byte(t)); err != nil {
			return 1
		}
		return 0
	}
	complain := func(ctx context.Context, p *kernel.Process, t string) int {
		if p.FD(2) != nil {
			_, _ = p.FD(2).Write(ctx, []byte(t))
		}
		return 1
	}
	return kernel.Commands{
		"sleep": func(ctx context.Context, p *kernel.Process) int {
			if len(p.Argv) < 2 {
				return 1
			}
			f, _ := strconv.ParseFloat(p.Argv[1], 64)
			_ = p.Sleep(ctx, time.Duration(f*float64(time.Second)))
			return 0
		},
		"cat": func(ctx context.Context, p *kernel.Process) int {
			files := []kernel.File{p.FD(0)}
			if len(p.Argv) > 1 {
				files = nil
				for _, a := range p.Argv[1:] {
					f, err := p.View().Open(a, os.O_RDONLY, 0)
					if err != nil {
						return complain(ctx, p, "cat: can't open '"+a+"': No such file or directory\n")
					}
					files = append(files, f)
				}
			}
			if files[0] == nil {
				return complain(ctx, p, "cat: read error: Bad file descriptor\n")
			}
			var b [256]byte
			total := 0
			for _, f := range files {
				for {
					n, err := f.Read(ctx, b[:])
					if total += n; total > 1<<16 {
						return 1 // it reads what it writes
					}
					if n > 0 {
						if out(ctx, p, string(b[:n])) != 0 {
							return 1
						}
					}
					if err != nil {
						break
					}
				}
			}
			return 0
		},
		"env": func(ctx context.Context, p *kernel.Process) int {
			return out(ctx, p, strings.Join(p.Env, "\n")+"\n")
		},
		"touch": func(ctx context.Context, p *kernel.Process) int {
			for _, a := range p.Argv[1:] {
				f, err := p.View().Open(a, os.O_CREATE|os.O_WRONLY, 0o666)
				if err != nil {
					return 1
				}
				_ = f.Close()
			}
			return 0
		},
		"rm": func(ctx context.Context, p *kernel.Process) int {
			for _, a := range p.Argv[1:] {
				if !strings.HasPrefix(a, "-") && p.View().Remove(a) != nil {
					return 1
				}
			}
			return 0
		},
		"mkdir": func(ctx context.Context, p *kernel.Process) int {
			for _, a := range p.Argv[1:] {
				if !strings.HasPrefix(a, "-") && p.View().MkdirAll(a, 0o777) != nil {
					return 1
				}
			}
			return 0
		},
		"chmod": func(ctx context.Context, p *kernel.Process) int {
			if len(p.Argv) < 3 {
				return 1
			}
			m, _ := strconv.ParseUint(p.Argv[1], 8, 32)
			if p.View().Chmod(p.Argv[2], os.FileMode(m)) != nil {
				return 1
			}
			return 0
		},
		"echo": func(ctx context.Context, p *kernel.Process) int {
			return out(ctx, p, strings.Join(p.Argv[1:], " ")+"\n")
		},
		"true":  func(context.Context, *kernel.Process) int { return 0 },
		"false": func(context.Context, *kernel.Process) int { return 1 },
		// showpid is a program of which dash -c 'echo $$ $PPID' is the like.
		"showpid": func(ctx context.Context, p *kernel.Process) int {
			return out(ctx, p, strconv.Itoa(p.PID())+"\n")
		},
	}
}

// machine is a node with one container to run scripts in.
type machine struct {
	l    *loop.Loop
	m    *kernel.Machine
	c    *kernel.Container
	warn []string
}

func newMachine(tb testing.TB, seed uint64) *machine { return newMachineAs(tb, seed, false) }

func newMachineAs(tb testing.TB, seed uint64, noElide bool) *machine {
	l := loop.New(loop.Options{Name: "node-0", Seed: seed})
	m := kernel.New(kernel.Options{Loop: l, FS: memfs.New(memfs.Options{}), Hostname: "vm", Memory: 8 << 30})
	cmds := applets()
	cmds["sh"] = New(Options{NoElide: noElide})
	names := []string{"sh", "sleep", "cat", "env", "touch", "rm", "mkdir", "chmod", "showpid", "echo", "true", "false"}
	img, err := rootfs.BusyboxImage(names)
	if err != nil {
		tb.Fatal(err)
	}
	x := &machine{l: l, m: m}
	x.c = m.NewContainer(kernel.ContainerOptions{
		Root: m.NewView(kernel.ViewOptions{Image: img}), Hostname: "vm", ID: "c1", Commands: cmds,
		Warn:           func(t string) { x.warn = append(x.warn, t) },
		UnknownCommand: func(n string) { x.warn = append(x.warn, "unknown "+n) },
	})
	return x
}

// result is what a script did.
type result struct {
	stdout, stderr string
	code           int
	took           time.Duration
	warn           []string
	hung           bool
	times          []time.Duration
	err            error
}

// runArgv runs a command line for at most limit of virtual time. at does
// something to the container at a time.
func runArgv(tb testing.TB, seed uint64, asChild bool, argv []string, stdin string, limit time.Duration, at map[time.Duration]func(x *machine)) result {
	x := newMachine(tb, seed)
	defer x.l.Close()
	if asChild {
		if _, err := x.c.Start(kernel.Spec{Argv: []string{"sleep", "1000000"}, Env: []string{"PATH=/bin"}, Dir: "/"}); err != nil {
			tb.Fatal(err)
		}
	}
	so, se := &capture{l: x.l}, &capture{l: x.l}
	var r result
	done := false
	_, err := x.c.Start(kernel.Spec{
		Argv: argv, Env: []string{"PATH=/bin", "HOME=/root"}, Dir: "/tmp", FDs: []kernel.File{text{strings.NewReader(stdin)}, so, se},
		Done: func(e kernel.Exit) {
			done, r.code, r.took = true, e.Code, x.l.Now().Sub(loop.Epoch())
		},
	})
	if err != nil {
		r.err = err
		return r
	}
	for d, fn := range at {
		x.l.Root().After(d, func() { fn(x) })
	}
	r.err = x.l.RunUntil(loop.Epoch().Add(limit))
	var pe *loop.PanicError
	if errors.As(r.err, &pe) {
		tb.Fatalf("%q: %v\n%s", argv, r.err, pe.Stack)
	}
	r.hung = !done
	r.stdout, r.stderr, r.warn, r.times = so.String(), se.String(), x.warn, so.at
	return r
}

func runScript(tb testing.TB, script string) result {
	return runArgv(tb, 0, true, []string{"sh", "-c", script}, "", time.Hour, nil)
}
