package scale

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// counts follow the API's changes. started counts pods that have once left
// Pending.
type counts struct {
	pods           Pods
	ready          int
	started, ended uint64
	restarts       uint64
	added, deleted uint64
}

func (p *Pods) of(phase v1.PodPhase) *int {
	switch phase {
	case v1.PodPending, "":
		return &p.Pending
	case v1.PodRunning:
		return &p.Running
	case v1.PodSucceeded:
		return &p.Succeeded
	case v1.PodFailed:
		return &p.Failed
	}
	return &p.Unknown
}

func (c *counts) change(ch apiserver.Change) {
	switch ch.Kind {
	case apiserver.KindPod:
		c.pod(&ch)
	case apiserver.KindNode:
		if old, ok := ch.Old.(*v1.Node); ok && old != nil && isReady(old) {
			c.ready--
		}
		if n, ok := ch.New.(*v1.Node); ok && ch.Type != watch.Deleted && isReady(n) {
			c.ready++
		}
	}
}

func (c *counts) pod(ch *apiserver.Change) {
	was := v1.PodPhase("")
	old, _ := ch.Old.(*v1.Pod)
	if old != nil {
		was = old.Status.Phase
		*c.pods.of(was)--
	}
	if ch.Type == watch.Added {
		c.added++
	}
	if ch.Type == watch.Deleted {
		c.deleted++
		return
	}
	pod := ch.New.(*v1.Pod)
	is := pod.Status.Phase
	*c.pods.of(is)++
	if is != was {
		if was == "" || was == v1.PodPending {
			if is != "" && is != v1.PodPending {
				c.started++
			}
		}
		if is == v1.PodSucceeded || is == v1.PodFailed {
			c.ended++
		}
	}
	if old != nil && len(pod.Status.ContainerStatuses) > 0 && len(old.Status.ContainerStatuses) == len(pod.Status.ContainerStatuses) {
		for i := range pod.Status.ContainerStatuses {
			if d := pod.Status.ContainerStatuses[i].RestartCount - old.Status.ContainerStatuses[i].RestartCount; d > 0 {
				c.restarts += uint64(d)
			}
		}
	}
}

func isReady(n *v1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
