// Package posix has what POSIX commands share: printf's conversions, strftime, strerror, modes of
// chmod and umask, and regular expressions, basic and extended, on top of the regexp package:
// leftmost and longest, by characters of UTF-8. It knows the usual GNU additions (\+ \? \| in
// basic ones, \w \s \b \< \>). Patterns with back-references run on a small backtracking matcher
// of its own, since regexp has none.
//
// The shell, the applets and awk and sed stand on it; it knows none of them, nor the kernel.
//
// A pattern is translated into regexp's syntax as it is read (posix.go, bracket.go), with glibc's
// ideas of what is an operator where POSIX leaves that open: a * at the beginning is one, \( may
// be empty, { without an end is text in an extended expression. What is translated has fewer
// forms than a pattern, and so backtrack.go, which matches it where regexp can't, stays small: it
// reads the translation and not the pattern.
//
// The other files stand alone: printf.go, strftime.go, strerror.go and mode.go.
package posix

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Flags say how a pattern is read; 0 is a basic expression that minds case.
type Flags uint8

// What Flags are made of.
const (
	// Extended reads an extended regular expression; without it a basic one.
	Extended Flags = 1 << iota
	// Fold ignores case.
	Fold
	// Escapes has backslash escapes (\t, \n, \", octal) work everywhere,
	// brackets included, as awk does.
	Escapes
	// Lines has ^ and $ also match at newlines within the text.
	Lines
)

// Regexp is a compiled pattern: re, or back if it has back-references. It is immutable, and may
// be shared by all that run the same pattern.
type Regexp struct {
	re     *regexp.Regexp
	back   *node
	groups int
	fold   bool
}

// Errors of Compile, worded as regcomp's.
// Commands print them, so they begin with capitals as glibc's do.
var (
	ErrParen     = errors.New("Unmatched ( or \\(")
	ErrCloseOnly = errors.New("Unmatched ) or \\)")
	ErrBracket   = errors.New("Unmatched [, [^, [:, [., or [=")
	ErrBrace     = errors.New("Invalid content of \\{\\}")
	ErrRepeat    = errors.New("Invalid preceding regular expression")
	ErrEscape    = errors.New("Trailing backslash")
	ErrBackRef   = errors.New("Invalid back reference")
	ErrClass     = errors.New("Invalid character class name")
)

// Compile reads a pattern. Its errors are worded as glibc's regcomp has them,
// since commands print them. A pattern of this package never matches beyond what regexp's engine
// can in linear time, unless it has back-references.
func Compile(pattern string, flags Flags) (*Regexp, error) {
	t := &translator{src: pattern, flags: flags}
	out, err := t.run()
	if err != nil {
		return nil, err
	}
	// Package regexp has no back-references: such patterns run on the matcher of
	// backtrack.go.
	if t.backRef {
		n, err := parseBack(out)
		if err != nil {
			return nil, err
		}
		return &Regexp{back: n, groups: t.groups, fold: flags&Fold != 0}, nil
	}
	// A dot matches newlines, too.
	mode := "s"
	if flags&Fold != 0 {
		mode += "i"
	}
	if flags&Lines != 0 {
		mode += "m"
	}
	re, err := regexp.Compile("(?" + mode + ":" + out + ")")
	// What is left for regexp to refuse is a repetition, such as one beyond its limit.
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrRepeat, pattern)
	}
	// POSIX wants the longest of the leftmost matches, Go takes the first
	// alternative.
	re.Longest()
	return &Regexp{re: re, groups: t.groups}, nil
}

// Groups returns the number of groups in parentheses, with which Find's result
// grows.
func (r *Regexp) Groups() int { return r.groups }

// Match reports whether the pattern matches somewhere in text. It needs no places of groups,
// which is faster.
func (r *Regexp) Match(text string) bool {
	if r.re != nil {
		return r.re.MatchString(text)
	}
	return r.Find(text) != nil
}

