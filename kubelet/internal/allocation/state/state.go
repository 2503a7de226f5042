// Package state keeps which resources each pod was given: those that were
// admitted (allocated) and those that the runtime was last told (actuated). It
// mirrors upstream's pkg/kubelet/allocation/state.
//
// Upstream keeps an entry for every pod. Here a pod whose containers have all
// that its spec asks for, which is nearly every pod, has no entry: what is not
// kept is as the spec says. The checkpoint files have entries for all of them
// nevertheless, see [Encode].
package state

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Resources are the resources of one pod. They are shared and never written
// to.
type Resources struct {
	// Containers are those of the resizable containers, by name.
	Containers map[string]v1.ResourceRequirements
	// Pod are the pod-level resources, nil if there are none.
	Pod *v1.ResourceRequirements
}

// Entry is what is kept of a pod whose resources are not, or not yet, those of
// its spec.
type Entry struct {
	// Allocated is what was admitted.
	Allocated Resources
	// Actuated is what the runtime was last told.
	Actuated Resources

	// of and allocated are the pod of the last Substitute and what it gave.
	of, allocated *v1.Pod
}

// State holds the entries of a node's pods.
type State struct {
	entries map[types.UID]*Entry
}

// New returns a State without entries.
func New() *State { return &State{} }

// Get returns the entry of a pod; nil if it has what its spec says.
func (s *State) Get(uid types.UID) *Entry {
	if len(s.entries) == 0 {
		return nil
	}
	return s.entries[uid]
}

// Put keeps an entry; nil drops it.
func (s *State) Put(uid types.UID, e *Entry) {
	if e == nil {
		delete(s.entries, uid)
		return
	}
	if s.entries == nil {
		s.entries = map[types.UID]*Entry{}
	}
	s.entries[uid] = e
}

// Len returns the number of entries.
func (s *State) Len() int { return len(s.entries) }

// Of returns the resources that a pod's spec asks for, of its containers and,
// if it has any, of the pod. Ephemeral containers have none.
func Of(pod *v1.Pod) Resources {
	out := Resources{Containers: make(map[string]v1.ResourceRequirements, len(pod.Spec.Containers)+len(pod.Spec.InitContainers))}
	for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			out.Containers[list[i].Name] = list[i].Resources
		}
	}
	if pod.Spec.Resources != nil {
		out.Pod = pod.Spec.Resources
	}
	return out
}

// Substitute returns the pod with its allocated resources in the place of its
// spec's: the pod itself if that says the same, else a copy, the same one as
// long as pod and allocation are.
func (e *Entry) Substitute(pod *v1.Pod) (allocated *v1.Pod, differs bool) {
	if e.of == pod {
		return e.allocated, e.allocated != pod
	}
	e.of, e.allocated = pod, pod
	if !SameAs(&e.Allocated, pod) {
		e.allocated = with(pod, &e.Allocated)
	}
	return e.allocated, e.allocated != pod
}

// Allocate replaces what was admitted.
func (e *Entry) Allocate(r Resources) {
	e.Allocated = r
	e.of, e.allocated = nil, nil
}

// Actuate replaces what the runtime was last told of one container.
func (e *Entry) Actuate(container string, r v1.ResourceRequirements) {
	next := make(map[string]v1.ResourceRequirements, len(e.Actuated.Containers)+1)
	maps.Copy(next, e.Actuated.Containers)
	next[container] = r
	e.Actuated.Containers = next
}

// MatchesSpec reports whether the pod has in all places what its spec asks for, so
// that the entry need not be kept.
func (e *Entry) MatchesSpec(pod *v1.Pod) bool {
	return SameAs(&e.Allocated, pod) && SameAs(&e.Actuated, pod)
}

// SameAs reports whether resources are those of a pod's spec, as far as a resize
// can change them. A container that r does not have is as the spec says.
func SameAs(r *Resources, pod *v1.Pod) bool {
	for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if have, ok := r.Containers[list[i].Name]; ok && !Equal(&have, &list[i].Resources) {
				return false
			}
		}
	}
	return PodEqual(r.Pod, pod.Spec.Resources)
}

// PodEqual is Equal for pod-level resources, of which nil means none.
func PodEqual(a, b *v1.ResourceRequirements) bool {
	var none v1.ResourceRequirements
	if a == nil {
		a = &none
	}
	if b == nil {
		b = &none
	}
	return Equal(a, b)
}

// Equal reports whether two ask for the same cpu and memory: what a resize can
// change.
func Equal(a, b *v1.ResourceRequirements) bool {
	for _, name := range [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if !sameQuantity(a.Requests, b.Requests, name) || !sameQuantity(a.Limits, b.Limits, name) {
			return false
		}
	}
	return true
}

func sameQuantity(a, b v1.ResourceList, name v1.ResourceName) bool {
	x, inA := a[name]
	y, inB := b[name]
	return inA == inB && x.Cmp(y) == 0
}

// with is a copy of the pod that has the given resources.
func with(pod *v1.Pod, r *Resources) *v1.Pod {
	out := *pod
	out.Spec.Containers = substituted(pod.Spec.Containers, r)
	out.Spec.InitContainers = substituted(pod.Spec.InitContainers, r)
	out.Spec.Resources = r.Pod
	return &out
}

func substituted(list []v1.Container, r *Resources) []v1.Container {
	if len(list) == 0 {
		return list
	}
	out := append([]v1.Container(nil), list...)
	for i := range out {
		if have, ok := r.Containers[out[i].Name]; ok {
			out[i].Resources = have
		}
	}
	return out
}
