package expect

import (
	"slices"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// culprit is a part of a failed expression that should have had another value. It is no logic of
// others: all(), a comparison, a field.
type culprit struct {
	expr celast.Expr
	want bool
	// judged is false for a part that was cut short, so that nobody knows its value.
	judged bool
}

// nameObjects notes the objects that made the expression fail: those that its culprits name, and
// of those over which a culprit goes the ones that decided it. Parts that were as they should be
// say nothing of why, so what they are about is left out.
func (ex *explainer) nameObjects(det *cel.EvalDetails) {
	c := ex.x.c
	w := newRewriter(c, celast.Copy(ex.x.full))
	w.loose = true
	var st interpreter.EvalState = interpreter.NewEvalState()
	if det != nil {
		st = det.State()
	}
	var named []celast.Expr
	for _, p := range blame(w.ast.Expr(), st, ex.wanted) {
		before, whole := len(w.aggs), p.expr.Kind() == celast.ComprehensionKind
		named = append(named, celast.NewExprFactory().CopyExpr(p.expr))
		w.aggregates(p.expr) // which puts variables in their places
		for _, a := range w.aggs[before:] {
			if v := p.decisive(a, whole, st); v != absent {
				ex.objectsOf(a, v)
			}
		}
	}
	for _, e := range named {
		ex.namedIn(e)
	}
}

// blame returns the culprits in an expression that should have been want: of an && that is false
// the operands that are not true, and so on.
func blame(e celast.Expr, st interpreter.EvalState, want bool) []culprit {
	v, judged := st.Value(e.ID())
	if b, ok := v.(types.Bool); judged && ok && bool(b) == want {
		return nil
	}
	var out []culprit
	if e.Kind() == celast.CallKind {
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			for _, a := range args {
				out = append(out, blame(a, st, want)...)
			}
			return out
		case operators.LogicalNot:
			return blame(args[0], st, !want)
		case operators.Conditional:
			cond, _ := st.Value(args[0].ID())
			switch cond {
			case types.True:
				return blame(args[1], st, want)
			case types.False:
				return blame(args[2], st, want)
			}
			return []culprit{{args[0], true, judged}}
		}
	}
	return []culprit{{e, want, judged}}
}

// decisive is the verdict of the objects that made an aggregate what it was, absent if it can't
// be told. whole says that the aggregate is the culprit itself, rather than a part of it.
func (p *culprit) decisive(a *aggregate, whole bool, st interpreter.EvalState) verdict {
	switch {
	case a.kind == aggAll && (p.want || !whole):
		return no
	case !p.judged:
		return absent
	case a.of == KindEvent && a.kind == aggExists && whole && p.want:
		return absent // no event becomes another
	case a.of == KindEvent:
		return yes
	case a.kind == aggExists && whole && p.want:
		return no
	case a.kind == aggCount && p.tooFew(a, st):
		if a.pred.prog == nil { // those that are there are not those that are missing
			return absent
		}
		return no
	}
	return yes
}

// tooFew reports whether the culprit is a comparison of a count that is too small. The aggregate
// stands for the count in it.
func (p *culprit) tooFew(a *aggregate, st interpreter.EvalState) bool {
	if p.expr.Kind() != celast.CallKind || len(p.expr.AsCall().Args()) != 2 {
		return false
	}
	op, args := p.expr.AsCall().FunctionName(), p.expr.AsCall().Args()
	if isIdent(args[1], a.name) {
		op = map[string]string{operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals, operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals}[op]
		args = []celast.Expr{args[1], args[0]}
	}
	if !isIdent(args[0], a.name) {
		return false
	}
	switch op {
	case operators.Greater, operators.GreaterEquals:
		return p.want
	case operators.Less, operators.LessEquals:
		return !p.want
	}
	n, _ := st.Value(args[0].ID())
	bound, ok := st.Value(args[1].ID())
	if !ok && args[1].Kind() == celast.LiteralKind {
		bound, ok = args[1].AsLiteral(), true
	}
	count, isInt := n.(types.Int)
	return p.want && ok && isInt && count.Compare(ref.Val(bound)) == types.IntNegOne
}

// namedIn notes the objects that an expression names.
func (ex *explainer) namedIn(e celast.Expr) {
	c := ex.x.c
	d := c.dependencies(e)
	for _, k := range slices.Concat(d.pods, d.histPods) {
		ex.object(KindPod, k.ns, k.name)
	}
	for _, n := range slices.Concat(d.nodes, d.histNodes) {
		ex.object(KindNode, "", n)
	}
	for _, o := range d.objects {
		ex.object(o.Kind, o.Namespace, o.Name)
	}
	for _, n := range d.about {
		// The name alone doesn't say whether it is a node's or that of a pod in
		// the namespace default.
		if ex.e.view.state.Node(n) != nil {
			ex.object(KindNode, "", n)
		} else {
			k := podKey(n)
			ex.object(KindPod, k.ns, k.name)
		}
	}
	// What is asked of a machine or a kubelet is no dependency, since nobody tells of its changes.
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || e.AsCall().FunctionName()[0] != '@' {
			return
		}
		f, args := c.hidden(e.AsCall()), e.AsCall().Args()
		if f == nil || len(args) < 2 || args[1].Kind() != celast.LiteralKind {
			return
		}
		name := string(args[1].AsLiteral().(types.String))
		switch f.name {
		case "logs", "containerResources":
			k := podKey(name)
			ex.object(KindPod, k.ns, k.name)
		case "http", "metric", "usage", "cgroups", "podResources":
			ex.object(KindNode, "", name)
		}
	}))
}

// nearest keeps of the objects for which a predicate is not true those that come nearest: for
// which most of its && are true, from the left. `p.metadata.name == "web" && ready(p)` is about
// the pod of that name. If none comes near, a few are kept and many are not.
func (ex *explainer) nearest(a *aggregate, list []any) []any {
	full := ex.x.full
	var steps []predicate
	var split func(e celast.Expr) bool
	split = func(e celast.Expr) bool {
		if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.LogicalAnd {
			return !slices.ContainsFunc(e.AsCall().Args(), func(x celast.Expr) bool { return !split(x) })
		}
		prog, err := ex.x.c.env.PlanProgram(celast.NewCheckedAST(celast.NewAST(e, full.SourceInfo()), full.TypeMap(), full.ReferenceMap()))
		steps = append(steps, predicate{prog, e, a.pred.name})
		return err == nil
	}
	if a.pred.expr == nil || !split(a.pred.expr) || len(steps) == 1 {
		return list
	}
	var out []any
	most := 0
	for _, obj := range list {
		v := &objVar{state: ex.e.view, val: ex.e.view.ts.NativeToValue(obj)}
		n := 0
		for n < len(steps) {
			if ok, _ := v.eval(&steps[n]); !ok {
				break
			}
			n++
		}
		if n > most {
			most, out = n, nil
		}
		if n == most {
			out = append(out, obj)
		}
	}
	if most == 0 && len(out) > showObjects {
		return nil
	}
	return out
}
