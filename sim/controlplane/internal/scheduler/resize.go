package scheduler

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// This file is what pods on nodes are counted with whose requests changed: a resize in place.

// resizing reports whether a resize in place is pending or under way: then the
// status counts beside the spec.
func resizing(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress
	})
}

// resize counts anew what a pod asks for. Few pods are ever resized, so what
// differs from the class's request is kept in a map beside it.
func (s *Scheduler) resize(pod, old *v1.Pod, n *nodeInfo) {
	was := *s.requestOf(old, s.classes.of(old, s.labels.of(old)))
	is := requestOf(pod)
	if c := s.classes.of(pod, s.labels.of(pod)); c.request.equal(&is) {
		delete(s.resized, pod.UID)
	} else {
		s.resized[pod.UID] = &is
	}
	if was.equal(&is) {
		return
	}
	n.count(&was, nil, -1)
	n.count(&is, nil, 1)
	s.version++
	s.moved(event{kind: podShrunk, node: n, pod: pod, freed: was.beyond(&is)})
}

// beyond returns what r asks for more than o.
func (r *request) beyond(o *request) request {
	out := request{amounts: amounts{cpu: max(r.cpu-o.cpu, 0), memory: max(r.memory-o.memory, 0), storage: max(r.storage-o.storage, 0)}}
	for _, e := range r.ext {
		if more := e.amount - amountOf(o.ext, e.name); more > 0 {
			out.ext = append(out.ext, extended{e.name, more})
		}
	}
	return out
}

// overlaps reports whether both ask for some of the same resource.
func (r *request) overlaps(o *request) bool {
	return r.cpu > 0 && o.cpu > 0 || r.memory > 0 && o.memory > 0 || r.storage > 0 && o.storage > 0 ||
		slices.ContainsFunc(r.ext, func(e extended) bool { return amountOf(o.ext, e.name) > 0 })
}

// equal reports whether two requests are counted and scored alike.
func (r *request) equal(o *request) bool {
	return r.amounts == o.amounts && r.scoreCPU == o.scoreCPU && r.scoreMemory == o.scoreMemory && slices.Equal(r.ext, o.ext)
}

// requestOf returns what a pod on a node is counted with.
func (s *Scheduler) requestOf(p *v1.Pod, c *class) *request {
	if len(s.resized) > 0 {
		if r := s.resized[p.UID]; r != nil {
			return r
		}
	}
	return &c.request
}
