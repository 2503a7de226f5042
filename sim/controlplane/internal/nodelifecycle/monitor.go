package nodelifecycle

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// It is a time that no run reaches.
const never = math.MaxInt64

// Retries of a node's update (scheduler.NodeHealthUpdateRetry, retrySleepTime).
const (
	updateRetries = 5
	retrySleep    = 20 * time.Millisecond
)

// gridAt returns the first instant of the passes' grid from t on. The grid of upstream's ticker:
// every period from the last pass's end on.
func (c *Controller) gridAt(t int64) int64 {
	const period = int64(DefaultNodeMonitorPeriod)
	if t <= c.base {
		return c.base
	}
	return c.base + (t-c.base+period-1)/period*period
}

// seen returns the pass that sees, or saw, the node's last sign of life. A sign of life counts
// from the pass that sees it, not from when it came: that is up to a period later, as upstream.
func (c *Controller) seen(h *health) int64 {
	if h.heard > h.probe {
		return c.gridAt(h.heard)
	}
	return h.probe
}

// deadline returns when the node's grace period ends. A node that has never had a condition Ready
// gets the longer time to start.
func (c *Controller) deadline(h *health) int64 {
	if h.ready == "" {
		return c.seen(h) + int64(DefaultNodeStartupGracePeriod)
	}
	return c.seen(h) + int64(DefaultNodeMonitorGracePeriod)
}

// wake sets the next pass at which there is something to see. No node in trouble
// means no timer before the next grace period ends. It is called after everything that may bring
// the next pass forward. A pass under way calls it at its end.
func (c *Controller) wake() {
	if c.passing || c.g.Dead() {
		return
	}
	at := c.expiry
	if len(c.dirty) > 0 || len(c.gone) > 0 {
		at = c.l.UnixNano()
	}
	if at == never {
		return
	}
	at = c.gridAt(max(at, c.lastPass+1))
	if !c.pass.Set() || c.pass.When().UnixNano() > at {
		c.pass.ResetAt(time.Unix(0, at))
	}
}

// monitor is a pass (monitorNodeHealth). It is a task only when a request is
// to be made. Without a request to make, a pass takes no virtual time.
func (c *Controller) monitor() {
	if c.election.Cut() {
		// A pass would fail at its first request, and nothing be changed by it.
		c.pass.Reset(DefaultNodeMonitorPeriod)
		return
	}
	now := c.l.UnixNano()
	c.lastPass = now
	c.forget()
	var work []*health
	dirty := c.dirty
	c.dirty = nil
	for _, h := range dirty {
		h.dirty = false
		if !h.deleted && c.look(h) {
			work = append(work, h)
		}
	}
	if now >= c.expiry {
		work = c.expired(now, work)
	}
	var untaint []*health
	if len(work) == 0 {
		if untaint = c.handleDisruption(); len(untaint) == 0 {
			c.wake()
			return
		}
	}
	c.passing = true
	c.g.Go("node monitor", func(ctx context.Context) { c.run(ctx, work, untaint) })
}

// expired adds the nodes whose grace period has ended, and computes when the
// next one's can. It walks over all nodes, but only when some grace period may have ended.
func (c *Controller) expired(now int64, work []*health) []*health {
	c.expiry = never
	for _, h := range c.order {
		if h.deleted || h.ready == v1.ConditionUnknown {
			continue
		}
		// Upstream's comparison is strict, but its passes come later each
		// time by what the last one took.
		if d := c.deadline(h); d > now {
			c.expiry = min(c.expiry, d)
		} else if !slices.Contains(work, h) {
			work = append(work, h)
		}
	}
	return work
}

