package busybox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// call is one run of an applet.
type call struct {
	ctx    context.Context
	p      *kernel.Process
	applet applet
	// name is what the applet calls itself in messages.
	name string
	// args are the arguments after the name.
	args []string
	// out is the standard output, buffered; errors flush it first.
	out *writer
	// work counts what was done since the last Step; see spend.
	work  int64
	steps int
	// held is what hold has counted, in bytes.
	held int64
}

// exitStatus is panicked to end an applet from within.
type exitStatus int

func newCall(ctx context.Context, p *kernel.Process, a applet) *call {
	c := &call{ctx: ctx, p: p, applet: a, name: a.name}
	if len(p.Argv) > 0 {
		c.args = p.Argv[1:]
		// "busybox ls" and a link to it are the same program.
		if base(p.Argv[0]) == "busybox" && len(c.args) > 0 && a.name != "busybox" {
			c.args = c.args[1:]
		}
	}
	c.out = &writer{c: c, f: p.FD(1)}
	return c
}

func (c *call) view() *kernel.View { return c.p.View() }

func strerror(err error) string { return posix.Strerror(err) }

// errorf writes a message on the standard error, after what was printed before.
func (c *call) errorf(format string, args ...any) {
	c.out.flush()
	c.stderr(c.name + ": " + fmt.Sprintf(format, args...) + "\n")
}

func (c *call) stderr(text string) {
	if f := c.p.FD(2); f != nil {
		_, _ = f.Write(c.ctx, []byte(text))
	}
}

// die writes a message and ends the applet with status 1.
func (c *call) die(format string, args ...any) {
	c.errorf(format, args...)
	c.exit(1)
}

// exit ends the applet.
func (c *call) exit(code int) {
	c.out.flush()
	panic(exitStatus(code))
}

func (c *call) showUsage() {
	c.out.flush()
	c.stderr("BusyBox v1.35.0 multi-call binary.\n\nUsage: " + strings.TrimRight(c.applet.name+" "+c.applet.usage, " ") + "\n")
}

// usage shows how the applet is called, and ends it.
func (c *call) usage() {
	c.showUsage()
	c.exit(1)
}

// printf writes on the standard output.
func (c *call) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

func (c *call) print(parts ...string) {
	for _, s := range parts {
		c.out.WriteString(s)
	}
}

// Costs of work, in virtual time.
const (
	// workPerStep is how many bytes, or so, are worked on between two Steps.
	workPerStep = 1 << 20
	// stepTime is how long that takes at first, and maxStepTime once the applet
	// has shown that it goes on and on: an endless one is not worth a million
	// steps a minute.
	stepTime    = time.Millisecond
	maxStepTime = 250 * time.Millisecond
)

// spend accounts for work on n bytes, or as much as that, and gives way when it
// has added up.
func (c *call) spend(n int64) {
	c.work += n
	if c.work < workPerStep {
		return
	}
	laps := c.work / workPerStep
	c.work %= workPerStep
	c.steps++
	d := stepTime
	if c.steps > 2000 {
		d = min(maxStepTime, stepTime*time.Duration(c.steps/1000))
	}
	_ = c.p.Step(c.ctx, d*time.Duration(min(laps, 1000)))
}

// number reads an unsigned number, or dies as busybox does.
func (c *call) number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || s[0] == '+' {
		c.die("invalid number '%s'", s)
	}
	return n
}

// sized reads a number with a suffix of a table such as sizeSuffixes.
func (c *call) sized(s string, suffixes map[string]int64) int64 {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.ParseInt(digits, 10, 64)
	factor, ok := suffixes[s[len(digits):]]
	if err != nil || !ok && len(digits) < len(s) || n < 0 {
		c.die("invalid number '%s'", s)
	}
	if len(digits) == len(s) {
		factor = 1
	}
	if n != 0 && factor > (1<<63-1)/n {
		c.die("invalid number '%s'", s)
	}
	return n * factor
}

// sizeSuffixes are those of head, tail, dd and truncate.
func sizeSuffixes() map[string]int64 {
	return map[string]int64{
		"c": 1, "w": 2, "b": 512, "kB": 1000, "k": 1 << 10, "K": 1 << 10, "MB": 1000000, "M": 1 << 20, "m": 1 << 20,
		"GB": 1000000000, "G": 1 << 30, "g": 1 << 30,
	}
}

// duration reads "1.5", "2m" and the like; ok is false if it is none.
func duration(s string) (d time.Duration, ok bool) {
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
		return forever, true
	}
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, false
	}
	if f *= float64(unit); f > float64(forever) {
		return forever, true
	}
	return time.Duration(f), true
}

// forever is longer than any run.
const forever = 200 * 365 * 24 * time.Hour

// base is the last part of a path, as busybox's bb_basename: "" after a slash.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// join puts a name below a directory.
func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// env returns a variable of the environment.
func (c *call) env(name string) string {
	for i := len(c.p.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(c.p.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}
