package applets

import (
	"io"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/busybox/awk"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Awk is awk, whose language is package awk. -e adds program text as BusyBox
// does, where POSIX has only -f; -W, which the real one takes for GNU's sake,
// does nothing.
//
// Pipes and system() run sh -c in a process of their own, with the files of
// awk's process; close() and the end of the program wait for them.
func Awk() applet.Applet {
	return applet.New(runAwk, "awk", "[-F SEP] [-v VAR=VAL] [-f FILE | PROGRAM] [FILE]...")
}

// runAwk gathers the program before it parses it: -f and -e may be repeated, and their
// parts are joined by newlines, so that no rule runs on into the next part. All of -f
// comes before all of -e.
func runAwk(c *applet.Call) int {
	o := c.Getopt("+F:v:f:e:W:")
	var program strings.Builder
	for _, f := range o.Value['f'] {
		data, err := c.ReadAll(f)
		if err != nil {
			c.Die(applet.CantOpen, f, applet.Strerror(err))
		}
		program.Write(data)
		program.WriteByte('\n')
	}
	for _, e := range o.Value['e'] {
		program.WriteString(e + "\n")
	}
	args := o.Args
	// The first operand is the program only without -f and -e; else it is an input.
	if !o.Has('f') && !o.Has('e') {
		if len(args) == 0 {
			c.Usage()
		}
		program.WriteString(args[0])
		args = args[1:]
	}
	prog, err := awk.Parse(program.String())
	if err != nil {
		c.Die("%s", err)
	}
	cfg := awk.Config{Vars: o.Value['v'], Args: args}
	// -F takes escapes, so that '\t' is a tab.
	if o.Has('F') {
		cfg.FS = awk.Unescape(o.Str('F'))
	}
	// An operand of -v that assigns nothing is a mistake, where one among the files would
	// be a file.
	for _, v := range cfg.Vars {
		if !strings.Contains(v, "=") {
			c.Usage()
		}
	}
	code, err := awk.Run(prog, cfg, &awkHost{c})
	if err != nil {
		c.Die("%s", err)
	}
	return code
}

// awkHost connects awk to the process: what the language opens, prints, waits
// for and computes. Work is accounted for in halves of a step, since a
// statement of awk's takes about that long per 1,000.
type awkHost struct{ c *applet.Call }

func (h *awkHost) Open(name string) (io.ReadCloser, error) { return h.c.Open(name) }

func (h *awkHost) Create(name string, appending bool) (io.WriteCloser, error) {
	return h.c.Create(name, appending)
}

// Stdout is buffered: awk flushes it before it starts a command.
func (h *awkHost) Stdout() io.Writer { return h.c.Out }

func (h *awkHost) Flush() { h.c.Out.Flush() }

func (h *awkHost) Environ() []string { return h.c.P.Env }

// Now is the loop's clock, so that srand() and systime() repeat from run to run.
func (h *awkHost) Now() time.Time { return h.c.P.Now() }

// Hold charges what a program keeps to the cgroup, so that one which collects without end
// dies of it.
func (h *awkHost) Hold(n int) { h.c.Hold(int64(n)) }

func (h *awkHost) Step() { h.c.Spend(applet.WorkPerStep / 2) }

// shellPipe is a shell command and the pipe to or from it.
type shellPipe struct {
	applet.Stream
	child *kernel.Process
}

// Wait closes our end first: a reader on the other side would wait for ever.
func (p shellPipe) Wait() int {
	p.F.Close()
	return p.C.Wait(p.child)
}

// pipe starts a shell command with our end of a pipe in place of its fd. The
// child's end is closed here at once, so that the end of the file is seen when
// the child goes.
func (h *awkHost) pipe(command string, fd int) (awk.Pipe, error) {
	c := h.c
	r, w := c.P.Container().Machine().Pipe()
	ours, theirs := r, w
	if fd == 0 {
		ours, theirs = w, r
	}
	// A process may have fewer files than fd: those between stay closed.
	fds := append([]kernel.File(nil), c.P.FDs()...)
	for len(fds) <= fd {
		fds = append(fds, nil)
	}
	fds[fd] = theirs
	child, err := c.Spawn([]string{"sh", "-c", command}, nil, fds)
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	return shellPipe{c.Stream(ours), child}, nil
}

func (h *awkHost) PipeFrom(command string) (awk.Pipe, error) { return h.pipe(command, 1) }

func (h *awkHost) PipeTo(command string) (awk.Pipe, error) { return h.pipe(command, 0) }

// System does not flush: awk does so before, so that outputs stand in order.
func (h *awkHost) System(command string) int {
	child, err := h.c.Spawn([]string{"sh", "-c", command}, nil, nil)
	// 127 is what a shell returns for a command that it can't find.
	if err != nil {
		return 127
	}
	return h.c.Wait(child)
}
