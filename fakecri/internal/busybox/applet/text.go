package applet

import (
	"io"
	"strings"
)

// CatFile copies a file to the standard output as it comes.
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

// LegacyCount turns "-5" into "-n 5" for head and tail.
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

// HeaderOf returns what introduces each of several files.
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

// EachLine calls fn for each line of the files, or of the standard input.
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

func NewlineIf(ended bool) string {
	if ended {
		return "\n"
	}
	return ""
}
