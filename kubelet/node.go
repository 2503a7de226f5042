package kubelet

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
)

// NodeWatcher watches one node and reconnects by itself until the group dies.
// listed gets nil when there is no such node.
type NodeWatcher interface {
	WatchNode(g *loop.Group, nodeName string, listed func(node *v1.Node), event func(t watch.EventType, node *v1.Node))
}

// nodeInformer has the node's object as the API last showed it.
type nodeInformer struct {
	node   *v1.Node
	synced loop.Event
	ref    *v1.ObjectReference
	// hostIPs are those of hostIPsOf.
	hostIPs   []v1.HostIP
	hostIPsOf *v1.Node
	local     *v1.Node
	machine   *nodestatus.Machine
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

// addresses are those that the machine implies.
func (kl *Kubelet) addresses() []v1.NodeAddress {
	var out []v1.NodeAddress
	if ip := kl.opts.Machine.NodeIP(); ip != "" {
		out = append(out, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	return append(out, v1.NodeAddress{Type: v1.NodeHostName, Address: kl.nodeName})
}

// hostIPs returns the node's addresses for pods: the API's, or while the node
// is not known the machine's. An unchanged list is the same slice.
func (kl *Kubelet) hostIPs() []v1.HostIP {
	n := &kl.node
	if n.hostIPs != nil && n.hostIPsOf == n.node {
		return n.hostIPs
	}
	var ips []v1.HostIP
	if n.node != nil {
		ips = status.HostIPs(n.node.Status.Addresses)
	}
	if len(ips) == 0 {
		ips = status.HostIPs(kl.addresses())
	}
	if !slices.Equal(ips, n.hostIPs) {
		n.hostIPs = ips
	}
	n.hostIPsOf = n.node
	return n.hostIPs
}

// nodeResources returns capacity and allocatable. Local storage is known once
// the runtime has been up.
func (kl *Kubelet) nodeResources() *nodestatus.Resources {
	if !kl.runtimeUp.once {
		return kl.settings.resources.noStorage
	}
	return kl.settings.resources.all
}

// admissionNode is the node for admission: the API's, or else one built here.
func (kl *Kubelet) admissionNode() (*v1.Node, error) {
	// A node that has only just registered may have no status yet.
	if n := kl.node.get(); n != nil && len(n.Status.Allocatable) > 0 {
		return n, nil
	}
	if kl.node.local == nil {
		n := &v1.Node{}
		n.Name = kl.nodeName
		n.Labels = map[string]string{v1.LabelHostname: kl.nodeName, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}
		for k, v := range kl.opts.NodeLabels { //drydock:unordered copies a map
			n.Labels[k] = v
		}
		res := kl.settings.resources.all
		n.Status.Capacity, n.Status.Allocatable = res.Capacity, res.Allocatable
		n.Status.Addresses = kl.addresses()
		kl.node.local = n
	}
	return kl.node.local, nil
}

// nodeSources says where the node's status comes from.
func (kl *Kubelet) nodeSources() nodestatus.Sources {
	addresses := kl.addresses()
	kl.node.machine = kl.machine()
	return nodestatus.Sources{
		Addresses: func(context.Context) ([]v1.NodeAddress, error) { return addresses, nil },
		Machine:   func() *nodestatus.Machine { return kl.node.machine },
		Resources: kl.nodeResources,
		RuntimeVersion: func(ctx context.Context) (string, error) {
			v, err := kl.runtime.Version(ctx)
			if err != nil {
				return "", err
			}
			return v.RuntimeVersion, nil
		},
		Images:          kl.images.get,
		RuntimeHandlers: func() []v1.NodeRuntimeHandler { return kl.runtimeUp.handlers },
		Features:        func() *v1.NodeFeatures { return kl.runtimeUp.features },
		MemoryPressure:  func() bool { return kl.eviction.Under(v1.NodeMemoryPressure) },
		DiskPressure:    func() bool { return kl.eviction.Under(v1.NodeDiskPressure) },
		PIDPressure:     func() bool { return kl.eviction.Under(v1.NodePIDPressure) },
		RuntimeErrors:   kl.state.runtimeErrors,
		NetworkErrors:   func() error { return kl.state.networkError },
		StorageErrors:   func() error { return kl.state.storageError },
		ShutdownErrors:  kl.shutdown.ShutdownStatus,
		UpdateRuntimeUp: kl.updateRuntimeUp,
		Node:            kl.node.get,
	}
}

// imageList is the list of images that node status shows.
type imageList struct {
	raw     []*runtimeapi.Image
	list    []nodestatus.Image
	version loop.Version // grows with the list
}

func (i *imageList) get() []nodestatus.Image { return i.list }

// listImages reads the list of images. An unchanged list, known by its
// entries' addresses, stays the same slice. It reports whether the runtime
// answered.
func (kl *Kubelet) listImages(ctx context.Context) bool {
	raw, err := kl.runtime.ListImages(ctx)
	if err != nil {
		kl.logf("Failed to update image list: %v", err)
		return false
	}
	if slices.Equal(raw, kl.images.raw) {
		return true
	}
	// The first list tells which images were there before any pull.
	if kl.images.raw == nil {
		kl.inputs.pulls.Initialize(raw)
	}
	list := make([]nodestatus.Image, 0, len(raw))
	for _, r := range raw {
		list = append(list, nodestatus.Image{ID: r.Id, RepoDigests: r.RepoDigests, RepoTags: r.RepoTags, Size: int64(r.Size)})
	}
	kl.images.raw, kl.images.list = slices.Clone(raw), list
	kl.images.version.Grow()
	return true
}

// isUnimplemented reports whether the runtime doesn't know a call of the CRI.
func isUnimplemented(err error) bool { return grpcstatus.Code(err) == codes.Unimplemented }
