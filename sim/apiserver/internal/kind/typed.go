package kind

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"
)

// Strategy is the part of a row that depends on the Go type of the kind's
// objects; it mirrors the strategies of upstream's pkg/registry. Each method takes
// objects of that type only. [Typed] is the one implementation.
type Strategy interface {
	// New returns an empty object, Copy one that shares everything below its
	// struct, NewTable a place to keep them.
	New() Object
	Copy(Object) Object
	NewTable() table.Any

	// SetDefaults fills in what a manifest left out, in place.
	SetDefaults(Object)
	// UsesUID reports whether manifests of the kind are completed by the object's
	// UID: it is made before validation then, and UseUID writes it in.
	UsesUID() bool
	UseUID(Object, types.UID)
	// Complete fills in what admission gives any object, for who checks a manifest
	// without a cluster.
	Complete(Object)
	// PrepareCreate resets what only the server sets on a new object
	// (PrepareForCreate), Stamp sets what it decides when the object is stored.
	PrepareCreate(Object)
	Stamp(now time.Time, obj Object)
	// PrepareUpdate puts back what an update of old through sub does not reach
	// (PrepareForUpdate). It reports whether the kind has that subresource.
	PrepareUpdate(obj, old Object, sub string) bool
	// StampUpdate sets what the server decides of an update of old through sub that
	// PrepareUpdate has gone over.
	StampUpdate(now time.Time, obj, old Object, sub string)
	// Validate checks a new, defaulted object but for its metadata; the system's
	// own may break rules for users. ValidateUpdate checks one that is to take
	// old's place through sub.
	Validate(obj Object, system bool) field.ErrorList
	ValidateUpdate(obj, old Object, sub string) field.ErrorList

	// Warnings are what a client is told of an object that was written through sub
	// and is accepted all the same; old is nil for a new one.
	Warnings(obj, old Object, sub string) []string

	// Unsimulated refuses of a manifest what the API takes but nothing acts on: of a
	// scenario, not of clients.
	Unsimulated(Object) field.ErrorList

	// HasGeneration reports whether objects of the kind count the changes of their
	// spec, NewGeneration whether an update is one that counts.
	HasGeneration() bool
	NewGeneration(obj, old Object, sub string) bool

	// NodeName returns the node that an object of a kind watched ByNode belongs to,
	// or "".
	NodeName(Object) string
	// Scale returns what the scale subresource reaches; false: there is none.
	Scale(Object) (Scale, bool)
	// SelectableFields are the fields that field selectors name, beside name and
	// namespace, with what they are of an object; nil: there are none.
	SelectableFields(Object) fields.Set
	// Columns are those of tables of the kind (kubectl get), Cells those of one
	// object, as many. There is a column at least.
	Columns() []metav1.TableColumnDefinition
	Cells(obj Object, now time.Time) []any
	// RowConditions are what a table's row says of its object beside the cells, such
	// as that it is done with.
	RowConditions(Object) []metav1.TableRowCondition
	// Dropped lists, in words with field paths, what of a manifest the API takes
	// out because the field's gate is off at v1.36.
	Dropped(Object) []string
	// Trace makes n.Entry, which holds what is said of any write, say what the
	// trace says of a write to this kind.
	Trace(n *Notes, c Change)
}

// Typed is a Strategy made of functions for objects of type T. Each may be left
// out; what that means is said with it.
type Typed[T any, P interface {
	*T
	table.Pointer
}] struct {
	// Defaults is SetDefaults. Nil: the kind has none.
	Defaults func(*T)
	// UID is UseUID. Nil: manifests don't depend on it.
	UID func(*T, types.UID)
	// Admitted is Complete. Nil: admission gives nothing that is checked.
	Admitted func(*T)
	// Halves are spec and status of a kind with the subresource status. Without
	// them the object has no part that only the server or only users write.
	Halves Halves[T]
	// Reset is PrepareCreate. Nil empties the status.
	Reset func(*T)
	// Stored is Stamp. Nil: only metadata is stamped.
	Stored func(now time.Time, obj *T)
	// Keep is PrepareUpdate. Nil is that of Halves.
	Keep func(obj, old *T, sub string) bool
	// Updated is StampUpdate. Nil: nothing is set.
	Updated func(now time.Time, obj, old *T, sub string)
	// Check is Validate; Users are rules for users only, which come before it.
	Check func(*T) field.ErrorList
	Users func(*T) field.ErrorList
	// CheckUpdate is ValidateUpdate. Nil is Check, as most of upstream's are.
	CheckUpdate func(obj, old *T, sub string) field.ErrorList
	// Idle is Unsimulated. Nil: nothing is refused.
	Idle func(*T) field.ErrorList
	// Warn is Warnings. Nil: there are none.
	Warn func(obj, old *T, sub string) []string
	// TrustsStatus lets updates of subresources go through unchecked: only
	// controllers make them.
	TrustsStatus bool
	// CountsSpec has the generation count the changes of the spec. Generation is
	// NewGeneration of a kind that counts otherwise.
	CountsSpec bool
	Generation func(obj, old *T, sub string) bool
	// Fields is SelectableFields. It names all fields, also of an empty object.
	Fields func(*T) fields.Set
	// Table is what tables of the kind show, RowState is RowConditions. Nil: name and
	// age; none.
	Table    []Column[T]
	RowState func(*T) []metav1.TableRowCondition
	// Node, Scaled, Gated and Entry are NodeName, Scale, Dropped and Trace.
	Node   func(*T) string
	Scaled func(*T) Scale
	Gated  func(*T) []string
	Entry  func(n *Notes, c Change, obj *T)
}

// Halves are the spec and the status of a kind: who writes one through the API
// does not reach the other.
type Halves[T any] struct {
	spec               func(*T) any
	takeSpec, takeStat func(to, from *T)
}

