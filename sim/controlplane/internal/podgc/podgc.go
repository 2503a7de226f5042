// Package podgc deletes pods that nobody else would: the oldest of too many
// that have ended, those of nodes that are gone or out of service, and those that
// are deleted before they had a node. It mirrors upstream's pkg/controller/podgc.
//
// Upstream lists all pods every 20 s. Here a pass runs at those of the same
// instants at which the counts that the changes keep say that there is something
// to find.
package podgc

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// DefaultTerminatedPodThreshold is how many pods that have ended are kept
	// (--terminated-pod-gc-threshold). It is over the whole cluster, not by node.
	DefaultTerminatedPodThreshold = 12500
	// CheckPeriod is how often pods are looked at.
	CheckPeriod = 20 * time.Second
	// QuarantineTime is how long a node must have been gone.
	QuarantineTime = 40 * time.Second
)

// Options configure a Controller. A cluster in which nothing is kept is not meant: 0 is the
// default.
type Options struct {
	controller.Options
	// TerminatedPodThreshold is how many pods that have ended are kept. Zero
	// means the default; negative means all.
	TerminatedPodThreshold int
}

// Controller is the pod garbage collector. What upstream finds by listing is kept
// as counts and sets: when all are empty no pass can find anything, and the
// ticker rests. found is the version by which elided passes know that something came.
type Controller struct {
	g         *loop.Group
	api       *apiserver.Component
	l         *loop.Loop
	threshold int
	found     loop.Version // grows when a pass may find something
	running   bool

	terminated int // pods that have ended
	// unscheduled: pods that are being deleted and have no node.
	unscheduled map[controller.Key]bool
	// missing: nodes that pods name and that may not be there.
	missing map[string]bool
	// outOfService: nodes with the taint of that name.
	outOfService map[string]bool
	// quarantine: when a missing node may be believed gone.
	quarantine map[string]time.Time
}

// New starts a controller.
func New(opts Options) *Controller {
	c := &Controller{
		g: opts.Group, api: opts.API, l: opts.Group.Loop(), threshold: opts.TerminatedPodThreshold,
		unscheduled: map[controller.Key]bool{}, missing: map[string]bool{}, outOfService: map[string]bool{}, quarantine: map[string]time.Time{},
	}
	c.threshold = cmp.Or(c.threshold, DefaultTerminatedPodThreshold)
	passes := c.g.Every("pod garbage collection", CheckPeriod, 0, c.pass)
	passes.Elide(&loop.Elision{Of: []*loop.Version{&c.found}, Idle: c.idle})
	// Passes are on a grid from the controller's start, whether or not they run.
	passes.Settle()
	c.api.Server().OnChange(c.onChange, apiserver.KindPod, apiserver.KindNode)
	return c
}

// onChange keeps the sets up to date. Pods that ended are counted by transitions.
func (c *Controller) onChange(ch apiserver.Change) {
	switch ch.Kind {
	case apiserver.KindPod:
		pod := ch.New.(*v1.Pod)
		old, _ := ch.Old.(*v1.Pod)
		if ch.Type == watch.Deleted {
			if controller.PodTerminated(old) {
				c.terminated--
			}
			if len(c.unscheduled) > 0 {
				delete(c.unscheduled, controller.KeyOf(pod))
			}
			return
		}
		c.podIs(old, pod)
	case apiserver.KindNode:
		node := ch.New.(*v1.Node)
		if ch.Type != watch.Deleted {
			c.nodeIs(node)
			return
		}
		delete(c.outOfService, node.Name)
		if len(c.api.Server().Store().PodsOnNode(node.Name)) > 0 {
			c.missing[node.Name] = true
			c.review()
		}
	}
}

