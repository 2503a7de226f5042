package applets

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Xargs is xargs. The input is read to its end before the first command runs,
// which shows in time, and in memory. A command line is bounded by 32 KiB, or
// -s; -n and -L both count words. -P, -p, -x, -e and -E are read and do
// nothing: one command runs at a time, without a question.
//
// The status is 123 to 127 as POSIX and GNU have it: 123 if a command failed,
// 124 if one asked for the end by 255.
func Xargs() applet.Applet {
	return applet.New(runXargs, "xargs", "[-rt0] [-n N] [-s N] [-I STR] [PROG ARGS]")
}

// runXargs runs commands one after the other, and stops at the first that can't
// be run, was killed or asked for it by status 255. An input of nothing but blanks is an empty
// one.
func runXargs(c *applet.Call) int {
	o := c.Getopt("+tr0pxI:i::n:s:P:L:e::E:", "no-run-if-empty=r", "null=0", "max-args=n:", "replace=I:")
	argv := o.Args
	if len(argv) == 0 {
		// POSIX's default command.
		argv = []string{"echo"}
	}
	data, err := c.Slurp(c.Stdin())
	if err != nil {
		c.Die("read error: %s", applet.Strerror(err))
	}
	replace := ""
	if o.Has('I') {
		replace = o.Str('I')
	} else if o.Has('i') {
		if replace = o.Str('i'); replace == "" {
			replace = "{}"
		}
	}
	x := &xargs{c: c, verbose: o.Has('t')}
	if replace != "" {
		// With -I a line is one word, and blank lines are none.
		for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if line = strings.TrimLeft(line, " \t"); line == "" {
				continue
			}
			args := make([]string, len(argv))
			for i, a := range argv {
				args[i] = strings.ReplaceAll(a, replace, line)
			}
			if !x.run(args) {
				break
			}
		}
		return x.code
	}
	var words []string
	if o.Has('0') {
		if text := strings.TrimSuffix(string(data), "\x00"); len(data) > 0 {
			words = strings.Split(text, "\x00")
		}
	} else {
		words = xargsWords(c, string(data))
	}
	perRun := 1 << 30
	if o.Has('n') {
		perRun = max(1, int(c.Number(o.Str('n'))))
	} else if o.Has('L') {
		perRun = max(1, int(c.Number(o.Str('L'))))
	}
	maxBytes := 32 << 10
	if o.Has('s') {
		maxBytes = int(c.Number(o.Str('s')))
	}
	// POSIX runs the command once even without input; -r is GNU's way to avoid
	// that.
	if len(words) == 0 && !o.Has('r') {
		x.run(argv)
	}
	for len(words) > 0 {
		n, size := 0, 0
		// At least one word, however long it is.
		for n < len(words) && n < perRun && (n == 0 || size+len(words[n])+1 <= maxBytes) {
			size += len(words[n]) + 1
			n++
		}
		if !x.run(append(append([]string(nil), argv...), words[:n]...)) {
			break
		}
		words = words[n:]
	}
	return x.code
}

// xargs is one run of it; code is the worst status so far that counts. A later command that
// succeeds does not take the code back.
type xargs struct {
	c       *applet.Call
	verbose bool
	code    int
}

// run runs one command line; false ends it all. The command inherits the standard input, which
// has been read to its end.
func (x *xargs) run(argv []string) bool {
	c := x.c
	if x.verbose {
		c.Stderr(strings.Join(argv, " ") + "\n")
	}
	child, err := c.Spawn(argv, nil, nil)
	if err != nil {
		c.Errorf("%s: %s", argv[0], applet.Strerror(err))
		x.code = applet.NotRun(err)
		return false
	}
	exit, err := c.P.Wait(c.Ctx, child)
	switch {
	case err != nil:
		x.code = 1
		return false
	case exit.Signal != 0:
		c.Errorf("'%s' terminated by signal %d", argv[0], exit.Signal)
		x.code = 125
		return false
	// The command asks for an end of it all.
	case exit.Code == 255:
		c.Errorf("%s: exited with status 255; aborting", argv[0])
		x.code = 124
		return false
	// A shell's or env's words for a program that can't be run.
	case exit.Code == 126 || exit.Code == 127:
		x.code = exit.Code
		return false
	case exit.Code != 0:
		x.code = 123
	}
	return true
}

// xargsWords splits at white space, minding quotes and backslashes. The rules are POSIX' for
// xargs, where only a backslash or quotes keep a blank in a word; nothing is expanded.
func xargsWords(c *applet.Call, s string) []string {
	var out []string
	var b strings.Builder
	inWord := false
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch == '\'' || ch == '"':
			// A quoted part may not span lines, unlike in the shell.
			end := strings.IndexByte(s[i+1:], ch)
			if end < 0 || strings.Contains(s[i+1:i+1+end], "\n") {
				kind := "single"
				if ch == '"' {
					kind = "double"
				}
				c.Die("unmatched %s quote", kind)
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
			// An empty pair of quotes is a word, too.
			inWord = true
		case ch == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			inWord = true
		case ch == ' ' || ch == '\t' || ch == '\n':
			if inWord {
				out = append(out, b.String())
				b.Reset()
				inWord = false
			}
		default:
			b.WriteByte(ch)
			inWord = true
		}
	}
	if inWord {
		out = append(out, b.String())
	}
	return out
}
