package controller

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Stored is a pointer to an API type: what is stored is never written to, so two
// equal pointers are the same version of an object.
type Stored interface {
	comparable
	apiserver.Object
}

// Owned indexes the objects of one kind by their controller, in the order in
// which they came (upstream: informers' indexers by owner).
type Owned[T Stored] struct {
	sets  map[types.UID][]T
	heard []func(owner *metav1.OwnerReference, old, obj T)
}

// NewOwned returns an index of the kind's objects, kept by the server's changes.
func NewOwned[T Stored](srv *apiserver.Server, kind apiserver.Kind) *Owned[T] {
	o := &Owned[T]{sets: map[types.UID][]T{}}
	srv.OnChange(o.change, kind)
	return o
}

// Of returns the objects whose controller has that UID. The slice is good until
// the next write.
func (o *Owned[T]) Of(owner types.UID) []T { return o.sets[owner] }

// OnChange has fn called after a change of an object: once for its controller,
// and before that for the one it was taken from. obj is zero when the object is
// gone or has left; owner is nil for an object without a controller.
func (o *Owned[T]) OnChange(fn func(owner *metav1.OwnerReference, old, obj T)) {
	o.heard = append(o.heard, fn)
}

// change is the hook. Objects rarely change hands; when one does, the old owner
// is told that it has lost it before the new one hears of it.
func (o *Owned[T]) change(c apiserver.Change) {
	var none, was, is T
	var from, to *metav1.OwnerReference
	if c.Old != nil {
		was = c.Old.(T)
		from = metav1.GetControllerOfNoCopy(was)
	}
	if c.Type != "DELETED" {
		is = c.New.(T)
		to = metav1.GetControllerOfNoCopy(is)
	}
	if from != nil {
		o.drop(from.UID, was, is, to)
	}
	if to != nil && (from == nil || from.UID != to.UID) {
		o.sets[to.UID] = append(o.sets[to.UID], is)
	}
	moved := from != nil && (is == none || to == nil || to.UID != from.UID)
	for _, fn := range o.heard {
		if moved {
			fn(from, was, none)
		}
		if is != none || from == nil {
			fn(to, was, is)
		}
	}
}

// drop takes an object out of a set, or puts its new version in its place.
func (o *Owned[T]) drop(owner types.UID, was, is T, to *metav1.OwnerReference) {
	set := o.sets[owner]
	i := slices.IndexFunc(set, func(v T) bool { return v.GetUID() == was.GetUID() })
	switch {
	case i < 0:
		if to != nil && to.UID == owner { // heard of for the first time
			o.sets[owner] = append(set, is)
		}
	case to != nil && to.UID == owner:
		set[i] = is
	case len(set) == 1:
		delete(o.sets, owner)
	default:
		o.sets[owner] = slices.Delete(set, i, i+1)
	}
}

// PodState is what controllers count pods by. It is a set of bits: a PodSet asks
// for any of several at once.
type PodState uint8

const (
	// A pod is at most one of Active, Terminating, Succeeded and Failed; the
	// others may come with any of them. A status is decided by these bits alone,
	// so comparing two of them says whether a change matters.
	PodActive      PodState = 1 << iota // neither terminal nor being deleted
	PodIsReady                          // its condition Ready is True
	PodTerminating                      // being deleted, and not terminal
	PodSucceeded
	PodFailed
	PodPending
	PodBound // it has a node
)

// StateOf returns a pod's state. A pod that has ended is neither active nor
// terminating, even while it is being deleted: controllers count it as gone.
func StateOf(p *v1.Pod) PodState {
	var st PodState
	switch p.Status.Phase {
	case v1.PodSucceeded:
		st = PodSucceeded
	case v1.PodFailed:
		st = PodFailed
	case v1.PodPending:
		st = PodPending
	}
	if st&(PodSucceeded|PodFailed) == 0 {
		if p.DeletionTimestamp == nil {
			st |= PodActive
		} else {
			st |= PodTerminating
		}
	}
	if PodReady(p) {
		st |= PodIsReady
	}
	if p.Spec.NodeName != "" {
		st |= PodBound
	}
	return st
}

// PodChange is a change of a pod as its controller sees it.
type PodChange struct {
	// Old is nil for a pod that came, New for one that is gone or has left.
	Old, New *v1.Pod
	// Was and Is are the two's states.
	Was, Is PodState
}

