package expect

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggKind is what an aggregate says of the verdicts over all objects. The kinds differ in what an
// error of one object does, see value.
type aggKind uint8

const (
	aggAll aggKind = iota
	aggExists
	aggExistsOne
	aggCount
)

// aggregate is a part of an expression that asks one thing of each object of a
// kind: pods().all(p, ...), pods("x").filter(p, ...).size(), and so on. Its
// predicates read nothing but their object. Judged for each object by itself, it costs one
// evaluation for each change, where the whole expression would go over all objects.
type aggregate struct {
	kind    aggKind
	of      Kind
	only    string // a namespace, or what events are about; "" for all
	filters []predicate
	// pred is the last predicate; for a count without one its program is nil.
	pred predicate
	name string // of the variable that stands for it
}

// predicate is what an aggregate asks of each object. prog is planned once for all objects and
// runs; expr is kept for explanations.
type predicate struct {
	prog cel.Program
	expr celast.Expr
	name string // of the predicate's variable
}

// verdict is what a predicate says of one object. The zero value is absent, so a table that grows
// needs no filling.
type verdict uint8

const (
	absent verdict = iota // no such object, or not one of those asked for
	yes
	no
	softErr // an error of the last predicate
	hardErr // an error of a filter
)

// aggregates replaces those parts of the expression that are aggregates by
// variables, from the outside inwards. The largest parts that match are taken; what is left
// around them is evaluated as it stands.
func (w *rewriter) aggregates(e celast.Expr) {
	if a := w.match(e); a != nil {
		a.name = fmt.Sprintf("@aggregate%d", len(w.aggs))
		w.aggs = append(w.aggs, a)
		e.SetKindCase(w.fac.NewIdent(e.ID(), a.name))
		w.ast.ReferenceMap()[e.ID()] = celast.NewIdentReference(a.name, nil)
		return
	}
	// Comprehensions are not entered: what they contain may read their variables,
	// which are not bound outside.
	switch e.Kind() {
	case celast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			w.aggregates(c.Target())
		}
		for _, arg := range c.Args() {
			w.aggregates(arg)
		}
	case celast.SelectKind:
		w.aggregates(e.AsSelect().Operand())
	case celast.ListKind:
		for _, x := range e.AsList().Elements() {
			w.aggregates(x)
		}
	}
}

// match returns the aggregate that e is, or nil. It has three shapes to know: size of a range,
// and the macros all, exists and exists_one over one.
func (w *rewriter) match(e celast.Expr) *aggregate {
	switch e.Kind() {
	case celast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != "size" {
			return nil
		}
		over := c.Target()
		if !c.IsMemberFunction() {
			over = c.Args()[0]
		}
		a := w.matchRange(over)
		if a == nil {
			return nil
		}
		a.kind = aggCount
		// The last filter takes the place of the predicate, so that its verdicts
		// are counted.
		if n := len(a.filters); n > 0 {
			a.pred, a.filters = a.filters[n-1], a.filters[:n-1]
		}
		return a
	case celast.ComprehensionKind:
		kind, pred := macroOf(e.AsComprehension())
		// A filter alone is a list, which no counter can replace.
		if pred == nil || kind == aggCount {
			return nil
		}
		a := w.matchRange(e.AsComprehension().IterRange())
		if a == nil || !w.plan(&a.pred, pred, e.AsComprehension().IterVar()) {
			return nil
		}
		a.kind = kind
		return a
	}
	return nil
}

// matchRange matches all objects of a kind, perhaps filtered. Filters may follow each other; they
// are kept in their order.
func (w *rewriter) matchRange(e celast.Expr) *aggregate {
	switch e.Kind() {
	case celast.CallKind:
		a := &aggregate{}
		c := e.AsCall()
		switch c.FunctionName() {
		case "@pods":
			a.of = KindPod
		case "@nodes":
			a.of = KindNode
		case "@events":
			a.of = KindEvent
		case "@leases":
			a.of = KindLease
		default:
			var ok bool
			if a.of, ok = kindByFunc(c.FunctionName()[1:]); !ok || c.FunctionName()[0] != '@' {
				return nil
			}
		}
		if args := c.Args(); len(args) == 2 {
			// A namespace that is computed could be another at the next
			// evaluation.
			if args[1].Kind() != celast.LiteralKind {
				return nil
			}
			a.only = string(args[1].AsLiteral().(types.String))
			// "" stands for all objects here, which is not what every function
			// makes of it.
			if a.only == "" {
				return nil
			}
		}
		return a
	case celast.ComprehensionKind:
		kind, pred := macroOf(e.AsComprehension())
		// Only a filter yields a list to go on with.
		if pred == nil || kind != aggCount {
			return nil
		}
		a := w.matchRange(e.AsComprehension().IterRange())
		if a == nil {
			return nil
		}
		var p predicate
		if !w.plan(&p, pred, e.AsComprehension().IterVar()) {
			return nil
		}
		a.filters = append(a.filters, p)
		return a
	}
	return nil
}

