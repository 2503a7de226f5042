// Package pattern matches the patterns of case, of ${x#pattern} and of file names (POSIX 2.13). A
// pattern is text in which *, ? and [ are wildcards unless a backslash stands before them; the
// shell puts it there when it expands what was quoted.
//
// pattern.go matches text: Match, and above it what ${x#p}, ${x%p} and ${x/p/with} need. glob.go
// walks directories with it. Characters are UTF-8's, bytes that are none count as one each;
// BusyBox in the images that are imitated is built with Unicode.
//
// A script must not stall its node's loop, so what takes the square of a text's length is
// bounded: Match itself never tries more than one star again, and TooLong is asked before the
// searches.
package pattern

import (
	"strings"
	"unicode/utf8"
)

// A pattern is a string in which a backslash takes the meaning from the
// character after it; everything else is as in fnmatch(3).

// HasMeta reports whether a pattern matches anything but itself. A bracket without an end is
// text: [ is a command, after all.
func HasMeta(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if _, n := classEnd(p[i:]); n > 0 {
				return true
			}
		}
	}
	return false
}

// Unescape takes the backslashes out of a pattern. A backslash at the end stands for itself.
func Unescape(p string) string {
	if strings.IndexByte(p, '\\') < 0 {
		return p
	}
	b := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' && i+1 < len(p) {
			i++
		}
		b = append(b, p[i])
	}
	return string(b)
}

// AppendEscaped appends a pattern that matches s only. More than the three wildcards are escaped:
// inside of brackets ] - ! ^ and : have a meaning, and the quoted text may come to stand there,
// as in ["$x"].
func AppendEscaped(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[', ']', '\\', '-', '!', '^', '~', ':':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}

// Match reports whether all of s matches the pattern. pi and si are the places in the pattern and
// in the text. After a mismatch the last star takes one character more, and both go back to
// behind it.
func Match(p, s string) bool {
	// Only the last star needs to be tried again: an earlier one that took
	// more could not do better.
	starP, starS := -1, 0
	pi, si := 0, 0
	// A star takes nothing at first.
	for {
		if pi < len(p) && p[pi] == '*' {
			pi++
			starP, starS = pi, si
			continue
		}
		if si < len(s) && pi < len(p) {
			if pn, sn := matchOne(p[pi:], s[si:]); pn > 0 {
				pi += pn
				si += sn
				continue
			}
		} else if si == len(s) && pi == len(p) {
			return true
		}
		// Neither a star to go back to nor text that it could take.
		if starP < 0 || starS >= len(s) {
			return false
		}
		_, n := utf8.DecodeRuneInString(s[starS:])
		starS += n
		pi, si = starP, starS
	}
}

// matchOne matches one character of s, which is not empty, with the pattern's
// first element. It returns how long both are; 0 if they don't match.
func matchOne(p, s string) (pn, sn int) {
	r, n := utf8.DecodeRuneInString(s)
	switch p[0] {
	case '?':
		return 1, n
	case '[':
		// A bracket expression matches or not as a whole; one without an end falls through to
		// plain text.
		if set, end := classEnd(p); end > 0 {
			if classHas(set, r) {
				return end, n
			}
			return 0, 0
		}
	// Escaped characters are compared as they are.
	case '\\':
		if len(p) > 1 {
			_, qn := utf8.DecodeRuneInString(p[1:])
			if qn == n && s[:n] == p[1:1+qn] {
				return 1 + qn, n
			}
			return 0, 0
		}
	}
	// The bytes are compared, since all invalid bytes decode to the same rune.
	_, qn := utf8.DecodeRuneInString(p)
	if qn == n && s[:n] == p[:qn] {
		return qn, n
	}
	return 0, 0
}

// classEnd finds the end of the bracket expression that p begins with. It
// returns what is between the brackets and the length of it all, or 0 when it
// has no end, so that the bracket stands for itself. A ] at the start is an element. A slash ends
// the search: in names of files it can't be in brackets, and ash treats all patterns alike.
func classEnd(p string) (set string, n int) {
	i := 1
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		i++
	}
	first := true
	for i < len(p) {
		switch {
		case p[i] == ']' && !first:
			return p[1:i], i + 1
		case p[i] == '\\' && i+1 < len(p):
			i++
		// [:alpha:] has a ] of its own.
		case p[i] == '[' && i+1 < len(p) && p[i+1] == ':':
			if e := strings.Index(p[i+2:], ":]"); e >= 0 {
				i += 2 + e + 1
			}
		case p[i] == '/':
			return "", 0
		}
		first = false
		i++
	}
	return "", 0
}

// classHas reports whether the set of a bracket expression holds r. A range is by code point,
// there being no locale's order. A class can't be the end of a range.
func classHas(set string, r rune) bool {
	not := false
	if set != "" && (set[0] == '!' || set[0] == '^') {
		not = true
		set = set[1:]
	}
	has := false
	for set != "" {
		if strings.HasPrefix(set, "[:") {
			if e := strings.Index(set[2:], ":]"); e >= 0 {
				has = has || namedClass(set[2:2+e], r)
				set = set[2+e+2:]
				continue
			}
		}
		lo, n := setRune(set)
		set = set[n:]
		hi := lo
		// A - at the end is an element.
		if len(set) > 1 && set[0] == '-' {
			hi, n = setRune(set[1:])
			set = set[1+n:]
		}
		has = has || lo <= r && r <= hi
	}
	return has != not
}

// setRune reads one character of a bracket expression, escaped or not.
func setRune(set string) (rune, int) {
	if set[0] == '\\' && len(set) > 1 {
		r, n := utf8.DecodeRuneInString(set[1:])
		return r, n + 1
	}
	return utf8.DecodeRuneInString(set)
}

