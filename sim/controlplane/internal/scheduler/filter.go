package scheduler

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// verdict says why a node is no place for a pod: a bit for each reason. Zero: it
// is one.
type verdict uint64

// The reasons, in the order of the plugins. Those from whyExtended on are about
// the class's extended resources, in their order.
const (
	whyUnschedulable verdict = 1 << iota
	whyTaint
	whyNodeAffinity
	whyPorts
	whyPods
	whyCPU
	whyMemory
	whyStorage
	whySpreadLabel
	whySpread
	whyAffinity
	whyAnti
	whyExistingAnti
	whyNoVictims
	whyClaimElsewhere
	whyNoDevices
	whyDevicesFail
	whyEnforced
	whyExclusive
	whyVolumeCount
	whyVolumeNode
	whyNoVolume
	whyNoSpace
	whyVolumeGone
	whyVolumeZone
	whyFeatures
	whyClaimLeft

	whyDevicesFailBit = 16

	whyExtended  = 27
	maxExtended  = 35
	unresolvable = verdict(1 << 63) // removing pods from the node would not help
)

// reasonText are upstream's words (pkg/scheduler/framework/plugins/*).
func reasonText(c *class, bit int) string {
	switch verdict(1) << bit {
	case whyUnschedulable:
		return "node(s) were unschedulable"
	case whyTaint:
		return "node(s) had untolerated taint(s)"
	case whyNodeAffinity:
		return "node(s) didn't match Pod's node affinity/selector"
	case whyPorts:
		return "node(s) didn't have free ports for the requested pod ports"
	case whyPods:
		return "Too many pods"
	case whyCPU:
		return "Insufficient cpu"
	case whyMemory:
		return "Insufficient memory"
	case whyStorage:
		return "Insufficient ephemeral-storage"
	case whySpreadLabel:
		return "node(s) didn't match pod topology spread constraints (missing required label)"
	case whySpread:
		return "node(s) didn't match pod topology spread constraints"
	case whyAffinity:
		return "node(s) didn't match pod affinity rules"
	case whyAnti:
		return "node(s) didn't match pod anti-affinity rules"
	case whyExistingAnti:
		return "node(s) didn't satisfy existing pods anti-affinity rules"
	case whyNoVictims:
		return "No preemption victims found for incoming pod"
	case whyClaimElsewhere:
		return "resourceclaim not available on the node"
	case whyNoDevices:
		return "cannot allocate all claims"
	case whyDevicesFail:
		return "devices can't be allocated" // the cycle knows why
	case whyEnforced:
		return "node(s) didn't match scheduler-enforced node affinity"
	case whyExclusive:
		return "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	case whyVolumeCount:
		return "node(s) exceed max volume count"
	case whyVolumeNode:
		return "node(s) didn't match PersistentVolume's node affinity"
	case whyNoVolume:
		return "node(s) didn't find available persistent volumes to bind"
	case whyNoSpace:
		return "node(s) did not have enough free storage"
	case whyVolumeGone:
		return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	case whyVolumeZone:
		return "node(s) had no available volume zone"
	case whyFeatures:
		return "node(s) didn't match Pod's required features"
	case whyClaimLeft:
		return "cannot schedule extended resource claim"
	}
	return "Insufficient " + string(c.request.ext[bit-whyExtended].name)
}

// plugins is a set of the filters that rejected a pod.
type plugins uint16

const (
	nodeUnschedulable plugins = 1 << iota
	taintToleration
	nodeAffinity
	nodePorts
	nodeResourcesFit
	podTopologySpread
	interPodAffinity
	volumeBinding
	dynamicResources
	volumeRestrictions
	nodeVolumeLimits
	volumeZone
	nodeDeclaredFeatures
)

// plugins returns who a verdict comes from.
func (v verdict) plugins() plugins {
	var p plugins
	set := func(bits verdict, plugin plugins) {
		if v&bits != 0 {
			p |= plugin
		}
	}
	set(whyUnschedulable, nodeUnschedulable)
	set(whyTaint, taintToleration)
	set(whyNodeAffinity|whyEnforced, nodeAffinity)
	set(whyPorts, nodePorts)
	set(whyPods|whyCPU|whyMemory|whyStorage|(1<<62-1)&^(1<<whyExtended-1), nodeResourcesFit)
	set(whySpread|whySpreadLabel, podTopologySpread)
	set(whyAffinity|whyAnti|whyExistingAnti, interPodAffinity)
	set(whyExclusive, volumeRestrictions)
	set(whyVolumeCount, nodeVolumeLimits)
	set(whyVolumeNode|whyNoVolume|whyNoSpace|whyVolumeGone, volumeBinding)
	set(whyVolumeZone, volumeZone)
	set(whyFeatures, nodeDeclaredFeatures)
	set(whyClaimElsewhere|whyNoDevices|whyDevicesFail|whyClaimLeft, dynamicResources)
	return p
}

// filterNode runs the filters that look at the pod's class and the node alone.
func filterNode(c *class, n *nodeInfo) verdict {
	p, tolerations := c.profile, c.pod.Spec.Tolerations
	if n.node.Spec.Unschedulable && p.runs(nodeUnschedulable) && !tolerates(tolerations, &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}) {
		return whyUnschedulable | unresolvable
	}
	if p.runs(taintToleration) && untolerated(n.node.Spec.Taints, tolerations) {
		return whyTaint | unresolvable
	}
	if p.required != nil && p.runs(nodeAffinity) && !p.required.Match(n.node) {
		return whyEnforced | unresolvable
	}
	if c.selective && p.runs(nodeAffinity) {
		if ok, err := c.affinity.Match(n.node); err != nil || !ok {
			return whyNodeAffinity | unresolvable
		}
	}
	if p.runs(nodePorts) && conflict(c.ports, n.ports) {
		return whyPorts
	}
	if !p.runs(nodeResourcesFit) {
		return 0
	}
	return fits(&c.request, n, c.ignored|c.delegated(n))
}

