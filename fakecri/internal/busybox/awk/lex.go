package awk

import (
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/posix"
)

// kind is a token's kind. One-character operators are their own character. Constants begin above
// all bytes.
type kind int

const (
	tEOF kind = iota + 256
	tNewline
	tNumber
	tString
	tRegex
	tName
	tFuncName // a name right before (
	tBuiltin
	tKeyword
	tOp // text holds the operator
)

// token is a token; text is its name, operator or string with escapes resolved. num is set for
// numbers alone, line for messages.
type token struct {
	kind kind
	text string
	num  float64
	line int
}

// keywords and builtinNames are lists with spaces around each word, so that a
// search for " word " needs no map. Names of functions can't be used as variables.
const keywords = " BEGIN END function func if else while for do break continue next nextfile exit return delete in getline print printf "

const builtinNames = " length substr index split sub gsub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper system close fflush strftime systime mktime and or xor compl lshift rshift "

// operators are those of several characters, the longest first.
var operators = []string{"**=", "&&", "||", "==", "<=", ">=", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", ">>", "!~", "**"}

// lexer cuts the program into tokens. A copy of it is a place to come back to:
// where the grammar needs to look further ahead, the parser saves it. The whole text is in
// memory, and copies are cheap.
type lexer struct {
	src  string
	pos  int
	line int
	tok  token
	prev token
	// regexOK reports whether a / would begin a regular expression.
	regexOK bool
}

// next reads a token into tok, and knows from it whether a slash would divide
// what comes before or begin an expression. The grammar of awk needs this help: a / after an
// operand divides.
func (l *lexer) next() {
	l.prev = l.tok
	l.tok = l.scan()
	switch l.tok.kind {
	case tNumber, tString, tRegex, tName, tBuiltin:
		l.regexOK = false
	// After getline a / would divide what it has returned.
	case tKeyword:
		// getline /x/ makes no sense, getline / 2 does.
		l.regexOK = l.tok.text != "getline"
	case tOp:
		l.regexOK = l.tok.text != ")" && l.tok.text != "]" && l.tok.text != "$" && l.tok.text != "++" && l.tok.text != "--"
	default:
		l.regexOK = true
	}
}

// isAlpha and isDigit are of ASCII: names have no other letters.
func isAlpha(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// scan reads the next token. A line that ends with a backslash goes on; a
// comment ends before its newline, which ends a statement.
func (l *lexer) scan() token {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
			continue
		case c == '\\' && strings.HasPrefix(l.src[l.pos:], "\\\n"):
			l.pos += 2
			l.line++
			continue
		case c == '\\' && strings.HasPrefix(l.src[l.pos:], "\\\r\n"):
			l.pos += 3
			l.line++
			continue
		case c == '#':
			if i := strings.IndexByte(l.src[l.pos:], '\n'); i >= 0 {
				l.pos += i
			} else {
				l.pos = len(l.src)
			}
			continue
		}
		break
	}
	t := token{line: l.line}
	if l.pos >= len(l.src) {
		t.kind = tEOF
		return t
	}
	c := l.src[l.pos]
	switch {
	case c == '\n':
		l.pos++
		l.line++
		t.kind = tNewline
	case c == '"':
		t.kind = tString
		t.text = l.str()
	case c == '/' && l.regexOK:
		t.kind = tRegex
		t.text = l.regex()
	case isDigit(c) || c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		t.kind = tNumber
		n := 0
		t.num, n = number(l.src[l.pos:], true)
		l.pos += n
	case isAlpha(c):
		l.word(&t)
	default:
		t.kind = tOp
		for _, op := range operators {
			if strings.HasPrefix(l.src[l.pos:], op) {
				l.pos += len(op)
				// The two spellings of a power are one from here on.
				t.text = strings.ReplaceAll(op, "**", "^")
				return t
			}
		}
		if strings.IndexByte("{}()[];,+-*/%^!<>|?:~$=", c) < 0 {
			l.unexpected()
		}
		l.pos++
		t.text = string(rune(c))
	}
	return t
}

// word reads a keyword or a name. A name right before a bracket is a
// function's, which is how POSIX tells a call from a concatenation. f (x) is a concatenation of f
// with a group.
func (l *lexer) word(t *token) {
	start := l.pos
	for l.pos < len(l.src) && (isAlpha(l.src[l.pos]) || isDigit(l.src[l.pos])) {
		l.pos++
	}
	t.text = l.src[start:l.pos]
	switch {
	case strings.Contains(keywords, " "+t.text+" "):
		t.kind = tKeyword
		if t.text == "func" {
			t.text = "function"
		}
	case strings.Contains(builtinNames, " "+t.text+" "):
		t.kind = tBuiltin
	case l.pos < len(l.src) && l.src[l.pos] == '(':
		t.kind = tFuncName
	default:
		t.kind = tName
	}
}

// unexpected is busybox's only syntax error.
func (l *lexer) unexpected() {
	fail("cmd. line:" + itoa(l.line) + ": Unexpected token")
}

// str reads a string up to its quote. It must end on its line. Escapes are resolved here, once.
func (l *lexer) str() string {
	var b strings.Builder
	for l.pos++; ; {
		if l.pos >= len(l.src) || l.src[l.pos] == '\n' {
			fail("cmd. line:" + itoa(l.line) + ": Unexpected end of string")
		}
		c := l.src[l.pos]
		if c == '"' {
			l.pos++
			return b.String()
		}
		if c != '\\' {
			b.WriteByte(c)
			l.pos++
			continue
		}
		// A string goes on in the next line after a backslash.
		if strings.HasPrefix(l.src[l.pos:], "\\\n") {
			l.pos += 2
			l.line++
			continue
		}
		if v, n := posix.Unescape(l.src[l.pos:]); n > 0 {
			b.WriteByte(v)
			l.pos += n
			continue
		}
		// An unknown escape keeps its backslash, "\\" is one.
		if strings.HasPrefix(l.src[l.pos:], `\\`) {
			l.pos++
		}
		b.WriteByte('\\')
		l.pos++
	}
}

// regex reads a regular expression up to its slash, which brackets hide. An
// escaped slash loses its backslash; all other escapes are left to the
// expression. Brackets can't contain their own end here, other than by [:class:] or at the start:
// busybox is as simple.
func (l *lexer) regex() string {
	var b strings.Builder
	bracket := false
	for l.pos++; ; l.pos++ {
		if l.pos >= len(l.src) || l.src[l.pos] == '\n' {
			fail("cmd. line:" + itoa(l.line) + ": Unexpected end of string")
		}
		c := l.src[l.pos]
		switch {
		case c == '\\' && l.pos+1 < len(l.src):
			if l.src[l.pos+1] != '/' {
				b.WriteByte(c)
			}
			l.pos++
			c = l.src[l.pos]
		case c == '/' && !bracket:
			l.pos++
			return b.String()
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		}
		b.WriteByte(c)
	}
}
