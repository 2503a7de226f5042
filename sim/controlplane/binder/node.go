package binder

import (
	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// What a container that requests nothing counts for in the order of nodes
// (pkg/scheduler/util/pod_resources.go).
const (
	defaultMilliCPU = 100
	defaultMemory   = 200 << 20
)

// amounts are quantities of the native resources.
type amounts struct{ cpu, memory, storage, pods int64 }

// class is what pods that share their containers have in common.
type class struct {
	need      amounts
	ext       []extended // sorted by name
	scoreCPU  int64
	scoreMem  int64
	affinity  nodeaffinity.RequiredNodeAffinity
	selective bool // affinity says something
	ports     []hostPort
	failed    uint64 // the wave in which it fitted nowhere
	message   string // and why
}

type extended struct {
	name   v1.ResourceName
	amount int64
}

type hostPort struct {
	protocol v1.Protocol
	ip       string
	port     int32
}

func newClass(pod *v1.Pod) *class {
	reqs := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	c := &class{
		need:      amounts{cpu: reqs.Cpu().MilliValue(), memory: reqs.Memory().Value(), storage: reqs.StorageEphemeral().Value(), pods: 1},
		affinity:  nodeaffinity.GetRequiredNodeAffinity(pod),
		selective: len(pod.Spec.NodeSelector) > 0 || pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil,
	}
	for _, name := range sortedNames(reqs) {
		switch name {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
			continue
		}
		if q := reqs[name]; !q.IsZero() {
			c.ext = append(c.ext, extended{name, q.Value()})
		}
	}
	full := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{NonMissingContainerRequests: nonMissing()})
	c.scoreCPU, c.scoreMem = full.Cpu().MilliValue(), full.Memory().Value()
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort > 0 {
				c.ports = append(c.ports, hostPort{p.Protocol, p.HostIP, p.HostPort})
			}
		}
	}
	return c
}

// nodeInfo is a node with what is requested of it.
type nodeInfo struct {
	node     *v1.Node
	index    int // in the order of creation
	pos      int // in the heap; -1 when the node takes no pods
	alloc    amounts
	used     amounts
	ext      map[v1.ResourceName]int64 // used; looked up only
	scoreCPU int64
	scoreMem int64
	score    int64
	ports    []hostPort
	ready    bool
}

// set takes the node's present state; it reports whether that may let pods in
// that did not fit before.
func (n *nodeInfo) set(node *v1.Node) bool {
	old := n.node
	n.node = node
	alloc := amounts{
		cpu:     node.Status.Allocatable.Cpu().MilliValue(),
		memory:  node.Status.Allocatable.Memory().Value(),
		storage: node.Status.Allocatable.StorageEphemeral().Value(),
		pods:    node.Status.Allocatable.Pods().Value(),
	}
	ready := false
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == v1.NodeReady {
			ready = c.Status == v1.ConditionTrue
		}
	}
	changed := old == nil || alloc != n.alloc || ready != n.ready || old.Spec.Unschedulable != node.Spec.Unschedulable ||
		!sameTaints(old.Spec.Taints, node.Spec.Taints) || !sameLabels(old.Labels, node.Labels) ||
		len(old.Status.Allocatable) != len(node.Status.Allocatable)
	n.alloc, n.ready = alloc, ready
	return changed
}

// takes tells whether the node takes pods at all.
func (n *nodeInfo) takes() bool { return n.node != nil && n.ready }

// add counts a pod of class c in (sign 1) or out (-1).
func (n *nodeInfo) add(c *class, sign int64) {
	n.used.cpu += sign * c.need.cpu
	n.used.memory += sign * c.need.memory
	n.used.storage += sign * c.need.storage
	n.used.pods += sign
	n.scoreCPU += sign * c.scoreCPU
	n.scoreMem += sign * c.scoreMem
	for _, e := range c.ext {
		if n.ext == nil {
			n.ext = map[v1.ResourceName]int64{}
		}
		n.ext[e.name] += sign * e.amount
	}
	for _, p := range c.ports {
		if sign > 0 {
			n.ports = append(n.ports, p)
			continue
		}
		for i, o := range n.ports {
			if o == p {
				n.ports = append(n.ports[:i], n.ports[i+1:]...)
				break
			}
		}
	}
}

// rescore computes the part of cpu and memory that is requested, in millionths.
func (n *nodeInfo) rescore() {
	part := func(used, alloc int64) int64 {
		if alloc <= 0 {
			return 1_000_000
		}
		return int64(float64(used) / float64(alloc) * 1e6)
	}
	n.score = (part(n.scoreCPU, n.alloc.cpu) + part(n.scoreMem, n.alloc.memory)) / 2
}

// before orders nodes by use, then number of pods, then age.
func (n *nodeInfo) before(o *nodeInfo) bool {
	if n.score != o.score {
		return n.score < o.score
	}
	if n.used.pods != o.used.pods {
		return n.used.pods < o.used.pods
	}
	return n.index < o.index
}

// fits tells whether a pod fits; why not, when it does not, as kube-scheduler
// words it.
func (n *nodeInfo) fits(c *class, pod *v1.Pod) (bool, []string) {
	if n.node.Spec.Unschedulable && !tolerates(pod.Spec.Tolerations, &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}) {
		return false, []string{"node(s) were unschedulable"}
	}
	if !n.ready {
		return false, []string{"node(s) had untolerated taint(s)"}
	}
	for i := range n.node.Spec.Taints {
		t := &n.node.Spec.Taints[i]
		if t.Effect != v1.TaintEffectPreferNoSchedule && !tolerates(pod.Spec.Tolerations, t) {
			return false, []string{"node(s) had untolerated taint(s)"}
		}
	}
	if c.selective {
		if ok, err := c.affinity.Match(n.node); err != nil || !ok {
			return false, []string{"node(s) didn't match Pod's node affinity/selector"}
		}
	}
	for _, p := range c.ports {
		for _, o := range n.ports {
			if p.port == o.port && p.protocol == o.protocol && (p.ip == o.ip || anyIP(p.ip) || anyIP(o.ip)) {
				return false, []string{"node(s) didn't have free ports for the requested pod ports"}
			}
		}
	}
	return n.fitsResources(c)
}

func anyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" }

func (n *nodeInfo) fitsResources(c *class) (bool, []string) {
	var why []string
	if n.used.pods+1 > n.alloc.pods {
		why = append(why, "Too many pods")
	}
	short := func(need, used, alloc int64, name string) {
		if need > 0 && need > alloc-used {
			why = append(why, "Insufficient "+name)
		}
	}
	short(c.need.cpu, n.used.cpu, n.alloc.cpu, "cpu")
	short(c.need.memory, n.used.memory, n.alloc.memory, "memory")
	short(c.need.storage, n.used.storage, n.alloc.storage, "ephemeral-storage")
	for _, e := range c.ext {
		q := n.node.Status.Allocatable[e.name]
		short(e.amount, n.ext[e.name], q.Value(), string(e.name))
	}
	return len(why) == 0, why
}