// Find returns the places of the first match and of its groups, as
// regexp.FindStringSubmatchIndex does; nil if there is none. A pattern with
// back-references is tried at one place after the other. Indexes are bytes.
func (r *Regexp) Find(text string) []int {
	if r.re != nil {
		return r.re.FindStringSubmatchIndex(text)
	}
	// The first place at which it matches at all is the leftmost.
	for from := 0; from <= len(text); from++ {
		if loc := r.matchBack(text, from); loc != nil {
			return loc
		}
	}
	return nil
}

// FindAll returns every match in order, not overlapping; an empty one right
// after another match does not count, so that s/b*/x/g does what sed's users
// know. regexp follows the same rule about empty matches.
func (r *Regexp) FindAll(text string) [][]int {
	if r.re != nil {
		return r.re.FindAllStringSubmatchIndex(text, -1)
	}
	var out [][]int
	last := -1
	for from := 0; from <= len(text); {
		loc := r.matchBack(text, from)
		// An empty match right behind the one before.
		if loc == nil || loc[0] == loc[1] && loc[0] == last {
			from++
			continue
		}
		out = append(out, loc)
		last = loc[1]
		from = loc[1]
		// An empty match does not move on by itself.
		if loc[0] == loc[1] {
			from++
		}
	}
	return out
}

// translator turns a POSIX pattern into regexp's syntax. It goes through the
// pattern once, from the left, and writes as it goes. What it writes is valid for regexp, as all
// that could not be is quoted.
type translator struct {
	src    string
	pos    int
	flags  Flags
	out    strings.Builder
	groups int
	// open has the numbers of groups that are not closed yet, the innermost last.
	open    []int // where each open group's text begins, in groups' numbers
	backRef bool
	// last tells what stands before the present place, for what repeats it.
	last atomKind
}

// atomKind is what a repetition would repeat: whether a * is an operator
// depends on it.
type atomKind uint8

const (
	// Nothing: the start of a branch.
	atStart atomKind = iota
	anAnchor
	anAtom
	aRepeat
)

// ext reports whether operators are written without a backslash, as extended
// expressions have them.
func (t *translator) ext() bool { return t.flags&Extended != 0 }

// atom writes what can be repeated. A repetition that follows applies to all of s, so s must be one atom for regexp.
func (t *translator) atom(s string) {
	t.out.WriteString(s)
	t.last = anAtom
}

// run translates the pattern. ^ and $ are anchors in basic expressions only
// where a branch begins or ends. An error is one of the variables above, or worded as them.
func (t *translator) run() (string, error) {
	for t.pos < len(t.src) {
		c := t.src[t.pos]
		var err error
		switch {
		case c == '\\':
			err = t.escape()
		case c == '[':
			err = t.bracket()
		case c == '*':
			t.pos++
			err = t.repeat("*", "*")
		case c == '^':
			t.pos++
			// Within a branch of a basic expression ^ is text.
			if t.ext() || t.last == atStart {
				t.out.WriteByte('^')
				t.last = anAnchor
			} else {
				t.atom(`\^`)
			}
		case c == '$':
			t.pos++
			if t.ext() || t.branchEnds() {
				t.out.WriteByte('$')
				t.last = anAnchor
			} else {
				t.atom(`\$`)
			}
		case c == '.':
			t.pos++
			t.atom(".")
		case t.ext() && strings.IndexByte("+?{|()", c) >= 0:
			t.pos++
			err = t.special(c)
		default:
			// A character of several bytes is one atom.
			n := 1
			for n < 4 && t.pos+n < len(t.src) && c >= 0xc0 && t.src[t.pos+n]&0xc0 == 0x80 {
				n++
			}
			t.atom(regexp.QuoteMeta(t.src[t.pos : t.pos+n]))
			t.pos += n
		}
		if err != nil {
			return "", err
		}
	}
	if len(t.open) > 0 {
		return "", ErrParen
	}
	return t.out.String(), nil
}

