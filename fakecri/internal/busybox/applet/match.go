package applet

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// Matcher looks for any of a list of patterns in lines, as grep's options say: F, E,
// i, w and x. It serves grep and its names; -v and -c are theirs, not the matcher's.
type Matcher struct {
	c       *Call
	o       *Options
	fold    bool
	fixed   []string
	regexes []*posix.Regexp
}

// Matcher returns a matcher without patterns; Compile adds some.
func (c *Call) Matcher(o *Options) *Matcher { return &Matcher{c: c, o: o, fold: o.Has('i')} }

// GetoptStatus is Getopt for applets whose usage errors have another status:
// POSIX wants 2 of those whose 1 means something else, as "no match".
func (c *Call) GetoptStatus(status int, spec string, long ...string) (o *Options) {
	defer func() {
		if r := recover(); r != nil {
			if r == exitStatus(1) {
				r = exitStatus(status)
			}
			panic(r)
		}
	}()
	return c.Getopt(spec, long...)
}

// Compile adds patterns: fixed strings for fgrep, extended expressions for
// egrep. A pattern that is none is told of, and is false. Several patterns may match; the
// leftmost of all wins, then the longest.
func (m *Matcher) Compile(patterns []string) bool {
	fixed := m.c.Name == "fgrep" || m.o.Has('F')
	flags := posix.Flags(0)
	if m.c.Name == "egrep" || m.o.Has('E') {
		flags |= posix.Extended
	}
	if m.fold {
		flags |= posix.Fold
	}
	for _, p := range patterns {
		if fixed {
			if m.fold {
				p = strings.ToLower(p)
			}
			m.fixed = append(m.fixed, p)
			continue
		}
		re, err := posix.Compile(p, flags)
		if err != nil {
			m.c.Errorf("bad regex '%s'", p)
			return false
		}
		m.regexes = append(m.regexes, re)
	}
	return true
}

// Find returns the first match at or after from, of those that -w and -x allow;
// -1 if there is none. -o prints what it finds, so places matter.
func (m *Matcher) Find(line string, from int) (start, end int) {
	start, end = -1, -1
	// Earlier, or longer at the same place.
	better := func(s, e int) {
		if start < 0 || s < start || s == start && e > end {
			start, end = s, e
		}
	}
	for _, f := range m.fixed {
		text := line
		if m.fold {
			text = strings.ToLower(line)
		}
		for at := from; at <= len(text); {
			i := strings.Index(text[at:], f)
			if i < 0 {
				break
			}
			if s := at + i; m.allowed(line, s, s+len(f)) {
				better(s, s+len(f))
				break
			}
			// With -w an occurrence may be refused, and a later one not.
			at += i + 1
		}
	}
	for _, re := range m.regexes {
		for _, loc := range re.FindAll(line) {
			if loc[0] >= from && m.allowed(line, loc[0], loc[1]) {
				better(loc[0], loc[1])
				break
			}
		}
	}
	return start, end
}

// allowed reports whether -x and -w leave a match: of the whole line, or
// between bytes that are no part of a word. A word is of ASCII letters, digits and _.
func (m *Matcher) allowed(line string, start, end int) bool {
	if m.o.Has('x') && (start != 0 || end != len(line)) {
		return false
	}
	if m.o.Has('w') {
		return !(start > 0 && IsWord(line[start-1])) && !(end < len(line) && IsWord(line[end]))
	}
	return true
}

// IsWord reports whether a byte can be part of a word: a letter, a digit or _.
func IsWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
