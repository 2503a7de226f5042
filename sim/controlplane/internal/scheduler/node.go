package scheduler

import (
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

// nodeInfo is a node with what is requested of it, also by pods whose binding
// is under way.
type nodeInfo struct {
	name string
	node *v1.Node // nil: pods name it, but it is not there
	slot int      // index into what is kept by node; free again when the node goes
	// gen counts the changes of what the node's own filters and scores see.
	gen uint32
	// static is another number whenever the node's labels or taints, or the node
	// itself, are.
	static uint32
	zone   string  // topology.GetZoneKey
	topo   []int32 // the numbers of its topology values, by topoKey.id

	alloc    amounts
	allocExt []extended
	maxPods  int64

	pods                  int64
	cpu, memory, storage  wide
	ext                   map[v1.ResourceName]*wide
	scoreCPU, scoreMemory wide
	ports                 []hostPort
	images                map[*imageState]bool

	assumed   []*v1.Pod // placed, not yet bound in the API
	nominated []*queued // pods that evicted others to get here
}

// imageState is an image that some nodes have.
type imageState struct {
	name  string
	size  int64
	nodes int
}

func (n *nodeInfo) requested() amounts {
	return amounts{n.cpu.value(), n.memory.value(), n.storage.value()}
}

func (n *nodeInfo) extUsed(name v1.ResourceName) int64 {
	if w := n.ext[name]; w != nil {
		return w.value()
	}
	return 0
}

// count takes a pod's request and ports in (sign 1) or out (-1).
func (n *nodeInfo) count(r *request, ports []hostPort, sign int64) {
	n.gen++
	n.pods += sign
	n.cpu.add(r.cpu, sign)
	n.memory.add(r.memory, sign)
	n.storage.add(r.storage, sign)
	n.scoreCPU.add(r.scoreCPU, sign)
	n.scoreMemory.add(r.scoreMemory, sign)
	for _, e := range r.ext {
		w := n.ext[e.name]
		if w == nil {
			if n.ext == nil {
				n.ext = map[v1.ResourceName]*wide{}
			}
			w = &wide{}
			n.ext[e.name] = w
		}
		w.add(e.amount, sign)
	}
	for _, p := range ports {
		if sign > 0 {
			n.ports = append(n.ports, p)
		} else if i := slices.Index(n.ports, p); i >= 0 {
			n.ports = slices.Delete(n.ports, i, i+1)
		}
	}
}

// info returns what is kept of a node. Pods may name a node before it is there.
func (s *Scheduler) info(name string) *nodeInfo {
	n := s.nodes[name]
	if n == nil {
		n = &nodeInfo{name: name, topo: slices.Repeat([]int32{none}, len(s.keys))}
		if k := len(s.free); k > 0 {
			n.slot, s.free = s.free[k-1], s.free[:k-1]
			s.slots[n.slot] = n
			n.gen = s.lastGen[n.slot] + 1
		} else {
			n.slot = len(s.slots)
			s.slots = append(s.slots, n)
			s.lastGen = append(s.lastGen, 0)
			n.gen = 1
		}
		s.nodes[name] = n
	}
	return n
}

// setNode takes a node's present state and wakes the pods that it may let in.
func (s *Scheduler) setNode(node *v1.Node) {
	n := s.info(node.Name)
	old := n.node
	if old != nil && sameNode(old, node) {
		s.setImages(n, node)
		n.node = node
		return
	}
	if old == nil || !sameLabels(old.Labels, node.Labels) {
		s.relabel(n, node)
	}
	s.setImages(n, node)
	n.node = node
	if old == nil || !sameLabels(old.Labels, node.Labels) || !sameTaints(old.Spec.Taints, node.Spec.Taints) {
		s.statics++
		n.static = s.statics
	}
	n.alloc, n.allocExt = amountsOf(node.Status.Allocatable), extendedOf(node.Status.Allocatable)
	n.maxPods = node.Status.Allocatable.Pods().Value()
	zone := topology.GetZoneKey(node)
	if old == nil || zone != n.zone {
		if old != nil {
			s.tree.remove(n)
		}
		n.zone = zone
		s.tree.add(n)
	}
	n.gen++
	s.version++
	s.moved(event{kind: nodeChange, node: n, oldNode: old})
}

// dropNode forgets a node; what is left of its pods is kept until they go.
func (s *Scheduler) dropNode(name string) {
	n := s.nodes[name]
	if n == nil || n.node == nil {
		return
	}
	old := n.node
	s.tree.remove(n)
	s.relabel(n, nil)
	s.setImages(n, nil)
	n.node = nil
	n.gen++
	s.version++
	s.moved(event{kind: nodeDelete, node: n, oldNode: old})
	s.release(n)
}

// release gives the slot of a node back that is not there and has no pods.
func (s *Scheduler) release(n *nodeInfo) {
	if n.node != nil || n.pods > 0 || len(n.nominated) > 0 || s.nodes[n.name] != n {
		return
	}
	delete(s.nodes, n.name)
	s.slots[n.slot] = nil
	s.lastGen[n.slot] = n.gen
	s.free = append(s.free, n.slot)
}

// sameNode tells whether nothing changed that filters or scores look at, other
// than images.
func sameNode(a, b *v1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && sameTaints(a.Spec.Taints, b.Spec.Taints) &&
		sameLabels(a.Labels, b.Labels) && sameResources(a.Status.Allocatable, b.Status.Allocatable)
}

func sameTaints(a, b []v1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y v1.Taint) bool { return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect })
}

