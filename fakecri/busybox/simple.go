package busybox

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/busybox/posix"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

func runTrue(*call) int  { return 0 }
func runFalse(*call) int { return 1 }

func runEcho(c *call) int {
	newline, escapes := true, false
	args := c.args
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, f := range args[0][1:] {
			switch f {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		var stop bool
		if text, stop = echoEscapes(text); stop {
			newline = false
		}
	}
	c.print(text)
	if newline {
		c.print("\n")
	}
	return 0
}

// echoEscapes resolves escapes as echo -e and printf %b do; stop says that \c
// ended the text.
func echoEscapes(s string) (out string, stop bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		if s[i+1] == 'c' {
			return b.String(), true
		}
		v, n := escape(s[i:], true)
		if n == 0 {
			b.WriteByte('\\')
			continue
		}
		b.WriteByte(v)
		i += n - 1
	}
	return b.String(), false
}

// escape reads a backslash escape and returns its length, 0 if it is none. With
// zero an octal one may have a 0 before its three digits.
func escape(s string, zero bool) (byte, int) {
	if len(s) < 2 {
		return 0, 0
	}
	if j := strings.IndexByte(`abfnrtv\"e`, s[1]); j >= 0 {
		return "\a\b\f\n\r\t\v\\\"\x1b"[j], 2
	}
	n, limit := 1, 4
	if s[1] == '0' && zero {
		limit = 5
	}
	v := 0
	for n < len(s) && n < limit && s[n] >= '0' && s[n] <= '7' && v*8+int(s[n]-'0') < 256 {
		v = v*8 + int(s[n]-'0')
		n++
	}
	if n > 1 {
		return byte(v), n
	}
	if s[1] == 'x' {
		for n = 2; n < len(s) && n < 4; n++ {
			d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
			if d < 0 {
				break
			}
			v = v*16 + d
		}
		if n > 2 {
			return byte(v), n
		}
	}
	return 0, 0
}

func runSleep(c *call) int {
	if len(c.args) == 0 {
		c.usage()
	}
	args := c.args
	if args[0] == "--" {
		args = args[1:]
	}
	var total time.Duration
	for _, a := range args {
		d, ok := duration(a)
		if !ok {
			c.die("invalid number '%s'", a)
		}
		total = min(forever, total+d)
	}
	return c.pause(total)
}

// pause sleeps; what interrupts it does not end it.
func (c *call) pause(d time.Duration) int {
	end := c.p.Now().Add(d)
	for {
		if err := c.p.Sleep(c.ctx, end.Sub(c.p.Now())); err == nil {
			return 0
		} else if c.ctx.Err() != nil {
			return 1
		}
	}
}

func runUsleep(c *call) int {
	if len(c.args) != 1 {
		c.usage()
	}
	return c.pause(time.Duration(min(c.number(c.args[0]), int64(forever/time.Microsecond))) * time.Microsecond)
}

// runUsemem takes memory, touches it, and sleeps until SIGTERM. It is no
// busybox applet but a test program of the recordings' images.
func runUsemem(c *call) int {
	if len(c.args) != 1 {
		c.usage()
	}
	n := c.number(c.args[0])
	c.p.Disposition(kernel.SIGTERM, kernel.Catch)
	const chunk = 16 << 20
	for left := n; left > 0; left -= chunk {
		if err := c.p.Alloc(c.ctx, min(left, chunk)); err != nil {
			c.die("%s", strerror(err))
		}
		_ = c.p.Step(c.ctx, 4*time.Millisecond)
		if _, ok := c.p.NextSignal(); ok {
			return 0
		}
	}
	for {
		if c.p.Sleep(c.ctx, forever) == nil {
			continue
		}
		if _, ok := c.p.NextSignal(); ok || c.ctx.Err() != nil {
			return 0
		}
	}
}

func runBasename(c *call) int {
	o := c.getopt("+as:")
	if len(o.args) == 0 || !o.has('a') && !o.has('s') && len(o.args) > 2 {
		c.usage()
	}
	names, suffix := o.args, o.str('s')
	if !o.has('a') && !o.has('s') && len(names) == 2 {
		names, suffix = names[:1], names[1]
	}
	for _, n := range names {
		trimmed := strings.TrimRight(n, "/")
		if trimmed == "" && n != "" {
			trimmed = "/"
		} else {
			trimmed = base(trimmed)
		}
		if s, ok := strings.CutSuffix(trimmed, suffix); ok && s != "" {
			trimmed = s
		}
		c.print(trimmed, "\n")
	}
	return 0
}

func runDirname(c *call) int {
	if len(c.args) != 1 {
		c.usage()
	}
	s := strings.TrimRight(c.args[0], "/")
	switch i := strings.LastIndexByte(s, '/'); {
	case s == "" && c.args[0] != "":
		s = "/"
	case i < 0:
		s = "."
	default:
		if s = strings.TrimRight(s[:i], "/"); s == "" {
			s = "/"
		}
	}
	c.print(s, "\n")
	return 0
}

