package applet

import (
	"strings"
	"time"
)

// EchoEscapes resolves escapes as echo -e and printf %b do; stop says that \c
// ended the text.
func EchoEscapes(s string) (out string, stop bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		if s[i+1] == 'c' {
			return b.String(), true
		}
		v, n := Escape(s[i:], true)
		if n == 0 {
			b.WriteByte('\\')
			continue
		}
		b.WriteByte(v)
		i += n - 1
	}
	return b.String(), false
}

// Escape reads a backslash escape and returns its length, 0 if it is none. With
// zero an octal one may have a 0 before its three digits. It is bb_process_escape_sequence; an
// unknown escape is no escape, and the backslash stays.
func Escape(s string, zero bool) (byte, int) {
	if len(s) < 2 {
		return 0, 0
	}
	if j := strings.IndexByte(`abfnrtv\"e`, s[1]); j >= 0 {
		return "\a\b\f\n\r\t\v\\\"\x1b"[j], 2
	}
	n, limit := 1, 4
	if s[1] == '0' && zero {
		// \0123 of echo and \123 of printf have three digits each.
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

// Pause sleeps; what interrupts it does not end it. sleep is interrupted by signals that are
// caught, of which applets catch few.
func (c *Call) Pause(d time.Duration) int {
	end := c.P.Now().Add(d)
	for {
		if err := c.P.Sleep(c.Ctx, end.Sub(c.P.Now())); err == nil {
			return 0
		} else if c.Ctx.Err() != nil {
			return 1
		}
	}
}