// run works on the nodes, several at a time, and closes the pass. Up to
// updateWorkers nodes are worked on at once; a pass ends with the last. Workers take from one
// list, so a slow request holds up one of them.
func (c *Controller) run(ctx context.Context, work, untaint []*health) {
	c.untaintNew(ctx, work)
	var wg loop.WaitGroup
	next := 0
	for range min(updateWorkers, len(work)) {
		wg.Add(1)
		c.g.Go("node monitor worker", func(ctx context.Context) {
			defer wg.Done()
			for next < len(work) {
				h := work[next]
				next++
				if !h.deleted {
					c.process(ctx, h)
				}
			}
		})
	}
	if wg.Wait(ctx) != nil {
		return
	}
	if len(work) > 0 {
		untaint = c.handleDisruption()
	}
	c.untaint(ctx, untaint)
	// The next pass comes a period after the end of this one. What was heard
	// up to its start it has seen; the rest the next one sees.
	for _, h := range c.order {
		// Signs that came during the pass belong to the next.
		if at := c.gridAt(h.heard); h.heard > h.probe && at <= c.lastPass {
			h.probe = at
		}
	}
	c.base = c.l.UnixNano() + int64(DefaultNodeMonitorPeriod)
	c.lastPass = c.l.UnixNano()
	c.passing = false
	c.wake()
}

// untaintNew takes the NoExecute taints of nodes that this process has not seen
// before, one after the other: they come back at the zones' rates. Upstream does so in its first
// pass over a node, in case the taint is from before its own time.
func (c *Controller) untaintNew(ctx context.Context, work []*health) {
	for _, h := range work {
		node := c.api.Server().Node(h.name)
		if !h.untaint || node == nil {
			continue
		}
		h.untaint = false
		if c.removeTaints(ctx, node, v1.TaintNodeUnreachable, v1.TaintNodeNotReady) == nil && h.zone != nil {
			h.zone.remove(h)
		}
	}
}

// forget tells of the nodes that are gone. Events come in the order of deletions.
func (c *Controller) forget() {
	if len(c.gone) == 0 {
		return
	}
	for _, h := range c.gone {
		if h.known {
			c.nodeEvent(h, "RemovingNode", fmt.Sprintf("Removing Node %v from Controller", h.name))
		}
		h.leaveZone()
	}
	c.gone = nil
	c.order = slices.DeleteFunc(c.order, func(h *health) bool { return h.deleted })
}

// look brings what is known of a node up to date. It reports whether requests are
// to be made for it. Most passes end here for most nodes: a heartbeat needs no
// request. What it decides needs no request; process does the rest, as a task.
func (c *Controller) look(h *health) (work bool) {
	node := c.api.Server().Node(h.name)
	if node == nil {
		return false
	}
	c.enterZone(h, node)
	if !h.known {
		h.known = true
		c.nodeEvent(h, "RegisteredNode", fmt.Sprintf("Registered Node %v in Controller", h.name))
		h.untaint = hasNoExecute(node)
	}
	h.setReady(readyStatus(node))
	if h.ready != v1.ConditionUnknown {
		c.expiry = min(c.expiry, c.deadline(h))
	}
	if h.retry || h.untaint {
		return true
	}
	switch h.ready {
	case v1.ConditionTrue:
		h.zone.remove(h)
		return hasNoExecute(node)
	case v1.ConditionFalse:
		return c.markForTainting(h, node, v1.TaintNodeNotReady, v1.TaintNodeUnreachable)
	case v1.ConditionUnknown:
		return c.markForTainting(h, node, v1.TaintNodeUnreachable, v1.TaintNodeNotReady)
	}
	return false
}

// markForTainting queues a node for a NoExecute taint. It reports whether it has
// the opposite one, which is to be swapped at once. A node that is marked and neither waits nor
// has the taint was tainted before, and somebody took the taint away: it may wait again.
func (c *Controller) markForTainting(h *health, node *v1.Node, key, opposite string) (swap bool) {
	if hasTaint(node, opposite, v1.TaintEffectNoExecute) {
		return true
	}
	if !hasTaint(node, key, v1.TaintEffectNoExecute) && !h.zone.waits(h) {
		h.zone.remove(h)
	}
	if h.zone.add(h) {
		c.scheduleTainting()
	}
	return false
}