func sameLabels(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return true
	}
	for k, v := range a { //drydock:unordered all must hold
		if o, ok := b[k]; !ok || o != v {
			return false
		}
	}
	return true
}

func sameResources(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a { //drydock:unordered all must hold
		if o, ok := b[k]; !ok || o.Cmp(v) != 0 {
			return false
		}
	}
	return true
}

// setImages takes over the images that a node reports; nil: it is gone. An image
// counts under each of its names.
func (s *Scheduler) setImages(n *nodeInfo, node *v1.Node) {
	if node != nil && n.node != nil && sameImages(n.node.Status.Images, node.Status.Images) {
		return
	}
	var unused []*imageState
	for st := range n.images { //drydock:unordered each is counted down
		if st.nodes--; st.nodes == 0 {
			unused = append(unused, st)
		}
	}
	defer func() {
		for _, st := range unused {
			if st.nodes == 0 {
				delete(s.images, st.name)
			}
		}
	}()
	clear(n.images)
	n.gen++
	s.imageGen++
	if node == nil {
		return
	}
	for i := range node.Status.Images {
		im := &node.Status.Images[i]
		for _, name := range im.Names {
			st := s.images[name]
			if st == nil {
				st = &imageState{name: name}
				s.images[name] = st
			}
			// The size that was reported last counts for all nodes.
			st.size = im.SizeBytes
			if n.images == nil {
				n.images = map[*imageState]bool{}
			}
			if !n.images[st] {
				n.images[st] = true
				st.nodes++
			}
		}
	}
}

func sameImages(a, b []v1.ContainerImage) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	return slices.EqualFunc(a, b, func(x, y v1.ContainerImage) bool {
		return x.SizeBytes == y.SizeBytes && slices.Equal(x.Names, y.Names)
	})
}

// nodeTree is the order in which nodes are looked at: by turns from each zone,
// in the order of their coming (pkg/scheduler/backend/cache/node_tree.go).
type nodeTree struct {
	zones []*zone
	list  []*nodeInfo // nil: to be made
	size  int
}

type zone struct {
	name  string
	nodes []*nodeInfo
}

func (t *nodeTree) zone(name string) int {
	return slices.IndexFunc(t.zones, func(z *zone) bool { return z.name == name })
}

func (t *nodeTree) add(n *nodeInfo) {
	i := t.zone(n.zone)
	if i < 0 {
		i = len(t.zones)
		t.zones = append(t.zones, &zone{name: n.zone})
	}
	t.zones[i].nodes = append(t.zones[i].nodes, n)
	t.size++
	t.list = nil
}

func (t *nodeTree) remove(n *nodeInfo) {
	i := t.zone(n.zone)
	if i < 0 {
		return
	}
	z := t.zones[i]
	j := slices.Index(z.nodes, n)
	if j < 0 {
		return
	}
	z.nodes = slices.Delete(z.nodes, j, j+1)
	if len(z.nodes) == 0 {
		t.zones = slices.Delete(t.zones, i, i+1)
	}
	t.size--
	t.list = nil
}

// nodes returns all nodes in their order.
func (t *nodeTree) nodes() []*nodeInfo {
	if t.list != nil || t.size == 0 {
		return t.list
	}
	list := make([]*nodeInfo, 0, t.size)
	for i := 0; len(list) < t.size; i++ {
		for _, z := range t.zones {
			if i < len(z.nodes) {
				list = append(list, z.nodes[i])
			}
		}
	}
	t.list = list
	return list
}