// Relabeled reports whether the pod's labels have changed.
func (c *PodChange) Relabeled() bool {
	return c.Old != nil && c.New != nil && !maps.Equal(c.Old.Labels, c.New.Labels)
}

// Deleted reports whether the change is that the pod's deletion began. It is for
// changes of a pod that does not Matter: one that was there and is.
func (c *PodChange) Deleted() bool {
	return (c.Old.DeletionTimestamp == nil) != (c.New.DeletionTimestamp == nil)
}

// AddOnceAvailable has the owner of a pod that became ready synced again when it
// has been so for minReadySeconds, since its status changes then (upstream adds
// a second, as clocks differ).
func (q *Queue) AddOnceAvailable(owner Key, ch PodChange, minReadySeconds int32) {
	if minReadySeconds > 0 && ch.Old != nil && ch.Is&PodIsReady != 0 && ch.Was&PodIsReady == 0 {
		q.AddAfter(owner, time.Duration(minReadySeconds+1)*time.Second)
	}
}

// Matters reports whether a controller that counts pods has to look again. A
// change of anything else, such as a container's restart count, can't change what
// a status says.
func (c *PodChange) Matters() bool {
	return c.Old == nil || c.New == nil || c.Was != c.Is || c.Relabeled()
}

// PodSet is a controller's pods, oldest first. Replicas come and go far more
// often than somebody lists them, so a set keeps its counts up to date with each
// change and leaves a hole where a pod was. Whoever wants the pods has the holes
// closed first: order is what upstream's listers don't promise and a repeatable
// run needs.
type PodSet struct {
	pods   []*v1.Pod // with holes
	states []PodState
	index  map[types.UID]int32
	holes  int
	// Active, Ready (and active) and Terminating are how many there are.
	Active, Ready, Terminating int
}

// Len returns how many pods there are.
func (s *PodSet) Len() int {
	if s == nil {
		return 0
	}
	return len(s.index)
}

// All returns the pods. The slice is good until the next write to a pod.
func (s *PodSet) All() []*v1.Pod {
	if s == nil {
		return nil
	}
	s.compact()
	return s.pods
}

// In returns the pods that have any of the states, in a slice of the caller's.
func (s *PodSet) In(states PodState) []*v1.Pod {
	if s == nil {
		return nil
	}
	s.compact()
	var out []*v1.Pod
	for i, p := range s.pods {
		if s.states[i]&states != 0 {
			out = append(out, p)
		}
	}
	return out
}

// count adds n to the numbers that a state takes part in.
func (s *PodSet) count(st PodState, n int) {
	if st&PodActive != 0 {
		s.Active += n
		if st&PodIsReady != 0 {
			s.Ready += n
		}
	}
	if st&PodTerminating != 0 {
		s.Terminating += n
	}
}

// put adds a pod at the end, or puts its new version in its place.
func (s *PodSet) put(p *v1.Pod, st PodState) {
	i, ok := s.index[p.UID]
	if !ok {
		s.index[p.UID] = int32(len(s.pods))
		s.pods, s.states = append(s.pods, p), append(s.states, st)
		s.count(st, 1)
		return
	}
	s.count(s.states[i], -1)
	s.pods[i], s.states[i] = p, st
	s.count(st, 1)
}

// drop leaves a hole. Half a list of holes is closed, so that a set that shrinks
// for ever does not keep its greatest size.
func (s *PodSet) drop(uid types.UID) {
	i, ok := s.index[uid]
	if !ok {
		return
	}
	s.count(s.states[i], -1)
	delete(s.index, uid)
	s.pods[i], s.states[i] = nil, 0
	s.holes++
	if s.holes > 32 && s.holes > len(s.pods)/2 {
		s.compact()
	}
}

// compact closes the holes and keeps the order.
func (s *PodSet) compact() {
	if s.holes == 0 {
		return
	}
	n := 0
	for i, p := range s.pods {
		if p == nil {
			continue
		}
		if i != n {
			s.pods[n], s.states[n] = p, s.states[i]
			s.index[p.UID] = int32(n)
		}
		n++
	}
	clear(s.pods[n:])
	s.pods, s.states, s.holes = s.pods[:n], s.states[:n], 0
}