func runPwd(c *call) int {
	c.print(c.p.Dir, "\n")
	return 0
}

func runSeq(c *call) int {
	o := c.getopt("+ws:")
	nums, sep, wide := o.args, "\n", o.has('w')
	if o.has('s') {
		sep = o.str('s')
	}
	if len(nums) == 0 || len(nums) > 3 {
		c.usage()
	}
	first, inc, last := 1.0, 1.0, 0.0
	precision, width := 0, 0
	values := make([]float64, len(nums))
	for i, n := range nums {
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			c.usage()
		}
		values[i] = f
		if _, frac, ok := strings.Cut(n, "."); ok && (i < len(nums)-1 || len(nums) == 1) {
			precision = max(precision, len(frac))
		}
	}
	last = values[len(values)-1]
	if len(values) > 1 {
		first = values[0]
	}
	if len(values) == 3 {
		inc = values[1]
	}
	if inc == 0 {
		inc = 0
	}
	format := func(f float64) string { return strconv.FormatFloat(f, 'f', precision, 64) }
	if wide {
		width = max(len(format(first)), len(format(last)))
	}
	for i := 0; ; i++ {
		v := first + float64(i)*inc
		if inc >= 0 && v > last+math.Abs(inc)*1e-9 || inc < 0 && v < last-math.Abs(inc)*1e-9 {
			if i > 0 {
				c.print("\n")
			}
			return 0
		}
		if i > 0 {
			c.print(sep)
		}
		text := format(v)
		if wide {
			spec := posix.Spec{Width: width, Zero: true, Prec: precision, Verb: 'f'}
			text = spec.Float(v)
		}
		c.print(text)
		c.spend(workPerStep / 1024) // a million a second
		if c.out.failed() {
			return 1
		}
	}
}

func runPrintf(c *call) int {
	if len(c.args) == 0 {
		c.usage()
	}
	f := &printfRun{c: c, args: c.args[1:]}
	format := c.args[0]
	for {
		before := len(f.args)
		if stop := f.once(format); stop {
			break
		}
		if len(f.args) == 0 || len(f.args) == before {
			break
		}
	}
	return f.code
}

// printfRun is one run of printf.
type printfRun struct {
	c    *call
	args []string
	code int
}

func (f *printfRun) next() (string, bool) {
	if len(f.args) == 0 {
		return "", false
	}
	a := f.args[0]
	f.args = f.args[1:]
	return a, true
}

// once prints the format one time; true ends it all.
func (f *printfRun) once(format string) bool {
	c := f.c
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] == '\\':
			if strings.HasPrefix(format[i:], `\c`) {
				return true
			}
			v, n := escape(format[i:], false)
			if n == 0 {
				c.print(`\`)
				continue
			}
			c.print(string([]byte{v}))
			i += n - 1
		case format[i] != '%':
			c.print(format[i : i+1])
		case strings.HasPrefix(format[i:], "%%"):
			c.print("%")
			i++
		default:
			spec, n := posix.ParseSpec(format[i+1:], func() int {
				a, _ := f.next()
				return int(f.integer(a))
			}, "hlLqjzt")
			if n == 0 || strings.IndexByte("diouxXeEfFgGcsb", spec.Verb) < 0 {
				bad := format[i:]
				c.errorf("%s: invalid format", bad)
				c.exit(1)
			}
			i += n
			if f.convert(spec) {
				return true
			}
		}
	}
	return false
}

func (f *printfRun) convert(spec posix.Spec) bool {
	a, _ := f.next()
	switch spec.Verb {
	case 'd', 'i':
		f.c.print(spec.Int(f.integer(a)))
	case 'o', 'u', 'x', 'X':
		f.c.print(spec.Uint(uint64(f.integer(a))))
	case 'e', 'E', 'f', 'F', 'g', 'G':
		v := 0.0
		if a != "" {
			var err error
			if v, err = strconv.ParseFloat(a, 64); err != nil {
				f.bad(a)
				v = 0
			}
		}
		f.c.print(spec.Float(v))
	case 'c':
		a = (a + "\x00")[:1]
		f.c.print(spec.Pad(a, false))
	case 's':
		f.c.print(spec.Str(a))
	case 'b':
		text, stop := echoEscapes(a)
		f.c.print(spec.Str(text))
		return stop
	}
	return false
}

func (f *printfRun) bad(a string) {
	f.c.errorf("invalid number '%s'", a)
	f.code = 1
}

// integer reads a number as C writes it, or 'x for a character.
func (f *printfRun) integer(a string) int64 {
	if a == "" {
		return 0
	}
	if a[0] == '\'' || a[0] == '"' {
		if len(a) > 1 {
			return int64(a[1])
		}
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimLeft(a, " \t"), "+"), 0, 64)
	if err != nil {
		if u, uerr := strconv.ParseUint(a, 0, 64); uerr == nil {
			return int64(u)
		}
		f.bad(a)
		return 0
	}
	return n
}
