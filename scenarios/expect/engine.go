package expect

import (
	"reflect"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// coalesceOver is from how many pods on an expression of `by` that must
	// be evaluated as a whole is not evaluated after every change.
	coalesceOver = 1000
	// coalesceFor is how often it is evaluated then, in virtual time. It is
	// evaluated when it is due in any case.
	coalesceFor = time.Second
	// tick is how often an expression that calls time() is evaluated when
	// nothing else changes.
	tick = time.Second
	// farAway is later than everything.
	farAway = time.Duration(1<<63 - 1)
)

// Options change how an engine works. The zero value is the engine as it is used.
type Options struct {
	// Naive evaluates every expression as a whole after every change: what
	// the engine's result must equal.
	Naive bool
}

// Engine judges a run's expectations. It belongs to one loop and draws
// nothing: its verdicts follow from what it is told. All trials are told of each change, and most
// pass over it at once.
type Engine struct {
	opts Options
	runs []*trial
	view *view
	hist *history
	// now is the time of the last change or deadline; live counts trials without a verdict.
	now   time.Duration
	slots map[Kind]*slotTable
	live  int
}

// trial is the state of one expectation in one run of its scenario. x is shared, all else is this
// run's. done never goes back.
type trial struct {
	x       *Expectation
	index   int
	prog    cel.Program
	deps    deps
	aggs    []*aggregate
	counts  []counts
	table   [][]verdict // by aggregate, by slot
	verdict Verdict
	done    bool
	begun   bool // it was evaluated at least once
	value   bool
	err     error
	// since is when the expression became true, or -1; For.
	since time.Duration
	// next is when a coalesced or time-dependent evaluation is due.
	next time.Duration
	// due is the next time at which something must be judged.
	due time.Duration
}

// slotTable gives each object of a kind a small number. Verdicts are kept in slices by that
// number, which is smaller and faster than maps.
type slotTable struct {
	index map[objKey]int32
	free  []int32
	size  int32
}

// slot returns an object's number. Numbers of objects that are gone are given
// out again, so that tables stay as small as the cluster was at its largest.
func (t *slotTable) slot(k objKey) int32 {
	if i, ok := t.index[k]; ok {
		return i
	}
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		t.index[k] = i
		return i
	}
	t.size++
	t.index[k] = t.size - 1
	return t.size - 1
}

// drop frees the number of an object that is gone.
func (t *slotTable) drop(k objKey) {
	if i, ok := t.index[k]; ok {
		delete(t.index, k)
		t.free = append(t.free, i)
	}
}

// New returns an engine for one run. All expectations must come from one
// Compiler's kind of state; they may be shared by many engines. state is asked when expressions
// are evaluated, and must show each change by the time it is told.
func New(xs []*Expectation, state State, opts Options) *Engine {
	e := &Engine{opts: opts, hist: newHistory(), slots: map[Kind]*slotTable{}}
	for i, x := range xs {
		// All expectations come from the same types, so the first one's do for
		// all.
		if e.view == nil {
			e.view = newView(x.c.ts, state, e.hist)
		}
		r := &trial{x: x, index: i, since: -1, next: farAway, prog: x.outer, deps: x.deps, aggs: x.aggs}
		r.verdict = Verdict{Index: i, Expectation: x, Outcome: Undecided}
		// What is judged once only is evaluated once only.
		if opts.Naive || x.Form == At {
			r.prog, r.deps, r.aggs = x.plainProgram(), x.reads, nil
		}
		r.counts = make([]counts, len(r.aggs))
		r.table = make([][]verdict, len(r.aggs))
		for _, a := range r.aggs {
			if e.slots[a.of] == nil {
				e.slots[a.of] = &slotTable{index: map[objKey]int32{}}
			}
		}
		e.wantHistory(&x.reads)
		e.runs = append(e.runs, r)
	}
	e.live = len(e.runs)
	return e
}

// plainProgram is the whole expression without aggregates' counters.
func (x *Expectation) plainProgram() cel.Program {
	if len(x.aggs) == 0 {
		return x.outer
	}
	p, err := x.c.env.PlanProgram(x.full)
	if err != nil {
		// The same expression was planned when it was compiled.
		panic("expect: " + err.Error())
	}
	return p
}

