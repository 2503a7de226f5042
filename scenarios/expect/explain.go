package expect

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// showObjects is how many objects are named and looked into.
const showObjects = 5

// explain evaluates a failed expression once more as a whole, noting what its
// parts are. It is called in the step in which the expectation failed, while the state is as it
// was.
func (e *Engine) explain(r *trial) ([]Value, []ObjectRef) {
	x := r.x
	// Tracking the values of all parts is slow, so only failures pay for it.
	prog, err := x.c.env.PlanProgram(x.full, cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return nil, nil
	}
	_, det, _ := prog.Eval(&vars{e.view, &trial{}})
	ex := &explainer{e: e, x: x, seen: map[string]bool{}, wanted: x.Form != Never}
	if det != nil {
		ex.walk(x.checked.Expr(), det.State(), "")
	}
	ex.nameObjects(det)
	return ex.values, ex.objects
}

// explainer collects what a failed expression was made of: the values of its
// parts, and the objects that they are about. seen keeps a part from being shown twice.
type explainer struct {
	e       *Engine
	x       *Expectation
	wanted  bool // the value that the expression should have had
	seen    map[string]bool
	values  []Value
	objects []ObjectRef
}

// object notes an object that the expression is about, once.
func (ex *explainer) object(kind Kind, ns, name string) {
	o := ObjectRef{kind, ns, name}
	if !slices.Contains(ex.objects, o) {
		ex.objects = append(ex.objects, o)
	}
}

// walk notes the values of the largest parts that are not logic or comparison. about is the
// object that a predicate was asked of, or "".
func (ex *explainer) walk(e celast.Expr, st interpreter.EvalState, about string) {
	// Constants and variables show nothing that the expression doesn't.
	if e.Kind() == celast.LiteralKind || e.Kind() == celast.IdentKind {
		return
	}
	if e.Kind() == celast.CallKind {
		switch c := e.AsCall(); c.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional,
			operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In,
			operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
			for _, a := range c.Args() {
				ex.walk(a, st, about)
			}
			return
		}
	}
	v, ok := st.Value(e.ID())
	// A part that was cut short has no value.
	if !ok {
		return
	}
	text, err := parser.Unparse(e, ex.x.checked.SourceInfo(), parser.WrapAfterColumnLimit(false))
	if err != nil {
		return
	}
	if about != "" {
		text += " of " + about
	}
	if !ex.seen[text] {
		ex.seen[text] = true
		ex.values = append(ex.values, Value{strings.ReplaceAll(text, "\n", " "), format(v)})
	}
}

// objectsOf names the objects that decided an aggregate, and shows what its
// predicate saw of the first of them. Errors count as decisive: they are what to look at.
func (ex *explainer) objectsOf(a *aggregate, decisive verdict) {
	var total int
	var deciders []any
	for _, obj := range ex.e.objectsOf(a.of) {
		v, _ := a.judge(ex.e.view, obj)
		if v == absent {
			continue
		}
		total++
		if v == decisive || v == softErr || v == hardErr {
			deciders = append(deciders, obj)
		}
	}
	if decisive == no && a.kind != aggAll {
		deciders = ex.nearest(a, deciders)
	}
	found := len(deciders)
	var names []string
	for i, obj := range deciders[:min(found, showObjects)] {
		m := obj.(metav1.Object)
		names = append(names, objKey{m.GetNamespace(), m.GetName()}.String())
		if ev, ok := obj.(*v1.Event); ok {
			ex.object(Kind(strings.ToLower(ev.InvolvedObject.Kind)), ev.InvolvedObject.Namespace, ev.InvolvedObject.Name)
		} else {
			ex.object(a.of, m.GetNamespace(), m.GetName())
		}
		if a.pred.prog != nil && (a.kind == aggAll || decisive == no) && i < 3 {
			ex.look(a, obj, names[len(names)-1])
		}
	}
	if found == 0 {
		return
	}
	word := map[verdict]string{yes: "true", no: "false"}[decisive]
	list := strings.Join(names, ", ")
	if found > len(names) {
		list += ", ..."
	}
	ex.values = append(ex.values, Value{fmt.Sprintf("%s of %d %ss", word, total, a.of), fmt.Sprintf("%d (%s)", found, list)})
}

