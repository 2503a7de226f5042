// Package script parses shell scripts as BusyBox's ash would, by way of mvdan.cc/sh: POSIX, with
// what ash takes of Bash, and syntax errors in ash's words. What it returns is shared by all who
// run the same text, and is not written to.
//
// The parser knows POSIX and Bash, and ash is between the two. So a text is read as POSIX first;
// as Bash if that fails, or first if it has something that POSIX would read as something else;
// and what Bash has and ash has not is refused afterwards, by check. Arithmetic is kept as text
// beside the tree (Arith), since ash reads it only after it has expanded it.
//
// An error of the parser names another place than ash would, in other words. The second half of
// the file translates: fail finds the line and drops what ash would not have run, describe and
// the functions below it word the message.
package script

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Program is a parsed script. It is shared and not written to.
type Program struct {
	Stmts []*syntax.Stmt
	// lines is the number of lines, for messages at the end.
	lines int
	// Tail says that the last command ends with the text, not with a line: ash
	// then runs it in place of the shell. A here-document ends with a line, so a command with one
	// never does.
	Tail bool
	// Err is the syntax error that ended the parsing, in ash's words; the
	// commands of the lines before it run. ErrLine is its line.
	Err     string
	ErrLine int
	// Unsupported names the construct if the error is of this interpreter, not
	// of the script.
	Unsupported string
	// Incomplete says that more text could make the script right. A shell that reads stdin asks
	// for another line then, instead of failing.
	Incomplete bool
	// ariths are the arithmetic expansions and arithTexts their texts. The two are of one length;
	// Cache.Get moves them to its own map.
	ariths     []*syntax.ArithmExp
	arithTexts []*Arith
}

// Cache keeps parsed scripts by their text: a node's containers, and the
// laps of a loop with eval or a trap, share a few. It is not safe for several loops: each machine
// has its own.
type Cache struct {
	programs map[string]*Program
	// size is in bytes of text, with something for each entry; arith has the texts of expansions
	// in programs, by their nodes.
	size  int
	arith map[*syntax.ArithmExp]*Arith
}

// cacheBytes bounds the text of cached scripts. Over it the cache starts anew. Dropping
// everything is simple, and rare: a script that makes texts without end, with eval, gains nothing
// from a cache anyway.
const cacheBytes = 1 << 20

// Get returns a script parsed, or parses it. Errors are kept, too: a loop may
// try the same text again.
func (c *Cache) Get(src string) *Program {
	if p := c.programs[src]; p != nil {
		return p
	}
	p := Parse(src)
	defer func() {
		for i, x := range p.ariths {
			c.keepArith(x, p.arithTexts[i])
		}
	}()
	if c.size += len(src) + 64; c.size > cacheBytes || c.programs == nil {
		c.programs = make(map[string]*Program)
		c.size = len(src) + 64
		// Nodes of dropped programs would be kept alive by it.
		c.arith = nil
	}
	c.programs[src] = p
	return p
}

// keepArith remembers an expression's text for as long as the scripts are kept.
func (c *Cache) keepArith(x *syntax.ArithmExp, t *Arith) {
	if c.arith == nil {
		c.arith = make(map[*syntax.ArithmExp]*Arith)
	}
	c.arith[x] = t
}

// bashHints are texts of constructs that ash takes and POSIX reads as something
// else.
//
// POSIX takes $'a' for a dollar and a quoted word, &> for & and >, and [[ for a command. That
// such a text stands in quotes does no harm: a text that is POSIX is mostly valid Bash as well.
var bashHints = []string{"$'", "&>", "<(", ">(", "[[ "}

