package shell

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/arith"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/pattern"
	"github.com/drydock-sim/drydock/fakecri/internal/shell/internal/script"
	"mvdan.cc/sh/v3/syntax"
)

// lookup returns the value of a parameter and whether it is set. Of @ and * it
// is all positional parameters in one string, as in places where nothing is
// split.
//
// Dynamic parameters are computed here at each use, never stored: nobody pays for keeping
// $LINENO.
func (s *shell) lookup(name string) (string, bool) {
	switch name {
	case "@", "*":
		// "$*" is joined by the first character of IFS; none if it is empty.
		sep := " "
		if ifs, ok := s.vars.get("IFS"); ok {
			sep = ifs[:min(len(ifs), 1)]
		}
		return strings.Join(s.args, sep), len(s.args) > 0
	case "#":
		return strconv.Itoa(len(s.args)), true
	case "?":
		return strconv.Itoa(s.status), true
	case "$":
		return strconv.Itoa(s.rootPID), true
	case "!":
		// Before the first background command $! is unset.
		if s.kids.lastBg == 0 {
			return "", false
		}
		return strconv.Itoa(s.kids.lastBg), true
	case "-":
		return s.opts.letters(), true
	case "0":
		return s.arg0, true
	case "LINENO":
		// Unset or assigned, the variable is one as any other. flagDynamic goes with unset; then
		// the name is an ordinary variable.
		if x := s.vars.find(name); x != nil && x.flags&flagDynamic != 0 {
			return strconv.Itoa(s.line), true
		}
	case "RANDOM":
		if x := s.vars.find(name); x != nil && x.flags&flagDynamic != 0 {
			return s.random(), true
		}
	case "EPOCHSECONDS":
		// Times are the container's virtual ones, with the machine's drift if it has one.
		return strconv.FormatInt(s.p.Now().Unix(), 10), true
	case "EPOCHREALTIME":
		t := s.p.Now()
		return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000), true
	}
	// A name that begins with a digit has digits alone, as the parser sees to; the number may be
	// too large for an int.
	if name[0] >= '1' && name[0] <= '9' || name[0] == '0' {
		n, err := strconv.Atoi(name)
		switch {
		case err != nil || n > len(s.args):
			return "", false
		// Digits that amount to 0, as in ${00}, are $0 as well.
		case n == 0:
			return s.arg0, true
		}
		return s.args[n-1], true
	}
	return s.vars.get(name)
}

// random is $RANDOM: a draw of the loop, by container, process and how many
// were drawn, so that it does not depend on what else draws. 15 bits, as in ash. Another process
// that draws meanwhile does not change what this one gets.
func (s *shell) random() string {
	s.randoms++
	object := s.p.Container().Options().ID + "/" + strconv.Itoa(s.p.PID())
	return strconv.FormatUint(s.p.Loop().Uint64("shell RANDOM", object, s.randoms)&0x7fff, 10)
}

// param adds a parameter's expansion. Operators of Bash that ash has, too
// (substrings, replacing), count in bytes.
//
// The operators exclude each other: the parser gives one of Length, Slice, Repl and Exp. Those
// that test whether the parameter is set come first, since set -u does not apply to them.
func (e *expander) param(pe *syntax.ParamExp, in bool) {
	s := e.s
	if pe.Param == nil {
		s.fail(2, "syntax error: bad substitution")
		return
	}
	name := pe.Param.Value
	if (name == "@" || name == "*") && pe.Exp == nil && pe.Slice == nil && pe.Repl == nil && !pe.Length {
		if e.positional(name, in) {
			return
		}
	}
	value, set := s.lookup(name)
	// The operators up to AssignUnsetOrNull are the eight of -, +, = and ?.
	if pe.Exp != nil && pe.Exp.Op <= syntax.AssignUnsetOrNull {
		e.conditional(pe, name, value, set, in)
		return
	}
	// set -u spares the arguments as a whole.
	if !set && s.opts.nounset && name != "@" && name != "*" {
		s.fail(2, "%s: parameter not set", name)
		return
	}
	switch {
	case pe.Length:
		// Bytes: there is no locale.
		value = strconv.Itoa(len(value))
	case pe.Slice != nil:
		value = e.slice(pe.Slice, value)
	case pe.Repl != nil:
		value = e.replace(pe.Repl, value)
	case pe.Exp != nil:
		p := s.expandPattern(pe.Exp.Word)
		// An operator that removes a prefix or suffix has a pattern, with quoting kept.
		if pattern.TooLong(value, p, false) {
			s.warn("a pattern on a value of %d bytes", len(value))
			s.outOfMemory()
			return
		}
		switch pe.Exp.Op {
		case syntax.RemSmallSuffix:
			value = pattern.TrimSuffix(value, p, false)
		case syntax.RemLargeSuffix:
			value = pattern.TrimSuffix(value, p, true)
		case syntax.RemSmallPrefix:
			value = pattern.TrimPrefix(value, p, false)
		case syntax.RemLargePrefix:
			value = pattern.TrimPrefix(value, p, true)
		}
	}
	if s.skip != skipExit {
		e.value(value, in)
	}
}

