package applet

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Call is one run of an applet: the process that it runs in, its arguments and
// its output. It belongs to the process's task; what an applet starts beside
// that (a connection's task, a fork) gets a copy of its own, see Under.
//
// An applet is a function of a Call. Output goes through Out, which the end of the applet
// flushes; messages go to the standard error at once. Whoever is killed in between loses what Out
// holds, as with stdio.
type Call struct {
	Ctx context.Context
	P   *kernel.Process
	// Applet is the name that it was called by.
	Applet Name
	// name is what the applet calls itself in messages. It differs from Applet.Name where BusyBox
	// calls itself otherwise.
	Name string
	// args are the arguments after the name.
	Args []string
	// out is the standard output, buffered; errors flush it first.
	Out *Writer
	// work counts what was done since the last Step; see spend. The two of them grow the steps of
	// a long run, see Spend.
	work  int64
	steps int
	// held is what hold has counted, in bytes.
	held int64
}

// exitStatus is what Exit panics with, so that an applet can end from any depth
// as exit(3) does. Program turns it into the exit code; nobody else may recover
// it. Anything deeper that cleans up must do it by defer.
type exitStatus int

// Under returns the call as another process, which the applet has forked, goes on
// with it: with that one's files, and nothing written yet.
func (c *Call) Under(ctx context.Context, p *kernel.Process) *Call { return newCall(ctx, p, c.Applet) }

// newCall begins a run. The output is the process's file 1 at this moment: who
// changes that file must make a new buffer. The first argument is dropped if the applet's name
// was an argument itself.
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

// View returns the files as the applet's process sees them.
func (c *Call) View() *kernel.View { return c.P.View() }

// Strerror is strerror(3) of an error of the kernel's.
func Strerror(err error) string { return posix.Strerror(err) }

// Errorf writes a message on the standard error, after what was printed before
// it: to a terminal the two come in the order of the program.
func (c *Call) Errorf(format string, args ...any) {
	c.Out.Flush()
	c.Stderr(c.Name + ": " + fmt.Sprintf(format, args...) + "\n")
}

// Stderr writes text on the standard error as it is. A closed one is no error.
func (c *Call) Stderr(text string) {
	if f := c.P.FD(2); f != nil {
		_, _ = f.Write(c.Ctx, []byte(text))
	}
}

// Die writes a message and ends the applet with status 1. It is bb_error_msg_and_die. The call
// does not return, but the compiler does not know.
func (c *Call) Die(format string, args ...any) {
	c.Errorf(format, args...)
	c.Exit(1)
}

// Exit ends the applet.
func (c *Call) Exit(code int) {
	c.Out.Flush()
	panic(exitStatus(code))
}

// ShowUsage writes how the applet is called. The real message goes on with a
// list of the options, which is left out here: what tests look at is its first
// lines.
func (c *Call) ShowUsage() {
	c.Out.Flush()
	c.Stderr("BusyBox v1.35.0 multi-call binary.\n\nUsage: " + strings.TrimRight(c.Applet.Name+" "+c.Applet.Usage, " ") + "\n")
}

// Usage shows how the applet is called, and ends it.
func (c *Call) Usage() {
	c.ShowUsage()
	c.Exit(1)
}

// Printf writes on the standard output, as Print does. Nobody looks at the
// result: a failed output is found when the applet ends, or by Out.Failed. The text is buffered,
// so it costs no time by itself.
func (c *Call) Printf(format string, args ...any) { fmt.Fprintf(c.Out, format, args...) }

// Print writes texts on the standard output.
func (c *Call) Print(parts ...string) {
	for _, s := range parts {
		_, _ = c.Out.WriteString(s) // as Printf
	}
}

// What work costs in virtual time. An applet computes in no time of its own, so
// it accounts for what it goes through: without that an endless one would never
// let another task run.
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
// has added up to a step. A long run's steps grow, so that yes costs a
// simulation little; its signals are then noticed later, by at most a quarter
// of a second. Without it "yes > /dev/null" would hang the simulation: nothing else on the loop
// could run.
func (c *Call) Spend(n int64) {
	c.work += n
	if c.work < WorkPerStep {
		return
	}
	laps := c.work / WorkPerStep
	c.work %= WorkPerStep
	c.steps++
	d := stepTime
	// Two seconds of work at the first rate.
	if c.steps > 2000 {
		d = min(maxStepTime, stepTime*time.Duration(c.steps/1000))
	}
	_ = c.P.Step(c.Ctx, d*time.Duration(min(laps, 1000)))
}

// Number reads an unsigned number, or dies in the words of busybox's xatou. An empty text is no
// number either.
func (c *Call) Number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || s[0] == '+' {
		c.Die("invalid number '%s'", s)
	}
	return n
}

// Sized reads a number with a suffix of a table such as SizeSuffixes. What
// would overflow is an invalid number, too. A suffix that the table lacks is an invalid number,
// too.
func (c *Call) Sized(s string, suffixes map[string]int64) int64 {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.ParseInt(digits, 10, 64)
	factor, ok := suffixes[s[len(digits):]]
	if err != nil || !ok && len(digits) < len(s) || n < 0 {
		c.Die("invalid number '%s'", s)
	}
	if len(digits) == len(s) {
		// Without a suffix the table is asked for "", which it need not have.
		factor = 1
	}
	if n != 0 && factor > (1<<63-1)/n {
		c.Die("invalid number '%s'", s)
	}
	return n * factor
}

// SizeSuffixes are those of head, tail, dd and truncate. The table is BusyBox's bkm_suffixes with
// those of dd.
func SizeSuffixes() map[string]int64 {
	return map[string]int64{
		"c": 1, "w": 2, "b": 512, "kB": 1000, "k": 1 << 10, "K": 1 << 10, "MB": 1000000, "M": 1 << 20, "m": 1 << 20,
		"GB": 1000000000, "G": 1 << 30, "g": 1 << 30,
	}
}

// Duration reads "1.5", "2m" and the like, as busybox's parse_duration_str
// does, and GNU's infinity; ok is false if it is none. Nothing is longer than
// Forever. sleep and timeout read their arguments with it.
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

// Forever is longer than any run, and short enough that a time can be added.
const Forever = 200 * 365 * 24 * time.Hour

// Base is the last part of a path, as busybox's bb_basename: "" after a slash,
// where path.Base would drop the slash.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Join puts a name below a directory as busybox's concat_path_file does:
// without cleaning, since messages and find show the path as it was given.
func Join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// ParseUint reads a number of at least 0; false if it is none.
func ParseUint(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}

// I64 and Itoa are strconv's under short names: output is made of many.
func I64(n int64) string { return strconv.FormatInt(n, 10) }

func Itoa(n int) string { return strconv.Itoa(n) }
