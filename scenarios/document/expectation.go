package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/scenarios/expect"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
)

// Expectation is something that must be true. It has one of `at`, `by`, `always`, `never` and `for`; `by` and `for` may go together.
type Expectation struct {
	// A name for reports.
	Name string `json:"name,omitempty"`
	// Why it is expected.
	Description string `json:"description,omitempty"`
	// `that` must be true at this time, or at the `end`.
	At *value.Time `json:"at,omitempty"`
	// `that` must become true at this time at the latest, or by the `end`; it may be true from the start, unless `from` says from when to look. Beside `for`: when the span must be over.
	By *value.Time `json:"by,omitempty"`
	// This must be true all the time, after every change of what it reads.
	Always string `json:"always,omitempty" cel:""`
	// This must never be true.
	Never string `json:"never,omitempty" cel:""`
	// `that` must be true for this long without a break, some time.
	For *time.Duration `json:"for,omitempty"`
	// The expression of `at`, `by` and `for`, in CEL.
	That string `json:"that,omitempty" cel:""`
	// From when `by`, `always`, `never` and `for` look. The start unless said.
	From time.Duration `json:"from,omitempty"`
	// Until when `always` and `never` look. The end unless said.
	Until *value.Time `json:"until,omitempty"`

	// Compiled is the expectation, compiled; it may be used by many runs.
	Compiled *expect.Expectation `json:"-"`
	// References are the objects and namespaces that it names.
	References []Reference `json:"-"`
	// Pos is where the expectation is written.
	Pos decode.Position `json:"-"`
}

// check finds out what is expected when, and compiles it.
func (e *Expectation) check(at decode.Place, s *value.Scope, compiler *expect.Compiler) {
	e.Pos = at.Pos()
	before := at.Errors()
	src, field := e.form(at)
	if at.Errors() > before || field == "" {
		return
	}
	e.times(at, s, &src)
	src.Name, src.Description = e.Name, e.Description
	src.Expr = strings.TrimSpace(src.Expr)
	x, errs := compiler.Compile(src)
	expr := at.Field(field)
	for _, err := range errs {
		expr.Report(expr.Inside(err.Line, err.Column), err.Message)
	}
	e.Compiled = x
	if x == nil {
		return
	}
	for _, r := range x.References() {
		e.References = append(e.References, Reference{r.ObjectRef, expr.Inside(r.Line, r.Column)})
	}
	for _, u := range x.Unknowns() {
		at.Found(value.Notice(fmt.Sprintf("%v: %s", expr.Inside(u.Line, u.Column), u.Message)))
	}
	if len(s.Nodes) == 0 {
		return
	}
	for _, m := range x.Machines() {
		if !slices.Contains(s.Nodes, m.Text) {
			expr.Report(expr.Inside(m.Line, m.Column), s.NoNode(m.Text))
		}
	}
}

// form finds the expectation's time form and the field with its expression.
func (e *Expectation) form(at decode.Place) (src expect.Source, field string) {
	has := func(name string) bool { return at.Field(name).Written() }
	forms := lists.Filter([]string{"at", "by", "always", "never", "for"}, func(f string) bool { return has(f) })
	both := strings.Join(forms, " ")
	switch {
	case len(forms) == 0:
		at.Errorf("says not when: it needs at, by, always, never or for")
		return src, ""
	case len(forms) > 1 && both != "by for":
		at.Field(forms[1]).Errorf("%s do not go together", strings.Join(forms, " and "))
		return src, ""
	}
	switch both {
	case "always", "never":
		src.Form, field, src.Until = expect.Form(both), both, expect.End
		src.Expr = e.Always + e.Never
		if has("that") {
			at.Field("that").Errorf("the expression of %s stands behind it: %s: '...'", both, both)
		}
		return src, field
	case "at":
		src.Form = expect.At
		src.T = timeOf(e.At)
	case "by":
		src.Form = expect.By
		src.T = timeOf(e.By)
	default:
		src.Form, src.T = expect.For, expect.End
		if e.For != nil {
			src.Span = *e.For
		}
		if e.By != nil {
			src.T = timeOf(e.By)
		}
	}
	src.Expr = e.That
	if strings.TrimSpace(e.That) == "" {
		at.Field("that").Errorf("must be set")
	}
	if has("from") && src.Form == expect.At {
		at.Field("from").Errorf("goes with by, always, never and for only")
	}
	if has("until") {
		at.Field("until").Errorf("goes with always and never only")
	}
	return src, "that"
}

// timeOf is a time after the start; one that is not said is the end.
func timeOf(t *value.Time) time.Duration {
	if t == nil || t.End {
		return expect.End
	}
	return t.After
}

// times checks that what is expected can be judged before the end.
func (e *Expectation) times(at decode.Place, s *value.Scope, src *expect.Source) {
	late := func(field string, t time.Duration) {
		if t != expect.End {
			s.Late(at.Field(field), t)
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
			at.Field("by").Errorf("%v is too early: it is looked at from %v on", src.T, src.From+src.Span)
		}
	default:
		src.Until = timeOf(e.Until)
		late("until", src.Until)
		if src.Until != expect.End && src.Until < src.From {
			at.Field("until").Errorf("%v is before from, %v", src.Until, src.From)
		}
		if strings.TrimSpace(src.Expr) == "" {
			at.Field(string(src.Form)).Errorf("must be set")
		}
	}
}