// plan makes a program of a predicate that reads nothing but its object. The types and references
// of the whole expression are the part's as well.
func (w *rewriter) plan(p *predicate, pred celast.Expr, iterVar string) bool {
	// A predicate that reads other objects would have to be judged again with
	// each of their changes.
	if !w.loose && (!isLocal(pred, map[string]int{iterVar: 1}) || w.c.dependencies(pred).all != 0) {
		return false
	}
	prog, err := w.c.env.PlanProgram(celast.NewCheckedAST(celast.NewAST(pred, w.ast.SourceInfo()), w.ast.TypeMap(), w.ast.ReferenceMap()))
	// What can't be planned by itself is evaluated with the whole.
	if err != nil {
		return false
	}
	*p = predicate{prog, pred, iterVar}
	return true
}

// isLocal reports whether an expression reads no variables but those that are
// bound, and no named objects. Only then is a verdict unchanged until its own object changes.
func isLocal(e celast.Expr, bound map[string]int) bool {
	switch e.Kind() {
	case celast.IdentKind:
		return bound[e.AsIdent()] > 0
	case celast.SelectKind:
		return isLocal(e.AsSelect().Operand(), bound)
	case celast.CallKind:
		c := e.AsCall()
		args := c.Args()
		if n := c.FunctionName(); n[0] == '@' && len(args) > 0 && args[0].Kind() == celast.IdentKind && args[0].AsIdent() == stateVar {
			// since() reads the start of the run alone, which never changes.
			if n != "@since" {
				return false
			}
			args = args[1:]
		}
		if c.IsMemberFunction() && !isLocal(c.Target(), bound) {
			return false
		}
		return allLocal(args, bound)
	case celast.ListKind:
		return allLocal(e.AsList().Elements(), bound)
	case celast.MapKind:
		return !slices.ContainsFunc(e.AsMap().Entries(), func(x celast.EntryExpr) bool {
			return !isLocal(x.AsMapEntry().Key(), bound) || !isLocal(x.AsMapEntry().Value(), bound)
		})
	case celast.StructKind:
		return false
	case celast.ComprehensionKind:
		c := e.AsComprehension()
		if !isLocal(c.IterRange(), bound) || !isLocal(c.AccuInit(), bound) {
			return false
		}
		names := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
		// Names are counted, because an inner comprehension may hide an outer
		// one's variable.
		for _, n := range names {
			bound[n]++
		}
		ok := isLocal(c.LoopCondition(), bound) && isLocal(c.LoopStep(), bound) && isLocal(c.Result(), bound)
		for _, n := range names {
			bound[n]--
		}
		return ok
	}
	return true
}

// allLocal reports whether no expression of the list reads anything but its
// object.
func allLocal(list []celast.Expr, bound map[string]int) bool {
	return !slices.ContainsFunc(list, func(e celast.Expr) bool { return !isLocal(e, bound) })
}

// macroOf recognises what the macros all, exists, exists_one and filter expand
// to, and returns the predicate; filter goes as aggCount. Macros are gone after parsing: what is
// left is a comprehension whose shape tells.
func macroOf(c celast.ComprehensionExpr) (aggKind, celast.Expr) {
	step := c.LoopStep()
	if step.Kind() != celast.CallKind || c.HasIterVar2() {
		return 0, nil
	}
	args, fn := step.AsCall().Args(), step.AsCall().FunctionName()
	switch {
	case fn == operators.LogicalAnd && isLiteral(c.AccuInit(), types.True) && isIdent(c.Result(), c.AccuVar()) && isIdent(args[0], c.AccuVar()):
		return aggAll, args[1]
	case fn == operators.LogicalOr && isLiteral(c.AccuInit(), types.False) && isIdent(c.Result(), c.AccuVar()) && isIdent(args[0], c.AccuVar()):
		return aggExists, args[1]
	case fn == operators.Conditional && isIdent(args[2], c.AccuVar()) && isAdd(args[1], c.AccuVar()):
		added := args[1].AsCall().Args()[1]
		if isLiteral(c.AccuInit(), types.IntZero) && isLiteral(added, types.IntOne) {
			return aggExistsOne, args[0]
		}
		if c.AccuInit().Kind() == celast.ListKind && isIdent(c.Result(), c.AccuVar()) && added.Kind() == celast.ListKind {
			if el := added.AsList().Elements(); len(el) == 1 && isIdent(el[0], c.IterVar()) {
				return aggCount, args[0]
			}
		}
	}
	return 0, nil
}