// positional adds $@ or $*; false if that is like any other value, where no
// fields are made or where "$*" is one.
//
// With "$@" in the middle of a word, x"$@"y, the first argument is joined to x and the last to y:
// only between two arguments a field ends.
func (e *expander) positional(name string, in bool) bool {
	if !e.split || in && name == "*" {
		return false
	}
	// Each argument is a field of its own; text around "$@" joins the first and the last.
	for i, a := range e.s.args {
		if i > 0 {
			e.end()
		}
		e.value(a, in)
	}
	return true
}

// conditional adds ${x-word} and its like. word is expanded only if it is
// needed: it may have effects.
//
// An error with ? ends the shell with 2; in a container whose command it is, that is the exit
// code.
func (e *expander) conditional(pe *syntax.ParamExp, name, value string, set, in bool) {
	s := e.s
	op := pe.Exp.Op
	has := set
	switch op {
	case syntax.AlternateUnsetOrNull, syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		// The operators with a colon take an empty value for an unset one.
		has = set && value != ""
	}
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if has {
			e.word1(pe.Exp.Word, in)
		}
		return
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if !has {
			e.word1(pe.Exp.Word, in)
			return
		}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if !has {
			text := ""
			// The message is only expanded when it is shown.
			if pe.Exp.Word != nil {
				text = s.expandString(pe.Exp.Word)
			}
			if s.skip == skipExit {
				return
			}
			if text == "" {
				if text = "parameter not set"; op == syntax.ErrorUnsetOrNull {
					text = "parameter not set or null"
				}
			}
			s.fail(2, "%s: %s", name, text)
			return
		}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !has {
			// Positional and special parameters can't be assigned to.
			if !script.ValidName(name) {
				s.fail(2, "%s: bad variable name", name)
				return
			}
			value = e.operandString(pe.Exp.Word, in)
			if s.skip == skipExit || !s.setVar(name, value, 0) {
				return
			}
		}
	}
	// ${@-word} with arguments is $@ itself, fields and all.
	if (name == "@" || name == "*") && e.positional(name, in) {
		return
	}
	e.value(value, in)
}

// operandString expands the word of ${x=word} to a string. plain, since the value is assigned
// without quotes and without being split first.
func (e *expander) operandString(w *syntax.Word, in bool) string {
	o := expander{s: e.s, plain: true}
	o.word1(w, in)
	return string(o.buf)
}

// word1 adds the word of ${x-word}, which is split where it is not quoted.
//
// Within double quotes, in "${x-word}", the word is as in double quotes, except that } may be
// escaped in it; without them it is split, but text in quotes of its own is not.
func (e *expander) word1(w *syntax.Word, in bool) {
	if w == nil {
		return
	}
	if in {
		for _, p := range w.Parts {
			switch x := p.(type) {
			case *syntax.Lit:
				e.quoted(unescapeIn(x.Value, "$`\"\\}"))
			case *syntax.DblQuoted:
				for _, p := range x.Parts {
					e.part(p, true)
				}
			case *syntax.SglQuoted:
				// Single quotes mean nothing within double ones.
				e.quoted("'" + e.expandText(x.Value) + "'")
			default:
				e.part(p, true)
			}
		}
		return
	}
	// Operands nest, as in ${a-${b-c}}: the flag is the outer one's again afterwards.
	was := e.operand
	e.operand = true
	e.word(w.Parts)
	e.operand = was
}

// slice is ${x:offset:length}.
//
// Numbers are expressions of their own, evaluated from the left. The result is always within the
// value: ash knows no error for an offset that is too far.
func (e *expander) slice(sl *syntax.Slice, value string) string {
	s := e.s
	r := value
	off := e.sliceNumber(sl.Offset, 0)
	if s.skip == skipExit {
		return ""
	}
	n := int64(len(r))
	if off < 0 {
		// A negative offset counts from the end, and never reaches before the start.
		if off += n; off < 0 {
			off = 0
		}
	}
	off = min(off, n)
	end := n
	if sl.Length != nil {
		l := e.sliceNumber(sl.Length, 0)
		if s.skip == skipExit {
			return ""
		}
		if l < 0 {
			// A negative length counts from the end.
			end = max(n+l, off)
		} else if l < n-off {
			end = off + l
		}
	}
	return r[off:end]
}

// sliceNumber evaluates an offset or a length. missing is what an absent expression counts as:
// ${x::2} has no offset.
func (e *expander) sliceNumber(x syntax.ArithmExpr, missing int64) int64 {
	s := e.s
	if x == nil {
		return missing
	}
	t := e.arithSource(x)
	v, err := arith.Eval(t, arithVars{s})
	if err != nil {
		s.fail(2, "%v", err)
	}
	return v
}

// replace is ${x/pattern/with}, the first match or with // all of them.
// Patterns that would take the square of a long value are refused, as the real
// shell would not come back from them.
//
// with is text, not a pattern. The bound of the result is maxString, over which the value stays
// as it is.
func (e *expander) replace(r *syntax.Replace, value string) string {
	s := e.s
	p := s.expandPattern(r.Orig)
	with := ""
	if r.With != nil {
		with = s.expandString(r.With)
	}
	if s.skip == skipExit {
		return ""
	}
	if pattern.TooLong(value, p, true) {
		s.warn("a pattern on a value of %d bytes", len(value))
		s.outOfMemory()
		return ""
	}
	return pattern.Replace(value, p, with, r.All, maxString)
}
