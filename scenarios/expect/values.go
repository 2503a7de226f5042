package expect

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// objVal is a Go struct, seen from CEL. Fields are read when they are asked for, by reflection;
// nothing is copied.
type objVal struct {
	info *structInfo
	ptr  any // a pointer to the struct
}

// ConvertToNative returns the pointer itself: nothing is copied.
func (o *objVal) ConvertToNative(t reflect.Type) (any, error) {
	if reflect.TypeOf(o.ptr).AssignableTo(t) {
		return o.ptr, nil
	}
	return nil, fmt.Errorf("no conversion from %s to %v", o.info.name, t)
}

// ConvertToType knows the object's own type only.
func (o *objVal) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.TypeType:
		return o.info.typ
	case o.info.typ:
		return o
	}
	return types.NewErr("no conversion from %s to %s", o.info.name, t.TypeName())
}

// Equal compares as the API does: quantities by their amount, empty as nil.
func (o *objVal) Equal(other ref.Val) ref.Val {
	x, ok := other.(*objVal)
	if !ok || x.info != o.info {
		return types.False
	}
	return types.Bool(x.ptr == o.ptr || apiequality.Semantic.DeepEqual(x.ptr, o.ptr))
}

func (o *objVal) Type() ref.Type { return o.info.typ }
func (o *objVal) Value() any     { return o.ptr }

// Get implements traits.Indexer; the checker makes it rare, for values of
// unknown type only.
func (o *objVal) Get(index ref.Val) ref.Val {
	name, ok := index.(types.String)
	f := o.info.fields[string(name)]
	if !ok || f == nil {
		return types.NewErr("no such field %v in %s", index.Value(), o.info.name)
	}
	v, err := f.GetFrom(o.ptr)
	if err != nil {
		return types.WrapErr(err)
	}
	if r, ok := v.(ref.Val); ok {
		return r
	}
	return types.NewErr("the type of field %s must be known", name)
}

// IsSet implements traits.FieldTester.
func (o *objVal) IsSet(field ref.Val) ref.Val {
	name, _ := field.(types.String)
	f := o.info.fields[string(name)]
	if f == nil {
		return types.NewErr("no such field %v in %s", field.Value(), o.info.name)
	}
	return types.Bool(f.IsSet(o.ptr))
}

// listVal is a Go slice, seen from CEL, element by element as it is asked for.
//
// It also has a Find, as maps have: the interpreter then asks Find for an
// element, so that one beyond the end reads as an empty one. Elements are converted each time,
// which costs less than keeping them.
type listVal struct {
	s    *typeSystem
	elem *conversion
	v    reflect.Value
}

// at converts one element, since most lists are not read to their end.
func (l *listVal) at(i int) ref.Val { return l.s.NativeToValue(l.elem.get(l.v.Index(i))) }

// ConvertToNative returns the slice itself, or a copy with converted elements.
func (l *listVal) ConvertToNative(t reflect.Type) (any, error) {
	if l.v.Type().AssignableTo(t) {
		return l.v.Interface(), nil
	}
	if t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("no conversion from a list to %v", t)
	}
	out := reflect.MakeSlice(t, l.v.Len(), l.v.Len())
	for i := range l.v.Len() {
		e, err := l.at(i).ConvertToNative(t.Elem())
		if err != nil {
			return nil, err
		}
		out.Index(i).Set(reflect.ValueOf(e))
	}
	return out.Interface(), nil
}

// ConvertToType knows lists only.
func (l *listVal) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("no conversion from a list to %s", t.TypeName())
}

// Equal compares element by element.
func (l *listVal) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok || o.Size() != l.Size() {
		return types.False
	}
	for i := range l.v.Len() {
		if types.Equal(l.at(i), o.Get(types.Int(i))) != types.True {
			return types.False
		}
	}
	return types.True
}

func (l *listVal) Type() ref.Type { return types.ListType }
func (l *listVal) Value() any     { return l.v.Interface() }
func (l *listVal) Size() ref.Val  { return types.Int(l.v.Len()) }

// Add implements traits.Adder: + on lists, which makes a new one.
func (l *listVal) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	n := int(o.Size().(types.Int))
	out := make([]ref.Val, 0, l.v.Len()+n)
	for i := range l.v.Len() {
		out = append(out, l.at(i))
	}
	for i := range n {
		out = append(out, o.Get(types.Int(i)))
	}
	return types.NewRefValList(l.s, out)
}

// Contains implements traits.Container: the operator in.
func (l *listVal) Contains(value ref.Val) ref.Val {
	for i := range l.v.Len() {
		if types.Equal(l.at(i), value) == types.True {
			return types.True
		}
	}
	return types.False
}

// Get is Find for who may not ask for what is not there.
func (l *listVal) Get(index ref.Val) ref.Val {
	v, ok := l.Find(index)
	if !ok {
		return types.NewErr("no such index: %v", index.Value())
	}
	return v
}

