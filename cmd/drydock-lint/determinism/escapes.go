package determinism

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// directive is the one escape there is. Time, chance and goroutines have none: a
// package that needs them is an edge, and its place in the table says so.
const directive = "//drydock:unordered"

// Escape is a comment that lets a line use the order of a map.
type Escape struct {
	// File is the file's path, as the analysis was given it.
	File string
	// Line is the line of the comment, counted from 1.
	Line int
	// Reason is why the order cannot be observed there.
	Reason string

	pos   token.Pos
	alone bool // nothing but the comment is on its line
	used  bool
}

// anyDirective matches what is, or was meant to be, a directive of ours.
var anyDirective = regexp.MustCompile(`^//\s*drydock:\s*\w*`)

// readEscapes collects a file's escapes and reports malformed ones.
func (c *checker) readEscapes(f *ast.File, name string) []*Escape {
	var out []*Escape
	var src []byte
	for _, group := range f.Comments {
		for _, comment := range group.List {
			text := strings.TrimRight(comment.Text, " \t\r")
			found := anyDirective.FindString(text)
			if found == "" {
				continue
			}
			reason, ok := strings.CutPrefix(text, directive)
			if !ok || found != directive {
				c.pass.Reportf(comment.Pos(), "unknown directive %s: the only one is %s <reason>", found, directive)
				continue
			}
			reason = strings.TrimSpace(reason)
			if reason == "" {
				c.pass.Reportf(comment.Pos(), "%s without a reason: say why the order cannot be observed", directive)
			}
			if src == nil {
				src, _ = c.pass.ReadFile(name) // without it, no comment counts as alone
			}
			p := c.pass.Fset.Position(comment.Pos())
			out = append(out, &Escape{
				File: name, Line: p.Line, Reason: reason, pos: comment.Pos(),
				alone: onlyBlanksBefore(src, p.Offset),
			})
		}
	}
	return out
}

// onlyBlanksBefore reports whether nothing stands before the offset on its line.
func onlyBlanksBefore(src []byte, offset int) bool {
	if offset > len(src) {
		return false
	}
	for offset--; offset >= 0 && src[offset] != '\n'; offset-- {
		if src[offset] != ' ' && src[offset] != '\t' {
			return false
		}
	}
	return true
}

// escaped reports whether an escape covers the lines from pos to end: one on any
// of them, or one alone on the line above.
func (c *checker) escaped(pos, end token.Pos) bool {
	first, last := c.pass.Fset.Position(pos).Line, c.pass.Fset.Position(end).Line
	covered := false
	for _, e := range c.escapes {
		if e.Line >= first && e.Line <= last || e.alone && e.Line == first-1 {
			e.used = true
			covered = true
		}
	}
	return covered
}

// closeEscapes reports the escapes that escape nothing and returns the others.
func (c *checker) closeEscapes() []Escape {
	var out []Escape
	for _, e := range c.escapes {
		if !e.used {
			c.pass.Reportf(e.pos, "%s escapes nothing: neither this line nor the next uses the order of a map", directive)
			continue
		}
		out = append(out, *e)
	}
	return out
}
