package nodelifecycle

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
)

// evictionPeriod is how often the zones' queues are looked at
// (scheduler.NodeEvictionPeriod). Its grid begins anew with the end of each pass, as
// wait.Until's.
const evictionPeriod = 100 * time.Millisecond

// scheduleTainting sets the tainting pass at which a zone has both a node that
// waits and a token. Nothing waits most of the time; then there is no timer.
func (c *Controller) scheduleTainting() {
	if c.tainting {
		return
	}
	now := c.l.Now()
	at := int64(never)
	for _, z := range c.byAge {
		if len(z.queue) == 0 {
			continue
		}
		if d, ok := z.next(now); ok {
			at = min(at, now.UnixNano()+int64(d))
		}
	}
	if at == never {
		c.tainter.Stop()
		return
	}
	const period = int64(evictionPeriod)
	// At least one period after now on the grid.
	at = c.tainted + max((at-c.tainted+period-1)/period, (now.UnixNano()-c.tainted)/period+1)*period
	c.tainter.ResetAt(time.Unix(0, at))
}

// taintNodes is a tainting pass (doNoExecuteTaintingPass). Zones are served in the order in which
// they appeared; upstream's is a map's.
func (c *Controller) taintNodes() {
	c.tainting = true
	c.g.Go("taint nodes", func(ctx context.Context) {
		for _, z := range c.byAge {
			c.taintZone(ctx, z)
		}
		c.tainting = false
		c.tainted = c.l.UnixNano()
		c.scheduleTainting()
	})
}

// taintZone takes nodes off a zone's queue while there are tokens (Try). A token is taken before
// the node is looked at, as upstream: a node that is ready again costs one too.
func (c *Controller) taintZone(ctx context.Context, z *zone) {
	failed := false // what failed is tried again in a later pass
	for len(z.queue) > 0 && !failed && z.qps > 0 && z.limiter.AllowN(c.l.Now(), 1) {
		h := z.queue[0]
		if c.taintNode(ctx, h) {
			z.drop(h)
			continue
		}
		failed = true
		if z.waits(h) {
			z.drop(h)
			z.queue = append(z.queue, h)
		}
	}
}

// taintNode gives a node the NoExecute taint that its condition calls for, and
// takes the other. false: it is to be tried again. The taint is what evicts: tainteviction
// deletes pods that don't tolerate it.
func (c *Controller) taintNode(ctx context.Context, h *health) bool {
	node := c.api.Server().Node(h.name)
	if node == nil {
		return true
	}
	switch readyStatus(node) {
	case v1.ConditionFalse:
		return c.swapTaints(ctx, node, []string{v1.TaintNodeNotReady}, []string{v1.TaintNodeUnreachable}, v1.TaintEffectNoExecute)
	case v1.ConditionUnknown:
		return c.swapTaints(ctx, node, []string{v1.TaintNodeUnreachable}, []string{v1.TaintNodeNotReady}, v1.TaintEffectNoExecute)
	case "":
		return false
	}
	return true // it is ready again
}
