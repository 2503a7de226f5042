package awk

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// builtin calls a function of the language. Arguments are evaluated here, as
// not all functions evaluate all of theirs. The parser has checked that there are enough
// arguments. Positions count from 1, lengths in bytes.
func (in *interp) builtin(e *expr) value {
	text := func(i int) string { return in.eval(e.args[i]).text(in.convfmt()) }
	number := func(i int) float64 { return in.eval(e.args[i]).float() }
	switch e.str {
	case "length":
		return in.length(e)
	case "substr":
		return in.substr(e)
	case "index":
		s := text(0)
		find := text(1)
		// POSIX leaves index with an empty text open; here it is 0.
		if find == "" {
			return num(0)
		}
		return num(float64(strings.Index(s, find) + 1))
	case "split":
		return in.splitInto(e)
	case "sub", "gsub":
		return in.substitute(e)
	case "match":
		s := text(0)
		loc := in.regexp(e.args[1]).Find(s)
		start, length := 0, -1
		if loc != nil {
			start, length = loc[0]+1, loc[1]-loc[0]
		}
		// match sets both, also when there is none: 0 and -1.
		in.vars[vRSTART].value = num(float64(start))
		in.vars[vRLENGTH].value = num(float64(length))
		return num(float64(start))
	case "sprintf":
		return str(sprintf(text(0), in.evalAll(e.args[1:]), in.convfmt()))
	case "int":
		return num(math.Trunc(number(0)))
	case "rand":
		return num(in.rand())
	case "srand":
		// srand returns the seed of before; the time is the loop's, in whole
		// seconds.
		old := in.seed
		in.seed = uint32(in.host.Now().Unix())
		if len(e.args) > 0 {
			in.seed = uint32(clampInt(number(0)))
		}
		in.random = nil
		return num(float64(old))
	case "tolower":
		return str(mapASCII(text(0), 'A', 'Z', 32))
	case "toupper":
		return str(mapASCII(text(0), 'a', 'z', -32))
	case "system":
		command := text(0)
		// What was printed comes before what the command prints. As POSIX has it for system and
		// for pipes.
		in.host.Flush()
		return num(float64(in.host.System(command)))
	case "close":
		return num(in.closeOne(text(0)))
	case "fflush":
		in.host.Flush()
		return num(0)
	case "systime":
		return num(float64(in.host.Now().Unix()))
	case "strftime":
		return in.strftime(e)
	case "mktime":
		return num(mktime(text(0)))
	}
	return num(in.arithmetic(e, number))
}

// arithmetic calls those that only know numbers. Bits are those of 64-bit
// integers.
func (in *interp) arithmetic(e *expr, number func(int) float64) float64 {
	// A negative number wraps, as a cast in C does.
	bits := func(i int) uint64 { return uint64(clampInt(number(i))) }
	switch e.str {
	case "sin":
		return math.Sin(number(0))
	case "cos":
		return math.Cos(number(0))
	case "atan2":
		y := number(0)
		return math.Atan2(y, number(1))
	case "exp":
		return math.Exp(number(0))
	case "log":
		return math.Log(number(0))
	case "sqrt":
		return math.Sqrt(number(0))
	case "and":
		a := bits(0)
		return float64(a & bits(1))
	case "or":
		a := bits(0)
		return float64(a | bits(1))
	case "xor":
		a := bits(0)
		return float64(a ^ bits(1))
	case "compl":
		return float64(^bits(0))
	case "lshift":
		a := bits(0)
		return float64(a << (bits(1) & 63))
	case "rshift":
		a := bits(0)
		return float64(a >> (bits(1) & 63))
	}
	fail("internal error: " + e.str)
	return 0
}

// mapASCII moves the bytes from lo to hi by shift: letters of ASCII only. BusyBox's awk knows no
// locale here.
func mapASCII(s string, lo, hi byte, shift int) string {
	b := []byte(s)
	for i, c := range b {
		if c >= lo && c <= hi {
			b[i] = byte(int(c) + shift)
		}
	}
	return string(b)
}

// length is that of a text in bytes, of $0 without an argument, or the number
// of an array's elements.
func (in *interp) length(e *expr) value {
	if len(e.args) == 0 {
		return num(float64(len(in.getRecord())))
	}
	// A name may be an array's: length counts its elements then, as gawk's
	// does.
	if a := e.args[0]; a.op == "var" || a.op == "local" {
		if c := in.cellOf(a); c.array != nil || c.alias != nil && c.alias.array != nil {
			return num(float64(len(c.arr().byKey)))
		}
	}
	return num(float64(len(in.eval(e.args[0]).text(in.convfmt()))))
}

// substr cuts a text; positions are cut off to whole numbers. A negative length gives nothing.
func (in *interp) substr(e *expr) value {
	s := in.eval(e.args[0]).text(in.convfmt())
	// A start before the text does not shorten what is taken of it.
	from := max(0, min(toInt32(in.eval(e.args[1]).float())-1, int64(len(s))))
	n := int64(len(s))
	if len(e.args) > 2 {
		n = max(0, toInt32(in.eval(e.args[2]).float()))
	}
	return str(s[from:min(from+n, int64(len(s)))])
}

