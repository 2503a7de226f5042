package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// printfCmd is printf: the format is used again until no arguments are left. It
// is the same program as the applet; %a differs, and messages are sh's. The format is used again
// only if it has used up arguments: one without conversions would never end.
func printfCmd(s *shell, argv []string) int {
	args := argv[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		s.plain("usage: printf FORMAT [ARGUMENT...]")
		return 2
	}
	f := formatter{s: s, args: args[1:]}
	for {
		n := len(f.args)
		if !f.once(args[0]) {
			return 1
		}
		if f.stop || len(f.args) == 0 || len(f.args) == n || len(s.out) > maxString {
			return f.status
		}
	}
}

// formatter is one call of printf: the arguments that are left, and what went
// wrong. stop says that \c has ended the output.
type formatter struct {
	s      *shell
	args   []string
	status int
	stop   bool
}

// next takes an argument, "" if none is left.
func (f *formatter) next() string {
	if len(f.args) == 0 {
		return ""
	}
	a := f.args[0]
	f.args = f.args[1:]
	return a
}

// once goes through the format; false if it is no format, of which it has told.
func (f *formatter) once(t string) bool {
	s := f.s
	for i := 0; i < len(t); i++ {
		switch {
		case t[i] == '\\' && i+1 < len(t):
			if t[i+1] == 'c' {
				f.stop = true
				return true
			}
			n := 0
			s.out, n = appendEscape(s.out, t[i:])
			i += n - 1
		case t[i] != '%':
			s.out = append(s.out, t[i])
		case i+1 < len(t) && t[i+1] == '%':
			s.out = append(s.out, '%')
			i++
		default:
			n := f.conversion(t[i:])
			if n == 0 {
				return false
			}
			i += n - 1
			if f.stop {
				return true
			}
		}
	}
	return true
}

// conversion does the conversion at the start of t and returns its length, 0 if
// it is none. Widths from arguments are bounded. Go's fmt takes the flags and widths as they are.
// Sizes such as l are read over, since every integer has 64 bits here; a width of more than five
// digits is dropped.
func (f *formatter) conversion(t string) int {
	i := 1
	for i < len(t) && strings.IndexByte("-+ #0", t[i]) >= 0 {
		i++
	}
	spec := t[:i]
	number := func() {
		if i < len(t) && t[i] == '*' {
			n, _ := f.number(f.next())
			spec += strconv.FormatInt(min(max(n, -1<<16), 1<<16), 10)
			i++
			return
		}
		start := i
		for i < len(t) && t[i] >= '0' && t[i] <= '9' {
			i++
		}
		if i-start <= 5 {
			spec += t[start:i]
		}
	}
	number()
	if i < len(t) && t[i] == '.' {
		spec += "."
		i++
		number()
	}
	size := i
	for i < len(t) && strings.IndexByte("hlLjzt", t[i]) >= 0 {
		i++
	}
	if i == len(t) || !f.verb(spec, t[i]) {
		f.s.plain("%s: invalid format", t[:size]+t[i:])
		return 0
	}
	return i + 1
}

// verb prints an argument by its conversion; false if there is no such one. Integers print as 64
// bits, so %u of -1 is 18446744073709551615.
func (f *formatter) verb(spec string, c byte) bool {
	s := f.s
	switch c {
	case 's':
		s.out = append(s.out, padded(spec, f.next())...)
	case 'b':
		var b []byte
		b, f.stop = appendEscapes(nil, f.next())
		s.out = append(s.out, padded(spec, string(b))...)
	// %c of an empty argument is the zero byte, which C's putchar would write.
	case 'c':
		a := f.next()
		if a = a[:min(len(a), 1)]; a == "" {
			a = "\x00"
		}
		s.out = append(s.out, padded(spec, a)...)
	case 'd', 'i':
		n, _ := f.number(f.next())
		s.out = fmt.Appendf(s.out, integerSpec(spec)+"d", n)
	case 'u':
		n, _ := f.number(f.next())
		s.out = fmt.Appendf(s.out, integerSpec(spec)+"d", uint64(n))
	case 'o', 'x', 'X':
		n, _ := f.number(f.next())
		s.out = fmt.Appendf(s.out, integerSpec(spec)+string(c), uint64(n))
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		a := f.next()
		v, err := strconv.ParseFloat(a, 64)
		if err != nil && a != "" {
			f.bad(a)
		}
		// Go has C's %a as %x of a float.
		if c == 'a' || c == 'A' {
			c += 'x' - 'a'
		}
		if (c == 'g' || c == 'G') && !strings.Contains(spec, ".") {
			// C's default precision for %g is 6 digits, Go's is as many as the number needs.
			spec += ".6"
		}
		s.out = fmt.Appendf(s.out, spec+string(c), v)
	default:
		return false
	}
	return true
}

// padded is %s by bytes, as C has it, where Go would count characters. spec is the conversion's
// start, from % to the precision. A negative width, from *, means left.
func padded(spec, t string) string {
	flags := spec[1:]
	left := strings.Contains(flags, "-")
	flags = strings.TrimLeft(flags, "-+ #0")
	width, prec, has := strings.Cut(flags, ".")
	if has {
		if n, _ := strconv.Atoi(prec); n < len(t) && n >= 0 {
			t = t[:n]
		}
	}
	w, _ := strconv.Atoi(width)
	if w < 0 {
		left, w = true, -w
	}
	if pad := w - len(t); pad > 0 {
		if left {
			return t + strings.Repeat(" ", pad)
		}
		return strings.Repeat(" ", pad) + t
	}
	return t
}

// integerSpec has Go treat a precision with a zero flag as C does. In C the flag 0 is ignored if
// a precision is given; Go would fill the width with zeros.
func integerSpec(spec string) string {
	if strings.Contains(spec, ".") {
		flags := strings.TrimLeft(spec[1:], "-+ #0")
		return "%" + strings.ReplaceAll(spec[1:len(spec)-len(flags)], "0", "") + flags
	}
	return spec
}

// number reads an integer as C does, or the code of a character after a quote.
// What does not fit into 64 bits with a sign may fit without. Underscores, which Go's base 0
// allows, are refused as C would. The empty text is 0 without an error.
func (f *formatter) number(a string) (int64, bool) {
	if a == "" {
		return 0, true
	}
	if a[0] == '\'' || a[0] == '"' {
		if len(a) < 2 {
			return 0, true
		}
		return int64([]rune(a[1:])[0]), true
	}
	t := strings.TrimLeft(a, " \t")
	t = strings.TrimPrefix(t, "+")
	if strings.Contains(t, "_") {
		f.bad(a)
		return 0, false
	}
	n, err := strconv.ParseInt(t, 0, 64)
	if err != nil {
		u, err := strconv.ParseUint(t, 0, 64)
		if err != nil {
			f.bad(a)
			return 0, false
		}
		return int64(u), true
	}
	return n, true
}

// bad tells of what is no number; it counts as 0.
func (f *formatter) bad(a string) {
	f.s.plain("invalid number '%s'", a)
	f.status = 1
}
