package posix

import (
	"regexp"
	"strconv"
	"strings"
)

// node is a pattern for the backtracking matcher: it is only used for patterns
// with back-references, which no automaton can match. It is made of the
// translated pattern, so both matchers agree on what a pattern means. Each op uses some of the
// fields: set is of '.', n of '(' and '\\', min and max of '*', subs of all that contain others.
type node struct {
	op       byte // one of: '.' single, '(' group, '|' alternation, '&' sequence, '\\' back-reference, '*' repetition, '^' assertion
	set      *regexp.Regexp
	n        int // the group's or reference's number
	min, max int // of a repetition; max < 0 means without bound
	subs     []*node
}

// stepsPerMatch bounds the work of one attempt, so that a malicious pattern
// ends as "no match": backtracking can take exponential time, and the loop
// would stand still.
const stepsPerMatch = 1_000_000

// parseBack parses what a translator wrote: regexp's syntax, of which it needs
// what a translator can write. Only the translator's output comes here, so what it never writes
// is not handled.
func parseBack(s string) (*node, error) {
	p := &backParser{s: s}
	n, err := p.alternatives()
	if err == nil && p.i < len(s) {
		err = ErrCloseOnly
	}
	return n, err
}

// backParser reads a translated pattern. groups counts as the translator did, by opening
// brackets.
type backParser struct {
	s      string
	i      int
	groups int
}

// alternatives reads branches up to a closing bracket or the end.
func (p *backParser) alternatives() (*node, error) {
	alt := &node{op: '|'}
	seq := &node{op: '&'}
	for p.i < len(p.s) && p.s[p.i] != ')' {
		if p.s[p.i] == '|' {
			p.i++
			alt.subs = append(alt.subs, seq)
			seq = &node{op: '&'}
			continue
		}
		n, err := p.repeated()
		if err != nil {
			return nil, err
		}
		seq.subs = append(seq.subs, n)
	}
	alt.subs = append(alt.subs, seq)
	return alt, nil
}

// repeated reads an atom with its repetitions. Repetitions may follow each other, as wrapLast has
// made groups where that matters.
func (p *backParser) repeated() (*node, error) {
	n, err := p.single()
	for err == nil && p.i < len(p.s) {
		switch p.s[p.i] {
		case '*':
			n = &node{op: '*', max: -1, subs: []*node{n}}
		case '+':
			n = &node{op: '*', min: 1, max: -1, subs: []*node{n}}
		case '?':
			n = &node{op: '*', max: 1, subs: []*node{n}}
		case '{':
			end := strings.IndexByte(p.s[p.i:], '}')
			lo, hi, comma := strings.Cut(p.s[p.i+1:p.i+end], ",")
			r := &node{op: '*', max: -1, subs: []*node{n}}
			r.min, _ = strconv.Atoi(lo)
			// {n} alone is exactly n.
			if !comma {
				r.max = r.min
			} else if hi != "" {
				r.max, _ = strconv.Atoi(hi)
			}
			n = r
			p.i += end
		default:
			return n, nil
		}
		p.i++
	}
	return n, err
}

// single reads an atom. Characters and brackets are left to package regexp,
// anchored, one at a time. Package regexp so decides what a class or a dot matches in both
// matchers.
func (p *backParser) single() (*node, error) {
	s := p.s[p.i:]
	switch {
	case strings.HasPrefix(s, "(?:"):
		p.i += 3
		return p.closed(&node{op: '&'})
	case s[0] == '(':
		p.i++
		p.groups++
		return p.closed(&node{op: '(', n: p.groups})
	case s[0] == '^' || s[0] == '$':
		p.i++
		return &node{op: '^', n: int(s[0])}, nil
	case s[0] == '\\' && len(s) > 1 && s[1] >= '1' && s[1] <= '9':
		p.i += 2
		return &node{op: '\\', n: int(s[1] - '0')}, nil
	case s[0] == '\\' && len(s) > 1 && strings.IndexByte("bBAz", s[1]) >= 0:
		p.i += 2
		return &node{op: '^', n: int(s[1])}, nil
	}
	end := atomEnd(p.s, p.i)
	// A character of several bytes: its first byte says so, the others follow.
	if c := s[0]; c >= 0xc0 {
		for end < len(p.s) && p.s[end]&0xc0 == 0x80 {
			end++
		}
	}
	re, err := regexp.Compile("^(?s:" + p.s[p.i:end] + ")")
	if err != nil {
		return nil, ErrRepeat
	}
	p.i = end
	return &node{op: '.', set: re}, nil
}

// closed reads a group's content and its closing bracket, which the translator
// has made sure of.
func (p *backParser) closed(n *node) (*node, error) {
	sub, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.i >= len(p.s) {
		return nil, ErrParen
	}
	p.i++
	n.subs = []*node{sub}
	return n, nil
}

