package sed

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// Script is a parsed script: a list of commands, in which blocks and branches
// are jumps. quiet is -n, or a first line #n. A Script is not written to when
// it runs. cmds has blocks' openings and no closings, and no labels.
type Script struct {
	cmds  []*command
	quiet bool
}

// address picks lines: by number, the last one, or by a regular expression; as
// the second of a range also by a count. One of line, last, re or same, and isAdd says what kind
// it is.
type address struct {
	line int // a line's number; 0 is before the first
	last bool
	re   *posix.Regexp
	// same says that the regular expression is the last one used.
	same bool
	// plus counts lines after the first address.
	plus  int
	isAdd bool
}

// command is a command. Blocks are jumps: { goes to its end if its address does
// not pick the line. text, sub, yank and jump are of certain letters only.
type command struct {
	from, to *address
	negate   bool
	op       byte
	text     string // of a i c, r and w file names, labels
	sub      *substitution
	// yank maps every byte, most to themselves.
	yank *[256]byte
	jump int // where b, t, T and blocks go on
	n    int // the range's place in a run
}

// substitution is an s command: the nth match (0 and 1 the first), or all from
// there on with g. print and file are of the flags p and w.
type substitution struct {
	re *posix.Regexp
	// same says that the pattern was empty: the last one used.
	same   bool
	repl   []part
	global bool
	print  bool
	nth    int
	file   string
}

// part is a piece of a replacement: text, or a group's number, 0 for the whole
// match. A replacement is cut once, and used for each match.
type part struct {
	text  string
	group int
	isRef bool
}

// parser reads a script, character by character: sed has no tokens. blocks are the openings that
// are not closed, by their places; labels are places, too.
type parser struct {
	src      string
	pos      int
	extended bool
	cmds     []*command
	blocks   []int
	labels   map[string]int
}

// Parse reads a script made of the pieces of -e and -f, which end as lines do.
// Its errors are *Error. Labels are resolved at the end, as jumps may go
// forward; one that is missing is an error before any line is read.
func Parse(pieces []string, extended, quiet bool) (s *Script, err error) {
	defer recoverError(&err)
	p := &parser{src: strings.Join(pieces, "\n"), extended: extended, labels: map[string]int{}}
	// POSIX: a first line #n is -n.
	if strings.HasPrefix(p.src, "#n\n") || p.src == "#n" {
		quiet = true
	}
	// Each call reads one command.
	for p.command() {
	}
	if len(p.blocks) > 0 {
		// As busybox: an open block ends with the script.
		for _, b := range p.blocks {
			p.cmds[b].jump = len(p.cmds)
		}
	}
	for _, c := range p.cmds {
		if c.op == 'b' || c.op == 't' || c.op == 'T' {
			// Without a label the end of the script.
			c.jump = len(p.cmds)
			if c.text != "" {
				at, ok := p.labels[c.text]
				if !ok {
					fail("can't find label for jump to '" + c.text + "'")
				}
				c.jump = at
			}
		}
	}
	return &Script{cmds: p.cmds, quiet: quiet}, nil
}

// recoverError turns a panic of fail into an error.
func recoverError(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}

// peek returns the next character, 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// skip goes past any of some characters, which separate where they may stand.
func (p *parser) skip(chars string) {
	for p.pos < len(p.src) && strings.IndexByte(chars, p.src[p.pos]) >= 0 {
		p.pos++
	}
}

