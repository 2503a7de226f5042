package shell

import (
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/arith"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// expander turns words into fields. While it works, the present field is a
// pattern (see [pattern.Match]) unless plain is set, so that what was quoted is
// not taken for a wildcard later. One expander does for all words of a command
// that need one.
//
// The steps are those of POSIX 2.6, in one pass over the parts of a word: tildes, parameters,
// commands and arithmetic add to buf; a value is split while it is added, file names are found at
// the end of a field, and quotes are gone since only their content was added. One pass is enough
// because a value's own quotes and dollars are never looked at again.
//
// Words differ in the flags: arguments of a command (split), strings (plain), values of
// assignments (plain and assign), patterns (none).
type expander struct {
	s *shell
	// fields are done, buf is the one in the making, ifs has the characters that separate them.
	fields []string
	buf    []byte
	ifs    string
	// started says that there is a field, even if nothing is in it.
	started bool
	// blank says that white space ended the last field: a separator that
	// follows belongs to the same end.
	blank bool
	// meta and escapes say what buf may hold.
	meta, escapes bool
	// split has expansions split into fields, and fields matched with files.
	split bool
	// plain leaves backslashes out.
	plain bool
	// assign has a tilde expanded after each colon.
	assign bool
	// operand says that literal text is that of ${x-text}, and split too.
	operand bool
}

// defaultIFS is what IFS begins with, and what an unset one means.
const defaultIFS = " \t\n"

// ifs returns the characters that fields are split at.
func (v *vars) ifs() string {
	if v, ok := v.get("IFS"); ok {
		return v
	}
	return defaultIFS
}

// simpleLit returns a word's text if nothing in it needs an expansion: most
// words of scripts, for which no expander is made. Such words are never split, whatever IFS is:
// only what an expansion gave is.
func simpleLit(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch x := w.Parts[0].(type) {
	case *syntax.Lit:
		// A backslash, a wildcard or a tilde means something in an unquoted literal.
		if strings.ContainsAny(x.Value, "\\*?[~") {
			return "", false
		}
		return x.Value, true
	case *syntax.SglQuoted:
		// The escapes of $'...' have yet to be read.
		return x.Value, !x.Dollar
	}
	return "", false
}

// expandFields expands words as the arguments of a command: each may give any
// number of fields. What is plain text is added as it is.
func (s *shell) expandFields(fields []string, words []*syntax.Word) []string {
	var e *expander
	for _, w := range words {
		if t, ok := simpleLit(w); ok {
			fields = append(fields, t)
			continue
		}
		if e == nil {
			e = &expander{s: s, split: true}
		}
		// The word before may have changed IFS, as ${IFS:=x} does.
		e.ifs = s.vars.ifs()
		e.fields = fields
		e.word(w.Parts)
		e.end()
		e.blank = false
		fields = e.fields
		if s.skip == skipExit {
			return fields
		}
	}
	return fields
}

// expandString expands a word to one string: no splitting, no file names. So
// are the words of case and the targets of redirections expanded. After an error skip is set, and
// what it returns does not count.
func (s *shell) expandString(w *syntax.Word) string { return s.expandOne(w, false) }

// expandAssign is expandString for the value of an assignment.
func (s *shell) expandAssign(w *syntax.Word) string { return s.expandOne(w, true) }

// expandOne sets plain, so that what was quoted comes without escapes.
func (s *shell) expandOne(w *syntax.Word, assign bool) string {
	if w == nil {
		return ""
	}
	if t, ok := simpleLit(w); ok {
		return t
	}
	e := expander{s: s, plain: true, assign: assign}
	e.word(w.Parts)
	return string(e.buf)
}

// expandPattern expands a word to a pattern, in which what was quoted is
// escaped and what an expansion gave is not.
//
// So in case "$x" in "*") the star is compared with, and in case "$x" in $p) the variable is a
// pattern.
func (s *shell) expandPattern(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := expander{s: s}
	e.word(w.Parts)
	return string(e.buf)
}

// expandDocument expands the body of a here-document. Arithmetic expressions are expanded by it,
// too: POSIX treats both as if in double quotes.
func (s *shell) expandDocument(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	e := expander{s: s, plain: true}
	// Double quotes are text in a here-document, so literals are not read as in a word.
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			e.quoted(unescapeIn(lit.Value, "$`\\"))
			continue
		}
		e.part(p, true)
	}
	return string(e.buf)
}

