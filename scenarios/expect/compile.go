package expect

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/suggest"
)

// Compiler compiles expectations. Making one takes milliseconds; it may be
// used for any number of expressions, by one goroutine at a time. Its environment has all types,
// so it is made once for many scenarios.
type Compiler struct {
	ts    *typeSystem
	env   *cel.Env
	funcs map[string]*stateFunc // by the visible overload's id
	names []string              // of all functions, for suggestions
}

// NewCompiler returns a compiler.
func NewCompiler() (*Compiler, error) {
	roots := []any{v1.Pod{}, v1.Node{}, v1.Event{}, coordinationv1.Lease{}, CRICall{}, Transition{}, ContainerTransition{}, NodeTransition{}, NodeUsage{}, HTTPAnswer{},
		Cgroup{}, ContainerResources{}, PodResources{}}
	for _, k := range objectKinds() {
		roots = append(roots, reflect.Zero(k.goType).Interface())
	}
	ts, err := newTypeSystem(roots...)
	if err != nil {
		return nil, fmt.Errorf("expect: %w", err)
	}
	funcs := stateFuncs()
	env, err := newEnv(ts, funcs)
	if err != nil {
		return nil, fmt.Errorf("expect: %w", err)
	}
	c := &Compiler{ts: ts, env: env, funcs: map[string]*stateFunc{}}
	for _, f := range funcs {
		c.funcs[f.id()+"_visible"] = f
		c.names = append(c.names, f.name)
	}
	c.names = append(c.names, "condition", "ready", "containerStatus", "exists", "has", "size", "duration", "timestamp", "quantity", "int", "string")
	return c, nil
}

// Error is what is wrong with an expression.
type Error struct {
	// Line and Column are 1-based positions within the expression.
	Line, Column int
	Message      string
}

func (e *Error) Error() string { return e.Message }

// Expectation is a compiled expectation. It is immutable. The tree is kept in three forms: as
// written for people, with the state for evaluating and explaining, with aggregates replaced for
// judging.
type Expectation struct {
	Source
	c       *Compiler
	checked *celast.AST // as written
	full    *celast.AST // with the state passed to functions
	outer   cel.Program // full, with aggregates replaced by variables
	aggs    []*aggregate
	deps    deps // what outer reads
	reads   deps // what the whole expression reads
}

// NeedsCRICalls reports whether the expression reads the runtime's calls, which
// must then be kept.
func (x *Expectation) NeedsCRICalls() bool { return x.reads.all&readsCRI != 0 }

// NeedsMachines reports whether the expression looks into machines, which must then still be
// there.
func (x *Expectation) NeedsMachines() bool {
	return x.reads.all&(readsUsage|readsCgroups|readsResources|readsPodResources) != 0
}

// NeedsHistory reports whether the expression reads what was before, which must then be
// noted from the start.
func (x *Expectation) NeedsHistory() bool {
	return x.reads.all&(readsPodHistory|readsNodeHistory) != 0 || len(x.reads.histPods)+len(x.reads.histNodes) > 0
}

// deps is what an expression reads. A change that none of it names has no effect on the
// expression, and is passed over.
type deps struct {
	all       reads // what is read as a whole
	pods      []objKey
	nodes     []string
	about     []string // events about these
	histPods  []objKey
	histNodes []string
	kinds     []Kind      // whose objects are read as a whole
	objects   []ObjectRef // of such a kind, by name
}

// wholes reports whether anything that there may be many of is read as a whole.
func (d *deps) wholes() bool {
	return d.all&(readsPods|readsEvents|readsLeases) != 0 || len(d.kinds) > 0
}

// Compile checks an expectation's expression. All errors have a position
// within it. The order matters: types are checked on what was written, so that errors are about
// that; only then is it rewritten.
func (c *Compiler) Compile(src Source) (*Expectation, []*Error) {
	parsed, iss := c.env.Parse(src.Expr)
	if iss.Err() != nil {
		return nil, c.errors(iss, nil)
	}
	checked, iss := c.env.Check(parsed)
	// An expression of the wrong type is refused before it is rewritten.
	if iss.Err() != nil {
		// Only a failed check pays for a second one.
		return nil, c.errors(iss, c.missedFields(parsed))
	}
	if t := checked.OutputType(); !t.IsExactType(types.BoolType) {
		return nil, []*Error{{1, 1, fmt.Sprintf("an expectation must be true or false, but this is of type %s", t)}}
	}
	x := &Expectation{Source: src, c: c, checked: checked.NativeRep()}
	// The checked expression stays as it was written, because failures are
	// explained in its words.
	rw := newRewriter(c, celast.Copy(x.checked))
	rw.rewrite(rw.ast.Expr())
	if rw.err != nil {
		return nil, []*Error{rw.err}
	}
	x.full = rw.ast
	x.reads = c.dependencies(x.full.Expr())
	for _, f := range []struct {
		what reads
		name string
	}{{readsCRI, "criCalls()"}, {readsUsage, "usage()"}, {readsCgroups, "cgroups()"}, {readsResources, "containerResources()"}, {readsKubelet, "logs(), http() and metric()"}, {readsPodResources, "podResources()"}} {
		// Nothing tells the engine when these change, so they can be looked at
		// only once.
		if x.reads.all&f.what != 0 && src.Form != At {
			return nil, []*Error{{1, 1, fmt.Sprintf("%s can be used with at only, not with %s", f.name, src.Form)}}
		}
	}
	// A second copy, because the whole expression is needed to explain a failure.
	outer := newRewriter(c, celast.Copy(x.full))
	outer.aggregates(outer.ast.Expr())
	x.aggs = outer.aggs
	x.deps = c.dependencies(outer.ast.Expr())
	var err error
	if x.outer, err = c.env.PlanProgram(outer.ast); err != nil {
		return nil, []*Error{{1, 1, firstLine(err.Error())}}
	}
	return x, nil
}