// Pods indexes all pods by their controller, for all controllers at once: one
// look at each change of a pod.
type Pods struct {
	sets    map[types.UID]*PodSet
	orphans map[string]int // by namespace
	heard   map[string][]func(owner Key, uid types.UID, c PodChange)
	stray   []func(pod *v1.Pod)
}

// NewPods returns the index of the server's pods, kept by its changes.
func NewPods(srv *apiserver.Server) *Pods {
	p := &Pods{sets: map[types.UID]*PodSet{}, orphans: map[string]int{}, heard: map[string][]func(Key, types.UID, PodChange){}}
	srv.OnChange(p.change, apiserver.KindPod)
	return p
}

// Of returns the pods whose controller has that UID; nil when it has none.
func (p *Pods) Of(owner types.UID) *PodSet { return p.sets[owner] }

// OnChange has fn called after a change of a pod whose controller is of the kind.
func (p *Pods) OnChange(kind apiserver.Kind, fn func(owner Key, uid types.UID, c PodChange)) {
	p.heard[string(kind)] = append(p.heard[string(kind)], fn)
}

// OnOrphan has fn called for a pod without a controller that came or has got
// other labels: someone might want to adopt it.
func (p *Pods) OnOrphan(fn func(pod *v1.Pod)) { p.stray = append(p.stray, fn) }

// Orphans returns how many pods of a namespace have no controller.
func (p *Pods) Orphans(namespace string) int { return p.orphans[namespace] }

// change is the hook. A pod that changes hands leaves one controller and comes to
// another: each hears of its half, as if the pod had gone or come.
func (p *Pods) change(c apiserver.Change) {
	ch := PodChange{}
	var from, to *metav1.OwnerReference
	if c.Old != nil {
		ch.Old = c.Old.(*v1.Pod)
		from = metav1.GetControllerOfNoCopy(ch.Old)
		ch.Was = StateOf(ch.Old)
	}
	if c.Type != "DELETED" {
		ch.New = c.New.(*v1.Pod)
		to = metav1.GetControllerOfNoCopy(ch.New)
	}
	p.countOrphan(ch, from, to)
	if from == nil && to == nil {
		if ch.New != nil && (ch.Old == nil || ch.Relabeled()) {
			p.tellStray(ch.New)
		}
		return
	}
	if ch.New != nil {
		ch.Is = StateOf(ch.New)
	}
	if from != nil && (to == nil || to.UID != from.UID) {
		if set := p.sets[from.UID]; set != nil {
			set.drop(ch.Old.UID)
			if len(set.index) == 0 {
				delete(p.sets, from.UID)
			}
		}
		p.tell(from, ch.Old.Namespace, PodChange{Old: ch.Old, Was: ch.Was})
	}
	if to != nil {
		set := p.sets[to.UID]
		if set == nil {
			set = &PodSet{index: map[types.UID]int32{}}
			p.sets[to.UID] = set
		}
		set.put(ch.New, ch.Is)
		if from == nil || from.UID != to.UID {
			ch.Old, ch.Was = nil, 0
		}
		p.tell(to, ch.New.Namespace, ch)
	} else if ch.New != nil {
		p.tellStray(ch.New)
	}
}

// countOrphan keeps the number of pods without a controller, so that a controller
// that comes need not look for them where there are none.
func (p *Pods) countOrphan(ch PodChange, from, to *metav1.OwnerReference) {
	if ch.Old != nil && from == nil {
		if p.orphans[ch.Old.Namespace]--; p.orphans[ch.Old.Namespace] == 0 {
			delete(p.orphans, ch.Old.Namespace)
		}
	}
	if ch.New != nil && to == nil {
		p.orphans[ch.New.Namespace]++
	}
}

// tell calls those who hear of a kind's pods. Owners are of the pod's namespace:
// an owner reference has none of its own.
func (p *Pods) tell(owner *metav1.OwnerReference, namespace string, ch PodChange) {
	for _, fn := range p.heard[owner.Kind] {
		fn(Key{Namespace: namespace, Name: owner.Name}, owner.UID, ch)
	}
}

// tellStray calls those who might adopt a pod.
func (p *Pods) tellStray(pod *v1.Pod) {
	for _, fn := range p.stray {
		fn(pod)
	}
}