// word adds the parts of an unquoted word. Tildes count at its beginning, and
// in an assignment after each colon.
func (e *expander) word(parts []syntax.WordPart) {
	for i, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok && (i == 0 || e.assign) {
			e.tilde(lit.Value, i == 0, i == len(parts)-1)
		} else {
			e.part(p, false)
		}
		if e.s.skip == skipExit {
			return
		}
	}
}

// tilde adds a literal with the tildes in it expanded.
func (e *expander) tilde(t string, first, last bool) {
	for t != "" {
		if first && t[0] == '~' {
			// In an assignment a colon ends the user's name, too.
			n := strings.IndexAny(t, "/:")
			if !e.assign {
				n = strings.IndexByte(t, '/')
			}
			// A name that goes on in another part, as in ~$USER, is no user's.
			if n < 0 && last {
				n = len(t)
			}
			// A quoted character makes the tilde plain text.
			if n > 0 && !strings.Contains(t[:n], "\\") {
				if home, ok := e.home(t[1:n]); ok {
					e.quoted(home)
					t = t[n:]
				}
			}
		}
		n := len(t)
		if e.assign {
			if c := strings.Index(t, ":~"); c >= 0 {
				n = c + 1
			}
		}
		// What follows the name is ordinary text, wildcards included: ~/*.txt finds files.
		e.literal(t[:n])
		t, first = t[n:], true
	}
}

// home returns the home directory of a user of /etc/passwd; "" is $HOME,
// wherever that leads. It returns false for a user that nobody knows: then the tilde stays what
// it is.
func (e *expander) home(user string) (string, bool) {
	s := e.s
	if user == "" {
		return s.vars.get("HOME")
	}
	// It is the container's file, so the users are those of the image.
	data, err := s.p.View().ReadFile("/etc/passwd")
	if err != nil {
		return "", false
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		f := strings.Split(line, ":")
		if len(f) >= 6 && f[0] == user {
			return f[5], true
		}
	}
	return "", false
}

// part adds one part of a word; in says that it stands in double quotes, where
// nothing is split and only a few backslashes count.
//
// The kinds of quoting differ here: in '...' nothing means anything, in "..." dollars, back
// quotes and some backslashes do.
func (e *expander) part(p syntax.WordPart, in bool) {
	switch x := p.(type) {
	case *syntax.Lit:
		if in {
			e.quoted(unescapeIn(x.Value, "$`\"\\"))
		} else {
			e.literal(x.Value)
		}
	case *syntax.SglQuoted:
		t := x.Value
		if x.Dollar {
			t = dollarQuoted(t)
		}
		e.quoted(t)
	case *syntax.DblQuoted:
		e.doubleQuoted(x.Parts)
	case *syntax.ParamExp:
		e.param(x, in)
	case *syntax.CmdSubst:
		e.value(e.cmdSubst(x), in)
	case *syntax.ArithmExp:
		e.value(e.arithmetic(x), in)
	case *syntax.ProcSubst:
		// It is a path, which is never split.
		e.value(e.procSubst(x), true)
	default:
		e.s.fail(2, "syntax error: unsupported expansion")
		e.s.warn("unsupported expansion %T", p)
	}
}

// doubleQuoted adds what stands in double quotes: a field even if it is empty,
// except for "$@" without parameters.
func (e *expander) doubleQuoted(parts []syntax.WordPart) {
	// "$@" without arguments is no field at all, where "" is one.
	none := len(parts) > 0 && len(e.s.args) == 0
	for _, p := range parts {
		if pe, ok := p.(*syntax.ParamExp); !ok || pe.Param == nil || pe.Param.Value != "@" || pe.Exp != nil {
			none = false
		}
	}
	if none {
		return
	}
	e.start()
	for _, p := range parts {
		e.part(p, true)
		if e.s.skip == skipExit {
			return
		}
	}
}

