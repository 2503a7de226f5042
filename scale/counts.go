package scale

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// counts follow the API's changes. started counts pods that left Pending, but for
// those that failed before any of their containers ran: rejected ones. They are
// kept change by change: a look at all pods once a virtual second would be most
// of the run. All of it is written on the API's loop by the hook and read between runs. A restart
// count only grows with the containers that report it, so restarts sums up growths.
type counts struct {
	pods           Pods
	ready          int
	started, ended uint64
	restarts       uint64
	added, deleted uint64
}

// of is the counter of a phase; none yet is Pending. It returns a pointer, for the caller to
// count up and down.
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

// change is the hook. Old and New are committed versions, which nobody changes any more.
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

// pod moves a pod from the counter of its old phase to that of the new one. An Old of nil is a
// pod that came.
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
	// A pod is counted once: phases don't go back to Pending.
	if is != was {
		if (was == "" || was == v1.PodPending) && is != "" && is != v1.PodPending && (is != v1.PodFailed || ran(pod)) {
			c.started++
		}
		if is == v1.PodSucceeded || is == v1.PodFailed {
			c.ended++
		}
	}
	if old != nil {
		c.restarts += restarts(old.Status.InitContainerStatuses, pod.Status.InitContainerStatuses) + restarts(old.Status.ContainerStatuses, pod.Status.ContainerStatuses)
	}
}

// ran reports whether a container of a pod has run. A pod that failed without it
// was rejected, and did not start. A container ID appears when a container was made; a pod that
// was rejected on admission never has one.
func ran(p *v1.Pod) bool {
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].ContainerID != "" {
				return true
			}
		}
	}
	return false
}

// restarts is by how much the restart counts grew. The sums are compared, not the containers one
// by one: lists keep their order, and what is summed up is only shown. A shared address is the
// cheap way to see that a status write changed something else.
func restarts(old, now []v1.ContainerStatus) uint64 {
	if len(old) == 0 || len(now) == 0 || &old[0] == &now[0] {
		return 0 // none, or the same list
	}
	sum := 0
	for i := range now {
		sum += int(now[i].RestartCount)
	}
	for i := range old {
		sum -= int(old[i].RestartCount)
	}
	return uint64(max(sum, 0))
}

// isReady reports whether a node's condition Ready is True.
func isReady(n *v1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
