package applets

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Tail is tail. -5 and +5 are -n 5 and -n +5. With -f files are looked at every
// second, or as -s says, and only grow: one that is cut short or replaced is
// not noticed, with -F neither. Only what is kept counts as memory, so a long
// line is charged as it grows.
func Tail() applet.Applet {
	return applet.New(runTail, "tail", "[-fF] [-c|n [+]N] [-s SEC] [-qv] [FILE]...")
}

// tail writes the last n lines or bytes of r, or with fromStart what is from the
// nth on.
func tail(c *applet.Call, r io.Reader, n int64, inBytes, fromStart bool) error {
	if fromStart {
		n = max(0, n-1)
		if inBytes {
			if _, err := io.CopyN(io.Discard, r, n); err != nil && err != io.EOF {
				return err
			}
			_, err := io.CopyBuffer(struct{ io.Writer }{c.Out}, struct{ io.Reader }{r}, make([]byte, 4096))
			return err
		}
		// The reader behind Lines has read ahead, so the rest is copied from it
		// and not from r.
		l := c.Lines(r, '\n')
		for i := int64(0); i < n; i++ {
			if _, _, ok := l.Next(); !ok {
				return l.Err
			}
		}
		_, err := io.CopyBuffer(struct{ io.Writer }{c.Out}, struct{ io.Reader }{l.R}, make([]byte, 4096))
		return err
	}
	var kept []byte
	// zeros counts the zero bytes before kept. They are not stored, since
	// tail /dev/zero is run to fill the memory.
	zeros := int64(0)
	buf := make([]byte, 64<<10)
	// full is when what is kept is looked through for what may go.
	full := int64(1 << 20)
	for {
		got, err := r.Read(buf)
		if len(kept) == 0 && allZero(buf[:got]) {
			// As long as all is zero, a count does.
			zeros += int64(got)
		} else {
			kept = append(append(kept, make([]byte, zeros)...), buf[:got]...)
			zeros = 0
		}
		if zeros+int64(len(kept)) > full {
			switch {
			case zeros == 0:
				kept = append([]byte(nil), lastOf(kept, n, inBytes)...)
			case inBytes || n == 0:
				zeros = min(zeros, n)
			}
			c.Hold(zeros + int64(len(kept)))
			// Doubling keeps the work linear: a line without end is not looked through
			// again and again.
			full = max(1<<20, 2*(zeros+int64(len(kept))))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	_, _ = c.Out.Write(lastOf(append(make([]byte, zeros), kept...), n, inBytes))
	return nil
}

// allZero reports whether there is nothing but zeros.
func allZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeroBlock))
		if !bytes.Equal(b[:n], zeroBlock[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// zeroBlock is compared with, since comparing is faster than a loop.
var zeroBlock [4096]byte

// lastOf returns the last n lines or bytes.
func lastOf(data []byte, n int64, inBytes bool) []byte {
	if inBytes {
		return data[max(0, int64(len(data))-n):]
	}
	if n == 0 {
		return nil
	}
	at := len(data)
	// The newline that ends the data ends its last line and begins none.
	if at > 0 && data[at-1] == '\n' {
		at--
	}
	for ; n > 0; n-- {
		if at = bytes.LastIndexByte(data[:at], '\n'); at < 0 {
			return data
		}
	}
	return data[at+1:]
}

// runTail opens all files before it prints, because the headers depend on how
// many there are. With -f it never ends by itself.
func runTail(c *applet.Call) int {
	c.LegacyCount("+")
	o := c.Getopt("fc:n:qvs:F", "lines=n:", "bytes=c:", "quiet=q", "silent=q", "verbose=v", "follow=f", "retry=F")
	unit := o.Last("nc")
	// POSIX's default of ten lines. Of -n and -c the last one counts.
	spec := "10"
	if unit != 0 {
		spec = o.Str(unit)
	}
	fromStart := strings.HasPrefix(spec, "+")
	n := c.Sized(strings.TrimLeft(spec, "+-"), applet.SizeSuffixes())
	follow := o.Has('f') || o.Has('F')
	type followed struct {
		name string
		r    io.ReadCloser
	}
	var open []followed
	args := o.Args
	if len(args) == 0 {
		args = []string{"-"}
	}
	code := 0
	for _, name := range args {
		r, err := c.Open(name)
		if err != nil {
			c.Errorf(applet.CantOpen, name, applet.Strerror(err))
			code = 1
			continue
		}
		open = append(open, followed{name, r})
	}
	// Only those that could be opened count for the headers.
	o.Args = o.Args[:min(len(o.Args), len(open))]
	header := applet.HeaderOf(c, o)
	for _, f := range open {
		header(f.name)
		if err := tail(c, f.r, n, unit == 'c', fromStart); err != nil {
			c.Errorf("%s: %s", f.name, applet.Strerror(err))
			code = 1
		}
	}
	if !follow || len(open) == 0 {
		return code
	}
	period := time.Second
	if o.Has('s') {
		if d, ok := applet.Duration(o.Str('s')); ok {
			period = d
		}
	}
	last := open[len(open)-1].name
	for {
		c.Out.Flush()
		if c.P.Sleep(c.Ctx, period) != nil && c.Ctx.Err() != nil {
			return 1
		}
		for _, f := range open {
			// A read error counts as no news: the file is looked at again in
			// the next period.
			data, _ := c.Slurp(f.r)
			if len(data) == 0 {
				continue
			}
			// A header is due only when the output changes over to another
			// file.
			if f.name != last && len(open) > 1 {
				header(f.name)
				last = f.name
			}
			c.Print(string(data))
		}
		if c.Out.Failed() {
			return 1
		}
	}
}