// look shows what the predicate saw of one object. The predicate is planned anew, with its parts'
// values kept.
func (ex *explainer) look(a *aggregate, obj any, name string) {
	full := ex.x.full
	prog, err := ex.x.c.env.PlanProgram(celast.NewCheckedAST(celast.NewAST(a.pred.expr, full.SourceInfo()), full.TypeMap(), full.ReferenceMap()), cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return
	}
	v := &objVar{state: ex.e.view, name: a.pred.name, val: ex.e.view.ts.NativeToValue(obj)}
	if _, det, _ := prog.Eval(v); det != nil {
		ex.walk(a.pred.expr, det.State(), name)
	}
}

// objectsOf returns all objects of a kind.
func (e *Engine) objectsOf(k Kind) []any {
	var out []any
	switch k {
	case KindPod:
		for _, p := range e.view.state.Pods() {
			out = append(out, p)
		}
	case KindNode:
		for _, n := range e.view.state.Nodes() {
			out = append(out, n)
		}
	case KindEvent:
		for _, ev := range e.view.state.Events() {
			out = append(out, ev)
		}
	case KindLease:
		for _, l := range e.view.state.Leases() {
			out = append(out, l)
		}
	default:
		list := reflect.ValueOf(e.view.state.Objects(k))
		for i := range list.Len() {
			out = append(out, list.Index(i).Interface())
		}
	}
	return out
}

// format writes a value as an expression would, in short. Long values are cut: a failure is to be
// read.
func format(v ref.Val) string {
	switch x := v.(type) {
	case types.String:
		return strconv.Quote(string(x))
	case types.Timestamp:
		if x.IsZero() {
			return "none"
		}
		return x.Time.UTC().Format(time.RFC3339Nano)
	case types.Duration:
		return x.Duration.String()
	case *types.Err:
		return "error: " + x.Error()
	case *objVal:
		return formatObject(x)
	case traits.Mapper:
		if m, ok := v.(*mapVal); ok {
			var parts []string
			for i, k := range m.keys() {
				if i == showObjects {
					parts = append(parts, "...")
					break
				}
				parts = append(parts, strconv.Quote(k)+": "+format(m.Get(types.String(k))))
			}
			return "{" + strings.Join(parts, ", ") + "}"
		}
		return formatList(v)
	case traits.Lister:
		return formatList(v)
	}
	if q, ok := v.Value().(*resource.Quantity); ok {
		return q.String()
	}
	return fmt.Sprint(v.Value())
}

// formatList writes the first few elements of a list.
func formatList(v ref.Val) string {
	l, ok := v.(traits.Lister)
	if !ok {
		return fmt.Sprint(v.Value())
	}
	n := int(l.Size().(types.Int))
	var parts []string
	for i := range min(n, showObjects) {
		parts = append(parts, format(l.Get(types.Int(i))))
	}
	if n > showObjects {
		parts = append(parts, fmt.Sprintf("... %d in all", n))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// formatObject writes what tells an object from others, not all of it. What is empty is "none",
// as in "pod is none".
func formatObject(o *objVal) string {
	switch x := o.ptr.(type) {
	case *v1.Event:
		return fmt.Sprintf("event %s %s x%d: %s", x.InvolvedObject.Name, x.Reason, max(x.Count, 1), x.Message)
	case metav1.Object:
		if x.GetName() == "" {
			return "none"
		}
		return o.info.name + " " + objKey{x.GetNamespace(), x.GetName()}.String()
	case *Transition:
		return fmt.Sprintf("{%s %s ready=%v restarts=%d}", x.Time, x.Phase, x.Ready, x.Restarts)
	case *ContainerTransition:
		return fmt.Sprintf("{%s %s %s}", x.Time, x.State, strings.TrimSpace(fmt.Sprintf("%s exit=%d", x.Reason, x.ExitCode)))
	case *NodeTransition:
		return fmt.Sprintf("{%s %s=%s %s}", x.Time, x.Type, x.Status, x.Reason)
	}
	if isZeroObject(o) {
		return "none"
	}
	var parts []string
	for _, n := range o.info.names {
		f := o.info.fields[n]
		if !f.IsSet(o.ptr) {
			continue
		}
		v, err := f.GetFrom(o.ptr)
		if r, ok := v.(ref.Val); ok && err == nil {
			parts = append(parts, n+": "+format(r))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