// start says that there is a field now, if only an empty one. blank is over, as something stands
// after the white space.
func (e *expander) start() {
	e.started = true
	e.blank = false
}

// quoted adds text that stands for itself: nothing in it is split, or taken for
// a wildcard.
func (e *expander) quoted(t string) {
	e.start()
	if e.plain {
		e.grow(t)
		return
	}
	n := len(e.buf)
	// Most fields have none and need no second pass, which is what escapes says to end.
	e.buf = pattern.AppendEscaped(e.buf, t)
	// Escapes make the text longer, by which they are noticed.
	if len(e.buf)-n != len(t) {
		e.escapes = true
	}
	e.bound()
}

// grow adds text as it is.
func (e *expander) grow(t string) {
	e.buf = append(e.buf, t...)
	e.bound()
}

// bound ends a shell whose text grows without end. It is asked after each addition. What is added
// is bounded as well, so buf is never far beyond.
func (e *expander) bound() {
	if len(e.buf) > maxString && e.s.skip != skipExit {
		e.s.outOfMemory()
		e.buf = nil
	}
}

// literal adds unquoted text of the script: its wildcards work, its backslashes
// quote. The parser has joined the lines that a backslash before a newline continues.
func (e *expander) literal(t string) {
	if e.operand && e.split {
		e.operandLiteral(t)
		return
	}
	if t == "" {
		return
	}
	e.start()
	if strings.IndexByte(t, '\\') < 0 {
		// meta only says that there may be a wildcard; end looks closer.
		e.meta = e.meta || strings.ContainsAny(t, "*?[")
		e.grow(t)
		return
	}
	for i := 0; i < len(t); i++ {
		if t[i] == '\\' && i+1 < len(t) {
			i++
			e.quoted(t[i : i+1])
			continue
		}
		// A backslash at the end of the text stands for itself.
		if t[i] == '\\' {
			e.quoted(`\`)
			continue
		}
		e.meta = e.meta || t[i] == '*' || t[i] == '?' || t[i] == '['
		e.buf = append(e.buf, t[i])
	}
	e.bound()
}

// operandLiteral adds the text of ${x-text}, which is split as a value is.
func (e *expander) operandLiteral(t string) {
	for t != "" {
		n := strings.IndexByte(t, '\\')
		if n < 0 {
			e.splitted(t)
			return
		}
		e.splitted(t[:n])
		if n+1 < len(t) {
			e.quoted(t[n+1 : n+2])
			t = t[n+2:]
			continue
		}
		e.quoted(`\`)
		return
	}
}

// value adds what an expansion gave: split, if fields are made; never expanded
// again. in says that it stood in double quotes. Without them the kind of word decides.
func (e *expander) value(t string, in bool) {
	switch {
	case in:
		e.quoted(t)
	case e.split:
		e.splitted(t)
	case e.plain:
		e.grow(t)
	default:
		e.pattern(t)
	}
}

// pattern adds a value in which wildcards work and backslashes don't, so that a
// variable can hold a pattern.
func (e *expander) pattern(t string) {
	for i := 0; i < len(t); i++ {
		switch t[i] {
		case '*', '?', '[':
			e.meta = true
		case '\\':
			e.escapes = true
			e.buf = append(e.buf, '\\')
		}
		e.buf = append(e.buf, t[i])
	}
	e.bound()
}

// splitted adds a value, split at the characters of IFS. White space at the
// ends goes; another separator ends a field, even an empty one. This is POSIX 2.6.5. With IFS="
// :" the text "a : b" gives two fields and "a::b" three, an empty one in the middle; ":a" begins
// with an empty field, but "a:" does not end with one. If IFS is empty nothing separates. What
// the last text left goes on: in $a$b the end of a and the start of b are one field unless a
// separator stands between them.
func (e *expander) splitted(t string) {
	i := 0
	for i < len(t) {
		j := i
		for j < len(t) && strings.IndexByte(e.ifs, t[j]) < 0 {
			j++
		}
		if j > i {
			e.start()
			e.pattern(t[i:j])
			if e.s.skip == skipExit {
				return
			}
		}
		if j == len(t) {
			return
		}
		// White space around a separator belongs to it; two others make an
		// empty field.
		white := t[j] == ' ' || t[j] == '\t' || t[j] == '\n'
		switch {
		case e.started:
			e.end()
			e.blank = white
		// White space at the start, or more of it.
		case white:
		// The separator belongs to the white space that has ended the field.
		case e.blank:
			e.blank = false
		// Nothing stands before the separator: an empty field.
		default:
			e.started = true
			e.end()
		}
		i = j + 1
	}
}

// end ends the present field, if there is one: as names of files, if it is a
// pattern that matches some, else as it is without its escapes. A name that begins with a dot is
// found only if the pattern does, see package pattern.
func (e *expander) end() {
	if !e.started {
		return
	}
	// A pattern that no file matches stays as it is.
	if e.meta && e.split && !e.s.opts.noglob && pattern.HasMeta(string(e.buf)) {
		if names := pattern.Glob(e.s.p.View(), string(e.buf)); len(names) > 0 {
			e.fields = append(e.fields, names...)
			e.reset()
			return
		}
	}
	t := string(e.buf)
	if e.escapes {
		t = pattern.Unescape(t)
	}
	e.fields = append(e.fields, t)
	e.reset()
}

// reset begins the next field.
func (e *expander) reset() {
	e.buf = e.buf[:0]
	e.started, e.meta, e.escapes, e.blank = false, false, false, false
}

// unescapeIn takes the backslashes away that stand before one of chars: those
// that mean something in double quotes or here-documents. POSIX 2.2.3: other backslashes in
// double quotes stay, so "\n" has two characters.
func unescapeIn(t, chars string) string {
	if strings.IndexByte(t, '\\') < 0 {
		return t
	}
	b := make([]byte, 0, len(t))
	for i := 0; i < len(t); i++ {
		if t[i] == '\\' && i+1 < len(t) && strings.IndexByte(chars, t[i+1]) >= 0 {
			i++
		}
		b = append(b, t[i])
	}
	return string(b)
}

// dollarQuoted reads the escapes of $'...', up to the first zero byte, which
// would end a C string.
func dollarQuoted(t string) string {
	var b []byte
	for i := 0; i < len(t); i++ {
		if t[i] != '\\' || i+1 == len(t) {
			b = append(b, t[i])
			continue
		}
		n := 0
		b, n = appendEscape(b, t[i:])
		i += n - 1
	}
	if i := strings.IndexByte(string(b), 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// appendEscape adds what the escape at the start of t (a backslash and at least
// one character more) stands for, and returns how long it is. An unknown one
// stays as it is, backslash included.
//
// $'...', printf's format and, but for octal escapes, echo -e share it, as they share
// bb_process_escape_sequence in BusyBox.
func appendEscape(b []byte, t string) ([]byte, int) {
	switch c := t[1]; c {
	case 'n':
		return append(b, '\n'), 2
	case 't':
		return append(b, '\t'), 2
	case 'r':
		return append(b, '\r'), 2
	case 'a':
		return append(b, 7), 2
	case 'b':
		return append(b, 8), 2
	case 'f':
		return append(b, 12), 2
	case 'v':
		return append(b, 11), 2
	case 'e':
		return append(b, 27), 2
	case '\\', '\'', '"', '?':
		return append(b, c), 2
	case 'x':
		n := 2
		for n < len(t) && n < 4 && arith.Digit(t[n], 16) >= 0 {
			n++
		}
		if n == 2 {
			return append(b, '\\', 'x'), 2
		}
		// At most two digits: \x414 is A and then 4.
		v, _ := strconv.ParseUint(t[2:n], 16, 8)
		return append(b, byte(v)), n
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 1
		for n < len(t) && n < 4 && arith.Digit(t[n], 8) >= 0 {
			n++
		}
		// Three digits may exceed a byte, of which the low 8 bits count.
		v, _ := strconv.ParseUint(t[1:n], 8, 16)
		return append(b, byte(v)), n
	}
	return append(b, '\\', t[1]), 2
}