// missedFields checks again with a type system that notes what it is asked for
// and does not have: the checker's errors don't say of which type a field is. It is only for
// suggestions of what may have been meant.
func (c *Compiler) missedFields(parsed *cel.Ast) []missedField {
	var missed []missedField
	ts := *c.ts
	ts.missed = &missed
	env, err := c.env.Extend(cel.CustomTypeProvider(&ts))
	// The errors are right without hints, too.
	if err != nil {
		return nil
	}
	env.Check(parsed)
	return missed
}

var (
	undefinedField = regexp.MustCompile(`^undefined field '(.*)'$`)
	undeclared     = regexp.MustCompile(`^undeclared reference to '(.*)'`)
)

// errors puts the checker's findings into words, with positions within the
// expression, lines and columns from 1. CEL's own words are kept where they are plain.
func (c *Compiler) errors(iss *cel.Issues, missed []missedField) []*Error {
	var out []*Error
	for _, e := range iss.Errors() {
		msg := strings.ReplaceAll(firstLine(e.Message), " (in container '')", "")
		if m := undefinedField.FindStringSubmatch(msg); m != nil {
			msg = c.noField(m[1], missed)
		} else if m := undeclared.FindStringSubmatch(msg); m != nil {
			msg = fmt.Sprintf("there is no %q%s", m[1], suggest.Suffix(m[1], c.names))
		} else if rest, ok := strings.CutPrefix(msg, "Syntax error: "); ok {
			msg = "syntax error: " + rest
		}
		out = append(out, &Error{e.Location.Line(), e.Location.Column() + 1, msg})
		// What follows a syntax error is mostly its echo.
		if strings.HasPrefix(msg, "syntax error: ") {
			break
		}
	}
	return out
}

// noField says which type has no such field; the checker names the field only,
// so the missed ones of a second pass tell.
func (c *Compiler) noField(name string, missed []missedField) string {
	for _, m := range missed {
		if m.field != name {
			continue
		}
		return fmt.Sprintf("%s has no field %q%s", m.typeName, name, suggest.Suffix(name, c.ts.byName[m.typeName].names))
	}
	return fmt.Sprintf("there is no field %q", name)
}

// firstLine drops the excerpt that the parser adds: a load error has the file's
// own position.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// rewriter changes a checked expression. It keeps the identities of
// expressions, so that types and positions stay right. err is the first thing that can't be
// rewritten.
type rewriter struct {
	c    *Compiler
	ast  *celast.AST
	fac  celast.ExprFactory
	next int64
	aggs []*aggregate
	// loose takes predicates that read other objects for aggregates, too, for who judges all
	// objects at one time.
	loose bool
	err   *Error
}

// newRewriter returns a rewriter whose new expressions have identities after
// those that there are.
func newRewriter(c *Compiler, a *celast.AST) *rewriter {
	return &rewriter{c: c, ast: a, fac: celast.NewExprFactory(), next: celast.MaxID(a) + 1}
}

// id is the identity of a new expression.
func (w *rewriter) id() int64 {
	w.next++
	return w.next - 1
}

// stateIdent is the variable that has the cluster's state, which no user can
// name.
func (w *rewriter) stateIdent() celast.Expr {
	e := w.fac.NewIdent(w.id(), stateVar)
	w.ast.SetReference(e.ID(), celast.NewIdentReference(stateVar, nil))
	w.ast.TypeMap()[e.ID()] = stateType
	return e
}

// rewrite has functions that read the cluster get the state, has() of a map's
// key ask whether the key is there, and exists(x.field) ask has(x.field). It goes from the inside
// out, so arguments are rewritten before their call.
func (w *rewriter) rewrite(root celast.Expr) {
	celast.PostOrderVisit(root, celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.SelectKind:
			s := e.AsSelect()
			if s.IsTestOnly() && w.ast.GetType(s.Operand().ID()).Kind() == types.MapKind {
				w.hasKey(e, s.Operand(), w.fac.NewLiteral(w.id(), types.String(s.FieldName())))
			}
		case celast.CallKind:
			w.rewriteCall(e)
		}
	}))
}

