// Package script parses shell scripts as BusyBox's ash would, by way of mvdan.cc/sh: POSIX, with
// what ash takes of Bash, and syntax errors in ash's words. What it returns is shared by all who
// run the same text, and is not written to.
//
// The parser knows POSIX and Bash, and ash is between the two. So a text is read as POSIX first;
// as Bash if that fails, or first if it has something that POSIX would read as something else;
// and what Bash has and ash has not is refused afterwards, by check. Arithmetic is kept as text
// beside the tree (Arith), since ash reads it only after it has expanded it.
//
// An error of the parser names another place than ash would, in other words. errors.go
// translates: fail finds the line and drops what ash would not have run, describe and the
// functions below it word the message. arith.go is about expressions.
package script

import (
	"errors"
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
