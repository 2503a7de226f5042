// Package config turns the pods of several sources (the API, files) into one
// stream of messages for the sync loop. It mirrors upstream's
// pkg/kubelet/config. Where upstream hands out deep copies, this package hands
// out the API's own objects, which nobody writes to: the kubelet keeps no object
// of its own for a pod. What upstream's copies say beside is kept as a
// [FirstSeen]. Static pods and mirror pods are copied, to bear the kubelet's
// annotations.
//
// config.go merges the sources and says what changed, apiserver.go, file.go and
// http.go are the sources, common.go makes pods of manifests. A source states
// what it has; only PodConfig compares, so that a source may state the same
// again.
package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// seenLayout is RFC3339 with nine fixed fraction digits.
const seenLayout = "2006-01-02T15:04:05.000000000Z07:00"

// EventRecorder records events on pods.
type EventRecorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// Options configure a PodConfig.
type Options struct {
	Loop     *loop.Loop
	Recorder EventRecorder
}

// PodConfig merges the sources' pods. Each source states its complete list (or
// what changed in it), and the difference to what it stated before goes to
// Updates.
type PodConfig struct {
	l        *loop.Loop
	recorder EventRecorder
	// updates is without bound: upstream's holds 50 messages and makes the
	// sources wait, whose watches then queue up what comes; the sync loop sees
	// the same messages in the same order.
	updates *loop.Queue[kubetypes.PodUpdate]
	sources []*Source
}

// NewPodConfig returns a PodConfig without sources.
func NewPodConfig(opts Options) *PodConfig {
	return &PodConfig{l: opts.Loop, recorder: opts.Recorder, updates: loop.NewQueue[kubetypes.PodUpdate](0)}
}

// Updates is the stream of messages, in order.
func (c *PodConfig) Updates() *loop.Queue[kubetypes.PodUpdate] { return c.updates }

// Source adds a source, or returns the one of that name.
func (c *PodConfig) Source(name string) *Source {
	for _, s := range c.sources {
		if s.name == name {
			return s
		}
	}
	s := &Source{c: c, name: name, pods: map[types.NamespacedName]known{}}
	c.sources = append(c.sources, s)
	return s
}

// MarkSeen says that the sync loop has handled a message of the source.
func (c *PodConfig) MarkSeen(source string) {
	for _, s := range c.sources {
		if s.name == source {
			s.seen = true
		}
	}
}

// AllReady reports whether each source has delivered at least once and the sync
// loop has handled a message of it (pkg/kubelet/config/sources.go).
// Until then a pod that isn't known may only be late, so nothing of it is
// removed.
func (c *PodConfig) AllReady() bool {
	return !slices.ContainsFunc(c.sources, func(s *Source) bool { return !s.hasSet || !s.seen })
}

// Source is one origin of pods.
type Source struct {
	c            *PodConfig
	name         string
	pods         map[types.NamespacedName]known
	hasSet, seen bool
}

// known is what is stored of a pod.
// It is as small as can be: there is one for each pod of the node.
type known struct {
	pod   *v1.Pod
	first *FirstSeen // nil if the pod's annotations say it
}

// FirstSeen is what upstream's copy of a pod of the API keeps from the pod's
// first version, however the API's object changes.
type FirstSeen struct {
	// At is when the pod came, in ns since the Unix epoch.
	At int64
	// ResourceVersion goes into the references of the pod's events.
	ResourceVersion string
}

// Annotations are the pod's with those that upstream's kubelet puts on its copy
// of it; of a pod that bears them already (f is nil) its own.
func (f *FirstSeen) Annotations(pod *v1.Pod) map[string]string {
	if f == nil {
		return pod.Annotations
	}
	return f.Annotate(pod.Annotations)
}

// Annotate returns a copy of a pod's annotations with those of Annotations.
func (f *FirstSeen) Annotate(annotations map[string]string) map[string]string {
	return annotate(annotations, kubetypes.ApiserverSource, seenText(f.At))
}

// seenText is the time as the annotation has it.
func seenText(ns int64) string { return time.Unix(0, ns).UTC().Format(seenLayout) }

// annotate returns a copy of the annotations with source and time.
func annotate(annotations map[string]string, source, seen string) map[string]string {
	out := make(map[string]string, len(annotations)+2)
	maps.Copy(out, annotations)
	out[kubetypes.ConfigSourceAnnotationKey] = source
	out[kubetypes.ConfigFirstSeenAnnotationKey] = seen
	return out
}

