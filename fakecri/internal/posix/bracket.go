package posix

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// classes are the names that may stand in [: :], as a list with spaces around
// each, which are the same for regexp. A name that is not in it is an error of the pattern.
const classes = " alnum alpha blank cntrl digit graph lower print punct space upper xdigit "

// bracket reads a bracket expression. Members are written by their code points,
// so that nothing in it has a meaning for regexp; a backslash is a member as
// any other, except for awk. t.pos is at the opening bracket, and behind the closing one
// afterwards.
func (t *translator) bracket() error {
	s := t.src
	i := t.pos + 1
	var b strings.Builder
	b.WriteByte('[')
	if i < len(s) && s[i] == '^' {
		b.WriteByte('^')
		i++
	}
	first := true
	for {
		if i >= len(s) {
			return ErrBracket
		}
		// A ] at the beginning is a member.
		if s[i] == ']' && !first {
			break
		}
		first = false
		if strings.HasPrefix(s[i:], "[:") {
			end := strings.Index(s[i+2:], ":]")
			if end < 0 {
				return ErrBracket
			}
			name := s[i+2 : i+2+end]
			if !strings.Contains(classes, " "+name+" ") {
				return ErrClass
			}
			b.WriteString("[:" + name + ":]")
			i += end + 4
			continue
		}
		// A - at the end is a member.
		lo, n, err := t.member(s[i:])
		if err != nil {
			return err
		}
		i += n
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			hi, n, err := t.member(s[i+1:])
			if err != nil {
				return err
			}
			// glibc's message, which has a capital.
			if hi < lo {
				return fmt.Errorf("Invalid range end")
			}
			fmt.Fprintf(&b, `\x{%x}-\x{%x}`, lo, hi)
			i += 1 + n
			continue
		}
		fmt.Fprintf(&b, `\x{%x}`, lo)
	}
	b.WriteByte(']')
	t.pos = i + 1
	t.atom(b.String())
	return nil
}

// member reads one character of a bracket expression and returns how long it is
// written. [.x.] and [=x=] are their one character, as in the C locale.
func (t *translator) member(s string) (rune, int, error) {
	if strings.HasPrefix(s, "[.") || strings.HasPrefix(s, "[=") {
		end := strings.Index(s[2:], s[1:2]+"]")
		if end < 0 {
			return 0, 0, ErrBracket
		}
		r, n := utf8.DecodeRuneInString(s[2 : 2+end])
		if n != end || end == 0 {
			return 0, 0, fmt.Errorf("Invalid collation character")
		}
		return r, end + 4, nil
	}
	if s[0] == '\\' && t.flags&Escapes != 0 {
		if v, n := Unescape(s); n > 0 {
			return rune(v), n, nil
		}
		if len(s) > 1 {
			return rune(s[1]), 2, nil
		}
	}
	r, n := utf8.DecodeRuneInString(s)
	// A byte that is no UTF-8 stands for itself.
	if r == utf8.RuneError && n == 1 {
		r = rune(s[0])
	}
	return r, n, nil
}

// Unescape reads a C escape (\n, \t, \", \/, octal and so on) at the start of s
// and returns the byte it stands for and its length; 0 if there is none.
// Whether another backslash stays is the caller's decision. Octal escapes have up to three
// digits.
func Unescape(s string) (byte, int) {
	if len(s) < 2 || s[0] != '\\' {
		return 0, 0
	}
	if i := strings.IndexByte(`abfnrtv"/`, s[1]); i >= 0 {
		return "\a\b\f\n\r\t\v\"/"[i], 2
	}
	v, n := 0, 1
	for n < len(s) && n < 4 && s[n] >= '0' && s[n] <= '7' {
		v = v*8 + int(s[n]-'0')
		n++
	}
	if n == 1 {
		return 0, 0
	}
	return byte(v), n
}