// special handles an operator, written plainly in extended expressions and
// after a backslash in basic ones. A ) that closes nothing is text in an
// extended one. t.pos is behind the operator.
func (t *translator) special(c byte) error {
	switch c {
	case '+', '?':
		return t.repeat(string(c), string(c))
	case '{':
		return t.interval()
	case '|':
		t.out.WriteByte('|')
		t.last = atStart
	case '(':
		// Groups count by their opening brackets, as POSIX numbers them.
		t.groups++
		t.open = append(t.open, t.groups)
		t.out.WriteByte('(')
		t.last = atStart
	case ')':
		if len(t.open) == 0 {
			if t.ext() {
				t.atom(`\)`)
				return nil
			}
			return ErrCloseOnly
		}
		t.open = t.open[:len(t.open)-1]
		t.atom(")")
	}
	return nil
}

// repeat writes a repetition of what stands before, or literal where that is
// not possible: a * at the beginning of a basic expression is a star. A * after an anchor is
// ignored in extended expressions and text in basic ones, as glibc has it.
func (t *translator) repeat(op, literal string) error {
	switch t.last {
	case atStart:
		if t.ext() {
			if op == "*" {
				return nil // as glibc takes a leading star
			}
			return ErrRepeat
		}
		t.atom(regexp.QuoteMeta(literal))
	case anAnchor:
		if t.ext() {
			return nil
		}
		t.atom(regexp.QuoteMeta(literal))
	case aRepeat:
		// x** and the like: (?:x*)*. regexp refuses x**, and reads x*? as another operator.
		t.wrapLast()
		t.out.WriteString(op)
	default:
		t.out.WriteString(op)
		t.last = aRepeat
	}
	return nil
}

// wrapLast puts everything of the present branch's last repeated atom into a
// group of its own. It is found by scanning back over one atom, since what is
// written has no marks. The pattern so far is written anew, which only costs where repetitions
// pile up.
func (t *translator) wrapLast() {
	s := t.out.String()
	at := lastAtom(s)
	t.out.Reset()
	t.out.WriteString(s[:at] + "(?:" + s[at:] + ")")
}

// lastAtom returns where the last atom, with its repetitions, begins. It goes
// through from the beginning, as an atom's start can't be told from its end.
func lastAtom(s string) int {
	at := 0
	for i := 0; i < len(s); {
		end := atomEnd(s, i)
		if strings.IndexByte("*+?{", s[i]) < 0 {
			at = i
		}
		i = end
	}
	// An atom that is inside an open group is found by its last part, since
	// atomEnd enters groups that are not closed.
	return at
}

// atomEnd returns the end of the translated atom that begins at i: an escape, a
// bracket expression, a group or a character. It is only given what translator has written, so
// braces and brackets have ends.
func atomEnd(s string, i int) int {
	switch s[i] {
	case '\\':
		if i+1 < len(s) && s[i+1] == 'x' {
			if j := strings.IndexByte(s[i:], '}'); j > 0 {
				return i + j + 1
			}
		}
		return min(i+2, len(s))
	case '[':
		for j := i + 1; j < len(s); j++ {
			if s[j] == '\\' {
				j++
			} else if s[j] == '[' && j+1 < len(s) && s[j+1] == ':' {
				j += strings.Index(s[j:], ":]") + 1
			} else if s[j] == ']' {
				return j + 1
			}
		}
		return len(s)
	case '{':
		if j := strings.IndexByte(s[i:], '}'); j > 0 {
			return i + j + 1
		}
	case '(':
		for j := i + 1; j < len(s); {
			if s[j] == ')' {
				return j + 1
			}
			j = atomEnd(s, j)
		}
		return i + 1
	}
	return i + 1
}

