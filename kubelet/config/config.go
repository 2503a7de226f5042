// Package config turns the pods of several sources (the API, files) into one
// stream of messages for the sync loop. It answers to upstream's
// pkg/kubelet/config. Where upstream hands out deep copies, this package hands
// out pods that share everything with the source's objects but the Pod struct
// itself and its annotations, and that nobody writes to.
package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/types"
	"github.com/drydock-sim/drydock/sim/loop"
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
	s := &Source{c: c, name: name, pods: map[types.UID]*v1.Pod{}}
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

// AllReady tells whether each source has delivered at least once and the sync
// loop has handled a message of it (pkg/kubelet/config/sources.go).
func (c *PodConfig) AllReady() bool {
	for _, s := range c.sources {
		if !s.hasSet || !s.seen {
			return false
		}
	}
	return true
}

// Source is one origin of pods.
type Source struct {
	c            *PodConfig
	name         string
	pods         map[types.UID]*v1.Pod
	byKey        map[types.NamespacedName]types.UID // only once Upsert was used
	hasSet, seen bool
}

// batch collects the messages of one update.
type batch struct{ removes, adds, updates, deletes, reconciles []*v1.Pod }

// Set states the source's complete list of pods.
func (s *Source) Set(pods []*v1.Pod) {
	var b batch
	first := !s.hasSet
	s.hasSet = true
	names := make(map[types.NamespacedName]struct{}, len(pods))
	old := s.pods
	s.pods = make(map[types.UID]*v1.Pod, len(pods))
	if s.byKey != nil {
		s.byKey = make(map[types.NamespacedName]types.UID, len(pods))
	}
	seen := s.c.l.Now().Format(seenLayout)
	for _, pod := range pods {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		if _, dup := names[key]; dup {
			s.c.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeWarning, "FailedValidation",
				fmt.Sprintf("Error validating pod %s from %s due to duplicate pod name %q, ignoring", kubecontainer.PodDesc(pod), s.name, pod.Name))
			continue
		}
		names[key] = struct{}{}
		s.merge(&b, old[pod.UID], pod, seen)
		delete(old, pod.UID)
	}
	for _, pod := range old { //drydock:unordered sorted below
		b.removes = append(b.removes, pod)
	}
	SortPods(b.removes)
	s.send(&b, first)
}

// Upsert states that one pod of the source is new or changed: the same as Set
// with the whole list, at the cost of one pod. Of a pod with the same namespace
// and name and another UID it takes the place.
func (s *Source) Upsert(pod *v1.Pod) {
	var b batch
	s.index()
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	if uid, ok := s.byKey[key]; ok && uid != pod.UID {
		b.removes = append(b.removes, s.pods[uid])
		delete(s.pods, uid)
	}
	s.merge(&b, s.pods[pod.UID], pod, "")
	s.byKey[key] = pod.UID
	first := !s.hasSet
	s.hasSet = true
	s.send(&b, first)
}

// Delete states that a pod of the source is gone, whatever its UID.
func (s *Source) Delete(namespace, name string) {
	var b batch
	s.index()
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if uid, ok := s.byKey[key]; ok {
		b.removes = append(b.removes, s.pods[uid])
		delete(s.pods, uid)
		delete(s.byKey, key)
	}
	first := !s.hasSet
	s.hasSet = true
	s.send(&b, first)
}

func (s *Source) index() {
	if s.byKey != nil {
		return
	}
	s.byKey = make(map[types.NamespacedName]types.UID, len(s.pods))
	for uid, pod := range s.pods { //drydock:unordered fills a map
		s.byKey[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = uid
	}
}

// merge compares one pod with what is stored of it, stores what came and notes
// what to tell.
func (s *Source) merge(b *batch, old, pod *v1.Pod, seen string) {
	if s.byKey != nil {
		s.byKey[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod.UID
	}
	if old == nil {
		if seen == "" {
			seen = s.c.l.Now().Format(seenLayout)
		}
		p := *pod
		p.Annotations = make(map[string]string, len(pod.Annotations)+2)
		for k, v := range pod.Annotations { //drydock:unordered copies a map
			p.Annotations[k] = v
		}
		p.Annotations[kubetypes.ConfigSourceAnnotationKey] = s.name
		p.Annotations[kubetypes.ConfigFirstSeenAnnotationKey] = seen
		s.pods[pod.UID] = &p
		b.adds = append(b.adds, &p)
		return
	}
	if sameWish(old, pod) {
		if reflect.DeepEqual(&old.Status, &pod.Status) {
			s.pods[pod.UID] = old
			return
		}
		// Who holds the pod goes by what it asks for; its status is the status
		// manager's affair. So it stays the same object, as upstream's does.
		old.Status = pod.Status
		b.reconciles = append(b.reconciles, old)
		return
	}
	// Other metadata (owners, finalizers, resourceVersion) stays as first seen.
	p := *old
	p.Spec = pod.Spec
	p.Labels = pod.Labels
	p.DeletionTimestamp = pod.DeletionTimestamp
	p.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	p.Generation = pod.Generation
	p.Status = pod.Status
	p.Annotations = mergeAnnotations(old.Annotations, pod.Annotations)
	s.pods[pod.UID] = &p
	if pod.DeletionTimestamp != nil {
		b.deletes = append(b.deletes, &p)
	} else {
		b.updates = append(b.updates, &p)
	}
}

// send passes the messages on: REMOVE, ADD, UPDATE, DELETE, RECONCILE, empty
// ones left out. A first update without pods sends one empty ADD, which marks
// the source ready.
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

// sameWish tells whether nothing that a pod asks for differs. It is strict deep
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
