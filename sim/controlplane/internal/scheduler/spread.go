package scheduler

import (
	"maps"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// constraint is one of a pod's topology spread constraints.
type constraint struct {
	key        *topoKey
	maxSkew    int64
	minDomains int64
	tally      *tally
	selector   labels.Selector
	// self: 1 when the pod matches its own selector.
	self          int64
	everything    bool // the selector is empty
	honorAffinity bool
	honorTaints   bool
}

// The constraints of pods without any, where a service or a controller says
// which pods belong together (podtopologyspread/plugin.go, systemDefaultConstraints).
const (
	defaultHostnameSkew = 3
	defaultZoneSkew     = 5
)

// spreadOrigin is what default constraints are made of.
type spreadOrigin struct {
	owner types.UID
	gen   uint64 // classTable.selectorGen
}

// setDefaultSpread gives a class without constraints those of its profile, as soon as services or
// controllers select its pods, and others when the selectors have changed (buildDefaultConstraints).
func (cs *classTable) setDefaultSpread(c *class, p *v1.Pod) {
	if len(c.profile.spread) == 0 || len(p.Spec.TopologySpreadConstraints) > 0 {
		return
	}
	owner := metav1.GetControllerOfNoCopy(p)
	of := spreadOrigin{gen: cs.selectorGen}
	if owner != nil {
		of.owner = owner.UID
	}
	if c.spreadOf == of {
		return
	}
	c.spreadOf, c.failed, c.hard, c.soft = of, failure{}, nil, nil
	if sel := cs.defaultSelector(p, owner); !sel.Empty() {
		for i := range c.profile.spread {
			cs.addConstraint(c, &c.profile.spread[i], p, cs.labels.of(p), sel)
		}
	}
}

// setSpread reads a class's topology spread constraints.
func (cs *classTable) setSpread(c *class, p *v1.Pod, ls *labelSet) {
	for i := range p.Spec.TopologySpreadConstraints {
		t := &p.Spec.TopologySpreadConstraints[i]
		sel := selectorOf(t.LabelSelector)
		if t.LabelSelector != nil {
			sel = withKeys(sel, p.Labels, t.MatchLabelKeys)
		}
		cs.addConstraint(c, t, p, ls, sel)
	}
}

// addConstraint adds a constraint that counts the pods that a selector matches.
func (cs *classTable) addConstraint(c *class, t *v1.TopologySpreadConstraint, p *v1.Pod, ls *labelSet, sel labels.Selector) {
	given := sel
	everything := sel.Empty()
	if everything { // counts nothing, as upstream's countPodsMatchSelector
		sel = labels.Nothing()
	}
	m := newTerm(t.TopologyKey, []string{p.Namespace}, nil, sel)
	k := constraint{
		key: cs.table.topoKey(t.TopologyKey), maxSkew: int64(t.MaxSkew), minDomains: 1, tally: cs.labels.tally(t.TopologyKey, []*term{m}, true), selector: given,
		everything: everything, honorAffinity: t.NodeAffinityPolicy == nil || *t.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor,
		honorTaints: t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor,
	}
	if t.MinDomains != nil {
		k.minDomains = int64(*t.MinDomains)
	}
	if selectorMatches(t.LabelSelector, sel, ls) {
		k.self = 1
	}
	if t.WhenUnsatisfiable == v1.DoNotSchedule {
		c.hard = append(c.hard, k)
	} else {
		c.soft = append(c.soft, k)
	}
}

// selectorMatches reports whether a constraint's selector matches the pod itself:
// an empty one does, though it counts no pods.
func selectorMatches(given *metav1.LabelSelector, sel labels.Selector, ls *labelSet) bool {
	if given != nil && len(given.MatchLabels) == 0 && len(given.MatchExpressions) == 0 {
		return true
	}
	return sel.Matches(ls.labels)
}

// counted reports whether a node's pods count for a constraint (matchNodeInclusionPolicies).
func (k *constraint) counted(c *class, n *nodeInfo) bool {
	if !(k.honorAffinity && c.selective) && !k.honorTaints {
		return true
	}
	in := c.inclusion(n)
	return (in.selected || !k.honorAffinity) && (in.tolerated || !k.honorTaints)
}

// inclusion is what a node's part in spreading goes by.
type inclusion struct {
	// of: nodeInfo.static that the rest is of; 0: none.
	of uint32
	// selected: by the pod's node selector and affinity.
	selected  bool
	tolerated bool // its taints
}

// inclusion looks at a node. Classes that remember nodes do so until its labels
// or taints change, as spreading asks of all nodes for each pod.
func (c *class) inclusion(n *nodeInfo) inclusion {
	known := n.slot < len(c.entries)
	if known && c.inclusions == nil {
		c.inclusions = make([]inclusion, len(c.entries), cap(c.entries))
	}
	if known && n.slot < len(c.inclusions) && c.inclusions[n.slot].of == n.static {
		return c.inclusions[n.slot]
	}
	in := inclusion{n.static, affinityMatches(c, n.node), !untolerated(n.node.Spec.Taints, c.pod.Spec.Tolerations)}
	if known {
		if more := len(c.entries) - len(c.inclusions); more > 0 {
			c.inclusions = append(c.inclusions, make([]inclusion, more)...)
		}
		c.inclusions[n.slot] = in
	}
	return in
}

func hasKeys(list []constraint, n *nodeInfo) bool {
	for i := range list {
		if n.topo[list[i].key.id] == none {
			return false
		}
	}
	return true
}

// everywhere reports whether the pods of all nodes count for all constraints:
// then the tallies say all there is to know.
func everywhere(nodes int, c *class, list []constraint) bool {
	for i := range list {
		if list[i].key.present != nodes || list[i].honorTaints || list[i].honorAffinity && c.selective {
			return false
		}
	}
	return true
}

// spreadState is what PodTopologySpread's filter knows of one constraint in a
// cycle.
type spreadState struct {
	*constraint
	// domains are the pods by the number of the key's value, of the nodes that
	// count; absent where there is no such node. Nil: those of the tally.
	domains []int64
	number  int64 // of domains
	least   int64
	// most: a domain with more pods takes none.
	most  int64
	stale bool // least and most are to be computed
	// shift is what preemption has added to the pods of the value shifted beyond
	// what the tally counts.
	shift   int64
	shifted int32
}

const absent = math.MinInt64

// setSpreadState is PodTopologySpread.PreFilter.
func (cy *cycle) setSpreadState() {
	hard := cy.c.hard
	if len(hard) == 0 {
		return
	}
	// Where every node counts, the tallies kept by key are the answer, and no
	// node need be looked at.
	all := everywhere(cy.s.table.tree.size, cy.c, hard)
	for i := range hard {
		st := spreadState{constraint: &hard[i], stale: true, number: int64(hard[i].key.domains)}
		if !all {
			st.number, st.domains = 0, cy.s.newDomains(i, len(hard[i].key.nodes))
		}
		cy.spread = append(cy.spread, st)
	}
	if all {
		return
	}
	for _, n := range cy.s.table.tree.nodes() {
		// A node that lacks one constraint's key counts for none of them.
		if !hasKeys(hard, n) {
			continue
		}
		for i := range cy.spread {
			st := &cy.spread[i]
			if !st.counted(cy.c, n) {
				continue
			}
			d := &st.domains[n.topo[st.key.id]]
			if *d == absent {
				*d = 0
				st.number++
			}
			*d += int64(st.tally.at(n.slot))
		}
	}
}

// newDomains returns a scratch slice of n absent domains, for the i-th constraint of a cycle.
func (s *Scheduler) newDomains(i, n int) []int64 {
	for len(s.domainScratch) <= i {
		s.domainScratch = append(s.domainScratch, nil)
	}
	d := growTo(&s.domainScratch[i], n)
	for v := range d {
		d[v] = absent
	}
	return d
}

// adjustSpread takes over a pod that preemption moves in or out. Moving pods that
// are being deleted counts, though the pods themselves don't; so does moving any
// where the selector is empty (filtering.go, updateWithPod).
func (cy *cycle) adjustSpread(ls *labelSet, n *nodeInfo, delta int64, dying bool) {
	if len(cy.spread) == 0 || !hasKeys(cy.c.hard, n) {
		return
	}
	for i := range cy.spread {
		st := &cy.spread[i]
		st.stale = true // the tally has moved too
		matches := st.everything && ls.namespace == cy.labels.namespace || st.tally.matches(cy.s.store, ls)
		switch v := n.topo[st.key.id]; {
		case !matches || !st.counted(cy.c, n):
		case st.domains != nil:
			st.domains[v] += delta
		case dying || st.everything:
			st.shift, st.shifted = st.shift+delta, v
		}
	}
}

// pods returns how many pods count in a node's domain; false: it has none.
func (st *spreadState) pods(n *nodeInfo) (int64, bool) {
	v := n.topo[st.key.id]
	switch {
	case v == none:
		return 0, false
	case st.domains == nil:
		pods, _ := st.tally.of(n)
		if st.shift != 0 && v == st.shifted {
			return int64(pods) + st.shift, true
		}
		return int64(pods), true
	case st.domains[v] == absent:
		return 0, true
	}
	return st.domains[v], true
}

// min returns the fewest pods of a domain; 0 while there are fewer domains than
// minDomains.
func (st *spreadState) min() int64 {
	st.stale = false
	// Domains that are not there count as empty ones.
	if st.number < st.minDomains {
		return 0
	}
	st.least = math.MaxInt32
	switch {
	case st.domains != nil:
		for _, pods := range st.domains {
			if pods != absent {
				st.least = min(st.least, pods)
			}
		}
	// Preemption has moved pods that the tally leaves out: the least is looked
	// for domain by domain.
	case st.shift != 0:
		for v, nodes := range st.key.nodes {
			pods := int64(0)
			if v < len(st.tally.byValue) {
				pods = int64(st.tally.byValue[v])
			}
			if int32(v) == st.shifted {
				pods += st.shift
			}
			if nodes > 0 {
				st.least = min(st.least, pods)
			}
		}
	// Some domain has no pod at all.
	case st.number > 0 && int64(st.tally.used) < st.number:
		st.least = 0
	case st.number > 0:
		st.least = int64(st.tally.least())
	}
	return st.least
}

// filterSpread is PodTopologySpread.Filter.
func (cy *cycle) filterSpread(n *nodeInfo) verdict {
	for i := range cy.spread {
		st := &cy.spread[i]
		if st.stale {
			// As if the pod were there already, if it counts itself.
			st.most = st.min() + st.maxSkew - st.self
		}
		v := n.topo[st.key.id]
		if v == none {
			return whySpreadLabel | unresolvable
		}
		// The short way of pods.
		if st.domains == nil && st.shift == 0 {
			if list := st.tally.byValue; int(v) < len(list) && int64(list[v]) > st.most || st.most < 0 {
				return whySpread
			}
			continue
		}
		if pods, _ := st.pods(n); pods > st.most {
			return whySpread
		}
	}
	return 0
}

// defaultSpread remembers what the default constraints count for the pods of an
// owner.
type defaultSpread struct {
	owner types.UID
	gen   uint64
	// tally: by zone; nil: nothing selects the pod.
	tally *tally
}

// defaultTally returns the count behind the default constraints: the pods that
// the pod's services and its controller select (plugins/helper/spread.go).
func (cs *classTable) defaultTally(p *v1.Pod, ls *labelSet) *tally {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil && cs.services[p.Namespace] == 0 {
		return nil
	}
	var uid types.UID
	if owner != nil {
		uid = owner.UID
	}
	d := &ls.spread
	if d.gen == cs.selectorGen && d.owner == uid {
		return d.tally
	}
	*d = defaultSpread{owner: uid, gen: cs.selectorGen}
	if sel := cs.defaultSelector(p, owner); !sel.Empty() {
		m := newTerm(v1.LabelTopologyZone, []string{p.Namespace}, nil, sel)
		d.tally = cs.labels.tally(m.key, []*term{m}, true)
	}
	return d.tally
}

func (cs *classTable) defaultSelector(p *v1.Pod, owner *metav1.OwnerReference) labels.Selector {
	set := labels.Set{}
	if cs.services[p.Namespace] > 0 {
		for _, o := range cs.listServices(p.Namespace) {
			if sel := o.Spec.Selector; sel != nil && labels.SelectorFromSet(sel).Matches(labels.Set(p.Labels)) {
				maps.Copy(set, sel)
			}
		}
	}
	sel := labels.SelectorFromSet(set)
	if len(set) == 0 {
		sel = labels.NewSelector()
	}
	if owner == nil {
		return sel
	}
	var more *metav1.LabelSelector
	switch owner.Kind {
	case "ReplicaSet":
		if rs, ok := cs.store.Lookup(apiserver.KindReplicaSet, p.Namespace, owner.Name).(*appsv1.ReplicaSet); ok {
			more = rs.Spec.Selector
		}
	case "StatefulSet":
		if ss, ok := cs.store.Lookup(apiserver.KindStatefulSet, p.Namespace, owner.Name).(*appsv1.StatefulSet); ok {
			more = ss.Spec.Selector
		}
	case "ReplicationController":
		if rc, ok := cs.store.Lookup(apiserver.KindReplicationController, p.Namespace, owner.Name).(*v1.ReplicationController); ok {
			more = &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
		}
	}
	if more == nil {
		return sel
	}
	if o, err := metav1.LabelSelectorAsSelector(more); err == nil {
		if r, ok := o.Requirements(); ok {
			sel = sel.Add(r...)
		}
	}
	return sel
}

func (cs *classTable) listServices(namespace string) []*v1.Service {
	var out []*v1.Service
	list, _ := cs.store.List(apiserver.KindService, namespace) // the kind is served
	for _, o := range list {
		out = append(out, o.(*v1.Service))
	}
	return out
}

func topologyWeight(size int) float64 { return math.Log(float64(size + 2)) }

func scoreForCount(count int64, maxSkew int64, weight float64) float64 {
	return float64(count)*weight + float64(maxSkew-1)
}

// invalid marks nodes that PodTopologySpread leaves out of its scores.
const invalid = -1

// scoreSpread fills cy.spreadScores for the feasible nodes, normalised; false
// when the plugin has nothing to say (podtopologyspread/scoring.go).
func (cy *cycle) scoreSpread(feasible []*nodeInfo) bool {
	if len(cy.pod.Spec.TopologySpreadConstraints) > 0 || !cy.c.profile.systemSpread {
		if len(cy.c.soft) == 0 {
			return false
		}
		cy.scoreSoft(feasible)
	} else {
		t := cy.s.classes.defaultTally(cy.pod, cy.labels)
		if t == nil {
			return false
		}
		cy.scoreDefault(t, feasible)
	}
	low, high := int64(math.MaxInt64), int64(0)
	for _, v := range cy.spreadScores {
		if v != invalid {
			low, high = min(low, v), max(high, v)
		}
	}
	for i, v := range cy.spreadScores {
		switch {
		case v == invalid:
			cy.spreadScores[i] = 0
		case high == 0:
			cy.spreadScores[i] = maxNodeScore
		default:
			cy.spreadScores[i] = maxNodeScore * (high + low - v) / high
		}
	}
	return true
}

// scoreDefault scores by the default constraints: hostname, then zone. Nodes
// without a zone are one more domain, which counts for the weight only.
func (cy *cycle) scoreDefault(t *tally, feasible []*nodeInfo) {
	s := cy.s
	zones := growTo(&s.zoneScratch, len(s.table.zone.nodes)+1) // by the zone's number, plus 1
	for i := range zones {
		zones[i] = absent
	}
	size := 0
	for _, n := range feasible {
		if z := &zones[n.topo[s.table.zone.id]+1]; *z == absent {
			*z = 0
			size++
		}
	}
	if cy.c.selective { // only nodes that the pod's node affinity matches count
		for _, n := range s.table.tree.nodes() {
			z := &zones[n.topo[s.table.zone.id]+1]
			if pods := t.at(n.slot); pods > 0 && *z != absent && cy.c.inclusion(n).selected {
				*z += float64(pods)
			}
		}
	} else {
		for i, pods := range t.byValue {
			if zones[i+1] != absent {
				zones[i+1] = float64(pods)
			}
		}
	}
	hostWeight, zoneWeight := topologyWeight(len(feasible)), topologyWeight(size)
	for i := range zones {
		zones[i] = scoreForCount(int64(zones[i]), defaultZoneSkew, zoneWeight)
	}
	zones[0] = 0
	out := growTo(&s.spreadScratch, len(feasible))
	for i, n := range feasible {
		var v float64
		if n.topo[s.table.hostname.id] != none {
			v = scoreForCount(int64(t.at(n.slot)), defaultHostnameSkew, hostWeight)
		}
		out[i] = int64(math.Round(v + zones[n.topo[s.table.zone.id]+1]))
	}
	cy.spreadScores = out
}

// scoreSoft scores by the pod's own constraints that may be violated. Nodes
// that lack one of the keys are left out.
func (cy *cycle) scoreSoft(feasible []*nodeInfo) {
	s, soft := cy.s, cy.c.soft
	out := growTo(&s.spreadScratch, len(feasible))
	domains := make([][]int64, len(soft))
	size := make([]int, len(soft))
	left := 0
	for j := range soft {
		// The hard constraints' are in use until the pod is placed.
		domains[j] = s.newDomains(len(cy.c.hard)+j, len(soft[j].key.nodes))
	}
	for i, n := range feasible {
		out[i] = 0
		if !hasKeys(soft, n) {
			out[i] = invalid
			left++
			continue
		}
		for j := range soft {
			if d := &domains[j][n.topo[soft[j].key.id]]; *d == absent {
				*d = 0
				size[j]++
			}
		}
	}
	weights := make([]float64, len(soft))
	for j := range soft {
		weights[j] = topologyWeight(size[j])
		if soft[j].key == s.table.hostname {
			weights[j] = topologyWeight(len(feasible) - left)
		}
	}
	cy.countSoft(domains)
	for i, n := range feasible {
		if out[i] == invalid {
			continue
		}
		var v float64
		for j := range soft {
			pods := domains[j][n.topo[soft[j].key.id]]
			if soft[j].key == s.table.hostname {
				pods = int64(soft[j].tally.at(n.slot))
			}
			v += scoreForCount(pods, soft[j].maxSkew, weights[j])
		}
		out[i] = int64(math.Round(v))
	}
	cy.spreadScores = out
}

// countSoft fills the domains that are not absent.
func (cy *cycle) countSoft(domains [][]int64) {
	s, soft := cy.s, cy.c.soft
	if everywhere(s.table.tree.size, cy.c, soft) {
		for j := range soft {
			for v, pods := range soft[j].tally.byValue {
				if domains[j][v] != absent {
					domains[j][v] = int64(pods)
				}
			}
		}
		return
	}
	for _, n := range s.table.tree.nodes() {
		if !hasKeys(soft, n) {
			continue
		}
		for j := range soft {
			if d := &domains[j][n.topo[soft[j].key.id]]; *d != absent && soft[j].counted(cy.c, n) {
				*d += int64(soft[j].tally.at(n.slot))
			}
		}
	}
}

// growTo returns a slice of length n in the place of *buf.
func growTo[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n, n+n/2)
	}
	*buf = (*buf)[:n]
	return *buf
}
