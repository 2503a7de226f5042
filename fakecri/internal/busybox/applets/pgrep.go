package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Pgrep is pgrep and pkill. Patterns are basic regular expressions, on the name
// or with -f on the command line; the applet itself never counts. -n, -o, -s,
// -P and -u are read and do not narrow the choice. Debian's busybox does not
// have these two; other builds do.
func Pgrep() applet.Applet {
	return applet.New(runPgrep, "pgrep", "[-flavxo] PATTERN", "pkill", "[-SIGNAL] [-fvx] PATTERN")
}

// runPgrep is pgrep and pkill.
func runPgrep(c *applet.Call) int {
	// POSIX's default for kill(1), which pkill shares.
	sig := kernel.SIGTERM
	if c.Name == "pkill" {
		var done bool
		if len(c.Args) > 0 && len(c.Args[0]) > 1 && c.Args[0][0] == '-' {
			// An option that is no signal, such as -f, is left for getopt.
			if _, ok := kernel.SignalNumber(c.Args[0][1:]); ok {
				if sig, c.Args, done = c.KillArgs(); done {
					return 0
				}
			}
		}
	}
	o := c.Getopt("flavxons:P:u:")
	if len(o.Args) != 1 {
		c.Usage()
	}
	// Empty options: pgrep's letters mean other things than grep's, and must
	// not reach the matcher.
	f := c.Matcher(&applet.Options{})
	if !f.Compile([]string{o.Args[0]}) {
		return 2
	}
	// The status is 1 unless a process matches, so that scripts can test for
	// one.
	code := 1
	for _, p := range c.Processes() {
		text := p.Comm
		if o.Has('f') {
			text = strings.Join(p.Args, " ")
		}
		start, end := f.Find(text, 0)
		match := start >= 0 && (!o.Has('x') || start == 0 && end == len(text))
		if p.PID == c.P.PID() || match == o.Has('v') {
			continue
		}
		code = 0
		switch {
		case c.Name == "pkill":
			// One that is gone by now, or may not be killed, changes nothing.
			_ = c.P.Kill(p.PID, sig)
		case o.Has('a'):
			c.Printf("%d %s\n", p.PID, p.Command())
		case o.Has('l'):
			c.Printf("%d %s\n", p.PID, p.Comm)
		default:
			c.Printf("%d\n", p.PID)
		}
	}
	return code
}
