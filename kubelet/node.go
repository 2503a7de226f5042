package kubelet

import (
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/devicemanager"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
)

// NodeWatcher watches one node and reconnects by itself until the group dies.
// listed gets nil when there is no such node.
type NodeWatcher interface {
	WatchNode(g *loop.Group, nodeName string, listed func(node *v1.Node), event func(t watch.EventType, node *v1.Node))
}

// nodeView is what the kubelet knows of its node: what the API says, what the
// machine and the runtime tell, and whether all is well.
type nodeView struct {
	*base
	nodeInformer
	// ips are those of ipsOf.
	ips    []v1.HostIP
	ipsOf  *v1.Node
	local  *v1.Node // see admissionNode
	state  *runtimeState
	facts  runtimeFacts
	images imageList
	// own are the addresses that the node has of itself.
	own nodestatus.Addresses
	// devices gives out those of plugins; nil until it is made.
	devices *devicemanager.Manager
}

func newNodeView(b *base) *nodeView {
	n := &nodeView{base: b, state: newRuntimeState(b.l)}
	n.own = nodestatus.Addresses{
		Hostname: b.nodeName, NodeIPs: b.opts.NodeIPs, External: b.opts.ExternalCloudProvider, Address: b.opts.Machine.NodeIP(),
	}
	if b.opts.Addresses != nil {
		n.own.Finder = b.opts.Addresses
	}
	return n
}

// nodeInformer has the node's object as the API last showed it.
type nodeInformer struct {
	node   *v1.Node
	synced loop.Event
	// version grows with each change of the node, forPods with those that may be
	// something to pods' syncs.
	version, forPods loop.Version
}

func (n *nodeInformer) start(g *loop.Group, w NodeWatcher, name string) {
	w.WatchNode(g, name, func(node *v1.Node) {
		n.set(node)
		if !n.synced.Fired() {
			n.synced.Fire()
		}
	}, func(t watch.EventType, node *v1.Node) {
		if t == watch.Deleted {
			node = nil
		}
		n.set(node)
	})
}

// set keeps a node; nil stands for one that was deleted.
func (n *nodeInformer) set(node *v1.Node) {
	if n.differs(node) {
		n.forPods.Grow()
	}
	n.node = node
	n.version.Grow()
}

// differs reports whether a pod's sync that had nothing to do could have with the
// new node. Most changes of a node are the kubelet's own heartbeats.
func (n *nodeInformer) differs(node *v1.Node) bool {
	was := n.node
	return was == nil || node == nil || was.UID != node.UID || was.DeletionTimestamp != node.DeletionTimestamp ||
		!slices.Equal(was.Status.Addresses, node.Status.Addresses) ||
		!maps.Equal(was.Annotations, node.Annotations) || !maps.Equal(was.Labels, node.Labels)
}

// get returns the node, or nil.
func (n *nodeInformer) get() *v1.Node { return n.node }

// hasSynced reports whether the first list is done; an empty one counts.
func (n *nodeInformer) hasSynced() bool { return n.synced.Fired() }

// reported are the addresses that the API has, which a cloud provider may have set; none before the
// node is registered.
func (n *nodeView) reported() []v1.NodeAddress {
	if n.node == nil {
		return nil
	}
	return slices.Clone(n.node.Status.Addresses)
}

// hostIPs returns the node's addresses for pods: the API's, or while the node
// is not known or has none the kubelet's own. An unchanged list is the same slice.
func (n *nodeView) hostIPs() []v1.HostIP {
	if n.ips != nil && n.ipsOf == n.node {
		return n.ips
	}
	var ips []v1.HostIP
	if n.node != nil {
		ips = status.HostIPs(n.node.Status.Addresses)
	}
	if len(ips) == 0 {
		ips = status.HostIPs(n.own.Known())
	}
	if !slices.Equal(ips, n.ips) {
		n.ips = ips
	}
	n.ipsOf = n.node
	return n.ips
}

// nodeResources returns capacity and allocatable. Local storage is known once
// the runtime has been up.
func (n *nodeView) nodeResources() *nodestatus.Resources {
	own := n.settings.resources.all
	if !n.facts.once {
		own = n.settings.resources.noStorage
	}
	if n.devices == nil || !n.devices.Active() {
		return own
	}
	capacity, allocatable := n.devices.Capacity()
	maps.Copy(capacity, own.Capacity)
	maps.Copy(allocatable, own.Allocatable)
	return &nodestatus.Resources{Capacity: capacity, Allocatable: allocatable}
}

// admissionNode is the node for admission: the API's, or else one built here.
func (n *nodeView) admissionNode() (*v1.Node, error) {
	// A node that has only just registered may have no status yet.
	if known := n.get(); known != nil && len(known.Status.Allocatable) > 0 {
		return known, nil
	}
	if n.local == nil {
		local := &v1.Node{}
		local.Name = n.nodeName
		local.Labels = map[string]string{v1.LabelHostname: n.nodeName, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}
		for k, v := range n.opts.NodeLabels { //drydock:unordered copies a map
			local.Labels[k] = v
		}
		res := n.settings.resources.all
		local.Status.Capacity, local.Status.Allocatable = res.Capacity, res.Allocatable
		local.Status.Addresses = n.own.Known()
		n.local = local
	}
	return n.local, nil
}

// handlerFeatures are those of a runtime handler; nil if nothing is known of it.
func (n *nodeView) handlerFeatures(name string) *v1.NodeRuntimeHandlerFeatures {
	for i := range n.facts.handlers {
		if n.facts.handlers[i].Name == name {
			return n.facts.handlers[i].Features
		}
	}
	return nil
}

// imageList is the list of images that node status shows.
type imageList struct {
	raw     []*runtimeapi.Image
	list    []nodestatus.Image
	version loop.Version // grows with the list
}

func (i *imageList) set(raw []*runtimeapi.Image, list []nodestatus.Image) {
	i.raw, i.list = raw, list
	i.version.Grow()
}

func (i *imageList) get() []nodestatus.Image { return i.list }

// isUnimplemented reports whether the runtime doesn't know a call of the CRI.
func isUnimplemented(err error) bool { return grpcstatus.Code(err) == codes.Unimplemented }

// machine is what the node's status says of the machine.
func (n *nodeView) machine() *nodestatus.Machine {
	m := n.opts.Machine
	out := &nodestatus.Machine{
		MachineID: m.MachineID(), SystemUUID: m.SystemUUID(), BootID: m.BootID(),
		KernelVersion: m.KernelVersion(), OSImage: m.OSImage(),
	}
	if s := n.swap(); s.Capacity > 0 {
		out.SwapCapacity = &s.Capacity
	}
	return out
}
