package awk

import (
	"math"
	"strconv"
	"strings"
)

// value is a scalar. str is valid for strings, num for numbers; the zero value
// is an unset variable, which is both "" and 0. Values are copied, and texts share their bytes.
type value struct {
	str  string
	num  float64
	kind valueKind
}

// valueKind says what a value is, and so how it is compared: see numeric.
type valueKind uint8

const (
	unset valueKind = iota
	isNum
	isStr
	// fromInput is a string that counts as a number if it looks like one.
	fromInput
)

// num is a number, str the result of a string operation, inputStr what was read. num, str and
// inputStr make values of the three kinds; boolean is what comparisons give.
func num(f float64) value     { return value{num: f, kind: isNum} }
func str(s string) value      { return value{str: s, kind: isStr} }
func inputStr(s string) value { return value{str: s, kind: fromInput} }
func boolean(b bool) value {
	if b {
		return num(1)
	}
	return num(0)
}

// numeric reports whether v is compared as a number: one, an unset variable, or
// input that looks like one. The result of a string operation never is, even if
// it has digits only.
func (v value) numeric() bool {
	switch v.kind {
	case isNum, unset:
		return true
	case fromInput:
		_, ok := looksNumeric(v.str)
		return ok
	}
	return false
}

// float is the value as a number: that which a text begins with, or 0. White space in front is
// skipped; what follows the number is ignored.
func (v value) float() float64 {
	switch v.kind {
	case isNum:
		return v.num
	case unset:
		return 0
	}
	s := strings.TrimLeft(v.str, " \t\n\v\f\r")
	f, _ := number(s, false)
	return f
}

// truth is the value as a condition: a number that is not 0, or a text that is
// not empty. The text "0" of a program is true, that of input is false.
func (v value) truth() bool {
	if v.numeric() {
		return v.float() != 0
	}
	return v.str != ""
}

// text returns v as a string; numbers that are whole as such, others by format,
// which is CONVFMT or, in print, OFMT. A number's text can differ between the two formats, so it
// is not kept.
func (v value) text(format string) string {
	switch v.kind {
	case isNum:
		return formatNum(v.num, format)
	case unset:
		return ""
	}
	return v.str
}

// formatNum is a number as text: whole ones without a fraction or exponent,
// whatever the format, as POSIX has it. Beyond 2^63 the format is used, as it has no integer for
// it.
func formatNum(f float64, format string) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.FormatInt(int64(f), 10)
	}
	return sprintf(format, []value{num(f)}, format)
}

// looksNumeric reports whether all of s, but for white space around it, is a
// number: what POSIX calls a numeric string.
func looksNumeric(s string) (float64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if s == "" {
		return 0, false
	}
	f, n := number(s, false)
	return f, n == len(s)
}

// number reads a number at the start of s and returns its length. As busybox
// has it, hexadecimal and octal ones count in input too, where POSIX wants
// decimal: "0x10" + 0 is 16. source says that it stands in a program, where inf
// and nan are names. The length 0 means that there is none, and then the value is 0.
func number(s string, source bool) (float64, int) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	sign := i
	if f, n := notDecimal(s[sign:]); n > 0 {
		if sign > 0 && s[0] == '-' {
			f = -f
		}
		return f, sign + n
	}
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i - sign
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
			digits++
		}
	}
	if digits == 0 {
		rest := strings.ToLower(s[sign:])
		for _, w := range []string{"infinity", "inf", "nan"} {
			if strings.HasPrefix(rest, w) && !source {
				f, _ := strconv.ParseFloat(s[:sign+len(w)], 64)
				return f, sign + len(w)
			}
		}
		return 0, 0
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		// An e without digits is no exponent.
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	f, _ := strconv.ParseFloat(s[:i], 64)
	return f, i
}

