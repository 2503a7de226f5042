package apiserver

// tableObject is an object held by pointer, so that a hole is the nil pointer.
type tableObject interface {
	comparable
	Object
}

// table holds the objects of one kind in the order of their creation.
type table[T tableObject] struct {
	names names
	items []T
	holes int
	last  int32 // the slot found last: who writes an object has looked it up before
}

// anyTable is a table of any kind.
type anyTable interface {
	find(namespace, name string) Object
	put(obj Object)
	drop(namespace, name string)
	each(fn func(Object) bool)
}

func newTable[T tableObject]() *table[T] { return &table[T]{names: newNames()} }

// slot returns where the object of that name is.
func (t *table[T]) slot(namespace, name string) (int32, bool) {
	if int(t.last) < len(t.items) && t.has(t.last, namespace, name) {
		return t.last, true
	}
	slot, ok := t.names.find(namespace, name, func(slot int32) bool { return t.has(slot, namespace, name) })
	if ok {
		t.last = slot
	}
	return slot, ok
}

// has tells whether an object of that name is in a slot.
func (t *table[T]) has(slot int32, namespace, name string) bool {
	var hole T
	o := t.items[slot]
	return o != hole && o.GetName() == name && o.GetNamespace() == namespace
}

func (t *table[T]) get(namespace, name string) (T, bool) {
	i, ok := t.slot(namespace, name)
	if !ok {
		var zero T
		return zero, false
	}
	return t.items[i], true
}

func (t *table[T]) set(obj T) {
	namespace, name := obj.GetNamespace(), obj.GetName()
	if i, ok := t.slot(namespace, name); ok {
		t.items[i] = obj
		return
	}
	t.names.add(namespace, name, int32(len(t.items)))
	t.items = append(t.items, obj)
}

func (t *table[T]) drop(namespace, name string) {
	i, ok := t.slot(namespace, name)
	if !ok {
		return
	}
	t.names.drop(namespace, name, i)
	var zero T
	t.items[i] = zero
	t.holes++
	if t.holes > 64 && t.holes > len(t.items)/2 {
		t.compact()
	}
}

// compact closes the holes that drop left.
func (t *table[T]) compact() {
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
			t.names.move(o.GetNamespace(), o.GetName(), int32(i), int32(n))
		}
		n++
	}
	clear(t.items[n:])
	t.items = t.items[:n]
	t.holes = 0
}

// view returns the objects, oldest first. It is good until the next write.
func (t *table[T]) view() []T {
	t.compact()
	return t.items[:len(t.items):len(t.items)]
}

func (t *table[T]) find(namespace, name string) Object {
	if o, ok := t.get(namespace, name); ok {
		return o
	}
	return nil
}

func (t *table[T]) put(obj Object) { t.set(obj.(T)) }

// each calls fn for the objects, oldest first, until it says false. fn must
// not write to the table.
func (t *table[T]) each(fn func(Object) bool) {
	var zero T
	for _, o := range t.items {
		if o != zero && !fn(o) {
			return
		}
	}
}
