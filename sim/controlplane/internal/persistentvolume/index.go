package persistentvolume

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// index knows which volumes a claim could be bound to: those that nobody claims, and those
// that name it. A cluster has far more volumes that others claim.
type index struct {
	byName  map[string]*indexed
	byClaim map[controller.Key][]*indexed
	free    []*indexed // that nobody claims
	came    int
}

// indexed is a volume as of its last change.
type indexed struct {
	name  string
	seq   int            // counts volumes as they come
	claim controller.Key // that it names; zero: none
}

func newIndex() *index {
	return &index{byName: map[string]*indexed{}, byClaim: map[controller.Key][]*indexed{}}
}

// put notes a volume, or its change.
func (x *index) put(pv *v1.PersistentVolume) {
	var claim controller.Key
	if ref := pv.Spec.ClaimRef; ref != nil {
		claim = controller.Key{Namespace: ref.Namespace, Name: ref.Name}
	}
	v := x.byName[pv.Name]
	switch {
	case v == nil:
		x.came++
		v = &indexed{name: pv.Name, seq: x.came}
		x.byName[v.name] = v
	case v.claim == claim:
		return
	default:
		x.unlink(v)
	}
	v.claim = claim
	if claim == (controller.Key{}) {
		x.free = insert(x.free, v)
	} else {
		x.byClaim[claim] = insert(x.byClaim[claim], v)
	}
}

// drop forgets a volume that is gone.
func (x *index) drop(name string) {
	if v := x.byName[name]; v != nil {
		x.unlink(v)
		delete(x.byName, name)
	}
}

func (x *index) unlink(v *indexed) {
	is := func(o *indexed) bool { return o == v }
	if v.claim == (controller.Key{}) {
		x.free = slices.DeleteFunc(x.free, is)
		return
	}
	if x.byClaim[v.claim] = slices.DeleteFunc(x.byClaim[v.claim], is); len(x.byClaim[v.claim]) == 0 {
		delete(x.byClaim, v.claim)
	}
}

// candidates are the names of the volumes that a claim could be bound to, in the order of
// their coming.
func (x *index) candidates(claim controller.Key) []string {
	all := x.free
	for _, v := range x.byClaim[claim] {
		all = insert(slices.Clip(all), v)
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.name
	}
	return names
}

// insert puts a volume in its place in a list.
func insert(list []*indexed, v *indexed) []*indexed {
	i, _ := slices.BinarySearchFunc(list, v, func(a, b *indexed) int { return a.seq - b.seq })
	return slices.Insert(list, i, v)
}