// namedClass reports whether a character is of a class such as alpha. They are of ASCII alone, as
// in the C locale; an unknown class has no members.
func namedClass(name string, r rune) bool {
	lower, upper, digit := r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9'
	switch name {
	case "alpha":
		return lower || upper
	case "digit":
		return digit
	case "alnum":
		return lower || upper || digit
	case "upper":
		return upper
	case "lower":
		return lower
	case "space":
		return r == ' ' || r >= '\t' && r <= '\r'
	case "blank":
		return r == ' ' || r == '\t'
	case "xdigit":
		return digit || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	case "cntrl":
		return r < ' ' || r == 0x7f
	case "print":
		return r >= ' ' && r < 0x7f
	case "graph":
		return r > ' ' && r < 0x7f
	case "punct":
		return r > ' ' && r < 0x7f && !lower && !upper && !digit
	}
	return false
}

// starThen reports whether a pattern is a star and a text, as in ${x##*/}, and
// thenStar, whether it is a text and a star, as in ${x%/*}: these need no
// trying.
func starThen(p string) (string, bool) {
	if p[0] != '*' || HasMeta(p[1:]) {
		return "", false
	}
	return Unescape(p[1:]), true
}

// thenStar is starThen for a star at the end.
func thenStar(p string) (string, bool) {
	n := len(p) - 1
	if p[n] != '*' || HasMeta(p[:n]) || n > 0 && p[n-1] == '\\' {
		return "", false
	}
	return Unescape(p[:n]), true
}

// TrimPrefix takes the shortest, or the longest, prefix off s that matches p. The plain ways
// cover nearly all scripts: a text, or a star and a text. The others try each length, with a
// Match for each.
func TrimPrefix(s, p string, longest bool) string {
	if !HasMeta(p) {
		return strings.TrimPrefix(s, Unescape(p))
	}
	// The shortest prefix that ends in the text ends with its first place, the longest with its
	// last.
	if lit, ok := starThen(p); ok {
		i := strings.Index(s, lit)
		if longest {
			i = strings.LastIndex(s, lit)
		}
		if i < 0 {
			return s
		}
		return s[i+len(lit):]
	}
	if longest {
		for i := len(s); i >= 0; i-- {
			if Match(p, s[:i]) {
				return s[i:]
			}
		}
		return s
	}
	for i := 0; i <= len(s); i++ {
		if Match(p, s[:i]) {
			return s[i:]
		}
	}
	return s
}

// TrimSuffix takes the shortest, or the longest, suffix off s that matches p.
func TrimSuffix(s, p string, longest bool) string {
	if !HasMeta(p) {
		return strings.TrimSuffix(s, Unescape(p))
	}
	// Mirrored: the shortest suffix begins with the last place.
	if lit, ok := thenStar(p); ok {
		i := strings.LastIndex(s, lit)
		if longest {
			i = strings.Index(s, lit)
		}
		if i < 0 {
			return s
		}
		return s[:i]
	}
	if longest {
		for i := 0; i <= len(s); i++ {
			if Match(p, s[i:]) {
				return s[:i]
			}
		}
		return s
	}
	for i := len(s); i >= 0; i-- {
		if Match(p, s[i:]) {
			return s[:i]
		}
	}
	return s
}

// Bounds of strings that patterns with wildcards are tried on at every place.
const (
	// In bytes: at these sizes the worst pattern takes some ten million steps.
	maxTrim    = 1 << 13
	maxReplace = 1 << 10
)

// TooLong reports whether to search a string for a pattern would take too long. The shell then
// ends as one that ran out of memory: the real one would be busy for minutes.
func TooLong(s, p string, replace bool) bool {
	if replace {
		// Without a star the length of a match is fixed, and each place is tried once.
		return len(s) > maxReplace && hasStar(p)
	}
	if len(s) <= maxTrim || !HasMeta(p) {
		return false
	}
	_, prefix := starThen(p)
	_, suffix := thenStar(p)
	return !prefix && !suffix
}

// hasStar reports whether a pattern has a wildcard for any length.
func hasStar(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*':
			return true
		}
	}
	return false
}

// longestMatch returns the length of the longest match of p at the start of s,
// -1 if there is none. Without a star there is one length at most, found by one walk.
func longestMatch(p, s string) int {
	if hasStar(p) {
		for n := len(s); n >= 0; n-- {
			if Match(p, s[:n]) {
				return n
			}
		}
		return -1
	}
	n := 0
	for p != "" {
		if n == len(s) {
			return -1
		}
		pn, sn := matchOne(p, s[n:])
		if pn == 0 {
			return -1
		}
		p = p[pn:]
		n += sn
	}
	return n
}

// Replace replaces the first match of p in s, the longest at its place,
// or all of them. An empty pattern or an empty match replaces nothing, as in ash. A result that
// would exceed limit, in bytes, leaves s as it is.
func Replace(s, p, with string, all bool, limit int) string {
	if p == "" {
		return s
	}
	var b strings.Builder
	for i := 0; i <= len(s); {
		n := longestMatch(p, s[i:])
		switch {
		case n > 0:
			if b.Len()+len(with) > limit {
				return s
			}
			b.WriteString(with)
			i += n
			if !all {
				b.WriteString(s[i:])
				return b.String()
			}
			// Nothing is left in which an empty match could be found.
			if i == len(s) {
				return b.String()
			}
		case i < len(s):
			b.WriteByte(s[i])
			i++
		default:
			return b.String()
		}
	}
	return b.String()
}
