package podworkers

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The predicates answer for UIDs that are known and, after the first
// housekeeping, for those that are not.

// IsPodKnownTerminated reports whether the pod's containers are known to be
// stopped.
func (w *Workers) IsPodKnownTerminated(uid types.UID) bool {
	s := w.records.get(uid)
	return s != nil && s.terminated()
}

// CouldHaveRunningContainers reports whether containers of the pod may run.
func (w *Workers) CouldHaveRunningContainers(uid types.UID) bool {
	if s := w.records.get(uid); s != nil {
		return !s.terminated()
	}
	return !w.records.synced
}

// ShouldPodBeFinished reports whether the pod's clean-up is complete.
func (w *Workers) ShouldPodBeFinished(uid types.UID) bool {
	if s := w.records.get(uid); s != nil {
		return s.finished
	}
	return w.records.synced
}

// IsPodTerminationRequested reports whether the pod is to end.
func (w *Workers) IsPodTerminationRequested(uid types.UID) bool {
	s := w.records.get(uid)
	return s != nil && s.terminationRequested()
}

// ShouldPodContainersBeTerminating reports whether the pod's worker has begun to
// stop its containers.
func (w *Workers) ShouldPodContainersBeTerminating(uid types.UID) bool {
	if s := w.records.get(uid); s != nil {
		return s.startedTerminating
	}
	return w.records.synced
}

// ShouldPodRuntimeBeRemoved reports whether what the runtime has of the pod may
// go.
func (w *Workers) ShouldPodRuntimeBeRemoved(uid types.UID) bool {
	if s := w.records.get(uid); s != nil {
		return s.terminated()
	}
	return w.records.synced
}

// DeadlineIsOver reports whether a pod has ended, so that its active deadline
// means nothing any more.
func (w *Workers) DeadlineIsOver(pod *v1.Pod) bool {
	return w.Known(pod.UID) && w.ShouldPodBeFinished(pod.UID)
}

// ShouldPodContentBeRemoved reports whether also its dead containers may go.
func (w *Workers) ShouldPodContentBeRemoved(uid types.UID) bool {
	if s := w.records.get(uid); s != nil {
		return s.evicted || s.deleted && s.terminated()
	}
	return w.records.synced
}

// IsPodForMirrorPodTerminating reports whether the started static pod of that
// name is stopping its containers right now.
func (w *Workers) IsPodForMirrorPodTerminating(name types.NamespacedName) bool {
	uid, ok := w.statics.started[name]
	if !ok {
		return false
	}
	s := w.records.get(uid)
	return s != nil && s.terminationRequested() && !s.terminated()
}
