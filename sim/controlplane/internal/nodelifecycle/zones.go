package nodelifecycle

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

// zoneState is how many nodes of a zone are not ready (ZoneState). It decides how fast nodes of
// the zone may be tainted: when many fail at once, it is more likely the network than the nodes.
type zoneState string

const (
	stateInitial           zoneState = "Initial"
	stateNormal            zoneState = "Normal"
	stateFullDisruption    zoneState = "FullDisruption"
	statePartialDisruption zoneState = "PartialDisruption"
)

// computeZoneState is ComputeZoneState. Up to two nodes that are not ready never make a zone
// unhealthy.
func computeZoneState(ready, notReady int) zoneState {
	switch {
	case ready == 0 && notReady > 0:
		return stateFullDisruption
	case notReady > 2 && float32(notReady)/float32(notReady+ready) >= DefaultUnhealthyZoneThreshold:
		return statePartialDisruption
	}
	return stateNormal
}

// rateOf returns how many nodes of a zone are tainted per second. A zone that is fully disrupted
// has the normal rate unless all zones are.
func rateOf(s zoneState, size int) float64 {
	if s == statePartialDisruption {
		if size > DefaultLargeClusterSizeThreshold {
			return DefaultSecondaryNodeEvictionRate
		}
		return 0
	}
	return DefaultNodeEvictionRate
}

// zone is a failure zone: its nodes by state, and those that wait for a
// NoExecute taint (RateLimitedTimedQueue). Nodes are counted by transitions, never by a walk.
type zone struct {
	name            string
	ready, notReady int
	state           zoneState
	queue           []*health
	// marked: queued, or tainted since they were removed last.
	marked  map[*health]bool
	qps     float64
	limiter *rate.Limiter
}

func newZone(name string) *zone {
	return &zone{name: name, state: stateInitial, marked: map[*health]bool{}, qps: DefaultNodeEvictionRate, limiter: rate.NewLimiter(DefaultNodeEvictionRate, 1)}
}

// add queues a node unless it is marked. It reports whether the node is new in the queue.
func (z *zone) add(h *health) bool {
	if z.marked[h] {
		return false
	}
	z.marked[h] = true
	z.queue = append(z.queue, h)
	return true
}

// remove takes a node out; it can be added again.
func (z *zone) remove(h *health) {
	if z.marked[h] {
		delete(z.marked, h)
		z.drop(h)
	}
}

// drop takes a node out of the queue; it stays marked.
func (z *zone) drop(h *health) {
	if i := slices.Index(z.queue, h); i >= 0 {
		z.queue = slices.Delete(z.queue, i, i+1)
	}
}

// Queues are short: they hold nodes in trouble.
func (z *zone) waits(h *health) bool { return slices.Contains(z.queue, h) }

// setRate is SwapLimiter: a limiter that has no token now is replaced by an
// empty one. A change of the rate must not hand out a token that the old one would not have.
func (z *zone) setRate(qps float64, now time.Time) {
	if qps == z.qps {
		return
	}
	drained := z.qps <= 0 || !z.limiter.AllowN(now, 1)
	z.qps, z.limiter = qps, rate.NewLimiter(rate.Limit(qps), 1)
	if qps > 0 && drained {
		z.limiter.AllowN(now, 1)
	}
}

// next returns how long it takes to the next token; false: for ever. It is what the tainting
// timer goes by.
func (z *zone) next(now time.Time) (time.Duration, bool) {
	if z.qps <= 0 {
		return 0, false
	}
	tokens := z.limiter.TokensAt(now)
	if tokens >= 1 {
		return 0, true
	}
	return time.Duration((1 - tokens) / z.qps * float64(time.Second)), true
}

// enterZone puts a node where its labels say. Zones are not removed; one without nodes counts as
// not there (handleDisruption).
func (c *Controller) enterZone(h *health, node *v1.Node) {
	name := topology.GetZoneKey(node)
	if h.zone != nil && (h.zone.name != name || h.uncounted != excluded(node)) {
		h.leaveZone()
	}
	if h.zone != nil {
		return
	}
	z := c.zones[name]
	if z == nil {
		z = newZone(name)
		c.zones[name] = z
		c.byAge = append(c.byAge, z)
	}
	h.zone, h.uncounted = z, excluded(node)
	h.count(1)
}

func (h *health) leaveZone() {
	if h.zone == nil {
		return
	}
	h.count(-1)
	h.zone.remove(h)
	h.zone = nil
}

// setReady notes the status of the condition Ready, for the zone too. A node without condition
// counts as not ready, as upstream's.
func (h *health) setReady(s v1.ConditionStatus) {
	if h.ready == s {
		return
	}
	h.count(-1)
	h.ready = s
	h.count(1)
}

func (h *health) count(by int) {
	switch {
	case h.zone == nil || h.uncounted:
	case h.ready == v1.ConditionTrue:
		h.zone.ready += by
	default:
		h.zone.notReady += by
	}
}

// handleDisruption sets the zones' rates: none taints anything while no zone
// has a node that is ready. It returns the nodes that are to lose their NoExecute
// taints then: more likely than all nodes it is the control plane that is cut
// off. It runs after every pass. The transitions matter, into full disruption and out of it; in
// between nothing changes.
func (c *Controller) handleDisruption() (untaint []*health) {
	allAre, allWere := true, true
	for _, z := range c.byAge {
		if z.ready+z.notReady == 0 {
			z.state = stateInitial // as a zone that is not there
			continue
		}
		allAre = allAre && computeZoneState(z.ready, z.notReady) == stateFullDisruption
		allWere = allWere && z.state == stateFullDisruption
	}
	if allAre && allWere {
		return nil
	}
	now := c.l.Now()
	for _, z := range c.byAge {
		size := z.ready + z.notReady
		if size == 0 {
			continue
		}
		state := computeZoneState(z.ready, z.notReady)
		switch {
		case allAre:
			// Evicting everything would be the wrong answer to a master that is cut off.
			z.setRate(0, now)
		case allWere || z.state != state:
			z.setRate(rateOf(state, size), now)
		}
		z.state = state
	}
	c.scheduleTainting()
	if allWere {
		// The nodes may have been well all the time: their grace starts anew.
		for _, h := range c.order {
			// Without that, all nodes would be found dead in the first pass after the network is
			// back.
			h.probe = max(h.probe, c.lastPass)
		}
	}
	if !allAre {
		return nil
	}
	for _, h := range c.order {
		if n := c.api.Server().Node(h.name); n != nil && !h.deleted && h.zone != nil && hasNoExecute(n) {
			untaint = append(untaint, h)
		}
	}
	return untaint
}

// untaint takes the NoExecute taints of nodes back. A taint that could not be taken is left; the
// node's own recovery takes it.
func (c *Controller) untaint(ctx context.Context, nodes []*health) {
	for _, h := range nodes {
		node := c.api.Server().Node(h.name)
		if node == nil || h.zone == nil {
			continue
		}
		if c.removeTaints(ctx, node, v1.TaintNodeUnreachable, v1.TaintNodeNotReady) == nil && h.zone != nil {
			h.zone.remove(h)
			c.touch(h)
		}
	}
}