// fits is NodeResourcesFit.Filter. ignored are indexes of other resources that don't count: which
// the profile leaves out, or drivers have to provide.
func fits(r *request, n *nodeInfo, ignored uint64) verdict {
	var v verdict
	if n.pods+1 > n.maxPods {
		v |= whyPods
	}
	if r.nothing() {
		return v
	}
	short := func(need, used, alloc int64, why verdict) {
		if need > 0 && need > alloc-used {
			v |= why
			if need > alloc {
				v |= unresolvable
			}
		}
	}
	used := n.requested()
	short(r.cpu, used.cpu, n.alloc.cpu, whyCPU)
	short(r.memory, used.memory, n.alloc.memory, whyMemory)
	short(r.storage, used.storage, n.alloc.storage, whyStorage)
	for i, e := range r.ext {
		if ignored&(1<<min(i, maxExtended-1)) != 0 {
			continue
		}
		short(e.amount, n.extUsed(e.name), amountOf(n.allocExt, e.name), 1<<(whyExtended+min(i, maxExtended-1)))
	}
	return v
}

// tolerates reports whether one of the tolerations is for a taint.
func tolerates(list []v1.Toleration, t *v1.Taint) bool {
	return corev1helper.TolerationsTolerateTaint(klog.Logger{}, list, t, false)
}

// untolerated reports whether a taint keeps new pods with the tolerations off.
func untolerated(taints []v1.Taint, list []v1.Toleration) bool {
	for i := range taints {
		t := &taints[i]
		if (t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute) && !tolerates(list, t) {
			return true
		}
	}
	return false
}

// filter runs all filters as the node stands.
func (cy *cycle) filter(n *nodeInfo) verdict {
	if v := cy.entry(n).why; v != 0 {
		return v
	}
	return cy.filterCluster(n)
}

// filterCluster runs the filters that look at other nodes' pods too, and those that come after
// them.
func (cy *cycle) filterCluster(n *nodeInfo) verdict {
	if cy.volumes != nil {
		if v := cy.filterVolumes(n); v != 0 {
			return v
		}
	}
	if len(cy.spread) > 0 {
		if v := cy.filterSpread(n); v != 0 {
			return v
		}
	}
	if cy.affine {
		if v := cy.filterAffinity(n); v != 0 {
			return v
		}
	}
	if cy.claims != nil {
		if v := cy.filterClaims(n); v != 0 {
			return v
		}
	}
	return cy.filterFeatures(n)
}

// filterNominated runs all filters with the pods of no lower priority that are
// nominated to the node, then without them: the pod must fit either way
// (framework.RunFilterPluginsWithNominatedPods). A pod that cleared room for
// itself must not lose it to one of lower priority; but what it brings, such as
// affinity, can't be counted on before it is there.
func (cy *cycle) filterNominated(n *nodeInfo) verdict {
	var added []*v1.Pod
	for _, q := range n.nominated {
		if q.priority < cy.q.priority || q.uid == cy.q.uid {
			continue
		}
		if p := cy.s.podOf(q); p != nil {
			added = append(added, p)
		}
	}
	if len(added) == 0 {
		return cy.filter(n)
	}
	for _, p := range added {
		cy.move(p, n, 1)
	}
	v := cy.filter(n)
	for _, p := range added {
		cy.move(p, n, -1)
	}
	if v != 0 {
		return v
	}
	return cy.filter(n)
}

// move puts a pod on a node, or takes it off, for what follows in the cycle.
func (cy *cycle) move(p *v1.Pod, n *nodeInfo, sign int64) {
	cy.adjustSpread(cy.s.place(p, n, sign), n, sign, p.DeletionTimestamp != nil)
	if cy.volumes != nil {
		cy.volumes.move(cy.pod, p, int(sign))
	}
}

// fitError words why a pod fits nowhere (framework.FitError). absent is said of
// the nodes that were not looked at. The reasons are counted over nodes and
// sorted as text, as upstream's are. This text is what users search for: it stays
// to the letter.
func fitError(c *class, total int, seen []verdict, absent, prefilter, postfilter string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "0/%d nodes are available:", total)
	if prefilter != "" {
		fmt.Fprintf(&b, " %s.", prefilter)
	} else {
		var counts [64]int
		for _, v := range seen {
			for v &^= unresolvable; v != 0; v &= v - 1 {
				counts[bits.TrailingZeros64(uint64(v))]++
			}
		}
		var parts []string
		for bit, k := range counts {
			if k > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", k, reasonText(c, bit)))
			}
		}
		if len(seen) < total && absent != "" {
			parts = append(parts, fmt.Sprintf("%d %s", total-len(seen), absent))
		}
		slices.Sort(parts)
		if len(parts) > 0 {
			fmt.Fprintf(&b, " %s.", strings.Join(parts, ", "))
		}
	}
	if postfilter != "" {
		b.WriteString(" " + postfilter)
	}
	return b.String()
}
