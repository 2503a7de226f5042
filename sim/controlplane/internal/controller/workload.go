package controller

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Workload is what the controllers have in common that keep a number of pods for
// each object of a kind (ReplicaSets, StatefulSets, DaemonSets): which objects are
// synced when their pods change, who may adopt a pod, and how a status is written.
// Upstream has this three times over, in addPod, updatePod and deletePod of each.
type Workload[T Stored] struct {
	Options
	Queue   *Queue
	Control *PodControl
	Claims  Claims

	kind apiserver.Kind
	pods PodsOf[T]
}

// PodsOf says what a Workload has to know of an object's pods.
type PodsOf[T Stored] struct {
	// Selector chooses the pods that an object may adopt.
	Selector func(T) *metav1.LabelSelector
	// MinReadySeconds is for how long a pod is ready before it is available.
	MinReadySeconds func(T) int32
	// Deletions: a pod counts until it is gone, so the beginning of its deletion
	// matters also when it has ended already.
	Deletions bool
	// Wakes, if not nil, says which other changes matter. The new version is never nil.
	Wakes func(PodChange) bool
}

// NewWorkload returns what a controller of the kind has in common with others. It
// hears of pods from now on; of its objects the controller has to hear itself.
func NewWorkload[T Stored](opts Options, kind apiserver.Kind, queue QueueOptions, control *PodControl, pods PodsOf[T]) *Workload[T] {
	w := &Workload[T]{Options: opts, Control: control, Claims: Claims{Pods: opts.Pods(), Control: control}, kind: kind, pods: pods}
	queue.Group, queue.Delay = opts.Group, opts.API.Delivery
	w.Queue = NewQueue(queue)
	opts.Pods().OnChange(kind, w.onPod)
	opts.Pods().OnOrphan(w.onOrphan)
	return w
}

// Get returns an object as the API has it now; false when there is none.
func (w *Workload[T]) Get(key Key) (T, bool) { return Lookup[T](w.API, w.kind, key) }

// onPod has the owner synced after a change of a pod that it counts. A pod whose
// owner was replaced by another of its name is the garbage collector's.
func (w *Workload[T]) onPod(owner Key, uid types.UID, ch PodChange) {
	if !ch.Matters() && !(w.pods.Deletions && ch.Deleted()) && !(w.pods.Wakes != nil && w.pods.Wakes(ch)) {
		return
	}
	obj, ok := w.Get(owner)
	if !ok || obj.GetUID() != uid {
		return
	}
	if ch.Relabeled() {
		w.Claims.Review(owner)
	}
	w.Queue.Add(owner)
	w.Queue.AddOnceAvailable(owner, ch, w.pods.MinReadySeconds(obj))
}

// onOrphan has everyone synced who might adopt a pod.
func (w *Workload[T]) onOrphan(pod *v1.Pod) {
	for _, obj := range apiserver.Objects[T](w.API.Server().Store(), w.kind) {
		if obj.GetNamespace() == pod.Namespace && Selects(w.pods.Selector(obj), pod.Labels) {
			w.Claims.Review(KeyOf(obj))
			w.Queue.Add(KeyOf(obj))
		}
	}
}

// WriteStatus writes an object's status and returns the object as stored. with
// returns a copy of an object with the status that is wanted. When the first try
// fails, a second one starts from the object as it is by then, as upstream's
// controllers do (statusUpdateRetries).
func (w *Workload[T]) WriteStatus(ctx context.Context, obj T, with func(T) T) (T, error) {
	written, err := Update(ctx, w.API, with(obj), "status")
	if err == nil {
		return written, nil
	}
	if fresh, ok := w.Get(KeyOf(obj)); ok {
		return Update(ctx, w.API, with(fresh), "status")
	}
	return written, err
}

// SyncWhenAvailable has an object synced again when the next of its ready pods
// becomes available, since its status changes then. pods were looked at at the
// time seen; the sync has taken time since.
func (w *Workload[T]) SyncWhenAvailable(obj T, pods []*v1.Pod, seen time.Time) {
	minReady := w.pods.MinReadySeconds(obj)
	after := time.Duration(minReady) * time.Second
	if next, ok := NextAvailable(pods, minReady, seen); ok {
		after = max(next-w.Group.Loop().Since(seen), 0)
	}
	w.Queue.AddAfter(KeyOf(obj), after)
}
