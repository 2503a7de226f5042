package script

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unsupportedError is a construct of Bash that ash has not. what is worded as the end of ash's
// message, a token in quotes, or a phrase that begins with "bad".
type unsupportedError struct {
	pos  syntax.Pos
	what string
}

func (e unsupportedError) Error() string { return e.what }

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
