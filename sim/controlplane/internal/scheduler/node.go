package scheduler

import (
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

// nodeInfo is a node with what is requested of it, also by pods whose binding is
// under way. It outlives the node as long as pods name it, since a node that
// comes back finds them there (pkg/scheduler/framework NodeInfo).
type nodeInfo struct {
	// What filters ask of every node comes first, and lies together: a cycle looks at thousands.

	// slot: index into what is kept by node; free again when the node goes.
	slot int
	// gen counts the changes of what the node's own filters and scores see.
	gen uint32
	// static is another number whenever the node's labels or taints, or the node
	// itself, are.
	static uint32
	// nominated: pods that evicted others to get here.
	nominated []*queued
	// topo: the numbers of its topology values, by topoKey.id; while they are few, in near.
	topo []int32
	near [8]int32

	name string
	// nil: pods name it, but it is not there.
	node *v1.Node
	zone string // topology.GetZoneKey

	alloc    amounts
	allocExt []extended
	maxPods  int64

	pods                  int64
	cpu, memory, storage  wide
	ext                   map[v1.ResourceName]*wide
	scoreCPU, scoreMemory wide
	ports                 []hostPort
	images                map[*imageState]bool

	// assumed: placed, not yet bound in the API.
	assumed []*v1.Pod
}

// imageState is an image that some nodes have.
type imageState struct {
	name  string
	size  int64
	nodes int
}

// requested is what the pods on the node ask for together.
func (n *nodeInfo) requested() amounts {
	return amounts{n.cpu.value(), n.memory.value(), n.storage.value()}
}

// extUsed is requested for an extended resource.
func (n *nodeInfo) extUsed(name v1.ResourceName) int64 {
	if w := n.ext[name]; w != nil {
		return w.value()
	}
	return 0
}

// count takes a pod's request and ports in (sign 1) or out (-1). gen moves with
// it: entries of classes are of one gen.
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

// nodeTable keeps the nodes, with the numbers that stand for their topology values
// and the images that they have.
type nodeTable struct {
	byName map[string]*nodeInfo
	slots  []*nodeInfo // by nodeInfo.slot; nil: free
	free   []int
	// lastGen: by slot: gen of the last node that had it.
	lastGen []uint32
	statics uint32 // the last nodeInfo.static
	tree    nodeTree

	keys           []*topoKey
	keyByName      map[string]*topoKey
	hostname, zone *topoKey // of the default spreading
	was            []int32  // reused by relabel

	images   map[string]*imageState
	imageGen uint32 // counts changes of images
}

// newNodeTable returns an empty table that counts by the two topology keys of the
// default spreading from the start.
func newNodeTable() nodeTable {
	t := nodeTable{byName: map[string]*nodeInfo{}, keyByName: map[string]*topoKey{}, images: map[string]*imageState{}, imageGen: 1}
	t.hostname, t.zone = t.topoKey(v1.LabelHostname), t.topoKey(v1.LabelTopologyZone)
	return t
}

// info returns what is kept of a node. Pods may name a node before it is there. A
// slot that was another node's goes on with that one's gen, so that what classes
// remember of the slot does not pass for this node's.
func (t *nodeTable) info(name string) *nodeInfo {
	n := t.byName[name]
	if n == nil {
		n = &nodeInfo{name: name}
		n.topo = n.near[:0]
		for range t.keys {
			n.topo = append(n.topo, none)
		}
		if k := len(t.free); k > 0 {
			n.slot, t.free = t.free[k-1], t.free[:k-1]
			t.slots[n.slot] = n
			n.gen = t.lastGen[n.slot] + 1
		} else {
			n.slot = len(t.slots)
			t.slots = append(t.slots, n)
			t.lastGen = append(t.lastGen, 0)
			n.gen = 1
		}
		t.byName[name] = n
	}
	return n
}

// setNode takes a node's present state and wakes the pods that it may let in. A
// heartbeat, which changes nothing that matters here, ends with the comparison.
func (s *Scheduler) setNode(node *v1.Node) {
	n := s.table.info(node.Name)
	old := n.node
	if old != nil && sameNode(old, node) {
		s.table.setImages(n, node)
		n.node = node
		return
	}
	if old == nil || !sameLabels(old.Labels, node.Labels) {
		s.labels.relabel(n, node)
	}
	s.table.setImages(n, node)
	n.node = node
	if old == nil || !sameLabels(old.Labels, node.Labels) || !sameTaints(old.Spec.Taints, node.Spec.Taints) {
		s.table.statics++
		n.static = s.table.statics
	}
	n.alloc, n.allocExt = amountsOf(node.Status.Allocatable), extendedOf(node.Status.Allocatable)
	n.maxPods = node.Status.Allocatable.Pods().Value()
	zone := topology.GetZoneKey(node)
	if old == nil || zone != n.zone {
		if old != nil {
			s.table.tree.remove(n)
		}
		n.zone = zone
		s.table.tree.add(n)
	}
	n.gen++
	s.version++
	s.moved(event{kind: nodeChange, node: n, oldNode: old})
}

// dropNode forgets a node; what is left of its pods is kept until they go.
func (s *Scheduler) dropNode(name string) {
	n := s.table.byName[name]
	if n == nil || n.node == nil {
		return
	}
	old := n.node
	s.table.tree.remove(n)
	s.labels.relabel(n, nil)
	s.table.setImages(n, nil)
	n.node = nil
	n.gen++
	s.version++
	s.moved(event{kind: nodeDelete, node: n, oldNode: old})
	s.table.release(n)
}

// release gives the slot of a node back that is not there and has no pods.
func (t *nodeTable) release(n *nodeInfo) {
	if n.node != nil || n.pods > 0 || len(n.nominated) > 0 || t.byName[n.name] != n {
		return
	}
	delete(t.byName, n.name)
	t.slots[n.slot] = nil
	t.lastGen[n.slot] = n.gen
	t.free = append(t.free, n.slot)
}

// sameNode reports whether nothing changed that filters or scores look at, other
// than images.
func sameNode(a, b *v1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && sameTaints(a.Spec.Taints, b.Spec.Taints) &&
		sameLabels(a.Labels, b.Labels) && sameResources(a.Status.Allocatable, b.Status.Allocatable) &&
		slices.Equal(a.Status.DeclaredFeatures, b.Status.DeclaredFeatures)
}

// sameTaints leaves out when they were added.
func sameTaints(a, b []v1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y v1.Taint) bool { return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect })
}

// sameLabels compares by address first: replicas and versions of an object share
// their maps.
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

// sameResources compares amounts, not how they are written.
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
// counts under each of its names. Names that no node has any more are dropped at
// the end, so that one that this node keeps is not made anew.
func (t *nodeTable) setImages(n *nodeInfo, node *v1.Node) {
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
				delete(t.images, st.name)
			}
		}
	}()
	clear(n.images)
	n.gen++
	t.imageGen++
	if node == nil {
		return
	}
	for i := range node.Status.Images {
		im := &node.Status.Images[i]
		for _, name := range im.Names {
			st := t.images[name]
			if st == nil {
				st = &imageState{name: name}
				t.images[name] = st
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

// sameImages compares by address first: most statuses share the list of the one
// before.
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

// zone is the nodes of one region and zone, in the order of their coming.
type zone struct {
	name  string
	nodes []*nodeInfo
}

// zone is a zone's index; -1 without one.
func (t *nodeTree) zone(name string) int {
	return slices.IndexFunc(t.zones, func(z *zone) bool { return z.name == name })
}

// add and remove drop the list: nodes makes it again when it is asked for.
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
