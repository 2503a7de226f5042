package status

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// resizeConditions are a pod's conditions about resizes, which status
// generation takes over. They are replaced, never written to.
// The manager has them, not the status: a status may be generated before the
// resize is decided (KEP-1287).
type resizeConditions struct {
	pending, inProgress *v1.PodCondition
}

// PodResizeConditions returns the conditions of a pod's resize, which are
// shared; nil means that there is none.
func (m *Manager) PodResizeConditions(uid types.UID) (pending, inProgress *v1.PodCondition) {
	c := m.resizes[uid]
	return c.pending, c.inProgress
}

// ResizeConditions lists a pod's conditions about resizes for its status.
func (m *Manager) ResizeConditions(uid types.UID) []v1.PodCondition {
	if len(m.resizes) == 0 {
		return nil
	}
	var out []v1.PodCondition
	pending, inProgress := m.PodResizeConditions(uid)
	for _, c := range [...]*v1.PodCondition{pending, inProgress} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

// SetPodResizePending says that a resize was not allocated, and why: Deferred
// or Infeasible. It reports whether reason or generation changed.
// The caller records an event only if it did, so that each attempt is not one.
func (m *Manager) SetPodResizePending(uid types.UID, reason, message string, generation int64) (changed bool) {
	c := m.resizes[uid]
	changed = c.pending == nil || c.pending.Reason != reason || c.pending.ObservedGeneration != generation
	c.pending = m.resizeCondition(v1.PodResizePending, c.pending, reason, message, generation)
	m.setResize(uid, c)
	return changed
}

// ClearPodResizePending removes the condition.
func (m *Manager) ClearPodResizePending(uid types.UID) {
	c := m.resizes[uid]
	c.pending = nil
	m.setResize(uid, c)
}

// SetPodResizeInProgress says that a pod's allocation is being actuated; reason
// Error says that this failed. An empty reason leaves that of a condition that
// there is; the generation of one that there is stays. It reports whether the
// condition says anything new.
func (m *Manager) SetPodResizeInProgress(uid types.UID, reason, message string, generation int64) (changed bool) {
	c := m.resizes[uid]
	if old := c.inProgress; old != nil {
		generation = old.ObservedGeneration
		if reason == "" && message == "" {
			reason, message = old.Reason, old.Message
		}
		changed = old.Reason != reason || old.Message != message
	} else {
		changed = true
	}
	c.inProgress = m.resizeCondition(v1.PodResizeInProgress, c.inProgress, reason, message, generation)
	m.setResize(uid, c)
	return changed
}

// ClearPodResizeInProgress removes the condition; it reports whether there was
// one, and of which generation.
func (m *Manager) ClearPodResizeInProgress(uid types.UID) (generation int64, cleared bool) {
	c := m.resizes[uid]
	if c.inProgress == nil {
		return 0, false
	}
	generation = c.inProgress.ObservedGeneration
	c.inProgress = nil
	m.setResize(uid, c)
	return generation, true
}

// BackfillPodResizeConditions takes the conditions over that the API's status
// of a pod has, which an earlier kubelet wrote.
func (m *Manager) BackfillPodResizeConditions(pod *v1.Pod) {
	var c resizeConditions
	if p := FindCondition(pod.Status.Conditions, v1.PodResizePending); p != nil {
		out := *p
		c.pending = &out
	}
	if p := FindCondition(pod.Status.Conditions, v1.PodResizeInProgress); p != nil {
		out := *p
		c.inProgress = &out
	}
	if c.pending != nil || c.inProgress != nil {
		m.setResize(pod.UID, c)
	}
}

// setResize keeps a pod's conditions; of a pod without any nothing is kept.
func (m *Manager) setResize(uid types.UID, c resizeConditions) {
	if c == (resizeConditions{}) {
		delete(m.resizes, uid)
		return
	}
	if m.resizes == nil {
		m.resizes = map[types.UID]resizeConditions{}
	}
	m.resizes[uid] = c
}

// resizeCondition makes a condition; its transition time moves with its reason.
func (m *Manager) resizeCondition(t v1.PodConditionType, old *v1.PodCondition, reason, message string, generation int64) *v1.PodCondition {
	now := apiTime(m.opts.Loop.Now())
	c := &v1.PodCondition{
		Type: t, Status: v1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
		LastProbeTime: now, LastTransitionTime: now,
	}
	if old != nil && old.Reason == reason {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}
