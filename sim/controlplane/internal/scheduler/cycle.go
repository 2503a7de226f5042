package scheduler

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// How many feasible nodes are looked for (pkg/scheduler/schedule_one.go).
const (
	minFeasibleNodes   = 100
	minFeasiblePercent = 5
)

// feasibleToFind is numFeasibleNodesToFind; percent is percentageOfNodesToScore. With 0 it is 10%
// of 5,000 nodes: in a large cluster not the best node is chosen but a good one of a sample, and
// each cycle goes on where the last one stopped.
func feasibleToFind(nodes, percent int) int {
	if nodes < minFeasibleNodes {
		return nodes
	}
	if percent == 0 {
		percent = max(50-nodes/125, minFeasiblePercent)
	}
	return max(nodes*percent/100, minFeasibleNodes)
}

// cycle is the scheduling of one pod. It lives in Scheduler.cycle and is used
// again, with its slices.
type cycle struct {
	s      *Scheduler
	q      *queued
	pod    *v1.Pod
	c      *class
	labels *labelSet

	spread   []spreadState
	affinity affinityState
	// InterPodAffinity has something to filter by.
	affine bool
	// claims is what DynamicResources knows; nil: the pod has no claims.
	claims *claimState
	// volumes is what the plugins of volumes know; nil: any node would do.
	volumes *volumeState

	images       []imagePart
	spreadScores []int64
	scratch      entry
}

// failure is why a pod fits nowhere. A class keeps its last one: while nothing
// has changed the next pod of that class and priority fails for the same reason.
type failure struct {
	// Scheduler.version that it is of; 0: none.
	version  uint64
	priority int32
	message  string
	plugins  plugins
}

// result is a cycle's outcome: a node, or a failure.
type result struct {
	node *nodeInfo
	failure
	// nominate: the pod's nominated node is to be set to nominated, "" for none.
	nominate  bool
	nominated string
	victims   *candidate
	// broken: scheduling itself failed, and is tried again after a while.
	broken bool
}

// newCycle makes ready what filters ask for: the class, and the states that
// upstream's PreFilter plugins write.
func (s *Scheduler) newCycle(q *queued, pod *v1.Pod) *cycle {
	ls := s.labels.of(pod)
	cy := &s.cycle
	*cy = cycle{s: s, q: q, pod: pod, labels: ls, c: s.classes.of(pod, ls), spread: cy.spread[:0], images: cy.images[:0],
		affinity: affinityState{existing: cy.affinity.existing[:0], scores: cy.affinity.scores[:0]}}
	s.classes.remember(cy.c)
	s.classes.setDefaultSpread(cy.c, pod)
	if cy.c.profile.runs(podTopologySpread) {
		cy.setSpreadState()
	}
	cy.setAffinityState()
	cy.affine = cy.c.profile.runs(interPodAffinity) && (len(cy.c.required) > 0 || len(cy.c.anti) > 0 || len(cy.affinity.existing) > 0)
	return cy
}

// remember gives a class that is seen again a memory of nodes. The class that has
// had one for longest gives way. A pod that comes alone would pay for a memory
// that nobody reads, so a class gets one with its third pod.
func (cs *classTable) remember(c *class) {
	if c.entries != nil {
		if len(c.entries) < len(cs.table.slots) {
			c.entries = append(c.entries, make([]entry, len(cs.table.slots)-len(c.entries))...)
		}
		return
	}
	if c.uses++; c.uses < 3 {
		return
	}
	for len(cs.cached) > 0 && (len(cs.cached)+1)*len(cs.table.slots) > maxEntries {
		cs.cached[0].entries, cs.cached[0].inclusions, cs.cached[0].uses = nil, nil, 0
		cs.cached = slices.Delete(cs.cached, 0, 1)
	}
	c.entries = make([]entry, len(cs.table.slots))
	cs.cached = append(cs.cached, c)
}