// isIdent reports whether an expression is the variable of that name.
func isIdent(e celast.Expr, name string) bool {
	return e.Kind() == celast.IdentKind && e.AsIdent() == name
}

// isLiteral reports whether an expression is that constant.
func isLiteral(e celast.Expr, v ref.Val) bool {
	return e.Kind() == celast.LiteralKind && e.AsLiteral().Equal(v) == types.True
}

// isAdd reports whether an expression adds something to the accumulator, as the
// steps of filter and exists_one do. filter adds a list of one element, exists_one the number 1.
func isAdd(e celast.Expr, accu string) bool {
	return e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.Add && isIdent(e.AsCall().Args()[0], accu)
}

// applies reports whether the object is one of those that are asked for.
func (a *aggregate) applies(obj any) bool {
	if a.only == "" {
		return true
	}
	switch o := obj.(type) {
	case *v1.Pod:
		return o.Namespace == a.only
	case *v1.Event:
		return isAbout(o, a.only)
	case metav1.Object:
		return o.GetNamespace() == a.only
	}
	return true
}

// judge evaluates the predicates on one object. Filters come first, in their order, as in the
// expression.
func (a *aggregate) judge(s *view, obj any) (verdict, error) {
	if !a.applies(obj) {
		return absent, nil
	}
	v := &objVar{state: s, val: s.ts.NativeToValue(obj)}
	for i := range a.filters {
		ok, err := v.eval(&a.filters[i])
		// An error of a filter spoils the result whatever the other objects are.
		if err != nil {
			return hardErr, err
		}
		if !ok {
			return absent, nil
		}
	}
	if a.pred.prog == nil {
		return yes, nil
	}
	ok, err := v.eval(&a.pred)
	switch {
	case err != nil:
		return softErr, err
	case ok:
		return yes, nil
	}
	return no, nil
}

// objVar is the variables of a predicate. It binds one variable, whatever its name, and the
// hidden state.
type objVar struct {
	state *view
	name  string
	val   ref.Val
}

// eval asks the predicate of one object.
func (v *objVar) eval(p *predicate) (bool, error) {
	v.name = p.name
	out, _, err := p.prog.Eval(v)
	if err != nil {
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("not a bool: %v", out.Type())
	}
	return bool(b), nil
}

// ResolveName implements cel.Activation.
func (v *objVar) ResolveName(name string) (any, bool) {
	switch name {
	case v.name:
		return v.val, true
	case stateVar:
		return v.state, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (v *objVar) Parent() cel.Activation { return nil }

// counts is how many objects have which verdict. n is kept by difference: an object's old verdict
// is taken off, its new one added.
type counts struct {
	n     [hardErr + 1]int
	dirty bool  // something changed since the expression was evaluated
	err   error // the last one seen
}

// value is what the aggregate's variable is, given the counts. An error is a value as well: CEL's
// logic around it decides what comes of it.
func (a *aggregate) value(c *counts) ref.Val {
	// The order is that of CEL's macros: all and exists absorb errors if another
	// object decides, filter and exists_one never do.
	hard, soft := c.n[hardErr] > 0, c.n[softErr] > 0
	switch {
	case hard, soft && (a.kind == aggCount || a.kind == aggExistsOne):
	case a.kind == aggAll && c.n[no] > 0:
		return types.False
	case a.kind == aggExists && c.n[yes] > 0:
		return types.True
	case soft:
	case a.kind == aggAll:
		return types.True
	case a.kind == aggExists:
		return types.False
	case a.kind == aggExistsOne:
		return types.Bool(c.n[yes] == 1)
	default:
		return types.Int(c.n[yes])
	}
	return types.WrapErr(c.err)
}