// FirstSeen returns what is kept of the first version of a pod of the API; nil
// if there is no such pod, or its annotations say it.
func (c *PodConfig) FirstSeen(uid types.UID, name types.NamespacedName) *FirstSeen {
	for _, s := range c.sources {
		if k := s.pods[name]; s.name == kubetypes.ApiserverSource && k.pod != nil && k.pod.UID == uid {
			return k.first
		}
	}
	return nil
}

// batch collects the messages of one update.
// One update is told in several messages, since the sync loop handles each kind
// apart.
type batch struct{ removes, adds, updates, deletes, reconciles []*v1.Pod }

// Set states the source's complete list of pods.
// A pod that comes again with another UID is another pod: the old one is
// removed in the same update.
func (s *Source) Set(pods []*v1.Pod) {
	var b batch
	first := !s.hasSet
	s.hasSet = true
	old := s.pods
	s.pods = make(map[types.NamespacedName]known, len(pods))
	for _, pod := range pods {
		key := keyOf(pod)
		if _, dup := s.pods[key]; dup {
			s.c.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, "FailedValidation",
				fmt.Sprintf("Error validating pod %s from %s due to duplicate pod name %q, ignoring", kubecontainer.PodDesc(pod), s.name, pod.Name))
			continue
		}
		was := old[key]
		if was.pod != nil && was.pod.UID == pod.UID {
			delete(old, key)
		} else {
			was = known{}
		}
		s.merge(&b, was, pod)
	}
	for _, k := range old { //drydock:unordered sorted below
		b.removes = append(b.removes, k.pod)
	}
	SortPods(b.removes)
	s.send(&b, first)
}

// Upsert states that one pod of the source is new or changed: the same as Set
// with the whole list, at the cost of one pod. Of a pod with the same namespace
// and name and another UID it takes the place.
func (s *Source) Upsert(pod *v1.Pod) {
	var b batch
	old := s.pods[keyOf(pod)]
	if old.pod != nil && old.pod.UID != pod.UID {
		b.removes = append(b.removes, old.pod)
		old = known{}
	}
	s.merge(&b, old, pod)
	first := !s.hasSet
	s.hasSet = true
	s.send(&b, first)
}

// Delete states that a pod of the source is gone, whatever its UID.
func (s *Source) Delete(namespace, name string) {
	var b batch
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if k, ok := s.pods[key]; ok {
		b.removes = append(b.removes, k.pod)
		delete(s.pods, key)
	}
	first := !s.hasSet
	s.hasSet = true
	s.send(&b, first)
}

// keyOf is by what a source's pods are told apart: two of one name are a
// mistake, whatever their UIDs.
func keyOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// merge compares one pod with what is stored of it, stores what came and notes
// what to tell.
// A change that asks for nothing, of the status, is a RECONCILE: the pod's
// worker need not run for it (upstream checkAndUpdatePod).
func (s *Source) merge(b *batch, old known, pod *v1.Pod) {
	key := keyOf(pod)
	if old.pod == nil {
		k := s.first(pod)
		s.pods[key] = k
		b.adds = append(b.adds, k.pod)
		return
	}
	same := sameWish(old.pod, pod)
	if same && sameStatus(&old.pod.Status, &pod.Status) {
		s.pods[key] = old
		return
	}
	k := old.next(pod)
	s.pods[key] = k
	switch {
	case same:
		b.reconciles = append(b.reconciles, k.pod)
	case pod.DeletionTimestamp != nil:
		b.deletes = append(b.deletes, k.pod)
	default:
		b.updates = append(b.updates, k.pod)
	}
}

// first is what is stored of a pod that is new: the API's object itself, unless
// it bears annotations that are the kubelet's own.
func (s *Source) first(pod *v1.Pod) known {
	now := s.c.l.UnixNano()
	if s.name == kubetypes.ApiserverSource && locals(pod.Annotations) == 0 {
		return known{pod: pod, first: &FirstSeen{At: now, ResourceVersion: pod.ResourceVersion}}
	}
	p := *pod
	p.Annotations = annotate(pod.Annotations, s.name, seenText(now))
	return known{pod: &p}
}

// next is what is stored of a pod's next version. In a copy, other metadata
// (owners, finalizers, resourceVersion) stays as first seen; of an object of the
// API nobody looks at these, but see FirstSeen.
func (k known) next(pod *v1.Pod) known {
	if k.first != nil && locals(pod.Annotations) == 0 {
		return known{pod: pod, first: k.first}
	}
	p := *k.pod
	if k.first != nil { // somebody has given it annotations that are the kubelet's
		p.ResourceVersion = k.first.ResourceVersion
	}
	p.Annotations = mergeAnnotations(k.first.Annotations(k.pod), pod.Annotations)
	p.Spec = pod.Spec
	p.Labels = pod.Labels
	p.DeletionTimestamp = pod.DeletionTimestamp
	p.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	p.Generation = pod.Generation
	p.Status = pod.Status
	return known{pod: &p}
}