// run finds a node for the pod. In upstream's order: what pre-filters refuse
// outright, the node that preemption cleared for the pod, the filters over a
// sample of nodes, and the scores if more than one passed (schedulePod).
func (cy *cycle) run() result {
	s, c := cy.s, cy.c
	all := s.table.tree.nodes()
	if len(all) == 0 {
		return result{nominate: true, failure: failure{message: "no nodes available to schedule pods"}}
	}
	if text, by := cy.preFilterVolumes(); text != "" {
		return cy.refused(text, by)
	}
	// Two required names can't both be met, on whatever node.
	onlyNamed := c.onlyNamed && c.profile.runs(nodeAffinity)
	if onlyNamed && len(c.named) == 0 {
		return cy.conflict()
	}
	if (len(cy.pod.Spec.ResourceClaims) > 0 || c.mapped != 0) && c.profile.runs(dynamicResources) {
		text, err := cy.preFilterClaims()
		if err != nil {
			return cy.broken("PreFilter", err)
		}
		if text != "" {
			return cy.refusedByClaims(text)
		}
	}
	if f := &c.failed; cy.claims == nil && cy.volumes == nil && f.version == s.version && f.priority == cy.q.priority && cy.q.nominated == nil && len(cy.affinity.existing) == 0 {
		// It looked at every node: the next pod begins where this one did.
		return result{failure: *f, nominate: true}
	}
	// Nobody else is asked while the node that was cleared for the pod still
	// takes it.
	if n := cy.q.nominated; n != nil && n.node != nil && cy.filterNominated(n) == 0 {
		return result{node: n}
	}
	if cy.claims != nil && cy.claims.err != nil {
		return cy.broken("filter", cy.claims.err)
	}
	nodes, absent := all, ""
	if onlyNamed {
		nodes, absent = cy.named(), "node(s) didn't satisfy plugin(s) [NodeAffinity]"
	}
	feasible, seen := cy.feasible(nodes)
	if cy.claims != nil && cy.claims.err != nil {
		return cy.broken("filter", cy.claims.err)
	}
	s.start = (s.start + len(feasible) + len(seen)) % len(all)
	switch len(feasible) {
	case 0:
		// Every plugin that refused a node can wake the pod.
		var p plugins
		for _, v := range seen {
			p |= v.plugins()
		}
		if onlyNamed {
			p |= nodeAffinity
		}
		return cy.failed(seen, absent, p)
	// No scores are needed, and none are computed.
	case 1:
		return result{node: feasible[0]}
	}
	totals := cy.score(feasible)
	if cy.claims != nil {
		cy.scoreClaims(feasible, totals)
	}
	return result{node: cy.pick(feasible, totals)}
}

// named returns the nodes that the pod's affinity names.
func (cy *cycle) named() []*nodeInfo {
	var out []*nodeInfo
	for _, name := range cy.c.named {
		if n := cy.s.table.byName[name]; n != nil && n.node != nil {
			out = append(out, n)
		}
	}
	return out
}

// feasible returns as many nodes as are to be scored that take the pod, and the
// verdicts on those looked at that don't. The nodes that refused stand in
// Scheduler.refused, in the order of the verdicts. The filters of the node alone
// are a lookup where the class remembers; those that look at other nodes' pods
// run only if the class has such terms.
func (cy *cycle) feasible(nodes []*nodeInfo) ([]*nodeInfo, []verdict) {
	s := cy.s
	want := feasibleToFind(len(nodes), cy.c.profile.percentageOfNodes)
	if !cy.c.profile.scores {
		want = min(want, 1)
	}
	out, seen := s.feasibleScratch[:0], s.seenScratch[:0]
	s.refused = s.refused[:0]
	entries := cy.c.entries
	cluster := len(cy.spread) > 0 || cy.affine || cy.claims != nil || cy.volumes != nil || !cy.c.features.IsEmpty()
	// The search goes round the nodes and begins where the last one ended, so
	// that all get their share.
	at := 0
	if len(nodes) > 0 {
		at = s.start % len(nodes)
	}
	for range nodes {
		n := nodes[at]
		if at++; at == len(nodes) {
			at = 0
		}
		var v verdict
		if len(n.nominated) > 0 {
			v = cy.filterNominated(n)
		} else {
			// entry, in short.
			if n.slot < len(entries) && entries[n.slot].gen == n.gen {
				v = entries[n.slot].why
			} else {
				v = cy.entry(n).why
			}
			if v == 0 && cluster {
				v = cy.filterCluster(n)
			}
		}
		if v != 0 {
			seen = append(seen, v)
			s.refused = append(s.refused, n)
			continue
		}
		// Upstream's workers stop at the one too many, which is not processed.
		if out = append(out, n); len(out) == want {
			break
		}
	}
	s.feasibleScratch, s.seenScratch = out, seen
	return out, seen
}