// wantHistory has those histories kept that an expression reads. No others are:
// a history grows with every change.
func (e *Engine) wantHistory(d *deps) {
	e.hist.allPods = e.hist.allPods || d.all&readsPodHistory != 0
	e.hist.allNodes = e.hist.allNodes || d.all&readsNodeHistory != 0
	for _, k := range d.histPods {
		e.hist.wantPod(k)
	}
	for _, n := range d.histNodes {
		e.hist.wantNode(n)
	}
}

// Begin judges the state at the start, before anything is told by Changed. It is called once,
// with the objects that are there before the run.
func (e *Engine) Begin() {
	if e.view == nil {
		return
	}
	for _, p := range e.view.state.Pods() {
		e.note(Change{Kind: KindPod, New: p})
	}
	for _, n := range e.view.state.Nodes() {
		e.note(Change{Kind: KindNode, New: n})
	}
	for _, ev := range e.view.state.Events() {
		e.note(Change{Kind: KindEvent, New: ev})
	}
	kinds := []Kind{KindLease}
	for _, k := range objectKinds() {
		kinds = append(kinds, k.kind)
	}
	for _, k := range kinds {
		// A kind that no aggregate is over has no counters to fill.
		if e.slots[k] == nil {
			continue
		}
		for _, o := range e.objectsOf(k) {
			e.note(Change{Kind: k, New: o})
		}
	}
	for _, r := range e.runs {
		e.look(r)
		e.plan(r)
	}
}

// Change is one committed change of the cluster's state: New is nil for an
// object that was removed, Old for one that was created.
type Change struct {
	Kind     Kind
	Old, New any // pointers of the Kind's type, or nil
}

// Changed tells the engine of a change, right after it; at is the virtual time
// since the start. It must be called for every change of the kinds that Wants names, in their
// order.
func (e *Engine) Changed(c Change, at time.Duration) {
	if e.view == nil || e.live == 0 {
		return
	}
	c = untyped(c)
	// What time alone has decided by then comes before the change.
	for _, r := range e.runs {
		if !r.done && r.due < at {
			e.expire(r, at, false)
		}
	}
	e.setNow(at)
	touched := e.note(c)
	for _, r := range e.runs {
		// An expression that was never evaluated is, at the first change from
		// From on. An expression that nothing concerns keeps its value.
		if r.done || !(touched && r.dirtyAggregates()) && !r.reads(&c) && (r.begun || e.now < r.x.From) {
			continue
		}
		r.clearDirty()
		e.changed(r)
		e.plan(r)
	}
}

// untyped makes typed nil pointers nil.
func untyped(c Change) Change {
	if isNil(c.Old) {
		c.Old = nil
	}
	if isNil(c.New) {
		c.New = nil
	}
	return c
}