// notDecimal reads 0x1f or 017 at the start of s; 0 if there is none. 08 and
// 0.5 are decimal. An octal number ends before an 8 or 9, and so is decimal.
func notDecimal(s string) (float64, int) {
	if len(s) < 2 || s[0] != '0' {
		return 0, 0
	}
	if s[1]|0x20 == 'x' {
		j := 2
		for j < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[j]) >= 0 {
			j++
		}
		if u, err := strconv.ParseUint(s[2:j], 16, 64); err == nil {
			return float64(u), j
		}
		return 0, 0
	}
	j := 1
	for j < len(s) && s[j] >= '0' && s[j] <= '7' {
		j++
	}
	if j == 1 || j < len(s) && (isDigit(s[j]) || s[j] == '.') {
		return 0, 0
	}
	u, _ := strconv.ParseUint(s[:j], 8, 64)
	return float64(u), j
}

// itoa is strconv.Itoa.
func itoa(n int) string { return strconv.Itoa(n) }

// cell holds a variable: a scalar, or an array once it is used as one. It never
// is both; which one is found out when the program runs, as the parser can't
// tell.
type cell struct {
	value value
	array *array
	// alias is the caller's cell, for an argument that was given untyped: if
	// it is used as an array, it is the caller's.
	alias *cell
}

// arr makes the cell an array, if it is none yet, and the caller's with it. A scalar that is used
// as an array forgets its value.
func (c *cell) arr() *array {
	if c.array == nil {
		if c.alias != nil {
			c.array = c.alias.arr()
		} else {
			c.array = newArray()
		}
	}
	return c.array
}

// array is a hash table that grows, and is walked, as busybox's is: the order
// in which `for (k in a)` sees the keys is that of the real one. Programs that print in that
// order are common, and their output is compared.
type array struct {
	buckets []*entry
	byKey   map[string]*entry
	grown   int
}

// entry is an element of an array, in its bucket's chain.
type entry struct {
	key   string
	value value
	next  *entry
}

// sizes are the table's lengths, primes below powers of four, in the order in
// which it grows. They are busybox's PRIMES.
var sizes = []int{61, 251, 1021, 4093, 16381, 65521}

// newArray returns an empty array; its buckets come with the first element.
func newArray() *array {
	return &array{}
}

// bucketOf is busybox's hash of a key.
func bucketOf(key string, size int) int {
	var h uint32
	for i := 0; i < len(key); i++ {
		h = uint32(key[i]) + h*63
	}
	return int(h % uint32(size))
}

// get returns an element, which it makes if there is none: as in awk, a look
// makes one. New ones go to the front of their chain. The table grows when chains are eight long
// on average.
func (a *array) get(key string) *entry {
	if e := a.byKey[key]; e != nil {
		return e
	}
	if a.byKey == nil {
		a.byKey = map[string]*entry{}
		a.buckets = make([]*entry, sizes[0])
	}
	if len(a.byKey) >= len(a.buckets)*8 && a.grown+1 < len(sizes) {
		a.grow()
	}
	e := &entry{key: key}
	i := bucketOf(key, len(a.buckets))
	e.next, a.buckets[i] = a.buckets[i], e
	a.byKey[key] = e
	return e
}

// grow spreads the elements over more buckets, chain by chain, which is what
// decides the order afterwards. There are six sizes, as in busybox; the last
// one has to do for all that comes.
func (a *array) grow() {
	a.grown++
	old := a.buckets
	a.buckets = make([]*entry, sizes[a.grown])
	for _, e := range old {
		for e != nil {
			next := e.next
			i := bucketOf(e.key, len(a.buckets))
			e.next, a.buckets[i] = a.buckets[i], e
			e = next
		}
	}
}

// has reports whether there is an element, without making one.
func (a *array) has(key string) bool { return a.byKey[key] != nil }

// remove takes an element out of its chain. What is not there is no error.
func (a *array) remove(key string) {
	e := a.byKey[key]
	if e == nil {
		return
	}
	delete(a.byKey, key)
	at := &a.buckets[bucketOf(key, len(a.buckets))]
	for *at != e {
		at = &(*at).next
	}
	*at = e.next
}

// clear empties the array, and its buckets shrink to none.
func (a *array) clear() { *a = array{} }

// keys lists the keys, bucket by bucket. for (k in a) goes over this list, so
// that what its body adds or deletes does not matter.
func (a *array) keys() []string {
	out := make([]string, 0, len(a.byKey))
	for _, e := range a.buckets {
		for ; e != nil; e = e.next {
			out = append(out, e.key)
		}
	}
	return out
}