// process does for a node what takes requests. What fails is tried by the next pass, as the node
// stays touched.
func (c *Controller) process(ctx context.Context, h *health) {
	node, observed, err := c.updateHealth(ctx, h)
	if err != nil || node == nil {
		c.touch(h) // the next pass looks again
		return
	}
	switch h.ready { // as it is now
	case v1.ConditionTrue:
		if c.removeTaints(ctx, node, v1.TaintNodeUnreachable, v1.TaintNodeNotReady) == nil {
			h.zone.remove(h)
		} else {
			c.touch(h)
		}
	case v1.ConditionFalse:
		c.swapOrQueue(ctx, h, node, v1.TaintNodeNotReady, v1.TaintNodeUnreachable)
	case v1.ConditionUnknown:
		c.swapOrQueue(ctx, h, node, v1.TaintNodeUnreachable, v1.TaintNodeNotReady)
	default:
		h.retry = false
		return
	}
	// Pods are marked once, when the node was Ready until now.
	lost := h.ready != v1.ConditionTrue && observed == v1.ConditionTrue
	if lost {
		c.recorder.Event(&v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: h.name, UID: h.uid}, v1.EventTypeNormal, "NodeNotReady",
			fmt.Sprintf("Node %s status is now: NodeNotReady", h.name))
	}
	if (lost || h.retry && observed != v1.ConditionTrue) && c.markPodsNotReady(ctx, h.name) != nil {
		h.retry = true
		c.touch(h)
		return
	}
	h.retry = false
}

// swapOrQueue swaps one NoExecute taint for the other on a node that has one
// already, at once; a node without waits in its zone's queue. What fails is tried
// with the next pass. The swap changes the reason only, so it needs no rate.
func (c *Controller) swapOrQueue(ctx context.Context, h *health, node *v1.Node, key, opposite string) {
	if c.markForTainting(h, node, key, opposite) && !c.swapTaints(ctx, node, []string{key}, []string{opposite}, v1.TaintEffectNoExecute) {
		c.touch(h)
	}
}

// updateHealth is tryUpdateNodeHealth with its retries: it sets the conditions
// of a node that has not been heard of for too long. observed is the status of
// its condition Ready before. The node may have come to life while requests were under way, so
// each try looks at the deadline anew.
func (c *Controller) updateHealth(ctx context.Context, h *health) (node *v1.Node, observed v1.ConditionStatus, err error) {
	if node = c.api.Server().Node(h.name); node == nil {
		return nil, "", nil
	}
	for try := range updateRetries {
		if try > 0 {
			if err := c.l.Sleep(ctx, retrySleep); err != nil {
				return nil, "", err
			}
		}
		observed = readyStatus(node)
		h.setReady(observed)
		observed = cmp.Or(observed, v1.ConditionUnknown)
		if c.l.UnixNano() < c.deadline(h) || h.ready == v1.ConditionUnknown {
			return node, observed, nil
		}
		lost := markUnknown(node, c.l.Now())
		req := apiserver.Request{Verb: "update", Resource: "nodes/status", Name: h.name}
		if err = c.api.Do(ctx, req, func(s *apiserver.Server) error { _, err := s.Update(lost, "status"); return err }); err == nil {
			h.setReady(v1.ConditionUnknown)
			return c.api.Server().Node(h.name), observed, nil
		}
		if node, err = c.get(ctx, h.name); err != nil {
			return nil, "", fmt.Errorf("updating the health of node %s: %w", h.name, err)
		}
	}
	return nil, "", fmt.Errorf("updating the health of node %s: %w", h.name, err)
}

// markUnknown returns the node with the conditions that the kubelet keeps as
// they are when it is not heard of. The heartbeat times stay: they say when the kubelet was last
// heard of.
func markUnknown(node *v1.Node, now time.Time) *v1.Node {
	c := *node
	c.Status.Conditions = slices.Clone(node.Status.Conditions)
	at := controller.WireTime(now)
	for _, t := range []v1.NodeConditionType{v1.NodeReady, v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure} {
		cond := condition(&c, t)
		switch {
		case cond == nil:
			c.Status.Conditions = append(c.Status.Conditions, v1.NodeCondition{
				Type: t, Status: v1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
				LastHeartbeatTime: node.CreationTimestamp, LastTransitionTime: at})
		case cond.Status != v1.ConditionUnknown:
			cond.Status, cond.Reason, cond.Message, cond.LastTransitionTime = v1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.", at
		}
	}
	return &c
}

// readyStatus returns the status of a node's condition Ready, "" without one.
func readyStatus(n *v1.Node) v1.ConditionStatus {
	if cond := condition(n, v1.NodeReady); cond != nil {
		return cond.Status
	}
	return ""
}
