package awk

import (
	"math"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// sprintf formats as awk's printf does; missing arguments are unset ones, and
// there is no error for too many. Integers are 32 bits wide, as busybox
// converts to int. Numbers are converted by CONVFMT where %s wants a text.
func sprintf(format string, args []value, convfmt string) string {
	var b strings.Builder
	next := func() value {
		if len(args) == 0 {
			return value{}
		}
		v := args[0]
		args = args[1:]
		return v
	}
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			b.WriteByte(c)
			continue
		}
		if i+1 < len(format) && format[i+1] == '%' {
			b.WriteByte('%')
			i++
			continue
		}
		// A width of * is not built, in busybox either.
		spec, n := posix.ParseSpec(format[i+1:], func() int {
			fail("cmd. line:1: %*x formats are not supported")
			return 0
		}, "")
		if n == 0 {
			b.WriteString(format[i:])
			break
		}
		i += n
		switch spec.Verb {
		case 'd', 'i':
			b.WriteString(spec.Int(toInt32(next().float())))
		case 'o', 'u', 'x', 'X':
			// Negative numbers show as C's unsigned int.
			b.WriteString(spec.Uint(uint64(uint32(toInt32(next().float())))))
		case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
			b.WriteString(spec.Float(next().float()))
		case 'c':
			v := next()
			s := v.text(convfmt)
			// A number is a character's code, but input that looks like one is
			// text.
			if v.numeric() && v.kind != fromInput {
				s = string([]byte{byte(clampInt(v.float()))})
			} else if s != "" {
				s = s[:1]
			}
			b.WriteString(spec.Pad(s, false))
		case 's':
			b.WriteString(spec.Str(next().text(convfmt)))
		case '%':
			b.WriteByte('%')
		default:
			fail("cmd. line:1: Invalid format specifier")
		}
	}
	return b.String()
}

// toInt32 converts as C does on x86-64: what does not fit is the least int, not
// the nearest. Programs that print big numbers with %d show it.
func toInt32(f float64) int64 {
	if !(f > math.MinInt32-1 && f < math.MaxInt32+1) {
		return math.MinInt32
	}
	return int64(f)
}

// clampInt is a number as a 64-bit integer, cut off and held to its range.
func clampInt(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return math.MinInt64
	case f >= 1<<63:
		return math.MaxInt64
	case f < -1<<63:
		return math.MinInt64
	}
	return int64(f)
}
