// Package table keeps the objects of one kind: in the order of their creation, in
// which lists are made, and by name.
//
// Objects stand in a slice, and a hash of the name finds their place (names.go): a
// quarter of what a map by name takes, and nothing for the garbage collector to
// follow. What is dropped leaves a hole; holes are closed when there are too many
// of them, or when somebody wants to see the slice.
package table

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pointer is an object held by pointer, so that a hole is the nil pointer.
type Pointer interface {
	comparable
	Object
}

// Table holds the objects of one kind in the order of their creation.
type Table[T Pointer] struct {
	names Names
	items []T
	holes int
	last  int32 // the slot found last: who writes an object has looked it up before
}

// Any is a table of any kind: who has one knows the kind's name, but not its Go
// type.
type Any interface {
	Find(namespace, name string) Object
	Put(obj Object)
	Drop(namespace, name string)
	Each(fn func(Object) bool)
	Len() int
}

// New returns an empty table.
func New[T Pointer]() *Table[T] { return &Table[T]{names: NewNames()} }

// slot returns where the object of that name is.
func (t *Table[T]) slot(namespace, name string) (int32, bool) {
	if int(t.last) < len(t.items) && t.has(t.last, namespace, name) {
		return t.last, true
	}
	slot, ok := t.names.Find(namespace, name, func(slot int32) bool { return t.has(slot, namespace, name) })
	if ok {
		t.last = slot
	}
	return slot, ok
}

// has reports whether an object of that name is in a slot.
func (t *Table[T]) has(slot int32, namespace, name string) bool {
	var hole T
	o := t.items[slot]
	return o != hole && o.GetName() == name && o.GetNamespace() == namespace
}

// Get returns the object of that name.
func (t *Table[T]) Get(namespace, name string) (T, bool) {
	i, ok := t.slot(namespace, name)
	if !ok {
		var zero T
		return zero, false
	}
	return t.items[i], true
}

// Set stores an object under its name; in the place of the one that has it, so that
// an object keeps its place in lists while it lives.
func (t *Table[T]) Set(obj T) {
	namespace, name := obj.GetNamespace(), obj.GetName()
	if i, ok := t.slot(namespace, name); ok {
		t.items[i] = obj
		return
	}
	t.names.Add(namespace, name, int32(len(t.items)))
	t.items = append(t.items, obj)
}

// Drop takes an object out. Its place stays empty until holes are worth closing.
func (t *Table[T]) Drop(namespace, name string) {
	i, ok := t.slot(namespace, name)
	if !ok {
		return
	}
	t.names.Drop(namespace, name, i)
	var zero T
	t.items[i] = zero
	t.holes++
	if t.holes > 64 && t.holes > len(t.items)/2 {
		t.compact()
	}
}

// compact closes the holes that drop left.
func (t *Table[T]) compact() {
	if t.holes == 0 {
		return
	}
	var zero T
	n := 0
	for i, o := range t.items {
		if o == zero {
			continue
		}
		if i != n {
			t.items[n] = o
			t.names.Move(o.GetNamespace(), o.GetName(), int32(i), int32(n))
		}
		n++
	}
	clear(t.items[n:])
	t.items = t.items[:n]
	t.holes = 0
}

// View returns the objects, oldest first. It is good until the next write.
func (t *Table[T]) View() []T {
	t.compact()
	return t.items[:len(t.items):len(t.items)]
}

// Find is Get as Any has it.
func (t *Table[T]) Find(namespace, name string) Object {
	if o, ok := t.Get(namespace, name); ok {
		return o
	}
	return nil
}

// Put is Set as Any has it.
func (t *Table[T]) Put(obj Object) { t.Set(obj.(T)) }

// Each calls fn for the objects, oldest first, until it says false. fn must
// not write to the table.
func (t *Table[T]) Each(fn func(Object) bool) {
	var zero T
	for _, o := range t.items {
		if o != zero && !fn(o) {
			return
		}
	}
}

// Object is an API object of one of the kinds that the package stores.
type Object interface {
	metav1.Object
	runtime.Object
}

// Len returns how many objects there are.
func (t *Table[T]) Len() int { return len(t.items) - t.holes }