// podIs takes note of a pod as it is now; old is nil for a new one. A pod on a node that the API
// doesn't have may just be faster than its node.
func (c *Controller) podIs(old, pod *v1.Pod) {
	before := old != nil && controller.PodTerminated(old)
	if after := controller.PodTerminated(pod); after != before {
		if after {
			c.terminated++
			c.review()
		} else {
			c.terminated--
		}
	}
	if name := pod.Spec.NodeName; name != "" {
		if old != nil && old.Spec.NodeName == name {
			return
		}
		if len(c.unscheduled) > 0 {
			delete(c.unscheduled, controller.KeyOf(pod))
		}
		if c.api.Server().Node(name) == nil {
			c.missing[name] = true
			c.review()
		}
	} else if pod.DeletionTimestamp != nil {
		c.unscheduled[controller.KeyOf(pod)] = true
		c.review()
	}
}

// The taint is set by hand, by whoever knows that the node is down for good (KEP-2268).
func (c *Controller) nodeIs(n *v1.Node) {
	if len(n.Spec.Taints)+len(c.outOfService) == 0 {
		return
	}
	if slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeOutOfService }) {
		c.outOfService[n.Name] = true
		c.review()
	} else {
		delete(c.outOfService, n.Name)
	}
}

// mayFind reports whether a pass could find something. missing may hold nodes that are back;
// gcOrphaned cleans up.
func (c *Controller) mayFind() bool {
	return c.threshold > 0 && c.terminated > c.threshold || len(c.unscheduled)+len(c.missing)+len(c.outOfService) > 0
}

// idle reports until when passes find nothing, see loop.Elider.
func (c *Controller) idle(now int64) int64 {
	if c.mayFind() {
		return now
	}
	return loop.Forever
}

// review notes that there is another pod or node for a pass to find.
func (c *Controller) review() {
	if c.mayFind() {
		c.found.Grow()
	}
}

// A pass that takes longer than the period is not joined by another.
func (c *Controller) pass() {
	if !c.running {
		c.running = true
		c.g.Go("pod garbage collection", func(ctx context.Context) {
			c.gc(ctx)
			c.running = false
		})
	}
}

// gc is a pass. The order is upstream's.
func (c *Controller) gc(ctx context.Context) {
	if c.threshold > 0 && c.terminated > c.threshold {
		c.gcTerminated(ctx)
	}
	if len(c.outOfService) > 0 {
		c.gcTerminating(ctx)
	}
	if len(c.missing) > 0 {
		c.gcOrphaned(ctx)
	}
	if len(c.unscheduled) > 0 {
		c.gcUnscheduled(ctx)
	}
}

// gcTerminated deletes the oldest of the pods that have ended, beyond the threshold. Pods that
// are being deleted count as well.
func (c *Controller) gcTerminated(ctx context.Context) {
	pods := lists.Filter(c.api.Server().Pods(), func(p *v1.Pod) bool { return controller.PodTerminated(p) })
	slices.SortFunc(pods, byEvictionAndCreation)
	c.deleteAtOnce(ctx, pods[:max(len(pods)-c.threshold, 0)])
}

// deleteAtOnce begins all deletions at the same time; it is the client's limit
// that they wait for. Goroutines of the loop are tasks: cheap, and in a fixed order.
func (c *Controller) deleteAtOnce(ctx context.Context, pods []*v1.Pod) {
	var wg loop.WaitGroup
	for _, p := range pods {
		wg.Add(1)
		c.g.Go("pod garbage collection", func(ctx context.Context) {
			defer wg.Done()
			c.markFailedAndDelete(ctx, p, nil)
		})
	}
	_ = wg.Wait(ctx) // fails when the process ends
}

// gcTerminating deletes at once the pods that are being deleted on nodes out of service: no
// kubelet will ever confirm.
func (c *Controller) gcTerminating(ctx context.Context) {
	var pods []*v1.Pod
	for _, n := range c.api.Server().Nodes() {
		if !c.outOfService[n.Name] || nodeReady(n) {
			continue
		}
		for _, p := range c.api.Server().Store().PodsOnNode(n.Name) {
			if p.DeletionTimestamp != nil {
				pods = append(pods, p)
			}
		}
	}
	slices.SortFunc(pods, byEvictionAndCreation)
	c.deleteAtOnce(ctx, pods)
}