// sameStatus is strict deep equality. Most statuses that differ do so in what is
// seen without a walk through them.
func sameStatus(a, b *v1.PodStatus) bool {
	if a.Phase != b.Phase || a.PodIP != b.PodIP || len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		if a.Conditions[i].Status != b.Conditions[i].Status {
			return false
		}
	}
	return reflect.DeepEqual(a, b)
}

// send passes the messages on: REMOVE, ADD, UPDATE, DELETE, RECONCILE, empty
// ones left out. A first update without pods sends one empty ADD, which marks
// the source ready.
// The order matters where a pod takes the place of another: the old one has to
// go first.
func (s *Source) send(b *batch, first bool) {
	put := func(op kubetypes.PodOperation, pods []*v1.Pod) {
		s.c.updates.TryPut(kubetypes.PodUpdate{Pods: pods, Op: op, Source: s.name})
	}
	if len(b.removes) > 0 {
		put(kubetypes.REMOVE, b.removes)
	}
	if len(b.adds) > 0 {
		put(kubetypes.ADD, b.adds)
	}
	if len(b.updates) > 0 {
		put(kubetypes.UPDATE, b.updates)
	}
	if len(b.deletes) > 0 {
		put(kubetypes.DELETE, b.deletes)
	}
	if first && len(b.adds) == 0 && len(b.updates) == 0 && len(b.deletes) == 0 {
		put(kubetypes.ADD, nil)
	}
	if len(b.reconciles) > 0 {
		put(kubetypes.RECONCILE, b.reconciles)
	}
}

// sameWish reports whether nothing that a pod asks for differs. It is strict deep
// equality; what both share is recognised by its address.
func sameWish(old, pod *v1.Pod) bool {
	return sameSpec(old, pod) &&
		reflect.DeepEqual(old.Labels, pod.Labels) &&
		reflect.DeepEqual(old.DeletionTimestamp, pod.DeletionTimestamp) &&
		reflect.DeepEqual(old.DeletionGracePeriodSeconds, pod.DeletionGracePeriodSeconds) &&
		sameAnnotations(old.Annotations, pod.Annotations)
}

// sameSpec is strict deep equality. An API server that counts a pod's generations
// (since v1.33) counts each change of its spec, so that there is nothing to walk
// through while the number stays; one that doesn't leaves it at 0.
func sameSpec(old, pod *v1.Pod) bool {
	return old.Generation != 0 && old.Generation == pod.Generation || reflect.DeepEqual(&old.Spec, &pod.Spec)
}

// isLocal reports whether an annotation is the kubelet's own, which the API's
// object has none of, or not to be believed.
func isLocal(key string) bool {
	return key == kubetypes.ConfigSourceAnnotationKey || key == kubetypes.ConfigMirrorAnnotationKey ||
		key == kubetypes.ConfigFirstSeenAnnotationKey
}

// locals counts the annotations that are the kubelet's own.
func locals(m map[string]string) (n int) {
	for _, key := range [...]string{kubetypes.ConfigSourceAnnotationKey, kubetypes.ConfigMirrorAnnotationKey, kubetypes.ConfigFirstSeenAnnotationKey} {
		if _, ok := m[key]; ok {
			n++
		}
	}
	return n
}

// sameAnnotations compares what is not the kubelet's own.
func sameAnnotations(old, cur map[string]string) bool {
	if len(cur)-locals(cur) != len(old)-locals(old) {
		return false
	}
	if len(cur) == 0 {
		return true
	}
	for k, v := range cur { //drydock:unordered compares two maps
		if o, ok := old[k]; !isLocal(k) && (!ok || o != v) {
			return false
		}
	}
	return true
}

// mergeAnnotations are the new ones with the kubelet's own of before.
func mergeAnnotations(old, cur map[string]string) map[string]string {
	out := make(map[string]string, len(cur)+3)
	for k, v := range cur { //drydock:unordered copies a map
		if !isLocal(k) {
			out[k] = v
		}
	}
	for k, v := range old { //drydock:unordered copies a map
		if isLocal(k) {
			out[k] = v
		}
	}
	return out
}

// SortPods sorts by namespace, name, UID: the order that stands in for
// upstream's map order.
func SortPods(pods []*v1.Pod) { slices.SortFunc(pods, ComparePods) }

// ComparePods orders by namespace, name, UID.
func ComparePods(a, b *v1.Pod) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return strings.Compare(string(a.UID), string(b.UID))
}