// interval reads what follows an opening brace. Where it is no interval an
// extended expression takes the brace as text, a basic one is wrong. A bound over RE_DUP_MAX is
// an error in both kinds, glibc's "Invalid content".
func (t *translator) interval() error {
	rest := t.src[t.pos:]
	closing := `\}`
	if t.ext() {
		closing = "}"
	}
	end := strings.Index(rest, closing)
	if end < 0 {
		if t.ext() {
			t.atom(`\{`)
			return nil
		}
		return errors.New("Unmatched \\{")
	}
	body := rest[:end]
	lo, hi, comma := strings.Cut(body, ",")
	if lo == "" && comma {
		lo = "0"
	}
	n, err := strconv.Atoi(lo)
	m := n
	if err == nil && comma && hi != "" {
		m, err = strconv.Atoi(hi)
	}
	// 255 is RE_DUP_MAX.
	if err != nil || n < 0 || m < n || m > 255 {
		if t.ext() && err != nil {
			t.atom(`\{`)
			return nil
		}
		return ErrBrace
	}
	op := "{" + strconv.Itoa(n)
	if comma {
		op += ","
		if hi != "" {
			op += strconv.Itoa(m)
		}
	}
	t.pos += end + len(closing)
	return t.repeat(op+"}", "{"+body+"}")
}

// branchEnds reports whether a basic expression's branch ends at the present
// place, so that a $ before it is an anchor and no dollar. In a basic expression a group's or
// branch's end has a backslash.
func (t *translator) branchEnds() bool {
	rest := t.src[t.pos:]
	return rest == "" || strings.HasPrefix(rest, `\)`) || strings.HasPrefix(rest, `\|`)
}

// escape reads a backslash and what it applies to: an operator of basic
// expressions, a back-reference, one of GNU's classes and anchors, an escape of
// awk's, or the character itself. t.pos is at the backslash.
func (t *translator) escape() error {
	if t.pos+1 >= len(t.src) {
		if t.flags&Escapes != 0 {
			t.pos++
			t.atom(`\\`)
			return nil
		}
		return ErrEscape
	}
	c := t.src[t.pos+1]
	if t.flags&Escapes != 0 {
		// In awk \b is a backspace by C and a word's edge by GNU; the latter is meant here.
		if v, n := Unescape(t.src[t.pos:]); n > 0 && c != 'b' {
			t.pos += n
			t.atom(quoteByte(v))
			return nil
		}
	}
	t.pos += 2
	switch {
	case !t.ext() && strings.IndexByte("+?{|()", c) >= 0:
		return t.special(c)
	// awk has no back-references.
	case c >= '1' && c <= '9' && t.flags&Escapes == 0:
		n := int(c - '0')
		if n > t.groups {
			// A reference must stand behind its group.
			return ErrBackRef
		}
		// A group can't refer to itself.
		if slices.Contains(t.open, n) {
			return ErrBackRef
		}
		t.backRef = true
		t.atom(`\` + string(c))
	case strings.IndexByte("wWsS", c) >= 0:
		t.atom(map[byte]string{'w': `[_[:alnum:]]`, 'W': `[^_[:alnum:]]`, 's': `[[:space:]]`, 'S': `[^[:space:]]`}[c])
	// Go has one assertion for both edges of a word, which is nearly always enough.
	case c == 'b' || c == '<' || c == '>':
		t.out.WriteString(`\b`)
		t.last = anAnchor
	case c == 'B':
		t.out.WriteString(`\B`)
		t.last = anAnchor
	case c == '`':
		t.out.WriteString(`\A`)
		t.last = anAnchor
	case c == '\'':
		t.out.WriteString(`\z`)
		t.last = anAnchor
	case c == 'n':
		t.atom(`\n`)
	case c == 't':
		t.atom(`\t`)
	default:
		t.atom(regexp.QuoteMeta(string(rune(c))))
		if c >= 0x80 { // not a byte of its own in regexp's eyes
			t.pos--
		}
	}
	return nil
}

// quoteByte returns a pattern for one character, by its code where it can't be
// printed. Octal escapes may be any byte.
func quoteByte(c byte) string {
	if c < 0x20 || c >= 0x7f {
		return fmt.Sprintf(`\x{%02x}`, c)
	}
	return regexp.QuoteMeta(string(rune(c)))
}