// gcOrphaned deletes the pods of nodes that have been missing for the
// quarantine time, and that the API says are gone. The quarantine keeps a cluster whose nodes
// were created a moment after their pods from losing these.
func (c *Controller) gcOrphaned(ctx context.Context) {
	names := make([]string, 0, len(c.missing))
	for name := range c.missing { //drydock:unordered is sorted
		names = append(names, name)
	}
	slices.Sort(names)
	now := c.l.Now()
	for _, name := range names {
		if c.api.Server().Node(name) != nil || len(c.api.Server().Store().PodsOnNode(name)) == 0 {
			delete(c.missing, name)
			delete(c.quarantine, name)
			continue
		}
		switch until, ok := c.quarantine[name]; {
		case !ok:
			c.quarantine[name] = now.Add(QuarantineTime)
		case !now.Before(until):
			delete(c.quarantine, name)
			if c.gone(ctx, name) {
				c.deleteOrphans(ctx, name)
			}
		}
	}
}

// gone asks the API, as a last check before pods are deleted for good.
func (c *Controller) gone(ctx context.Context, node string) bool {
	_, err := controller.Get[*v1.Node](ctx, c.api, apiserver.KindNode, controller.Key{Name: node})
	return apierrors.IsNotFound(err)
}

// deleteOrphans deletes the pods of a node that is gone, with the condition that tells why.
func (c *Controller) deleteOrphans(ctx context.Context, node string) {
	for _, p := range slices.Clone(c.api.Server().Store().PodsOnNode(node)) {
		c.markFailedAndDelete(ctx, p, &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists"})
	}
}

// gcUnscheduled deletes pods that were deleted before they had a node: their grace period is
// nobody's to wait for.
func (c *Controller) gcUnscheduled(ctx context.Context) {
	keys := make([]controller.Key, 0, len(c.unscheduled))
	for key := range c.unscheduled { //drydock:unordered is sorted
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b controller.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if p := c.api.Server().Pod(key.Namespace, key.Name); p != nil && p.DeletionTimestamp != nil && p.Spec.NodeName == "" {
			c.markFailedAndDelete(ctx, p, nil)
		}
	}
}

// markFailedAndDelete sets the phase of a pod that has not ended to Failed and
// deletes it without grace. A failure is left to the next pass. The phase is set first, so that
// whoever owns the pod sees an end and not just a disappearance (a Job counts it).
func (c *Controller) markFailedAndDelete(ctx context.Context, listed *v1.Pod, cond *v1.PodCondition) {
	pod := c.api.Server().Pod(listed.Namespace, listed.Name)
	if pod == nil || pod.UID != listed.UID {
		return
	}
	if !controller.PodTerminated(pod) {
		st := pod.Status
		if cond != nil {
			cond.ObservedGeneration = pod.Generation
			st, _ = controller.WithPodCondition(&st, *cond, c.l.Now())
		}
		st.Phase, st.ObservedGeneration = v1.PodFailed, pod.Generation
		if controller.PatchPodStatus(ctx, c.api, pod, &st) != nil {
			return
		}
	}
	_ = controller.Delete(ctx, c.api, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// byEvictionAndCreation puts pods that a kubelet evicted first, then the
// oldest (byEvictionAndCreationTimestamp). Evicted pods are worth least: they say nothing but
// that they were evicted.
func byEvictionAndCreation(a, b *v1.Pod) int {
	evicted := func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed && p.Status.Reason == "Evicted" }
	if x, y := evicted(a), evicted(b); x != y {
		if x {
			return -1
		}
		return 1
	}
	if n := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); n != 0 {
		return n
	}
	return strings.Compare(a.Name, b.Name)
}

func nodeReady(n *v1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue })
}
