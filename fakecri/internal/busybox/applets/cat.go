package applets

import (
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Cat is cat. -u is read and does nothing, since output is written before an
// end is waited for anyway. A number of -n goes on over the borders of files,
// and a file without a newline at its end is continued by the next one on the
// same line.
//
// Without options bytes are handed from file to file, and zeros of /dev/zero as
// a count: a container that fills a disk with cat costs no memory.
func Cat() applet.Applet { return applet.New(runCat, "cat", "[-nbvteA] [FILE]...") }

func runCat(c *applet.Call) int {
	o := c.Getopt("nbvteAETu", "show-all=A", "number=n", "show-ends=E", "show-tabs=T")
	if o.Has('n') || o.Has('b') {
		n := 0
		// fresh: what comes next begins a line, possibly of the next file.
		fresh := true
		return c.EachInput(o.Args, applet.CantOpen, func(_ string, r io.Reader) error {
			l := c.Lines(r, '\n')
			for {
				text, ended, ok := l.Next()
				if !ok {
					return l.Err
				}
				// -b passes over empty lines. The rest of a line that another file began
				// gets no number.
				if fresh && !(o.Has('b') && text == "") {
					n++
					c.Printf("%6d\t", n)
				}
				c.Print(text)
				if fresh = ended; ended {
					c.Print("\n")
				}
			}
		})
	}
	// -e and -t imply -v; -E and -T do not.
	show := o.Has('v') || o.Has('e') || o.Has('t') || o.Has('A')
	ends, tabs := o.Has('e') || o.Has('A') || o.Has('E'), o.Has('t') || o.Has('A') || o.Has('T')
	if show || ends || tabs {
		return c.EachInput(o.Args, applet.CantOpen, func(_ string, r io.Reader) error {
			// What was read before an error is still shown.
			data, err := c.Slurp(r)
			c.Print(visible(data, show, ends, tabs))
			return err
		})
	}
	code := 0
	args := o.Args
	if len(args) == 0 {
		args = []string{"-"}
	}
	// A file that fails doesn't keep the others from being printed.
	for _, name := range args {
		if !c.CatFile(name) {
			code = 1
		}
	}
	return code
}

// visible shows bytes as -v, -e, -t and -A do: ^X for control characters, M-
// before those above 127. With -E or -T alone others than newlines and tabs
// stay as they are.
func visible(data []byte, show, ends, tabs bool) string {
	var b strings.Builder
	for _, ch := range data {
		switch {
		case ch == '\n':
			if ends {
				b.WriteByte('$')
			}
			b.WriteByte(ch)
		case ch == '\t' && !tabs, !show && ch != '\t':
			b.WriteByte(ch)
		default:
			// M- stands for the eighth bit; what is left is shown like any other byte.
			if ch >= 128 {
				b.WriteString("M-")
				ch -= 128
			}
			switch {
			// Control characters are 64 below the letters that they are typed with.
			case ch < 32:
				b.WriteString("^" + string(rune(ch+64)))
			case ch == 127:
				b.WriteString("^?")
			default:
				b.WriteByte(ch)
			}
		}
	}
	return b.String()
}
