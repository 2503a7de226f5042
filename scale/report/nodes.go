package report

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// nodeStats is what is kept of a node. down is the sum of outages that are over; one that goes on
// counts from since.
type nodeStats struct {
	name               string
	started, restarts  uint64
	evicted, oomKills  uint64
	rejected           uint64
	wasReady, notReady bool
	since, down        time.Duration
	outages            uint64
}

// nodeIndex returns the index of a node's statistics, which it makes if need be. A node is known
// by its first change or by the first pod bound to it.
func (k *Collector) nodeIndex(name string) int {
	i, ok := k.byName[name]
	if !ok {
		i = len(k.nodes)
		k.byName[name] = i
		k.nodes = append(k.nodes, nodeStats{name: name})
	}
	return i
}

// nodeOf is what is kept of a pod's node.
func (k *Collector) nodeOf(p *v1.Pod) *nodeStats { return &k.nodes[k.nodeIndex(p.Spec.NodeName)] }

// node takes a change of a node. Most changes of a node are heartbeats, in which nothing counted
// differs.
func (k *Collector) node(old, n *v1.Node, gone bool, now time.Duration) {
	var was, is [nodeStates]bool
	if old != nil {
		was = statesOf(old)
	}
	if !gone {
		is = statesOf(n)
	}
	if was == is {
		return
	}
	for s := range nodeStates {
		if was[s] != is[s] {
			k.over.now.Nodes[s] += count(is[s]) - count(was[s])
		}
	}
	k.nodes[k.nodeIndex(n.Name)].ready(is[Ready], gone, now)
}

// count is 1 for true.
func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// ready follows a node's condition Ready. Before it was True once, a node starts.
// A node that is deleted while it is not Ready is down until then and no longer. A node that has
// not been Ready yet is not failing: it is starting.
func (x *nodeStats) ready(is, gone bool, now time.Duration) {
	x.wasReady = x.wasReady || is
	down := x.wasReady && !is && !gone
	switch {
	case down && !x.notReady:
		x.outages++
		x.since = now
	case !down && x.notReady:
		x.down += now - x.since
	}
	x.notReady = down
	if gone {
		x.wasReady = false
	}
}

// statesOf are the states that a node is in. Of the three Ready states a node is in exactly one.
func statesOf(n *v1.Node) (out [nodeStates]bool) {
	ready := ReadyUnknown
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		on := c.Status == v1.ConditionTrue
		switch c.Type {
		case v1.NodeReady:
			switch c.Status {
			case v1.ConditionTrue:
				ready = Ready
			case v1.ConditionFalse:
				ready = NotReady
			}
		case v1.NodeMemoryPressure:
			out[MemoryPressure] = on
		case v1.NodeDiskPressure:
			out[DiskPressure] = on
		case v1.NodePIDPressure:
			out[PIDPressure] = on
		}
	}
	out[ready] = true
	out[Unschedulable] = n.Spec.Unschedulable
	return out
}