// restOfLine takes what is left of the line: a file's name has no end but that.
func (p *parser) restOfLine() string {
	rest := p.src[p.pos:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	p.pos += len(rest)
	return rest
}

// command reads one command with its addresses; false at the end. Semicolons
// may stand anywhere between two. It is called until it returns false.
func (p *parser) command() bool {
	p.skip(" \t\n;")
	if p.pos >= len(p.src) {
		return false
	}
	if p.peek() == '#' {
		p.restOfLine()
		return true
	}
	c := &command{n: len(p.cmds)}
	if c.from = p.address(false); c.from != nil {
		p.skip(" \t")
		if p.peek() == ',' {
			p.pos++
			p.skip(" \t")
			if c.to = p.address(true); c.to == nil {
				fail("no address after comma")
			}
		}
	}
	p.skip(" \t")
	if p.peek() == '!' {
		c.negate = true
		p.pos++
		p.skip(" \t!")
	}
	if p.pos >= len(p.src) {
		fail("missing command")
	}
	c.op = p.peek()
	p.pos++
	p.body(c)
	return true
}

// address reads an address; nil if there is none. \%regex% has a delimiter of
// its own, +N counts lines, I ignores case. 0 is an address only as the first of a range with an
// expression, in GNU's; here it picks no line.
func (p *parser) address(second bool) *address {
	switch ch := p.peek(); {
	case ch >= '0' && ch <= '9':
		return &address{line: p.number()}
	case second && ch == '+' && p.pos+1 < len(p.src) && p.src[p.pos+1] >= '0' && p.src[p.pos+1] <= '9':
		p.pos++
		return &address{plus: p.number(), isAdd: true}
	case ch == '$':
		p.pos++
		return &address{last: true}
	case ch == '/' || ch == '\\':
		if ch == '\\' {
			p.pos++
		}
		delim := p.peek()
		p.pos++
		pattern := p.delimited(delim, true)
		a := &address{}
		flags := posix.Flags(0)
		for p.peek() == 'I' {
			p.pos++
			flags |= posix.Fold
		}
		a.re, a.same = p.compile(pattern, flags)
		return a
	}
	return nil
}

// number reads digits.
func (p *parser) number() int {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	n, err := strconv.Atoi(p.src[start:p.pos])
	if err != nil {
		fail("invalid number '" + p.src[start:p.pos] + "'")
	}
	return n
}

// compile reads a regular expression; an empty one is the last one that was
// used when the script ran, which only the run can know. The second result says that the pattern
// is empty.
func (p *parser) compile(pattern string, flags posix.Flags) (*posix.Regexp, bool) {
	if pattern == "" {
		return nil, true
	}
	if p.extended {
		flags |= posix.Extended
	}
	re, err := posix.Compile(pattern, flags)
	if err != nil {
		fail("bad regex '" + pattern + "': " + err.Error())
	}
	return re, false
}

// delimited reads up to the delimiter. In a regular expression brackets hide
// it, and an escaped delimiter stands for itself; a newline ends neither, but
// an expression must not have one. Escapes are left for the expression or the replacement to
// read, but for the delimiter and newlines.
func (p *parser) delimited(delim byte, regex bool) string {
	var b strings.Builder
	bracket := -1
	for ; p.pos < len(p.src); p.pos++ {
		ch := p.src[p.pos]
		switch {
		case ch == '\\' && bracket < 0:
			if p.pos+1 >= len(p.src) {
				fail("unmatched '" + string(rune(delim)) + "'")
			}
			p.pos++
			next := p.src[p.pos]
			switch {
			// An escaped delimiter is the character itself.
			case next == delim && !regex && delim != '&':
				b.WriteByte(next)
			case next == 'n' && regex:
				b.WriteByte('\n')
			default:
				b.WriteByte('\\')
				b.WriteByte(next)
			}
			continue
		case ch == delim && bracket < 0:
			p.pos++
			return b.String()
		// A bracket may begin with ] or ^], which do not end it.
		case ch == '[' && bracket < 0 && regex:
			bracket = p.pos
			if p.pos+1 < len(p.src) && p.src[p.pos+1] == '^' {
				bracket++
			}
		case ch == ']' && bracket >= 0 && p.pos > bracket+1:
			// [:alpha:] within brackets has a ] of its own: it ends nothing.
			if open := strings.LastIndex(p.src[bracket:p.pos], "[:"); open <= 0 || strings.Contains(p.src[bracket+open+2:p.pos+1], ":]") && p.src[p.pos-1] != ':' || strings.Count(p.src[bracket:p.pos+1], "[:") < strings.Count(p.src[bracket:p.pos], ":]")+boolInt(p.src[p.pos-1] != ':') {
				bracket = -1
			}
		case ch == '\n' && regex && bracket < 0:
			fail("unmatched '" + string(rune(delim)) + "'")
		case ch == '\\' && p.pos+1 < len(p.src) && p.src[p.pos+1] == 'n':
			b.WriteByte('\n')
			p.pos++
			continue
		}
		b.WriteByte(ch)
	}
	fail("unmatched '" + string(rune(delim)) + "'")
	return ""
}

// boolInt is 1 for true.
func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// body reads what follows a command's letter. The commands of POSIX and T are
// known; GNU's others (e, F, Q, R, v, W, z) are unsupported, and end sed with
// that message. c is appended here, if it is a command at run time.
func (p *parser) body(c *command) {
	switch c.op {
	case '{':
		p.blocks = append(p.blocks, len(p.cmds))
		p.cmds = append(p.cmds, c)
		return
	case '}':
		if len(p.blocks) > 0 {
			p.cmds[p.blocks[len(p.blocks)-1]].jump = len(p.cmds)
			p.blocks = p.blocks[:len(p.blocks)-1]
		}
		return
	case ':':
		if c.from != nil {
			fail(": doesn't want any addresses")
		}
		p.skip(" \t")
		// A label is a place, and no command.
		p.labels[p.label()] = len(p.cmds)
		return
	case 'b', 't', 'T':
		p.skip(" \t")
		c.text = p.label()
	case 'a', 'i', 'c':
		c.text = p.text()
	case 'r', 'w':
		p.skip(" \t")
		if c.text = p.restOfLine(); c.text == "" {
			fail("empty filename")
		}
	case 's':
		p.substitution(c)
	case 'y':
		p.yank(c)
	case 'd', 'D', 'p', 'P', 'n', 'N', 'g', 'G', 'h', 'H', 'x', '=', 'l', 'q':
	default:
		fail("unsupported command " + string(rune(c.op)))
	}
	p.cmds = append(p.cmds, c)
}

// label reads a label, which ends at white space, a semicolon or a brace, as
// busybox has it; POSIX has it end with the line.
func (p *parser) label() string {
	start := p.pos
	for p.pos < len(p.src) && strings.IndexByte(" \t\n;}", p.src[p.pos]) < 0 {
		p.pos++
	}
	return p.src[start:p.pos]
}

// text reads the text of a, i and c, up to the end of the line; a backslash
// before the end of a line goes on with the next one. Leading white space is dropped, unless a
// backslash keeps it.
func (p *parser) text() string {
	p.skip(" \t")
	// Both a\ with the text in the next line and GNU's a text in this one.
	if p.peek() == '\\' && p.pos+1 < len(p.src) && strings.IndexByte("\n \t", p.src[p.pos+1]) >= 0 {
		p.pos++
		if p.src[p.pos] == '\n' {
			p.pos++
		}
	} else if p.peek() == '\\' {
		p.pos++
	}
	var b strings.Builder
	for ; p.pos < len(p.src); p.pos++ {
		ch := p.src[p.pos]
		if ch == '\n' {
			break
		}
		if ch == '\\' && p.pos+1 < len(p.src) {
			p.pos++
			ch = p.src[p.pos]
			switch ch {
			case 't':
				ch = '\t'
			case 'n':
				ch = '\n'
			}
		} else if ch == '\\' {
			continue
		}
		b.WriteByte(ch)
	}
	return b.String() + "\n"
}

// substitution reads what follows s. Any character but a newline and a backslash may delimit.
func (p *parser) substitution(c *command) {
	delim := p.peek()
	if delim == 0 || delim == '\n' || delim == '\\' {
		fail("bad format in substitution expression")
	}
	p.pos++
	pattern := p.delimited(delim, true)
	repl := p.delimited(delim, false)
	s := &substitution{nth: 0}
	flags := posix.Flags(0)
loop:
	for p.pos < len(p.src) {
		switch ch := p.src[p.pos]; {
		case ch == 'g':
			s.global = true
		case ch == 'p':
			s.print = true
		case ch == 'i' || ch == 'I':
			flags |= posix.Fold
		case ch == 'm' || ch == 'M':
			flags |= posix.Lines
		case ch >= '1' && ch <= '9':
			s.nth = p.number()
			continue
		case ch == 'w':
			p.pos++
			p.skip(" \t")
			if s.file = p.restOfLine(); s.file == "" {
				fail("empty filename")
			}
			break loop
		case strings.IndexByte(" \t\r", ch) >= 0:
		// The command ends; what ended it is left for the next one.
		case strings.IndexByte("\n;#}", ch) >= 0:
			break loop
		default:
			fail("bad option in substitution expression")
		}
		p.pos++
	}
	s.re, s.same = p.compile(pattern, flags)
	s.repl = replacement(repl)
	c.sub = s
}

// replacement cuts a replacement into text and references; & is the whole
// match, \& an ampersand. A group that did not match is empty.
func replacement(s string) []part {
	var out []part
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, part{text: b.String()})
			b.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case ch == '&':
			flush()
			out = append(out, part{isRef: true})
		case ch == '\\' && i+1 < len(s):
			i++
			switch ch = s[i]; {
			case ch >= '0' && ch <= '9':
				flush()
				out = append(out, part{isRef: true, group: int(ch - '0')})
			case ch == 'n':
				b.WriteByte('\n')
			case ch == 't':
				b.WriteByte('\t')
			case ch == 'r':
				b.WriteByte('\r')
			case ch == 'f':
				b.WriteByte('\f')
			case ch == 'v':
				b.WriteByte('\v')
			case ch == 'a':
				b.WriteByte('\a')
			default:
				b.WriteByte(ch)
			}
		default:
			b.WriteByte(ch)
		}
	}
	flush()
	return out
}

// yank reads what follows y. Bytes, not characters: BusyBox's y knows no UTF-8.
func (p *parser) yank(c *command) {
	delim := p.peek()
	if delim == 0 {
		fail("bad format in substitution expression")
	}
	p.pos++
	from := yankSet(p.delimited(delim, false))
	to := yankSet(p.delimited(delim, false))
	if len(from) != len(to) {
		// busybox goes by the shorter one.
		n := min(len(from), len(to))
		from, to = from[:n], to[:n]
	}
	c.yank = new([256]byte)
	for i := range c.yank {
		c.yank[i] = byte(i)
	}
	// Of a character that stands twice the first counts.
	for i := len(from) - 1; i >= 0; i-- {
		c.yank[from[i]] = to[i]
	}
}

// yankSet resolves the escapes of a y command: the backslash itself, newlines
// and tabs.
func yankSet(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(s)
}
