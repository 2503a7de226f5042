package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

func (v *validator) expectation(at string, e *Expectation) {
	e.Pos = v.d.pos(find(v.doc, at))
	before := len(v.d.l.errs)
	src, field := v.form(at, e)
	if len(v.d.l.errs) > before || field == "" {
		return
	}
	v.times(at, e, &src)
	src.Name, src.Description = e.Name, e.Description
	src.Expr = strings.TrimSpace(src.Expr)
	x, errs := v.d.l.opts.Compiler.Compile(src)
	path := at + "." + field
	for _, err := range errs {
		pos := v.exprPos(valueAt(v.doc, path), err.Line, err.Column)
		v.d.l.errs = append(v.d.l.errs, &LoadError{Pos: pos, Path: path, Message: oneLine(err.Message)})
	}
	e.Compiled = x
	if x == nil || len(v.names) == 0 {
		return
	}
	for _, m := range x.Machines() {
		if !slices.Contains(v.names, m.Text) {
			pos := v.exprPos(valueAt(v.doc, path), m.Line, m.Column)
			near := suggest.Suffix(m.Text, v.names[:min(len(v.names), mostCandidates)])
			v.d.l.errs = append(v.d.l.errs, &LoadError{Pos: pos, Path: path, Message: fmt.Sprintf("there is no node %q%s", short(m.Text), near)})
		}
	}
}

// form finds the expectation's time form and the field with its expression.
func (v *validator) form(at string, e *Expectation) (src expect.Source, field string) {
	has := func(name string) bool { return valueAt(v.doc, at+"."+name) != nil }
	var forms []string
	for _, f := range []string{"at", "by", "always", "never", "for"} {
		if has(f) {
			forms = append(forms, f)
		}
	}
	both := strings.Join(forms, " ")
	switch {
	case len(forms) == 0:
		v.errorf(at, "says not when: it needs at, by, always, never or for")
		return src, ""
	case len(forms) > 1 && both != "by for":
		v.errorf(at+"."+forms[1], "%s do not go together", strings.Join(forms, " and "))
		return src, ""
	}
	switch both {
	case "always", "never":
		src.Form, field, src.Until = expect.Form(both), both, expect.End
		src.Expr = e.Always + e.Never
		if has("that") {
			v.errorf(at+".that", "the expression of %s stands behind it: %s: '...'", both, both)
		}
		return src, field
	case "at":
		src.Form = expect.At
		src.T = e.At.time()
	case "by":
		src.Form = expect.By
		src.T = e.By.time()
	default:
		src.Form, src.T = expect.For, expect.End
		if e.For != nil {
			src.Span = *e.For
		}
		if e.By != nil {
			src.T = e.By.time()
		}
	}
	src.Expr = e.That
	if strings.TrimSpace(e.That) == "" {
		v.errorf(at+".that", "must be set")
	}
	if has("from") && src.Form == expect.At {
		v.errorf(at+".from", "goes with by, always, never and for only")
	}
	if has("until") {
		v.errorf(at+".until", "goes with always and never only")
	}
	return src, "that"
}

func (t *Time) time() (d time.Duration) {
	if t == nil || t.End {
		return expect.End
	}
	return t.After
}

// times checks that what is expected can be judged before the end.
func (v *validator) times(at string, e *Expectation, src *expect.Source) {
	d := v.s.Spec.Duration
	late := func(field string, t time.Duration) {
		if t > d {
			v.errorf(at+"."+field, "%v is after the scenario's end: its duration is %v", t, d)
		}
	}
	if src.Form != expect.At {
		src.From = e.From
		late("from", src.From)
	}
	switch src.Form {
	case expect.At:
		late("at", src.T)
	case expect.By, expect.For:
		late("by", src.T)
		late("for", src.Span)
		if src.T != expect.End && src.T < src.From+src.Span {
			v.errorf(at+".by", "%v is too early: it is looked at from %v on", src.T, src.From+src.Span)
		}
	default:
		src.Until = e.Until.time()
		late("until", src.Until)
		if src.Until != expect.End && src.Until < src.From {
			v.errorf(at+".until", "%v is before from, %v", src.Until, src.From)
		}
		if strings.TrimSpace(src.Expr) == "" {
			v.errorf(at+"."+string(src.Form), "must be set")
		}
	}
}

// exprPos turns a position in an expression into one in the file, as well as
// the way in which the expression is written allows.
func (v *validator) exprPos(n *yaml.Node, line, column int) Position {
	pos := v.d.pos(n)
	if n == nil || pos.Line == 0 {
		return pos
	}
	switch {
	case n.Style&yaml.LiteralStyle != 0:
		// The text begins on the next line, at an indentation that only the
		// file tells.
		pos.Line += line
		lines := strings.Split(string(v.data), "\n")
		if pos.Line <= len(lines) {
			text := lines[pos.Line-1]
			pos.Column = len(text) - len(strings.TrimLeft(text, " ")) + column
			if line > 1 {
				// Lines after the first keep what they are indented further.
				first := lines[n.Line]
				pos.Column = len(first) - len(strings.TrimLeft(first, " ")) + column
			}
		}
	case n.Style&yaml.FoldedStyle != 0:
		pos.Line, pos.Column = pos.Line+1, 1
	case line == 1:
		pos.Column += column - 1
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			pos.Column++
		}
	}
	return pos
}