// matcher is one attempt: locs are the groups at this moment, best the longest
// match so far. steps counts calls of match, against stepsPerMatch.
type matcher struct {
	text  string
	fold  bool
	locs  []int
	steps int
	best  []int
}

// matchBack matches at one place; the longest match wins, as for the other
// patterns, so all ways to match are tried until one reaches the end. It returns nil if there is
// no match; the result has the form of FindStringSubmatchIndex.
func (r *Regexp) matchBack(text string, from int) []int {
	m := &matcher{text: text, fold: r.fold, locs: make([]int, 2*(r.groups+1))}
	for i := range m.locs {
		m.locs[i] = -1
	}
	m.locs[0] = from
	m.match(r.back, from, func(end int) bool {
		if m.best == nil || end > m.best[1] {
			m.best = append([]int(nil), m.locs...)
			m.best[1] = end
		}
		// Nothing can be longer than to the end.
		return end == len(text)
	})
	return m.best
}

// match matches n at i and calls then for each way it can end, until that
// returns true. What follows a node is a function, so that a group can be tried
// again with another length. It is continuation passing: no stack of places is kept but Go's own,
// whose depth follows the text's length.
func (m *matcher) match(n *node, i int, then func(int) bool) bool {
	// Given up: true ends the search, with what was found so far.
	if m.steps++; m.steps > stepsPerMatch {
		return true
	}
	switch n.op {
	case '.':
		rest := m.text[i:]
		if loc := n.set.FindStringIndex(rest); loc != nil {
			return then(i + loc[1])
		}
		if m.fold {
			// Either case of the character will do. Only the case of the text is changed; the
			// pattern has its own.
			if loc := n.set.FindStringIndex(strings.ToLower(rest)); loc != nil {
				return then(i + loc[1])
			}
			if loc := n.set.FindStringIndex(strings.ToUpper(rest)); loc != nil {
				return then(i + loc[1])
			}
		}
		return false
	case '^':
		return m.holds(byte(n.n), i) && then(i)
	case '\\':
		// A group that has not matched makes its reference fail.
		lo, hi := m.locs[2*n.n], m.locs[2*n.n+1]
		if lo < 0 || hi < 0 {
			return false
		}
		end := i + hi - lo
		if end > len(m.text) {
			return false
		}
		a, b := m.text[lo:hi], m.text[i:end]
		return (a == b || m.fold && strings.EqualFold(a, b)) && then(end)
	case '|':
		for _, sub := range n.subs {
			if m.match(sub, i, then) {
				return true
			}
		}
		return false
	case '&':
		return m.sequence(n.subs, i, then)
	case '(':
		lo, hi := m.locs[2*n.n], m.locs[2*n.n+1]
		if m.match(n.subs[0], i, func(end int) bool {
			// What the group had matched before is put back if the rest does
			// not fit.
			plo, phi := m.locs[2*n.n], m.locs[2*n.n+1]
			m.locs[2*n.n], m.locs[2*n.n+1] = i, end
			if then(end) {
				return true
			}
			// Put back before the next way is tried.
			m.locs[2*n.n], m.locs[2*n.n+1] = plo, phi
			return false
		}) {
			return true
		}
		m.locs[2*n.n], m.locs[2*n.n+1] = lo, hi
		return false
	default:
		return m.repetition(n, i, 0, then)
	}
}

// sequence matches nodes one after the other: each is what follows the one
// before. The empty one matches at once.
func (m *matcher) sequence(subs []*node, i int, then func(int) bool) bool {
	if len(subs) == 0 {
		return then(i)
	}
	return m.match(subs[0], i, func(end int) bool { return m.sequence(subs[1:], end, then) })
}

// repetition tries more before fewer; an empty match counts only as far as the
// minimum needs it, or it would go on for ever. Greedy first, so that among equally long matches
// groups get what POSIX wants most of the time.
func (m *matcher) repetition(n *node, i, done int, then func(int) bool) bool {
	if n.max < 0 || done < n.max {
		if m.match(n.subs[0], i, func(end int) bool {
			return (end > i || done < n.min) && m.repetition(n, end, done+1, then)
		}) {
			return true
		}
	}
	return done >= n.min && then(i)
}

// holds reports whether an assertion holds at i: the text's ends, or a word's.
func (m *matcher) holds(c byte, i int) bool {
	word := func(i int) bool {
		if i < 0 || i >= len(m.text) {
			return false
		}
		c := m.text[i]
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	switch c {
	case '^', 'A':
		return i == 0
	case '$', 'z':
		return i == len(m.text)
	case 'b':
		return word(i-1) != word(i)
	default:
		return word(i-1) == word(i)
	}
}