// rewriteCall hands the state to a function that reads the cluster. One whose
// overload the types leave open can't be: the state's function must be known. @name is the hidden
// function of a visible one.
func (w *rewriter) rewriteCall(e celast.Expr) {
	call := e.AsCall()
	ids := w.ast.GetOverloadIDs(e.ID())
	// The member function of that name is CEL's macro, which is expanded by now.
	if call.FunctionName() == "exists" && len(call.Args()) == 1 && !call.IsMemberFunction() {
		w.rewriteExists(e, call.Args()[0])
		return
	}
	for _, id := range ids {
		f := w.c.funcs[id]
		if f == nil {
			continue
		}
		if len(ids) > 1 {
			loc := w.ast.SourceInfo().GetStartLocation(e.ID())
			w.err = &Error{loc.Line(), loc.Column() + 1, fmt.Sprintf("the type of %s's argument must be known", f.name)}
			return
		}
		args := append([]celast.Expr{w.stateIdent()}, call.Args()...)
		e.SetKindCase(w.fac.NewCall(e.ID(), "@"+f.name, args...))
		w.ast.ReferenceMap()[e.ID()] = celast.NewFunctionReference(f.id())
	}
}

// rewriteExists turns exists(x.f) into has(x.f), and exists(m[k]) into a
// question of the key: CEL's own macro refuses what may be absent.
func (w *rewriter) rewriteExists(e, arg celast.Expr) {
	switch arg.Kind() {
	case celast.SelectKind:
		s := arg.AsSelect()
		switch w.ast.GetType(s.Operand().ID()).Kind() {
		case types.StructKind:
			e.SetKindCase(w.fac.NewPresenceTest(e.ID(), s.Operand(), s.FieldName()))
			delete(w.ast.ReferenceMap(), e.ID())
		case types.MapKind:
			w.hasKey(e, s.Operand(), w.fac.NewLiteral(w.id(), types.String(s.FieldName())))
		}
	case celast.CallKind:
		c := arg.AsCall()
		if c.FunctionName() == operators.Index && w.ast.GetType(c.Args()[0].ID()).Kind() == types.MapKind {
			w.hasKey(e, c.Args()[0], c.Args()[1])
		}
	}
}

// hasKey turns e into `key in m`.
func (w *rewriter) hasKey(e, m, key celast.Expr) {
	// The checker has not seen a key that was made here.
	if w.ast.TypeMap()[key.ID()] == nil {
		w.ast.TypeMap()[key.ID()] = types.StringType
	}
	e.SetKindCase(w.fac.NewCall(e.ID(), operators.In, key, m))
	w.ast.ReferenceMap()[e.ID()] = celast.NewFunctionReference(overloads.InMap)
}

// dependencies collects what an expression reads. Constant names make it narrow: pod("a/b") reads
// one pod.
func (c *Compiler) dependencies(root celast.Expr) deps {
	var d deps
	celast.PostOrderVisit(root, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || !strings.HasPrefix(e.AsCall().FunctionName(), "@") {
			return
		}
		args := e.AsCall().Args()
		f := c.hidden(e.AsCall())
		if f == nil {
			return
		}
		what := f.reads &^ readsNamed
		// A name that is computed may be any, so all objects are read.
		if f.reads&readsNamed == 0 || args[1].Kind() != celast.LiteralKind {
			d.all |= what
			if what&readsObjects != 0 {
				d.kinds = append(d.kinds, f.kind)
			}
			return
		}
		name := string(args[1].AsLiteral().(types.String))
		switch what {
		case readsPods:
			d.pods = append(d.pods, podKey(name))
		case readsNodes:
			d.nodes = append(d.nodes, name)
		case readsEvents:
			d.about = append(d.about, name)
		case readsPodHistory:
			d.histPods = append(d.histPods, podKey(name))
		case readsNodeHistory:
			d.histNodes = append(d.histNodes, name)
		case readsLeases:
			// A node's lease has the node's name.
			d.objects = append(d.objects, ObjectRef{KindLease, v1.NamespaceNodeLease, name})
		case readsObjects:
			k := namedKey(f.kind, name)
			d.objects = append(d.objects, ObjectRef{f.kind, k.ns, k.name})
		}
	}))
	return d
}

// hidden returns the state function that a rewritten call calls. Name and number of arguments
// tell overloads apart.
func (c *Compiler) hidden(call celast.CallExpr) *stateFunc {
	for _, f := range c.funcs { //drydock:unordered at most one fits
		if "@"+f.name == call.FunctionName() && len(f.args)+1 == len(call.Args()) {
			return f
		}
	}
	return nil
}
