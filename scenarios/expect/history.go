package expect

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
)

// history keeps the transitions that a run's expressions ask for. Nothing is kept unless an
// expression asks for it, see Engine.wantHistory.
type history struct {
	allPods, allNodes bool
	pods              map[objKey]*podHistory
	nodes             map[string][]*NodeTransition
}

// podHistory is what was seen of a pod, and of its containers.
type podHistory struct {
	list       []*Transition
	containers []containerHistory // in the order in which they were seen first
}

// containerHistory is what was seen of one container.
type containerHistory struct {
	name string
	list []*ContainerTransition
}

// transitions are what was seen of the pod; none of one that was never there.
func (h *podHistory) transitions() []*Transition {
	if h == nil {
		return nil
	}
	return h.list
}

// container is what was seen of one of the pod's containers.
func (h *podHistory) container(name string) []*ContainerTransition {
	if h == nil {
		return nil
	}
	for i := range h.containers {
		if h.containers[i].name == name {
			return h.containers[i].list
		}
	}
	return nil
}

// newHistory returns a history that keeps nothing until something is wanted.
func newHistory() *history {
	return &history{pods: map[objKey]*podHistory{}, nodes: map[string][]*NodeTransition{}}
}

// wantPod and wantNode have the history of one object kept.
func (h *history) wantPod(k objKey)  { h.pods[k] = &podHistory{} }
func (h *history) wantNode(n string) { h.nodes[n] = []*NodeTransition{} }

// isEmpty reports whether nothing is wanted, so that changes need no look.
func (h *history) isEmpty() bool {
	return !h.allPods && !h.allNodes && len(h.pods) == 0 && len(h.nodes) == 0
}

// podChanged notes what a pod's change shows, unless that is what was seen last.
// A pod of the same name continues the history; its UID tells them apart. Old is needed for a pod
// that is gone, of which there is no new state.
func (h *history) podChanged(old, now *v1.Pod, at time.Duration) {
	p := cmp.Or(now, old)
	k := objKey{p.Namespace, p.Name}
	ph := h.pods[k]
	if ph == nil {
		if !h.allPods {
			return
		}
		ph = &podHistory{}
		h.pods[k] = ph
	}
	t := Transition{Time: at, Phase: string(p.Status.Phase), Reason: p.Status.Reason, Ready: PodReady(p), Restarts: podRestarts(p),
		Deleting: p.DeletionTimestamp != nil, Gone: now == nil, UID: string(p.UID)}
	last := Transition{Time: -1}
	if n := len(ph.list); n > 0 {
		last = *ph.list[n-1]
	}
	// A transition is a change of anything but the time.
	last.Time = at
	if len(ph.list) == 0 || last != t {
		ph.list = append(ph.list, &t)
	}
	if now == nil {
		return
	}
	for _, l := range statusLists(p) {
		for i := range l {
			ph.containerChanged(&l[i], at)
		}
	}
}

// containerChanged notes what a container's status shows, unless that is what
// was seen last. A container that leaves the status leaves no transition.
func (h *podHistory) containerChanged(s *v1.ContainerStatus, at time.Duration) {
	t := ContainerTransition{Time: at, Ready: s.Ready, Restarts: int(s.RestartCount), ContainerID: s.ContainerID}
	switch {
	case s.State.Running != nil:
		t.State = "running"
	case s.State.Terminated != nil:
		x := s.State.Terminated
		t.State, t.Reason, t.Message, t.ExitCode, t.Signal = "terminated", x.Reason, x.Message, int(x.ExitCode), int(x.Signal)
	default:
		t.State = "waiting"
		if w := s.State.Waiting; w != nil {
			t.Reason, t.Message = w.Reason, w.Message
		}
	}
	var c *containerHistory
	for i := range h.containers {
		if h.containers[i].name == s.Name {
			c = &h.containers[i]
		}
	}
	if c == nil {
		h.containers = append(h.containers, containerHistory{name: s.Name})
		c = &h.containers[len(h.containers)-1]
	}
	if n := len(c.list); n > 0 {
		// As for the pod, the time alone is no change.
		last := *c.list[n-1]
		last.Time = at
		if last == t {
			return
		}
	}
	c.list = append(c.list, &t)
}

// nodeChanged notes the conditions whose status or reason is another than
// before. A heartbeat changes neither, so that hours of them cost nothing.
func (h *history) nodeChanged(now *v1.Node, at time.Duration) {
	if now == nil {
		return
	}
	list, ok := h.nodes[now.Name]
	if !ok && !h.allNodes {
		return
	}
	for i := range now.Status.Conditions {
		c := &now.Status.Conditions[i]
		t := &NodeTransition{Time: at, Type: string(c.Type), Status: string(c.Status), Reason: c.Reason}
		same := false
		// The type's last transition has what the condition was before.
		for j := len(list) - 1; j >= 0; j-- {
			if list[j].Type == t.Type {
				same = list[j].Status == t.Status && list[j].Reason == t.Reason
				break
			}
		}
		if !same {
			list = append(list, t)
		}
	}
	h.nodes[now.Name] = list
}