// SpecAndStatus makes Halves of a function that returns where they are.
func SpecAndStatus[T, Spec, Status any](of func(*T) (*Spec, *Status)) Halves[T] {
	return Halves[T]{
		spec: func(o *T) any { s, _ := of(o); return s },
		takeSpec: func(to, from *T) {
			dst, _ := of(to)
			src, _ := of(from)
			*dst = *src
		},
		takeStat: func(to, from *T) {
			_, dst := of(to)
			_, src := of(from)
			*dst = *src
		},
	}
}

// Scale is what the scale subresource reaches of an object.
type Scale struct {
	Replicas **int32
	Status   int32
	Selector *metav1.LabelSelector
}

func (t *Typed[T, P]) of(o Object) *T { return (*T)(o.(P)) }

func (t *Typed[T, P]) New() Object { return P(new(T)) }

func (t *Typed[T, P]) Copy(o Object) Object {
	return P(new(*t.of(o)))
}

func (t *Typed[T, P]) NewTable() table.Any { return table.New[P]() }

func (t *Typed[T, P]) SetDefaults(o Object) {
	if t.Defaults != nil {
		t.Defaults(t.of(o))
	}
}

func (t *Typed[T, P]) UsesUID() bool { return t.UID != nil }

func (t *Typed[T, P]) UseUID(o Object, uid types.UID) {
	if t.UID != nil {
		t.UID(t.of(o), uid)
	}
}

func (t *Typed[T, P]) Complete(o Object) {
	if t.Admitted != nil {
		t.Admitted(t.of(o))
	}
}

func (t *Typed[T, P]) PrepareCreate(o Object) {
	switch {
	case t.Reset != nil:
		t.Reset(t.of(o))
	case t.Halves.takeStat != nil:
		t.Halves.takeStat(t.of(o), new(T))
	}
}

func (t *Typed[T, P]) Stamp(now time.Time, o Object) {
	if t.Stored != nil {
		t.Stored(now, t.of(o))
	}
}

func (t *Typed[T, P]) PrepareUpdate(obj, old Object, sub string) bool {
	o, was := t.of(obj), t.of(old)
	has := t.Halves.takeSpec != nil
	switch {
	case t.Keep != nil:
		return t.Keep(o, was, sub)
	case sub == "" && has:
		t.Halves.takeStat(o, was)
	case sub == "status" && has:
		t.Halves.takeSpec(o, was)
	}
	return sub == "" || sub == "status" && has
}

func (t *Typed[T, P]) StampUpdate(now time.Time, obj, old Object, sub string) {
	if t.Updated != nil {
		t.Updated(now, t.of(obj), t.of(old), sub)
	}
}

func (t *Typed[T, P]) Validate(o Object, system bool) (errs field.ErrorList) {
	if t.Users != nil && !system {
		errs = t.Users(t.of(o))
	}
	if t.Check != nil {
		errs = append(errs, t.Check(t.of(o))...)
	}
	return errs
}

func (t *Typed[T, P]) ValidateUpdate(obj, old Object, sub string) field.ErrorList {
	switch {
	case t.TrustsStatus && sub != "":
		return nil
	case t.CheckUpdate != nil:
		return t.CheckUpdate(t.of(obj), t.of(old), sub)
	}
	return t.Validate(obj, true)
}

func (t *Typed[T, P]) Warnings(obj, old Object, sub string) []string {
	if t.Warn == nil {
		return nil
	}
	var was *T
	if old != nil {
		was = t.of(old)
	}
	return t.Warn(t.of(obj), was, sub)
}

func (t *Typed[T, P]) Unsimulated(o Object) field.ErrorList {
	if t.Idle == nil {
		return nil
	}
	return t.Idle(t.of(o))
}

func (t *Typed[T, P]) HasGeneration() bool { return t.CountsSpec || t.Generation != nil }

func (t *Typed[T, P]) NewGeneration(obj, old Object, sub string) bool {
	if t.Generation != nil {
		return t.Generation(t.of(obj), t.of(old), sub)
	}
	return t.CountsSpec && sub == "" && !equality.Semantic.DeepEqual(t.Halves.spec(t.of(obj)), t.Halves.spec(t.of(old)))
}

func (t *Typed[T, P]) NodeName(o Object) string { return t.Node(t.of(o)) }

func (t *Typed[T, P]) Scale(o Object) (Scale, bool) {
	if t.Scaled == nil {
		return Scale{}, false
	}
	return t.Scaled(t.of(o)), true
}

func (t *Typed[T, P]) SelectableFields(o Object) fields.Set {
	if t.Fields == nil {
		return nil
	}
	return t.Fields(t.of(o))
}

func (t *Typed[T, P]) Columns() []metav1.TableColumnDefinition {
	if t.Table == nil {
		return MetaColumns()
	}
	return definitionsOf(t.Table)
}

func (t *Typed[T, P]) Cells(o Object, now time.Time) []any {
	if t.Table == nil {
		return MetaCells(o, now)
	}
	out := make([]any, len(t.Table))
	for i := range t.Table {
		out[i] = t.Table[i].Cell(t.of(o), now)
	}
	return out
}

func (t *Typed[T, P]) RowConditions(o Object) []metav1.TableRowCondition {
	if t.RowState == nil {
		return nil
	}
	return t.RowState(t.of(o))
}

func (t *Typed[T, P]) Dropped(o Object) []string {
	if t.Gated == nil {
		return nil
	}
	return t.Gated(t.of(o))
}

func (t *Typed[T, P]) Trace(n *Notes, c Change) {
	if t.Entry != nil {
		t.Entry(n, c, t.of(c.New))
	}
}
