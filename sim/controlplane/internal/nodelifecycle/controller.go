package nodelifecycle

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/component-helpers/node/topology"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Defaults of kube-controller-manager's flags
// (pkg/controller/nodelifecycle/config/v1alpha1/defaults.go, cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go).
const (
	// A kubelet renews its lease every 10 s, so 50 s are several missed renewals.
	DefaultNodeMonitorPeriod      = 5 * time.Second
	DefaultNodeMonitorGracePeriod = 50 * time.Second
	DefaultNodeStartupGracePeriod = 60 * time.Second
	// DefaultNodeEvictionRate is how many nodes of a healthy zone are given a
	// NoExecute taint per second.
	DefaultNodeEvictionRate = 0.1
	// DefaultSecondaryNodeEvictionRate is the rate of a large zone that is
	// unhealthy.
	DefaultSecondaryNodeEvictionRate = 0.01
	// DefaultLargeClusterSizeThreshold is how many nodes a zone must exceed
	// for the secondary rate; in smaller ones it is zero.
	DefaultLargeClusterSizeThreshold = 50
	// DefaultUnhealthyZoneThreshold is the share of nodes not ready from which
	// on a zone is unhealthy.
	DefaultUnhealthyZoneThreshold = 0.55
)

// updateWorkers is scheduler.UpdateWorkerSize: how many nodes are worked on at once.
const updateWorkers = 8

// Controller is the node lifecycle controller. order, dirty and gone are lists
// rather than maps because a pass works in their order. Times are Unix nanoseconds, as the loop's
// clock has them.
type Controller struct {
	g        *loop.Group
	api      *apiserver.Component
	l        *loop.Loop
	recorder *record.Recorder
	election *controller.Election

	nodes map[string]*health
	order []*health // as first seen
	// dirty: to be looked at in the next pass.
	dirty []*health
	gone  []*health // deleted, not yet told

	// base: an instant of the passes' grid, ns.
	base     int64
	lastPass int64 // when the last pass began, ns
	// expiry: no grace period ends before it, ns.
	expiry  int64
	pass    *loop.Timer
	passing bool

	zones   map[string]*zone
	byAge   []*zone // as first seen
	tainter *loop.Timer
	// tainted: when the last tainting pass ended, ns; its grid begins there.
	tainted  int64
	tainting bool

	taints  *controller.Queue
	retries uint64 // of taints' updates so far
}

// health is what the controller knows of a node (nodeHealthData). Upstream keeps a copy of the
// status and the lease; what a pass compares of them are the times, which are here.
type health struct {
	name string
	uid  types.UID
	zone *zone
	// ready: of the last pass; "" for a node without condition.
	ready v1.ConditionStatus
	// probe is the pass that last saw a sign of life (probeTimestamp); heard is
	// when the last sign came, which the first pass from then on sees.
	probe, heard int64
	known        bool // a pass has seen it
	dirty        bool
	// retry: its pods are still to be marked (nodesToRetry).
	retry bool
	// NoExecute taints of another process's time are to be taken.
	untaint bool
	deleted bool
	// uncounted: excluded from the zone's state.
	uncounted bool
}

// New starts a controller. What it hears of first, be it as old as can be, it
// counts as heard of at that time. A controller that has just started must not believe that all
// nodes are dead.
func New(opts controller.Options) *Controller {
	c := &Controller{
		g: opts.Group, api: opts.API, l: opts.Group.Loop(), election: opts.Election,
		nodes: map[string]*health{}, zones: map[string]*zone{},
	}
	c.recorder = controller.NewRecorder(c.g, c.api, "node-controller")
	c.base = c.l.UnixNano()
	c.lastPass = c.base - 1
	c.tainted = c.base
	c.expiry = never
	c.pass = c.g.NewTimer("node monitor", c.monitor)
	c.tainter = c.g.NewTimer("taint nodes", c.taintNodes)
	c.taints = controller.NewQueue(controller.QueueOptions{Group: c.g, Name: "taint node by condition", Workers: updateWorkers, Delay: c.api.Delivery, Sync: c.syncConditionTaints})
	c.api.Server().OnChange(c.onChange, apiserver.KindLease, apiserver.KindNode)
	return c
}

