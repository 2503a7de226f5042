package applets

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// Printf is printf. The format is used again until no argument is left. Lengths
// (l, z, ...) are passed over; %a is not built and ends it as an invalid
// format; what is no number is told of, and 0.
//
// Numbers are read as C reads them, so 010 is 8; 'x is the code of x. \c ends
// the output, in the format and in %b.
func Printf() applet.Applet { return applet.New(runPrintf, "printf", "FORMAT [ARG]...") }

// runPrintf repeats the format as long as arguments remain, as POSIX wants it.
func runPrintf(c *applet.Call) int {
	if len(c.Args) == 0 {
		c.Usage()
	}
	f := &printfRun{c: c, args: c.Args[1:]}
	format := c.Args[0]
	for {
		before := len(f.args)
		if stop := f.once(format); stop {
			break
		}
		// A format that uses no argument would be printed for ever.
		if len(f.args) == 0 || len(f.args) == before {
			break
		}
	}
	return f.code
}

// printfRun is one run of printf.
type printfRun struct {
	c    *applet.Call
	args []string
	code int
}

// next takes the next argument; false if none is left, which counts as "" or 0.
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
			// In the format an octal escape has three digits, in %b one more
			// with a 0.
			v, n := applet.Escape(format[i:], false)
			if n == 0 {
				c.Print(`\`)
				continue
			}
			c.Print(string([]byte{v}))
			i += n - 1
		case format[i] != '%':
			c.Print(format[i : i+1])
		case strings.HasPrefix(format[i:], "%%"):
			c.Print("%")
			i++
		default:
			// A * takes its number from the arguments, before the value it
			// formats.
			spec, n := posix.ParseSpec(format[i+1:], func() int {
				a, _ := f.next()
				return int(f.integer(a))
			}, "hlLqjzt")
			if n == 0 || strings.IndexByte("diouxXeEfFgGcsb", spec.Verb) < 0 {
				bad := format[i:]
				c.Errorf("%s: invalid format", bad)
				c.Exit(1)
			}
			i += n
			if f.convert(spec) {
				return true
			}
		}
	}
	return false
}

// convert prints one argument; true means that \c has ended it all.
func (f *printfRun) convert(spec posix.Spec) bool {
	a, _ := f.next()
	switch spec.Verb {
	case 'd', 'i':
		f.c.Print(spec.Int(f.integer(a)))
	case 'o', 'u', 'x', 'X':
		f.c.Print(spec.Uint(uint64(f.integer(a))))
	case 'e', 'E', 'f', 'F', 'g', 'G':
		v := 0.0
		if a != "" {
			var err error
			if v, err = strconv.ParseFloat(a, 64); err != nil {
				f.bad(a)
				v = 0
			}
		}
		f.c.Print(spec.Float(v))
	case 'c':
		// %c of an empty argument prints a zero byte, as in C.
		a = (a + "\x00")[:1]
		f.c.Print(spec.Pad(a, false))
	case 's':
		f.c.Print(spec.Str(a))
	case 'b':
		text, stop := applet.EchoEscapes(a)
		f.c.Print(spec.Str(text))
		return stop
	}
	return false
}

// bad tells of an argument that is no number. The output goes on, the status is
// 1.
func (f *printfRun) bad(a string) {
	f.c.Errorf("invalid number '%s'", a)
	f.code = 1
}

// integer reads a number as C writes it, or 'x for a character.
func (f *printfRun) integer(a string) int64 {
	// A missing argument is 0 without a complaint, as POSIX has it.
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
		// Beyond int64 an unsigned value keeps its bits: %u and %x print it in
		// full.
		if u, uerr := strconv.ParseUint(a, 0, 64); uerr == nil {
			return int64(u)
		}
		f.bad(a)
		return 0
	}
	return n
}
