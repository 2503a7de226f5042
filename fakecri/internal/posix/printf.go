package posix

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Spec is a conversion of C's printf, with its flags, width and precision. It
// formats one argument; what argument that is, is the caller's business, and
// how a text becomes a number, too. awk and the applet printf use it; the shell's printf has a
// way of its own.
type Spec struct {
	Minus, Plus, Space, Alt, Zero bool
	Width                         int
	// Prec is the precision, or -1. A precision of 0 differs from none.
	Prec int
	Verb byte
}

// maxWidth bounds widths and precisions. In bytes.
const maxWidth = 1 << 16

// parse reads what follows a percent sign and returns its length, 0 if the
// format ends within it. modifiers differ by command: C's h and l mean nothing to a shell.
func (s *Spec) parse(f string, star func() int, modifiers string) int {
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	i := 0
	for ; i < len(f); i++ {
		switch f[i] {
		case '-':
			s.Minus = true
			continue
		case '+':
			s.Plus = true
			continue
		case ' ':
			s.Space = true
			continue
		case '#':
			s.Alt = true
			continue
		case '0':
			s.Zero = true
			continue
		case '\'':
			continue
		}
		break
	}
	number := func() int {
		if i < len(f) && f[i] == '*' {
			i++
			return max(-maxWidth, min(star(), maxWidth))
		}
		n := 0
		for i < len(f) && isDigit(f[i]) {
			n = min(n*10+int(f[i]-'0'), maxWidth)
			i++
		}
		return n
	}
	s.Width = number()
	// A negative width of a * means left-aligned.
	if s.Width < 0 {
		s.Minus = true
		s.Width = -s.Width
	}
	if i < len(f) && f[i] == '.' {
		i++
		// A negative precision counts as none.
		s.Prec = max(-1, number())
	}
	for i < len(f) && strings.IndexByte(modifiers, f[i]) >= 0 {
		i++
	}
	if i >= len(f) {
		return 0
	}
	s.Verb = f[i]
	return i + 1
}

// ParseSpec reads the conversion that follows a percent sign. star yields the
// value of a * and may be called twice; modifiers are the length modifiers that
// are skipped. It returns 0 if f ends too early. Widths are bounded, so that
// %999999999d does not fill the memory of the simulation.
func ParseSpec(f string, star func() int, modifiers string) (Spec, int) {
	s := Spec{Prec: -1}
	n := s.parse(f, star, modifiers)
	return s, n
}

// Pad fills text up to the width, with zeros after a sign or with spaces.
// Widths count bytes, as C's do. zero is for numbers: texts are padded with spaces even with the
// flag.
func (s Spec) Pad(text string, zero bool) string {
	n := s.Width - len(text)
	if n <= 0 {
		return text
	}
	switch {
	case s.Minus:
		return text + strings.Repeat(" ", n)
	// Zeros go between the sign, or 0x, and the digits.
	case zero:
		sign := 0
		if text != "" && strings.IndexByte("+- ", text[0]) >= 0 {
			sign = 1
		}
		if strings.HasPrefix(text[sign:], "0x") || strings.HasPrefix(text[sign:], "0X") {
			sign += 2
		}
		return text[:sign] + strings.Repeat("0", n) + text[sign:]
	}
	return strings.Repeat(" ", n) + text
}

// sign is what stands before a number's digits. Plus goes before space if both are there.
func (s Spec) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.Plus:
		return "+"
	case s.Space:
		return " "
	}
	return ""
}

// digits applies an integer's precision: at least so many digits, and none for
// 0 with a precision of 0.
func (s Spec) digits(d string) string {
	if s.Prec == 0 && d == "0" {
		return ""
	}
	if n := s.Prec - len(d); n > 0 {
		d = strings.Repeat("0", n) + d
	}
	return d
}

// Int formats a signed integer. The lowest number has no positive counterpart, so the minus is
// taken off the text.
func (s Spec) Int(n int64) string {
	d := strconv.FormatInt(n, 10)
	d = strings.TrimPrefix(d, "-")
	// With a precision the flag 0 is ignored: C11 7.21.6.1.
	return s.Pad(s.sign(n < 0)+s.digits(d), s.Zero && s.Prec < 0)
}

// Uint formats an unsigned integer by the verb: o, u, x or X.
func (s Spec) Uint(n uint64) string {
	var d string
	switch s.Verb {
	case 'o':
		d = s.digits(strconv.FormatUint(n, 8))
		// An octal number that begins with 0 already gets no other.
		if s.Alt && !strings.HasPrefix(d, "0") {
			d = "0" + d
		}
	case 'x', 'X':
		d = s.digits(strconv.FormatUint(n, 16))
		// C puts no 0x before a zero.
		if s.Alt && n != 0 {
			d = "0x" + d
		}
		if s.Verb == 'X' {
			d = strings.ToUpper(d)
		}
	default:
		d = s.digits(strconv.FormatUint(n, 10))
	}
	return s.Pad(d, s.Zero && s.Prec < 0)
}

// Str formats a string. The precision cuts bytes, in the middle of a character too.
func (s Spec) Str(text string) string {
	if s.Prec >= 0 && s.Prec < len(text) {
		text = text[:s.Prec]
	}
	return s.Pad(text, false)
}

// Float formats by the verb: e, f, g, a, and their capitals. Infinities and
// what is no number are padded with spaces, never with zeros.
func (s Spec) Float(f float64) string {
	upper := s.Verb >= 'A' && s.Verb <= 'Z'
	var d string
	negative := math.Signbit(f)
	abs := math.Abs(f)
	switch {
	case math.IsInf(f, 0):
		d = "inf"
	case math.IsNaN(f):
		d = "nan"
	default:
		prec := s.Prec
		// C's default for all but a.
		if prec < 0 {
			prec = 6
		}
		d = s.finite(abs, prec)
	}
	if upper {
		d = strings.ToUpper(d)
	}
	return s.Pad(s.sign(negative)+d, s.Zero && !math.IsInf(f, 0) && !math.IsNaN(f))
}

// finite formats a number that is one by its verb, without a sign. g is made from e and f, as
// Go's own differs from C's in when it changes between the two.
func (s Spec) finite(f float64, prec int) string {
	switch s.Verb | 0x20 {
	case 'e':
		return strconv.FormatFloat(f, 'e', prec, 64)
	case 'f':
		return strconv.FormatFloat(f, 'f', prec, 64)
	case 'a':
		return strconv.FormatFloat(f, 'x', s.Prec, 64)
	}
	// %g: the style follows from the exponent after rounding.
	prec = cmp.Or(prec, 1)
	// Formatted once to learn the exponent, since rounding may change it: 9.99 with two digits is
	// 10.
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	mantissa, exp, _ := strings.Cut(e, "e")
	x, _ := strconv.Atoi(exp)
	if x < -4 || x >= prec {
		// %g drops zeros at the end, unless # keeps them.
		if !s.Alt && strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + exp
	}
	d := strconv.FormatFloat(f, 'f', prec-1-x, 64)
	if !s.Alt && strings.Contains(d, ".") {
		d = strings.TrimRight(strings.TrimRight(d, "0"), ".")
	}
	return d
}