// isNil reports whether there is no object, also where a nil pointer has a type.
// The frequent kinds need no reflection.
func isNil(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case *v1.Pod:
		return x == nil
	case *v1.Node:
		return x == nil
	case *v1.Event:
		return x == nil
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// setNow moves the time on; it never goes back, because changes and deadlines of
// one instant may come in either order.
func (e *Engine) setNow(at time.Duration) {
	e.now = max(e.now, at)
	e.view.now = e.now
}

// changed evaluates a run's expression, or puts that off. What is put off is evaluated at r.next,
// or when it is due.
func (e *Engine) changed(r *trial) {
	if r.x.Form == At || e.now < r.x.From {
		return
	}
	// Only the form by may wait: what violates always or never can be over at the
	// next look.
	if r.x.Form == By && !e.opts.Naive && r.deps.wholes() && len(e.view.state.Pods()) > coalesceOver {
		r.next = min(r.next, e.now+coalesceFor)
		return
	}
	e.look(r)
}

// note brings histories and counters up to date; it reports whether a counter
// changed. Counters of all trials are kept, even of those that are not evaluated now.
func (e *Engine) note(c Change) bool {
	obj := c.New
	if obj == nil {
		obj = c.Old
	}
	var k objKey
	switch o := obj.(type) {
	case *v1.Pod:
		k = objKey{o.Namespace, o.Name}
		if !e.hist.isEmpty() {
			old, _ := c.Old.(*v1.Pod)
			now, _ := c.New.(*v1.Pod)
			e.hist.podChanged(old, now, e.now)
		}
	case *v1.Node:
		k.name = o.Name
		if !e.hist.isEmpty() {
			now, _ := c.New.(*v1.Node)
			e.hist.nodeChanged(now, e.now)
		}
	case *v1.Event:
		k = objKey{o.Namespace, o.Name}
	case metav1.Object:
		if e.slots[c.Kind] == nil {
			return false
		}
		k = objKey{o.GetNamespace(), o.GetName()}
	default:
		return false
	}
	t := e.slots[c.Kind]
	if t == nil {
		return false
	}
	slot := t.slot(k)
	touched := false
	for _, r := range e.runs {
		if r.done {
			continue
		}
		for i, a := range r.aggs {
			if a.of == c.Kind && e.count(r, i, slot, c.New) {
				touched = true
			}
		}
	}
	// The number is freed after the counters have let go of the object.
	if c.New == nil {
		t.drop(k)
	}
	return touched
}

// count judges one object for one aggregate and counts its verdict; it says
// whether that changed. An object that is gone counts as absent.
func (e *Engine) count(r *trial, i int, slot int32, obj any) bool {
	// The table grows by half as well, so that a growing cluster copies it
	// rarely.
	for int(slot) >= len(r.table[i]) {
		r.table[i] = append(r.table[i], make([]verdict, int(slot)+1-len(r.table[i])+len(r.table[i])/2)...)
	}
	v := absent
	if obj != nil {
		var err error
		if v, err = r.aggs[i].judge(e.view, obj); err != nil {
			r.counts[i].err = err
		}
	}
	old := r.table[i][slot]
	if old == v {
		return false
	}
	r.table[i][slot] = v
	c := &r.counts[i]
	c.n[old]--
	c.n[v]++
	c.dirty = true
	return true
}

// dirtyAggregates reports whether an aggregate's counts have changed since the
// expression was last evaluated.
func (r *trial) dirtyAggregates() bool {
	return slices.ContainsFunc(r.counts, func(c counts) bool { return c.dirty })
}

// clearDirty is called when the expression is evaluated.
func (r *trial) clearDirty() {
	for i := range r.counts {
		r.counts[i].dirty = false
	}
}

// reads reports whether what is evaluated as a whole depends on the change. Aggregates are no
// part of it: those have their own counters.
func (r *trial) reads(c *Change) bool {
	d := &r.deps
	// time() is another at every change.
	if d.all&readsTime != 0 {
		return true
	}
	obj := c.New
	if obj == nil {
		obj = c.Old
	}
	switch o := obj.(type) {
	case *v1.Pod:
		if d.all&(readsPods|readsPodHistory) != 0 {
			return true
		}
		k := objKey{o.Namespace, o.Name}
		return slices.Contains(d.pods, k) || slices.Contains(d.histPods, k)
	case *v1.Node:
		if d.all&(readsNodes|readsNodeHistory) != 0 {
			return true
		}
		return slices.Contains(d.nodes, o.Name) || slices.Contains(d.histNodes, o.Name)
	case *v1.Event:
		if d.all&readsEvents != 0 {
			return true
		}
		return slices.ContainsFunc(d.about, func(name string) bool { return isAbout(o, name) })
	}
	return d.readsObject(c.Kind, obj)
}

// readsObject is reads for the kinds that have no case there.
func (d *deps) readsObject(kind Kind, obj any) bool {
	if kind == KindLease && d.all&readsLeases != 0 || slices.Contains(d.kinds, kind) {
		return true
	}
	o, ok := obj.(metav1.Object)
	return ok && slices.Contains(d.objects, ObjectRef{kind, o.GetNamespace(), o.GetName()})
}

// eval evaluates a run's expression now. A value of another type than bool can't come, as the
// compiler has checked.
func (e *Engine) eval(r *trial) {
	out, _, err := r.prog.Eval(&vars{e.view, r})
	r.begun = true
	r.value, r.err = false, err
	if b, ok := out.(types.Bool); ok && err == nil {
		r.value = bool(b)
	}
	r.next = farAway
	// Time also moves on without changes.
	if r.deps.all&readsTime != 0 {
		r.next = e.now + tick
	}
}

// vars is the variables of an expression. Aggregates' values are computed from the counts when
// they are read.
type vars struct {
	state *view
	r     *trial
}

// ResolveName implements cel.Activation.
func (v *vars) ResolveName(name string) (any, bool) {
	if name == stateVar {
		return v.state, true
	}
	for i, a := range v.r.aggs {
		if a.name == name {
			return ref.Val(a.value(&v.r.counts[i])), true
		}
	}
	return nil, false
}

// Parent implements cel.Activation.
func (v *vars) Parent() cel.Activation { return nil }
