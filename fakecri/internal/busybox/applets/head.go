package applets

import (
	"io"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Head is head, with GNU's negative counts: all but the last N lines or bytes.
// -5 is -n 5. Counts take suffixes (k, M, b). Headers come between several
// files, or with -v.
func Head() applet.Applet { return applet.New(runHead, "head", "[-n NUM | -c NUM] [-qv] [FILE]...") }

func runHead(c *applet.Call) int {
	// Before getopt, to which -5 would be an unknown option.
	c.LegacyCount("")
	o := c.Getopt("n:c:qv", "lines=n:", "bytes=c:", "quiet=q", "silent=q", "verbose=v")
	unit := o.Last("nc")
	spec := "10"
	if unit != 0 {
		spec = o.Str(unit)
	}
	fromEnd := strings.HasPrefix(spec, "-")
	n := c.Sized(strings.TrimPrefix(spec, "-"), applet.SizeSuffixes())
	header := applet.HeaderOf(c, o)
	return c.EachInput(o.Args, applet.PlainOpen, func(name string, r io.Reader) error {
		header(name)
		switch {
		// All but the end needs the whole: there is no telling where the end
		// is.
		case unit == 'c' && fromEnd:
			data, err := c.Slurp(r)
			// A file that is shorter than what is left out has nothing to show.
			c.Print(string(data[:max(0, int64(len(data))-n)]))
			return err
		case unit == 'c':
			return headBytes(c, r, n)
		}
		l := c.Lines(r, '\n')
		var kept []string
		for i := int64(0); fromEnd || i < n; i++ {
			text, ended, ok := l.Next()
			if !ok {
				break
			}
			if ended {
				text += "\n"
			}
			if !fromEnd {
				c.Print(text)
				continue
			}
			// kept holds back the last n lines: they may be those that are left
			// out.
			if kept = append(kept, text); int64(len(kept)) > n {
				c.Print(kept[0])
				kept = kept[1:]
			}
		}
		return l.Err
	})
}

// headBytes copies n bytes; zeros as such.
func headBytes(c *applet.Call, r io.Reader, n int64) error {
	if s, ok := r.(applet.Stream); ok && kernel.ReadsZeros(s.F) && c.P.FD(1) != nil {
		// What is buffered must come before what bypasses the buffer.
		c.Out.Flush()
		if _, ok := c.P.FD(1).(kernel.ZeroWriter); ok {
			return c.Pour(c.P.FD(1), s.F, n)
		}
	}
	// CopyBuffer would prefer a ReadFrom to the buffer it is given; the wrapper has none.
	_, err := io.CopyBuffer(struct{ io.Writer }{c.Out}, io.LimitReader(r, n), make([]byte, 4096))
	return err
}
