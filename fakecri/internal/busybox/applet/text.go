package applet

import (
	"io"
	"strings"
)

// CatFile copies a file to the standard output as it comes, without the buffer:
// a line that is typed is shown before the next one. Without lines or buffers it also handles
// what never ends.
func (c *Call) CatFile(name string) bool {
	r, err := c.Open(name)
	if err != nil {
		c.Errorf(CantOpen, name, Strerror(err))
		return false
	}
	defer r.Close()
	in := c.P.FD(0)
	if s, ok := r.(Stream); ok {
		in = s.F
	}
	out := c.P.FD(1)
	if out == nil || in == nil {
		c.Errorf("write error: Bad file descriptor")
		return false
	}
	if err := c.Pour(out, in, -1); err != nil {
		c.Errorf("%s", err.Error())
		return false
	}
	return true
}

// LegacyCount turns "-5" into "-n 5" for head and tail, as busybox does before
// it reads options. also is "+" for tail, whose first argument may be +5. The first of such
// arguments is rewritten, as old head and tail had just one.
func (c *Call) LegacyCount(also string) {
	for i, a := range c.Args {
		if a == "--" || len(a) < 2 || i > 0 && (c.Args[i-1] == "-n" || c.Args[i-1] == "-c") {
			continue
		}
		if a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			c.Args = append(append(append([]string{}, c.Args[:i]...), "-n", a[1:]), c.Args[i+1:]...)
			return
		}
		if also != "" && i == 0 && a[0] == '+' && strings.Trim(a[1:], "0123456789") == "" {
			c.Args = append([]string{"-n", a}, c.Args[1:]...)
			return
		}
	}
}

// HeaderOf returns what introduces each of several files, for head and tail. It
// counts the calls, so that all but the first have an empty line before them. It prints nothing
// for a single file, unless -v asks.
func HeaderOf(c *Call, o *Options) func(name string) {
	shown := 0
	want := (len(o.Args) > 1 || o.Has('v')) && !o.Has('q')
	return func(name string) {
		if !want {
			return
		}
		if shown++; shown > 1 {
			c.Print("\n")
		}
		if name == "-" {
			name = "standard input"
		}
		c.Print("==> ", name, " <==\n")
	}
}

// EachLine calls fn for each line of the files, or of the standard input, until
// the output fails. A reader that has gone (head) ends it, so that it does not read on for
// nobody.
func (c *Call) EachLine(files []string, openError string, fn func(text string, ended bool)) int {
	return c.EachInput(files, openError, func(_ string, r io.Reader) error {
		l := c.Lines(r, '\n')
		for {
			text, ended, ok := l.Next()
			if !ok || c.Out.Failed() {
				return l.Err
			}
			fn(text, ended)
		}
	})
}

// NewlineIf is the end of a line, if it had one: most applets keep a missing
// one missing.
func NewlineIf(ended bool) string {
	if ended {
		return "\n"
	}
	return ""
}

// ClassBytes lists the characters of a class, nil if there is no such class. tr expands classes
// to sets by it; other locales than C don't exist.
func ClassBytes(name string) []byte {
	var is func(b byte) bool
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	lower := func(b byte) bool { return b >= 'a' && b <= 'z' }
	switch name {
	case "alpha":
		is = func(b byte) bool { return upper(b) || lower(b) }
	case "alnum":
		is = func(b byte) bool { return upper(b) || lower(b) || digit(b) }
	case "digit":
		is = digit
	case "upper":
		is = upper
	case "lower":
		is = lower
	case "space":
		is = func(b byte) bool { return b == ' ' || b >= 9 && b <= 13 }
	case "blank":
		is = func(b byte) bool { return b == ' ' || b == '\t' }
	case "punct":
		is = func(b byte) bool { return b > 32 && b < 127 && !upper(b) && !lower(b) && !digit(b) }
	case "cntrl":
		is = func(b byte) bool { return b < 32 || b == 127 }
	case "xdigit":
		is = func(b byte) bool { return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' }
	case "print":
		is = func(b byte) bool { return b >= 32 && b < 127 }
	case "graph":
		is = func(b byte) bool { return b > 32 && b < 127 }
	default:
		return nil
	}
	var out []byte
	for i := range 256 {
		if is(byte(i)) {
			out = append(out, byte(i))
		}
	}
	return out
}
