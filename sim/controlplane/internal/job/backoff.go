package job

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// Back-off of pods that fail (backoff_utils.go).
const (
	// A restart of the controller begins anew, which upstream documents by keeping the store in
	// memory only.
	firstBackoff = 10 * time.Second
	lastBackoff  = 10 * time.Minute
)

// failures are a job's since its last success. A restarted controller manager
// forgets them, as upstream's does. n counts in a row, so a job that fails now and then never
// waits long.
type failures struct {
	n    int
	last time.Time
}

// with adds pods that have ended since. A success begins a new count; failures
// from before it don't belong to it. Pods count once: they are those whose finalizer is still
// there and that no earlier sync has listed. The last failure is the latest of the new ones, though
// an earlier sync may have seen one that ended later: a pod that never was ready tells an old time.
func (f failures) with(succeeded, failed []*v1.Pod) failures {
	var since, last time.Time
	if len(succeeded) > 0 {
		f = failures{}
		for _, p := range succeeded {
			if t := finishedAt(p); t.After(since) {
				since = t
			}
		}
	}
	for _, p := range failed {
		t := finishedAt(p)
		if len(succeeded) > 0 && !t.After(since) {
			continue
		}
		f.n++
		last = later(last, t)
	}
	if !last.IsZero() {
		f.last = last
	}
	return f
}

// left is how long no pod is created.
func (f failures) left(l *loop.Loop) time.Duration { return backoffLeft(l, f.n, f.last) }

// backoffLeft is what is left of the back-off after n failures. It doubles from
// 10 s with each failure in a row; beyond the seventh it is at its limit. It is measured from
// when the pod ended, not from when that was heard.
func backoffLeft(l *loop.Loop, n int, last time.Time) time.Duration {
	if n == 0 {
		return 0
	}
	d := lastBackoff
	if n < 8 {
		d = min(firstBackoff<<(n-1), lastBackoff)
	}
	return max(d-l.Since(last), 0)
}

// finishedAt is when a pod ended, as far as it tells. In upstream's order: when
// its containers ended, when it stopped being ready, when its deletion began,
// when it was made. The order goes from the most exact to what is always there.
func finishedAt(p *v1.Pod) time.Time {
	if t, ok := containersFinished(p); ok {
		return t
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	if p.DeletionTimestamp != nil {
		grace := int64(0)
		if g := p.DeletionGracePeriodSeconds; g != nil {
			grace = *g
		}
		return p.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
	}
	return p.CreationTimestamp.Time
}

// containersFinished is when the last container or sidecar ended; false when it
// can't be told. Init containers that run once don't matter; sidecars end last.
// Of a pod whose containers were never started they tell alone
// (getFinishTimeFromContainers).
func containersFinished(p *v1.Pod) (time.Time, bool) {
	last := time.Time{}
	for i := range p.Status.ContainerStatuses {
		t := p.Status.ContainerStatuses[i].State.Terminated
		if t == nil || t.FinishedAt.IsZero() {
			last = time.Time{}
			break
		}
		last = later(last, t.FinishedAt.Time)
	}
	for i := range p.Status.InitContainerStatuses {
		st := &p.Status.InitContainerStatuses[i]
		sidecar := slices.ContainsFunc(p.Spec.InitContainers, func(c v1.Container) bool {
			return c.Name == st.Name && c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		})
		if !sidecar {
			continue
		}
		t := st.State.Terminated
		if t == nil || t.FinishedAt.IsZero() {
			return time.Time{}, false
		}
		last = later(last, t.FinishedAt.Time)
	}
	return last, !last.IsZero()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
