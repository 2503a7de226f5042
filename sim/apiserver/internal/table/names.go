package table

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Names finds an object's slot by its namespace and name. What it keeps per
// name is a hash, which is a quarter of the name's two strings and holds no
// pointers; whoever asks compares the names.
type Names struct {
	slots map[uint64]int32
	// clashes are the names whose hash another one had first.
	clashes map[types.NamespacedName]int32
	hash    func(namespace, name string) uint64
}

// NewNames returns names that find nothing yet.
func NewNames() Names {
	return Names{slots: map[uint64]int32{}, hash: func(namespace, name string) uint64 {
		var h loop.Hasher
		h.Str(namespace)
		h.Str(name)
		return uint64(h)
	}}
}

// Find returns the slot of a name; is reports whether a slot has that name.
func (n *Names) Find(namespace, name string, is func(slot int32) bool) (int32, bool) {
	if slot, ok := n.slots[n.hash(namespace, name)]; ok && is(slot) {
		return slot, true
	}
	if len(n.clashes) == 0 {
		return 0, false
	}
	slot, ok := n.clashes[types.NamespacedName{Namespace: namespace, Name: name}]
	return slot, ok
}

// Add notes the slot of a name that is not there.
func (n *Names) Add(namespace, name string, slot int32) {
	h := n.hash(namespace, name)
	if _, taken := n.slots[h]; !taken {
		n.slots[h] = slot
		return
	}
	if n.clashes == nil {
		n.clashes = map[types.NamespacedName]int32{}
	}
	n.clashes[types.NamespacedName{Namespace: namespace, Name: name}] = slot
}

// Move notes the new slot of a name.
func (n *Names) Move(namespace, name string, from, to int32) {
	if h := n.hash(namespace, name); n.slots[h] == from {
		n.slots[h] = to
		return
	}
	n.clashes[types.NamespacedName{Namespace: namespace, Name: name}] = to
}

// Drop forgets a name and its slot.
func (n *Names) Drop(namespace, name string, slot int32) {
	h := n.hash(namespace, name)
	if have, ok := n.slots[h]; ok && have == slot {
		delete(n.slots, h)
		return
	}
	delete(n.clashes, types.NamespacedName{Namespace: namespace, Name: name})
}