// pick returns one of the nodes with the best score, by lot. The draw names the
// pod and its attempt, so leaving out one pod's cycle does not move another's
// (selectHost).
func (cy *cycle) pick(feasible []*nodeInfo, totals []int64) *nodeInfo {
	best, ties := int64(-1), uint64(0)
	for _, t := range totals {
		switch {
		case t > best:
			best, ties = t, 1
		case t == best:
			ties++
		}
	}
	k := uint64(0)
	if ties > 1 {
		k = cy.s.l.Uint64("scheduler/host", string(cy.q.uid), uint64(cy.q.attempts)) % ties
	}
	for i, t := range totals {
		if t != best {
			continue
		}
		if k == 0 {
			return feasible[i]
		}
		k--
	}
	return nil
}

// conflict refuses a pod whose node affinity leaves no node.
func (cy *cycle) conflict() result { return cy.refused("pod affinity terms conflict", nodeAffinity) }

// refused is what comes of a pod that a pre-filter refuses. Upstream ends the
// pre-filters there, so that the first post-filter, DynamicResources, finds none of
// its state in the cycle: its error is told, and nobody preempts.
func (cy *cycle) refused(text string, by plugins) result {
	if !cy.c.profile.deallocates {
		return cy.refusedEverywhere(text, by)
	}
	return result{failure: failure{
		plugins: by, priority: cy.q.priority,
		message: fitError(cy.c, len(cy.s.table.tree.nodes()), nil, "", text, "not found"),
	}}
}

// refusedByClaims is what comes of a pod that DynamicResources refuses before any node
// is looked at. Its state is in the cycle then, so preemption has its say.
func (cy *cycle) refusedByClaims(text string) result {
	return cy.refusedEverywhere(text, dynamicResources)
}

// refusedEverywhere has post-filters look at a pod that no node will do for.
func (cy *cycle) refusedEverywhere(text string, by plugins) result {
	r := result{failure: failure{plugins: by, priority: cy.q.priority}}
	cy.s.refused = cy.s.refused[:0]
	post := cy.preempt(&r, nil, nil)
	r.message = fitError(cy.c, len(cy.s.table.tree.nodes()), nil, "", text, post)
	return r
}

// broken is what comes of an error that no node can help.
func (cy *cycle) broken(point string, err error) result {
	return result{broken: true, failure: failure{priority: cy.q.priority, message: fmt.Sprintf("running %q %s plugin: %v", "DynamicResources", point, err)}}
}

// failed runs preemption and words why the pod fits nowhere. The failure is
// remembered only if it would come out the same for every pod of the class.
func (cy *cycle) failed(seen []verdict, absent string, p plugins) result {
	s := cy.s
	r := result{failure: failure{plugins: p, priority: cy.q.priority}}
	post := cy.preempt(&r, s.refused, seen)
	r.message = fitError(cy.c, len(s.table.tree.nodes()), seen, absent, "", post)
	if cy.claims != nil && cy.claims.nodeText != "" {
		r.message = strings.Replace(r.message, reasonText(cy.c, whyDevicesFailBit), cy.claims.nodeText, 1)
	}
	// Others' anti-affinity goes by labels, which a class need not share.
	if cy.claims == nil && cy.volumes == nil && r.victims == nil && r.nominate && r.nominated == "" && len(cy.affinity.existing) == 0 {
		r.version = s.version
		cy.c.failed = r.failure
	}
	return r
}