// Parse reads a script as ash would: POSIX, with a few things of Bash. It never fails: errors are
// in the Program, with the commands before them.
func Parse(src string) *Program {
	first, second := syntax.LangPOSIX, syntax.LangBash
	for _, h := range bashHints {
		if strings.Contains(src, h) {
			first, second = second, first
			break
		}
	}
	p, err := parseAs(src, src, first)
	if err == nil {
		return p
	}
	// The parser reads expressions, where ash has text until it expands it. Expressions such as
	// $(( $a $op $b )) are no syntax yet. With 0 in their place the rest parses, and texts takes
	// the expressions from the original.
	if blank := blankArith(src); blank != src {
		if q, err2 := parseAs(blank, src, first); err2 == nil {
			return q
		}
	}
	q, err2 := parseAs(src, src, second)
	if err2 == nil {
		return q
	}
	var pe syntax.ParseError
	// The original error is looked at, that of the first language.
	if errors.As(err, &pe) && strings.HasPrefix(pe.Text, "unclosed here-document") {
		// For ash the end of the text ends a here-document, too.
		if i, j := strings.IndexByte(pe.Text, '`'), strings.LastIndexByte(pe.Text, '`'); i < j && !strings.HasSuffix(src, "\n"+pe.Text[i+1:j]+"\n") {
			// Closed with the delimiter, the rest is parsed as usual; more input could still
			// belong to it.
			closed := Parse(src + "\n" + pe.Text[i+1:j] + "\n")
			closed.Incomplete = true
			return closed
		}
	}
	if first == syntax.LangBash {
		// What is no Bash either is told in the words of POSIX.
		p, err = q, err2
	}
	p.fail(src, err)
	return p
}

// blankArith puts 0 and spaces in place of what stands in $((...)), so that
// positions stay what they are. Newlines stay as well, so lines keep their numbers. It does not
// parse: quotes are judged by counting, which is enough, as the result only counts if it parses.
func blankArith(src string) string {
	b := []byte(src)
	for i := 0; i+2 < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '\'':
			// An odd number of double quotes before it means that the single quote is within
			// them.
			if n := strings.IndexByte(src[i+1:], '\''); n >= 0 && strings.Count(src[:i], `"`)%2 == 0 {
				i += n + 1
			}
		case '$':
			if src[i:i+3] != "$((" {
				continue
			}
			end := arithEnd(src, i+3)
			if end <= i+3 {
				continue
			}
			for j := i + 3; j < end; j++ {
				if b[j] != '\n' {
					b[j] = ' '
				}
			}
			if b[i+3] != '\n' {
				b[i+3] = '0'
			}
			i = end
		}
	}
	return string(b)
}

// arithEnd finds the )) that ends an expression, -1 if there is none. i is the place behind
// "$((", and the result that of the first of the two brackets.
func arithEnd(src string, i int) int {
	depth := 0
	for ; i < len(src); i++ {
		switch src[i] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				if i+1 < len(src) && src[i+1] == ')' {
					return i
				}
				return -1
			}
			depth--
		}
	}
	return -1
}

// parseAs parses src, of which text is what it was before blankArith. Commands before an error
// are in the Program that comes with it.
func parseAs(src, text string, lang syntax.LangVariant) (*Program, error) {
	p := &Program{lines: 1 + strings.Count(src, "\n")}
	parser := syntax.NewParser(syntax.Variant(lang))
	var first error
	for st, err := range parser.StmtsSeq(strings.NewReader(src)) {
		// The sequence may go on after an error, and must not be cut short.
		switch {
		case first != nil:
		case err != nil:
			first = err
		default:
			p.Stmts = append(p.Stmts, st)
		}
	}
	if first != nil {
		return p, first
	}
	for i, st := range p.Stmts {
		if bad := check(st); bad != "" {
			// What stands before the construct runs, as it does in ash.
			p.Stmts = p.Stmts[:i]
			return p, unsupportedError{st.Pos(), bad}
		}
	}
	// Last, as positions are those of the text before blankArith, which has the same length.
	p.texts(text)
	if n := len(p.Stmts); n > 0 {
		end := int(p.Stmts[n-1].End().Offset())
		p.Tail = end <= len(src) && !strings.Contains(src[end:], "\n") && !hasHeredoc(p.Stmts[n-1])
	}
	return p, nil
}

