package applet

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Call is one run of an applet.
type Call struct {
	Ctx context.Context
	P   *kernel.Process
	// Applet is the name that it was called by.
	Applet Name
	// name is what the applet calls itself in messages.
	Name string
	// args are the arguments after the name.
	Args []string
	// out is the standard output, buffered; errors flush it first.
	Out *Writer
	// work counts what was done since the last Step; see spend.
	work  int64
	steps int
	// held is what hold has counted, in bytes.
	held int64
}

// exitStatus is panicked to end an applet from within.
type exitStatus int

// Under returns the call as another process, which the applet has forked, goes on
// with it: with that one's files, and nothing written yet.
func (c *Call) Under(ctx context.Context, p *kernel.Process) *Call { return newCall(ctx, p, c.Applet) }

func newCall(ctx context.Context, p *kernel.Process, a Name) *Call {
	c := &Call{Ctx: ctx, P: p, Applet: a, Name: a.Name}
	if len(p.Argv) > 0 {
		c.Args = p.Argv[1:]
		// "busybox ls" and a link to it are the same program.
		if Base(p.Argv[0]) == "busybox" && len(c.Args) > 0 && a.Name != "busybox" {
			c.Args = c.Args[1:]
		}
	}
	c.Out = c.Buffered(p.FD(1))
	return c
}

func (c *Call) View() *kernel.View { return c.P.View() }

func Strerror(err error) string { return posix.Strerror(err) }

// Errorf writes a message on the standard error, after what was printed before.
func (c *Call) Errorf(format string, args ...any) {
	c.Out.Flush()
	c.Stderr(c.Name + ": " + fmt.Sprintf(format, args...) + "\n")
}

func (c *Call) Stderr(text string) {
	if f := c.P.FD(2); f != nil {
		_, _ = f.Write(c.Ctx, []byte(text))
	}
}

// Die writes a message and ends the applet with status 1.
func (c *Call) Die(format string, args ...any) {
	c.Errorf(format, args...)
	c.Exit(1)
}

// Exit ends the applet.
func (c *Call) Exit(code int) {
	c.Out.Flush()
	panic(exitStatus(code))
}

func (c *Call) ShowUsage() {
	c.Out.Flush()
	c.Stderr("BusyBox v1.35.0 multi-call binary.\n\nUsage: " + strings.TrimRight(c.Applet.Name+" "+c.Applet.Usage, " ") + "\n")
}

// Usage shows how the applet is called, and ends it.
func (c *Call) Usage() {
	c.ShowUsage()
	c.Exit(1)
}

// Printf writes on the standard output.
func (c *Call) Printf(format string, args ...any) { fmt.Fprintf(c.Out, format, args...) }

func (c *Call) Print(parts ...string) {
	for _, s := range parts {
		c.Out.WriteString(s)
	}
}

// Costs of work, in virtual time.
const (
	// workPerStep is how many bytes, or so, are worked on between two Steps.
	WorkPerStep = 1 << 20
	// stepTime is how long that takes at first, and maxStepTime once the applet
	// has shown that it goes on and on: an endless one is not worth a million
	// steps a minute.
	stepTime    = time.Millisecond
	maxStepTime = 250 * time.Millisecond
)

// Spend accounts for work on n bytes, or as much as that, and gives way when it
// has added up.
func (c *Call) Spend(n int64) {
	c.work += n
	if c.work < WorkPerStep {
		return
	}
	laps := c.work / WorkPerStep
	c.work %= WorkPerStep
	c.steps++
	d := stepTime
	if c.steps > 2000 {
		d = min(maxStepTime, stepTime*time.Duration(c.steps/1000))
	}
	_ = c.P.Step(c.Ctx, d*time.Duration(min(laps, 1000)))
}

// Number reads an unsigned number, or dies as busybox does.
func (c *Call) Number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || s[0] == '+' {
		c.Die("invalid number '%s'", s)
	}
	return n
}

// Sized reads a number with a suffix of a table such as sizeSuffixes.
func (c *Call) Sized(s string, suffixes map[string]int64) int64 {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.ParseInt(digits, 10, 64)
	factor, ok := suffixes[s[len(digits):]]
	if err != nil || !ok && len(digits) < len(s) || n < 0 {
		c.Die("invalid number '%s'", s)
	}
	if len(digits) == len(s) {
		factor = 1
	}
	if n != 0 && factor > (1<<63-1)/n {
		c.Die("invalid number '%s'", s)
	}
	return n * factor
}

// SizeSuffixes are those of head, tail, dd and truncate.
func SizeSuffixes() map[string]int64 {
	return map[string]int64{
		"c": 1, "w": 2, "b": 512, "kB": 1000, "k": 1 << 10, "K": 1 << 10, "MB": 1000000, "M": 1 << 20, "m": 1 << 20,
		"GB": 1000000000, "G": 1 << 30, "g": 1 << 30,
	}
}

// Duration reads "1.5", "2m" and the like; ok is false if it is none.
func Duration(s string) (d time.Duration, ok bool) {
	unit := time.Second
	if s != "" {
		switch s[len(s)-1] {
		case 's':
			s = s[:len(s)-1]
		case 'm':
			unit, s = time.Minute, s[:len(s)-1]
		case 'h':
			unit, s = time.Hour, s[:len(s)-1]
		case 'd':
			unit, s = 24*time.Hour, s[:len(s)-1]
		}
	}
	if s == "infinity" || s == "inf" {
		return Forever, true
	}
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	if f *= float64(unit); f > float64(Forever) {
		return Forever, true
	}
	return time.Duration(f), true
}

// Forever is longer than any run.
const Forever = 200 * 365 * 24 * time.Hour

// Base is the last part of a path, as busybox's bb_basename: "" after a slash.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Join puts a name below a directory.
func Join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