// splitInto is split. A regular expression of one character is put in a group,
// since one character as text is taken as itself. Elements count from 1 and look like input, so
// numbers in them compare as numbers.
func (in *interp) splitInto(e *expr) value {
	s := in.eval(e.args[0]).text(in.convfmt())
	sep := in.vars[vFS].value.text(in.convfmt())
	if len(e.args) > 2 {
		if r := e.args[2]; r.op == "regex" {
			sep = r.str
			if len(sep) == 1 {
				sep = "(" + sep + ")"
			}
		} else {
			sep = in.eval(r).text(in.convfmt())
		}
	}
	arr := in.arrayOf(e.args[1])
	// The array is emptied before the text is cut, as the real one does.
	arr.clear()
	parts := in.splitText(s, sep, false)
	for i, p := range parts {
		arr.get(itoa(i + 1)).value = inputStr(p)
	}
	return num(float64(len(parts)))
}

// substitute is sub and gsub. In the replacement & is the match and \& an
// ampersand. The result is how many there were; without any the target is not assigned to.
func (in *interp) substitute(e *expr) value {
	re := in.regexp(e.args[0])
	repl := in.eval(e.args[1]).text(in.convfmt())
	// Without a third argument it is $0.
	target := &expr{op: "field", a: &expr{op: "num"}}
	if len(e.args) > 2 {
		target = e.args[2]
		if !target.assignable() {
			fail("cmd. line:" + itoa(e.line) + ": Assignment to non-variable")
		}
	}
	s := in.eval(target).text(in.convfmt())
	var locs [][]int
	if e.str == "gsub" {
		// An empty match between characters counts, right after another it does not.
		locs = re.FindAll(s)
	} else if loc := re.Find(s); loc != nil {
		locs = [][]int{loc}
	}
	if len(locs) == 0 {
		return num(0)
	}
	var b strings.Builder
	from := 0
	for _, loc := range locs {
		b.WriteString(s[from:loc[0]])
		for i := 0; i < len(repl); i++ {
			switch c := repl[i]; {
			// Other escapes have been resolved by the lexer.
			case c == '\\' && i+1 < len(repl) && (repl[i+1] == '&' || repl[i+1] == '\\'):
				i++
				b.WriteByte(repl[i])
			case c == '&':
				b.WriteString(s[loc[0]:loc[1]])
			default:
				b.WriteByte(c)
			}
		}
		from = loc[1]
	}
	b.WriteString(s[from:])
	in.assign(target, str(b.String()))
	return num(float64(len(locs)))
}

// strftime is gawk's, in UTC.
func (in *interp) strftime(e *expr) value {
	format := "%a %b %e %H:%M:%S %Z %Y"
	at := in.host.Now()
	if len(e.args) > 0 {
		format = in.eval(e.args[0]).text(in.convfmt())
	}
	if len(e.args) > 1 {
		at = time.Unix(clampInt(in.eval(e.args[1]).float()), 0)
	}
	return str(posix.Strftime(format, at.UTC()))
}

// mktime reads "YYYY MM DD HH MM SS" as UTC; -1 if it is none. A seventh field,
// daylight saving, does not matter. Numbers outside of their ranges carry over.
func mktime(s string) float64 {
	var n [6]int
	parts := strings.Fields(s)
	if len(parts) < 6 {
		return -1
	}
	for i := range n {
		f, ok := looksNumeric(parts[i])
		if !ok {
			return -1
		}
		n[i] = int(clampInt(f))
	}
	return float64(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC).Unix())
}

// glibcRandom is the generator behind the C library's random(), so that rand()
// gives what it gives on a real node: it is the seed's alone, and srand(1) of
// every awk, without a draw of the loop. Programs that print rand() without srand show the same
// numbers everywhere, and tests have them.
type glibcRandom struct {
	r [34]uint32
}

// newRandom fills the generator's state as srandom(3) does.
func newRandom(seed uint32) *glibcRandom {
	g := &glibcRandom{}
	seed = cmp.Or(seed, 1)
	var all [344]uint32
	all[0] = seed
	for i := 1; i < 31; i++ {
		// Schrage's method for 16807*x mod 2^31-1, as in glibc. The products fit into 32 bits
		// that way.
		hi, lo := int64(int32(all[i-1]))/127773, int64(int32(all[i-1]))%127773
		word := 16807*lo - 2836*hi
		if word < 0 {
			word += 2147483647
		}
		all[i] = uint32(word)
	}
	for i := 31; i < 34; i++ {
		all[i] = all[i-31]
	}
	for i := 34; i < 344; i++ {
		all[i] = all[i-31] + all[i-3]
	}
	// The first 310 are thrown away, so that similar seeds part.
	copy(g.r[:], all[310:])
	return g
}

// next is random(3).
func (g *glibcRandom) next() uint32 {
	// r_i = r_(i-3) + r_(i-31), TYPE_3 of random(3).
	v := g.r[len(g.r)-31] + g.r[len(g.r)-3]
	copy(g.r[:], g.r[1:])
	g.r[len(g.r)-1] = v
	return v >> 1
}

// rand draws as busybox does on glibc, from [0,1). The divisor is 2^63, so 1 never comes.
func (in *interp) rand() float64 {
	if in.random == nil {
		in.random = newRandom(in.seed)
	}
	// busybox puts 63 bits together of three draws.
	low := in.random.next() << 16
	low ^= in.random.next()
	v := (uint64(in.random.next())<<32 | uint64(low)) & (1<<63 - 1)
	return float64(v) / (1 << 63)
}