// Find returns the element, or an empty one for an index beyond the end.
func (l *listVal) Find(index ref.Val) (ref.Val, bool) {
	i, err := types.IndexOrError(index)
	if err != nil {
		return types.WrapErr(err), false
	}
	if i < 0 {
		return types.NewErr("index %d is negative", i), false
	}
	if i >= l.v.Len() {
		return l.s.NativeToValue(l.elem.get(reflect.New(l.v.Type().Elem()).Elem())), true
	}
	return l.at(i), true
}

// Iterator implements traits.Iterable.
func (l *listVal) Iterator() traits.Iterator { return &listIter{l: l} }

// listIter goes through a list, converting one element at a time. The list must not change
// meanwhile, and objects are immutable.
type listIter struct {
	baseIter
	l *listVal
	i int
}

func (it *listIter) HasNext() ref.Val { return types.Bool(it.i < it.l.v.Len()) }
func (it *listIter) Next() ref.Val {
	if it.i >= it.l.v.Len() {
		return nil
	}
	it.i++
	return it.l.at(it.i - 1)
}

// mapVal is a Go map with text keys, seen from CEL. An absent key reads as a
// zero value; the compiler turns has() into a question of Contains. Only maps with text keys are
// known, as the API has no others.
type mapVal struct {
	s    *typeSystem
	elem *conversion
	v    reflect.Value
}

// ConvertToNative returns the map itself.
func (m *mapVal) ConvertToNative(t reflect.Type) (any, error) {
	if m.v.Type().AssignableTo(t) {
		return m.v.Interface(), nil
	}
	return nil, fmt.Errorf("no conversion from a map to %v", t)
}

// ConvertToType knows maps only.
func (m *mapVal) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return m
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("no conversion from a map to %s", t.TypeName())
}

// Equal compares key by key.
func (m *mapVal) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Mapper)
	if !ok || o.Size() != m.Size() {
		return types.False
	}
	for _, k := range m.keys() {
		key := types.String(k)
		if o.Contains(key) != types.True {
			return types.False
		}
		a, _ := m.Find(key)
		b, _ := o.Find(key)
		if types.Equal(a, b) != types.True {
			return types.False
		}
	}
	return types.True
}

func (m *mapVal) Type() ref.Type { return types.MapType }
func (m *mapVal) Value() any     { return m.v.Interface() }
func (m *mapVal) Size() ref.Val  { return types.Int(m.v.Len()) }

// lookup returns a key's value, which is not valid if it is not there.
func (m *mapVal) lookup(key ref.Val) reflect.Value {
	k, ok := key.(types.String)
	if !ok || m.v.Len() == 0 {
		return reflect.Value{}
	}
	return m.v.MapIndex(reflect.ValueOf(string(k)).Convert(m.v.Type().Key()))
}

// Contains implements traits.Container; has() of a key becomes a call of it.
func (m *mapVal) Contains(key ref.Val) ref.Val { return types.Bool(m.lookup(key).IsValid()) }

// Find returns the value, or a zero value for a key that is not there.
func (m *mapVal) Find(key ref.Val) (ref.Val, bool) {
	v := m.lookup(key)
	if !v.IsValid() {
		v = reflect.New(m.v.Type().Elem()).Elem()
	}
	return m.s.NativeToValue(m.elem.get(v)), true
}

// Get is Find: a key that is not there reads as a zero value.
func (m *mapVal) Get(key ref.Val) ref.Val {
	v, _ := m.Find(key)
	return v
}

// keys are in order, since what iterates over a map must not depend on Go's.
func (m *mapVal) keys() []string {
	keys := make([]string, 0, m.v.Len())
	for _, k := range m.v.MapKeys() { //drydock:unordered sorted below
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// Iterator implements traits.Iterable, by the sorted keys.
func (m *mapVal) Iterator() traits.Iterator { return &keyIter{keys: m.keys()} }

// keyIter goes through a map's keys.
type keyIter struct {
	baseIter
	keys []string
	i    int
}

func (it *keyIter) HasNext() ref.Val { return types.Bool(it.i < len(it.keys)) }
func (it *keyIter) Next() ref.Val {
	if it.i >= len(it.keys) {
		return nil
	}
	it.i++
	return types.String(it.keys[it.i-1])
}

// baseIter is what an iterator must be able to do as a value, which is nothing.
type baseIter struct{}

func (baseIter) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("no conversion from an iterator to %v", t)
}
func (baseIter) ConvertToType(ref.Type) ref.Val { return types.NewErr("an iterator has no other type") }
func (baseIter) Equal(ref.Val) ref.Val          { return types.False }
func (baseIter) Type() ref.Type                 { return types.IteratorType }
func (baseIter) Value() any                     { return nil }