// texts remembers the texts of arithmetic expansions. In back quotes, where
// backslashes come and go, they are printed anew when they are needed. There the offsets of the
// tree don't fit the text, which the comparison with "$((" notices as well.
func (p *Program) texts(src string) {
	for _, st := range p.Stmts {
		syntax.Walk(st, func(n syntax.Node) bool {
			if x, ok := n.(*syntax.ArithmExp); ok {
				from, to := int(x.Left.Offset())+3, int(x.Right.Offset())
				if from <= to && to <= len(src) && src[from-3:from] == "$((" && !strings.Contains(src[from:to], `\`) {
					p.ariths = append(p.ariths, x)
					p.arithTexts = append(p.arithTexts, newArith(src[from:to]))
				}
			}
			return true
		})
	}
}

// unsupportedError is a construct of Bash that ash has not. what is worded as the end of ash's
// message, a token in quotes, or a phrase that begins with "bad".
type unsupportedError struct {
	pos  syntax.Pos
	what string
}

func (e unsupportedError) Error() string { return e.what }

// check names a construct below a node that ash has not, if there is one. The cases are ordered
// as ash's grammar is: words and assignments, commands, redirections, expansions.
func check(node syntax.Node) string {
	bad := ""
	syntax.Walk(node, func(n syntax.Node) bool {
		if bad != "" {
			return false
		}
		switch n := n.(type) {
		case *syntax.ArrayExpr:
			bad = `"("`
		case *syntax.Assign:
			if n.Index != nil {
				bad = `"["`
			}
		case *syntax.ArithmCmd:
			bad = `"(("`
		case *syntax.CoprocClause:
			bad = "coproc"
		case *syntax.TestDecl:
			bad = "@test"
		case *syntax.ExtGlob:
			bad = `"("`
		case *syntax.WordIter:
			if !ValidName(n.Name.Value) {
				bad = "bad for loop variable"
			}
		case *syntax.ForClause:
			if _, ok := n.Loop.(*syntax.CStyleLoop); ok {
				bad = "bad for loop variable"
			} else if n.Select {
				bad = `"do"`
			}
		case *syntax.CaseItem:
			if n.Op != syntax.Break {
				bad = `"` + n.Op.String() + `"`
			}
		case *syntax.Redirect:
			switch n.Op {
			case syntax.WordHdoc, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob, syntax.AppClob:
				bad = "redirection"
			}
			if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
				bad = "redirection"
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.PipeAll {
				bad = `"&"`
			}
		case *syntax.ParamExp:
			if n.Excl || n.Width || n.Index != nil || n.Names != 0 || n.NestedParam != nil || n.Flags != nil ||
				// The operators behind RemLargePrefix are those for upper and lower case.
				n.Exp != nil && n.Exp.Op > syntax.RemLargePrefix {
				bad = "bad substitution"
			}
		case *syntax.ArithmExp:
			if n.Bracket || n.Unsigned {
				bad = `"$["`
			}
		}
		return true
	})
	return bad
}

// hasHeredoc reports whether a command has a here-document, which ends with a
// line of its own.
func hasHeredoc(node syntax.Node) bool {
	has := false
	syntax.Walk(node, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil {
			has = true
		}
		return !has
	})
	return has
}

var (
	// They take apart the messages of the parser's present version, which a new one may word
	// differently.
	errReached   = regexp.MustCompile("^reached `?(\\S+?)`? without (?:matching `(\\S+?)`|closing quote `(\\S+?)`)(?: with `(\\S+?)`)?")
	errMustEnd   = regexp.MustCompile("^`(\\S+)` statement must end with `(\\S+)`")
	errFollowed  = regexp.MustCompile("^`(.+?)` must be followed by `?(.+?)`?$")
	errFirstWord = regexp.MustCompile("`([^` ]+)`")
)

// fail puts a parser's error into ash's words, as far as they can be known from
// it, and drops the commands that stand on the same line: ash reads by lines. ErrLine counts from
// 1. What can't be told apart gets the most common message, so that at least the status, 2, and
// the place are ash's.
func (p *Program) fail(src string, err error) {
	var pe syntax.ParseError
	var le syntax.LangError
	var ue unsupportedError
	pos := syntax.Pos{}
	switch {
	case errors.As(err, &ue):
		pos = ue.pos
		p.Err = "syntax error: unexpected " + ue.what
		if strings.HasPrefix(ue.what, "bad ") {
			p.Err = "syntax error: " + ue.what
		}
	case errors.As(err, &le):
		pos = le.Pos
		p.Unsupported = le.Feature
		switch {
		case strings.Contains(le.Feature, "parameter expansion"), strings.Contains(le.Feature, "expansion"):
			p.Err = "syntax error: bad substitution"
		case strings.Contains(le.Feature, "c-style"):
			p.Err = "syntax error: bad for loop variable"
		case strings.Contains(le.Feature, "glob"):
			p.Err = `syntax error: unexpected "("`
		case inBraces(src, int(pos.Offset())):
			p.Err = "syntax error: bad substitution"
		default:
			p.Err = "syntax error: unexpected " + nextToken(src, int(pos.Offset()))
		}
	case errors.As(err, &pe):
		pos = pe.Pos
		p.Err = "syntax error: " + describe(src, pe)
		if pe.Incomplete {
			p.Incomplete = true
			// The error stands where the construct began; ash finds it at the end.
			p.ErrLine = p.lines
		}
	default:
		p.Err = "syntax error: " + err.Error()
		p.Unsupported = err.Error()
	}
	// A word in ${...} that the parser stumbles over is a bad substitution for ash.
	if p.Err == "syntax error: unexpected word" && inBraces(src, int(pos.Offset())) {
		p.Err = "syntax error: bad substitution"
	}
	line := int(pos.Line())
	p.ErrLine = cmp.Or(p.ErrLine, line)
	// A command that ends on the line of the error has not run when ash gets there.
	for len(p.Stmts) > 0 && line > 0 && int(p.Stmts[len(p.Stmts)-1].End().Line()) >= line {
		p.Stmts = p.Stmts[:len(p.Stmts)-1]
	}
}

// inBraces reports whether a position is within ${...}, or at its start. It looks at one line,
// and not for nesting: it only chooses between two messages.
func inBraces(src string, offset int) bool {
	offset = min(offset, len(src))
	if strings.HasPrefix(src[offset:], "${") {
		return true
	}
	open := strings.LastIndex(src[:offset], "${")
	return open >= 0 && !strings.ContainsAny(src[open:offset], "}\n")
}

// closers are the words that ash expects at the end of what another began.
var closers = map[string]string{
	"if": "fi", "then": "fi", "elif": "then", "else": "fi", "while": "do", "until": "do", "do": "done", "for": "do", "case": ";;", "{": "}", "(": ")", "$(": ")",
}

// describe puts the parser's message into ash's words. The order matters: the more special texts
// come first.
func describe(src string, e syntax.ParseError) string {
	t := e.Text
	offset := int(e.Pos.Offset())
	switch {
	case strings.HasPrefix(t, "unclosed here-document"):
		return "unterminated here-document"
	case strings.Contains(t, "parameter expansion operator"), strings.Contains(t, "invalid parameter name"),
		strings.Contains(t, "cannot combine multiple parameter"), strings.Contains(t, "cannot be followed by a word"):
		return "bad substitution"
	}
	if strings.Contains(t, "closing quote \"`\"") {
		return "EOF in backquote substitution"
	}
	// Groups: what was found, what began, or the quote that is missing.
	if m := errReached.FindStringSubmatch(t); m != nil {
		switch {
		case m[3] != "", m[2] == `"`, m[2] == "'":
			if m[3] == "`" {
				return "EOF in backquote substitution"
			}
			return "unterminated quoted string"
		case m[2] == "${":
			return "missing '}'"
		case m[2] == "$((":
			return "missing '))'"
		}
		return unexpected(m[1], closers[m[2]])
	}
	if m := errMustEnd.FindStringSubmatch(t); m != nil {
		if e.Incomplete {
			return unexpected("EOF", m[2])
		}
		return unexpected(foundInstead(src, offset, m[2]), m[2])
	}
	if m := errFollowed.FindStringSubmatch(t); m != nil {
		if e.Incomplete {
			want := closers[m[1]]
			// These have a middle word that is due before the last one.
			switch m[1] {
			case "if":
				want = "then"
			case "while", "until":
				want = "do"
			}
			return unexpected("EOF", want)
		}
		return wanting(m[1], m[2], nextToken(src, offset+len(m[1])))
	}
	if strings.HasPrefix(t, "statements must be separated") {
		return "unexpected " + nextToken(src, offset)
	}
	if m := errFirstWord.FindStringSubmatch(t); m != nil {
		return unexpected(m[1], "")
	}
	return "unexpected " + nextToken(src, offset)
}

// wanting words what was found after something that wants something else. Only after for, case
// and an open bracket does ash know what it wants.
func wanting(after, want, found string) string {
	switch {
	case strings.HasPrefix(after, "for "):
		want = "do"
	case strings.HasPrefix(after, "case "), want == "in":
		want = "in"
	case want == ")":
	default:
		return "unexpected " + found
	}
	return "unexpected " + found + ` (expecting "` + want + `")`
}

// unexpected words what was found, and what would have been right. Its names for tokens are
// tokname's: a word is "word", an operator is quoted.
func unexpected(found, want string) string {
	switch found {
	case "EOF":
		found = "end of file"
	case "Newl", `\n`:
		found = "newline"
	case ">", "<", ">>", "<<", ">&", "<&", "<>", ">|", "&>":
		found = "redirection"
	default:
		found = `"` + found + `"`
	}
	if want != "" {
		return "unexpected " + found + ` (expecting "` + want + `")`
	}
	return "unexpected " + found
}

// foundInstead looks for the closing word that stands where another was due. Words are looked for
// without regard to quotes: a wrong guess changes one word of a message.
func foundInstead(src string, offset int, want string) string {
	for _, w := range strings.FieldsFunc(src[min(offset, len(src)):], func(r rune) bool { return strings.ContainsRune(" \t\n;", r) }) {
		switch w {
		case "fi", "done", "esac", "}", ")", "then", "do", "else", "elif":
			if w != want && closers[w] == "" {
				return w
			}
		}
	}
	return "EOF"
}

// nextToken quotes what stands at an offset of the script. Reserved words are quoted like
// operators; any other is a "word".
func nextToken(src string, offset int) string {
	t := strings.TrimLeft(src[min(offset, len(src)):], " \t")
	switch {
	case t == "":
		return "end of file"
	case t[0] == '\n':
		return "newline"
	case t[0] == '<' || t[0] == '>':
		return "redirection"
	case strings.HasPrefix(t, ";;"), strings.HasPrefix(t, "&&"), strings.HasPrefix(t, "||"):
		return `"` + t[:2] + `"`
	case strings.IndexByte("();&|", t[0]) >= 0:
		return `"` + t[:1] + `"`
	}
	if i := strings.IndexAny(t, " \t\n;()&|<>"); i > 0 {
		t = t[:i]
	}
	for _, k := range [...]string{"if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "{", "}", "!"} {
		if t == k {
			return `"` + t + `"`
		}
	}
	return "word"
}

// Arith is the text of an expression, or a word that expands to it. Word is set if there is
// something to expand, and Text otherwise.
type Arith struct {
	Text string
	Word *syntax.Word
}

// Arith returns the text of an expansion of a cached script. Those that texts left out are
// printed from the tree, once.
func (c *Cache) Arith(x *syntax.ArithmExp) *Arith {
	t := c.arith[x]
	if t == nil {
		t = PrintArith(x.X)
		c.keepArith(x, t)
	}
	return t
}

// PrintArith takes an expression back to text: POSIX has it expanded first
// and read after that, so that $a may hold an operator's operands. "?" is no expression, so what
// can't be printed fails when it is evaluated.
func PrintArith(x syntax.ArithmExpr) *Arith {
	var b strings.Builder
	word := &syntax.Word{Parts: []syntax.WordPart{&syntax.ArithmExp{X: x}}}
	if err := syntax.NewPrinter().Print(&b, word); err != nil {
		return &Arith{Text: "?"}
	}
	return newArith(strings.TrimSuffix(strings.TrimPrefix(b.String(), "$(("), "))"))
}

// newArith makes an Arith of an expression's text, parsed if it has something to expand.
func newArith(t string) *Arith {
	if !strings.ContainsAny(t, "$`\\") {
		return &Arith{Text: t}
	}
	w, err := Document(t)
	if err != nil || w == nil {
		return &Arith{Text: t}
	}
	return &Arith{Word: w}
}

// Document parses text in which only $ and ` are special.
func Document(t string) (*syntax.Word, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Document(strings.NewReader(t))
}

// ValidName reports whether s can be the name of a variable: letters, digits and _, and no digit
// first.
func ValidName(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return false
	}
	return true
}