// onChange takes note of what a pass would see. Leases are most of it: the hook does as little as
// it can.
func (c *Controller) onChange(ch apiserver.Change) {
	switch ch.Kind {
	case apiserver.KindLease:
		if ch.Type == watch.Deleted || ch.New.GetNamespace() != v1.NamespaceNodeLease {
			return
		}
		if h := c.nodes[ch.New.GetName()]; h != nil {
			// Only that it came counts, not the lease's own time: upstream too goes by its own
			// clock when something changes.
			h.heard = c.l.UnixNano()
		}
	case apiserver.KindNode:
		node := ch.New.(*v1.Node)
		switch ch.Type {
		case watch.Added:
			c.nodeAdded(node, ch.Verb == "list")
		case watch.Deleted:
			c.nodeDeleted(node)
		default:
			c.nodeChanged(ch.Old.(*v1.Node), node)
		}
	}
}

// nodeAdded takes in a node that is new, or that a new process has listed: to it
// the pods on the node are new as well, and those of a node that is not ready are
// marked (processPod). A node that was replaced is another machine: its health begins anew.
func (c *Controller) nodeAdded(node *v1.Node, listed bool) {
	h := &health{name: node.Name, uid: node.UID, heard: c.l.UnixNano()}
	if ready := readyStatus(node); listed && ready != "" && ready != v1.ConditionTrue {
		h.retry = true
	}
	if old := c.nodes[node.Name]; old != nil { // it was replaced between two passes
		old.deleted = true
	}
	c.nodes[node.Name] = h
	c.order = append(c.order, h)
	c.touch(h)
	if wrongTaints(node) || len(missingLabels(node)) > 0 {
		c.taints.Add(controller.KeyOf(node))
	}
}

// nodeDeleted has the next pass tell that a node is gone, as upstream finds it
// out then. Its pods are the pod garbage collector's.
func (c *Controller) nodeDeleted(node *v1.Node) {
	h := c.nodes[node.Name]
	if h == nil {
		return
	}
	h.deleted = true
	delete(c.nodes, node.Name)
	c.gone = append(c.gone, h)
	c.wake()
}

// nodeChanged notes a sign of life and what a pass would have to act on. A status update is a
// sign of life if the heartbeat time of Ready differs.
func (c *Controller) nodeChanged(old, node *v1.Node) {
	h := c.nodes[node.Name]
	if h == nil {
		return
	}
	was, is := condition(old, v1.NodeReady), condition(node, v1.NodeReady)
	if is != nil && (was == nil || !was.LastHeartbeatTime.Equal(&is.LastHeartbeatTime)) || was != nil && is == nil {
		h.heard = c.l.UnixNano()
	}
	// A failure of earlier is made up for by any change, as upstream.
	if len(missingLabels(node)) > 0 {
		c.taints.Add(controller.KeyOf(node))
	}
	// Slices that share memory are equal; a change replaces them.
	spec := old.Spec.Unschedulable != node.Spec.Unschedulable || !sameSlice(old.Spec.Taints, node.Spec.Taints)
	if spec || !sameStatuses(old.Status.Conditions, node.Status.Conditions) {
		c.touch(h)
		if wrongTaints(node) {
			c.taints.Add(controller.KeyOf(node))
		}
		return
	}
	if topology.GetZoneKey(old) != topology.GetZoneKey(node) || excluded(old) != excluded(node) {
		c.touch(h)
	}
}

// touch has the next pass look at a node. A node is in the list once.
func (c *Controller) touch(h *health) {
	if h.dirty {
		return
	}
	h.dirty = true
	c.dirty = append(c.dirty, h)
	c.wake()
}

// nodeEvent records an event about a node (controllerutil.RecordNodeEvent). The event's object is
// named by hand, since the node may be gone.
func (c *Controller) nodeEvent(h *health, reason, text string) {
	c.recorder.Event(&v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: h.name, UID: h.uid}, v1.EventTypeNormal, reason,
		fmt.Sprintf("Node %s event: %s", h.name, text))
}

// condition returns a node's condition, or nil.
func condition(n *v1.Node, t v1.NodeConditionType) *v1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == t {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// sameSlice reports whether two slices are one. Versions of an object share what a write did not
// replace.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sameStatuses reports whether conditions differ by times only.
func sameStatuses(a, b []v1.NodeCondition) bool {
	if sameSlice(a, b) {
		return true
	}
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Type != b[i].Type || a[i].Status != b[i].Status {
			return false
		}
	}
	return true
}

// excluded reports whether a node's state does not count for its zone's. Its name is upstream's
// LabelNodeDisruptionExclusion.
func excluded(n *v1.Node) bool {
	_, ok := n.Labels["node.kubernetes.io/exclude-disruption"]
	return ok
}

// get asks the API for a node, past what is known. It is a request, for updates that need the
// latest version.
func (c *Controller) get(ctx context.Context, name string) (*v1.Node, error) {
	return controller.Get[*v1.Node](ctx, c.api, apiserver.KindNode, controller.Key{Name: name})
}
