package workloads

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// oracle says where a pod may be. It goes over all nodes and pods each time and remembers nothing.
type oracle struct {
	nodes []*v1.Node
	// on are the pods that hold something of a node, by its name.
	on map[string][]*v1.Pod
}

// ended reports whether a pod holds nothing of its node any more.
func ended(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

func newOracle(nodes []*v1.Node, pods []*v1.Pod) *oracle {
	o := &oracle{nodes: nodes, on: map[string][]*v1.Pod{}}
	for _, p := range pods {
		if p.Spec.NodeName != "" && !ended(p) {
			o.on[p.Spec.NodeName] = append(o.on[p.Spec.NodeName], p)
		}
	}
	return o
}

// without is the oracle of a world that lacks some pods.
func (o *oracle) without(gone func(p *v1.Pod) bool) *oracle {
	c := &oracle{nodes: o.nodes, on: map[string][]*v1.Pod{}}
	for n, pods := range o.on {
		c.on[n] = slices.DeleteFunc(slices.Clone(pods), gone)
	}
	return c
}

// why is a reason for which a node is no place, and whether it stays if pods go.
type why struct {
	text  string
	fixed bool
}

// reasons says why a pod can't be on a node: what the first rule that forbids it says. Nothing: it can.
func (o *oracle) reasons(p *v1.Pod, n *v1.Node) []why {
	for _, rule := range []func(p *v1.Pod, n *v1.Node) []why{o.cordoned, o.tainted, o.unwanted, o.ports, o.room, o.skew, o.company} {
		if w := rule(p, n); len(w) > 0 {
			return w
		}
	}
	return nil
}

func fixed(text string) []why { return []why{{text, true}} }

// tolerated reports whether one of a pod's tolerations is for a taint.
func tolerated(list []v1.Toleration, t v1.Taint) bool {
	return slices.ContainsFunc(list, func(x v1.Toleration) bool {
		return (x.Effect == "" || x.Effect == t.Effect) && (x.Key == t.Key || x.Key == "" && x.Operator == v1.TolerationOpExists) &&
			(x.Operator == v1.TolerationOpExists || x.Value == t.Value)
	})
}

func (o *oracle) cordoned(p *v1.Pod, n *v1.Node) []why {
	if n.Spec.Unschedulable && !tolerated(p.Spec.Tolerations, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}) {
		return fixed("node(s) were unschedulable")
	}
	return nil
}

// keptOff reports whether a taint with one of the effects is not tolerated.
func keptOff(p *v1.Pod, n *v1.Node, effects ...v1.TaintEffect) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool {
		return slices.Contains(effects, t.Effect) && !tolerated(p.Spec.Tolerations, t)
	})
}

func (o *oracle) tainted(p *v1.Pod, n *v1.Node) []why {
	if keptOff(p, n, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute) {
		return fixed("node(s) had untolerated taint(s)")
	}
	return nil
}

// chosen reports whether a pod's node selector and required node affinity choose a node.
func nodeChosen(p *v1.Pod, n *v1.Node) bool {
	for k, v := range p.Spec.NodeSelector {
		if has, ok := n.Labels[k]; !ok || has != v {
			return false
		}
	}
	terms := nodeTerms(p)
	return terms == nil || slices.ContainsFunc(terms, func(t v1.NodeSelectorTerm) bool {
		for _, e := range t.MatchExpressions {
			v, ok := n.Labels[e.Key]
			if !holds(e, v, ok) {
				return false
			}
		}
		for _, e := range t.MatchFields { // metadata.name is the only one that there is
			if !holds(e, n.Name, true) {
				return false
			}
		}
		return len(t.MatchExpressions)+len(t.MatchFields) > 0
	})
}

// nodeTerms are a pod's required terms of node affinity; nil: there are none.
func nodeTerms(p *v1.Pod) []v1.NodeSelectorTerm {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	return nil
}

func holds(e v1.NodeSelectorRequirement, value string, there bool) bool {
	switch e.Operator {
	case v1.NodeSelectorOpIn:
		return there && slices.Contains(e.Values, value)
	case v1.NodeSelectorOpNotIn:
		return !there || !slices.Contains(e.Values, value)
	case v1.NodeSelectorOpExists:
		return there
	case v1.NodeSelectorOpDoesNotExist:
		return !there
	}
	panic("no plan has " + e.Operator)
}

// named are the nodes that a pod's required affinity names, if each of its terms names some.
func named(p *v1.Pod) (out []string, all bool) {
	terms := nodeTerms(p)
	for _, t := range terms {
		if len(t.MatchFields) == 0 {
			return nil, false
		}
		for _, e := range t.MatchFields {
			out = append(out, e.Values...)
		}
	}
	return out, len(terms) > 0
}

func (o *oracle) unwanted(p *v1.Pod, n *v1.Node) []why {
	if !nodeChosen(p, n) {
		return fixed("node(s) didn't match Pod's node affinity/selector")
	}
	return nil
}

func (o *oracle) ports(p *v1.Pod, n *v1.Node) []why {
	for _, other := range o.on[n.Name] {
		for _, a := range hostPorts(p) {
			if slices.Contains(hostPorts(other), a) {
				return []why{{"node(s) didn't have free ports for the requested pod ports", false}}
			}
		}
	}
	return nil
}

// hostPorts are a pod's, of which all are TCP and of all addresses.
func hostPorts(p *v1.Pod) (out []int32) {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				out = append(out, port.HostPort)
			}
		}
	}
	return out
}

// asks is what a pod's containers request, in thousandths.
func asks(p *v1.Pod, name v1.ResourceName) (sum int64) {
	for _, c := range p.Spec.Containers {
		q := c.Resources.Requests[name]
		sum += q.MilliValue()
	}
	return sum
}

// used is what all of a node's pods request.
func (o *oracle) used(n string, name v1.ResourceName) (sum int64) {
	for _, p := range o.on[n] {
		sum += asks(p, name)
	}
	return sum
}

func (o *oracle) room(p *v1.Pod, n *v1.Node) (out []why) {
	if int64(len(o.on[n.Name])) >= n.Status.Allocatable.Pods().Value() {
		out = append(out, why{"Too many pods", false})
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		has := n.Status.Allocatable[name]
		if need := asks(p, name); need > 0 && need+o.used(n.Name, name) > has.MilliValue() {
			out = append(out, why{"Insufficient " + string(name), need > has.MilliValue()})
		}
	}
	return out
}

// hard are a pod's spread constraints that must be kept.
func hard(p *v1.Pod) []v1.TopologySpreadConstraint {
	return slices.DeleteFunc(slices.Clone(p.Spec.TopologySpreadConstraints), func(c v1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable != v1.DoNotSchedule })
}

func chosenBy(s *metav1.LabelSelector, p *v1.Pod) bool {
	sel, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && sel.Matches(labels.Set(p.Labels))
}

// domains are how many pods of each value of the topology key a constraint counts.
func (o *oracle) domains(p *v1.Pod, c *v1.TopologySpreadConstraint) map[string]int {
	out := map[string]int{}
	for _, n := range o.nodes {
		missing := slices.ContainsFunc(hard(p), func(c v1.TopologySpreadConstraint) bool { _, ok := n.Labels[c.TopologyKey]; return !ok })
		honors := c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor
		if missing || !nodeChosen(p, n) || honors && keptOff(p, n, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute) {
			continue
		}
		v := n.Labels[c.TopologyKey]
		out[v] += 0
		for _, other := range o.on[n.Name] {
			if other.Namespace == p.Namespace && other.DeletionTimestamp == nil && chosenBy(c.LabelSelector, other) {
				out[v]++
			}
		}
	}
	return out
}

func (o *oracle) skew(p *v1.Pod, n *v1.Node) []why {
	for _, c := range hard(p) {
		v, ok := n.Labels[c.TopologyKey]
		if !ok {
			return fixed("node(s) didn't match pod topology spread constraints (missing required label)")
		}
		d := o.domains(p, &c)
		least := math.MaxInt
		for _, k := range d {
			least = min(least, k)
		}
		if c.MinDomains != nil && len(d) < int(*c.MinDomains) {
			least = 0
		}
		after := d[v]
		if chosenBy(c.LabelSelector, p) {
			after++
		}
		if after-least > int(c.MaxSkew) {
			return []why{{"node(s) didn't match pod topology spread constraints", false}}
		}
	}
	return nil
}

func affine(p *v1.Pod) (with, apart []v1.PodAffinityTerm) {
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			with = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
		if a.PodAntiAffinity != nil {
			apart = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		}
	}
	return with, apart
}

// means reports whether a term of a pod's is about another pod.
func means(of *v1.Pod, t *v1.PodAffinityTerm, p *v1.Pod) bool {
	return of.Namespace == p.Namespace && chosenBy(t.LabelSelector, p)
}

// near calls fn for each pod on a node with the same value of a key.
func (o *oracle) near(n *v1.Node, key string, fn func(p *v1.Pod)) {
	for _, m := range o.nodes {
		if v, ok := n.Labels[key]; ok && m.Labels[key] == v {
			for _, p := range o.on[m.Name] {
				fn(p)
			}
		}
	}
}

func (o *oracle) company(p *v1.Pod, n *v1.Node) []why {
	with, apart := affine(p)
	if len(with) > 0 && !o.accompanied(p, n, with) {
		return fixed("node(s) didn't match pod affinity rules")
	}
	bad := false
	for _, t := range apart {
		o.near(n, t.TopologyKey, func(other *v1.Pod) { bad = bad || means(p, &t, other) })
	}
	if bad {
		return []why{{"node(s) didn't match pod anti-affinity rules", false}}
	}
	for _, m := range o.nodes {
		for _, other := range o.on[m.Name] {
			_, apart := affine(other)
			for _, t := range apart {
				v, ok := m.Labels[t.TopologyKey]
				bad = bad || ok && n.Labels[t.TopologyKey] == v && means(other, &t, p)
			}
		}
	}
	if bad {
		return []why{{"node(s) didn't satisfy existing pods anti-affinity rules", false}}
	}
	return nil
}

// accompanied reports whether each term's pods are near, or whether there are none yet and the pod
// would be the first.
func (o *oracle) accompanied(p *v1.Pod, n *v1.Node, terms []v1.PodAffinityTerm) bool {
	matches := func(other *v1.Pod) bool {
		return !slices.ContainsFunc(terms, func(t v1.PodAffinityTerm) bool { return !means(p, &t, other) })
	}
	all := true
	for _, t := range terms {
		if _, ok := n.Labels[t.TopologyKey]; !ok {
			return false
		}
		found := false
		o.near(n, t.TopologyKey, func(other *v1.Pod) { found = found || matches(other) })
		all = all && found
	}
	if all {
		return true
	}
	for _, m := range o.nodes {
		for _, other := range o.on[m.Name] {
			for _, t := range terms {
				if _, ok := m.Labels[t.TopologyKey]; ok && matches(other) {
					return false
				}
			}
		}
	}
	return matches(p)
}

// message is what the scheduler has to say of a pod that fits nowhere; fits are the nodes on which
// it could be, helped those on which it could be if pods of lower priority went.
func (o *oracle) message(p *v1.Pod) (text string, fits, helped []string) {
	counts, unhelped := map[string]int{}, map[string]int{}
	names, byName := named(p)
	for _, n := range o.nodes {
		if byName && !slices.Contains(names, n.Name) {
			counts["node(s) didn't satisfy plugin(s) [NodeAffinity]"]++
			unhelped["Preemption is not helpful for scheduling"]++
			continue
		}
		reasons := o.reasons(p, n)
		if len(reasons) == 0 {
			fits = append(fits, n.Name)
			continue
		}
		stays := false
		for _, w := range reasons {
			counts[w.text]++
			stays = stays || w.fixed
		}
		switch victims := o.lower(p, n.Name); {
		case stays:
			unhelped["Preemption is not helpful for scheduling"]++
		case len(victims) == 0:
			unhelped["No preemption victims found for incoming pod"]++
		default:
			left := o.without(func(q *v1.Pod) bool { return slices.Contains(victims, q) }).reasons(p, n)
			if len(left) == 0 {
				helped = append(helped, n.Name)
			}
			for _, w := range left {
				unhelped[w.text]++
			}
		}
	}
	post := "not eligible due to preemptionPolicy=Never."
	if p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != v1.PreemptNever {
		post = available(len(o.nodes), unhelped)
	}
	return available(len(o.nodes), counts) + " no new claims to deallocate, preemption: " + post, fits, helped
}

// lower are the pods of a node that a pod may take the place of.
func (o *oracle) lower(p *v1.Pod, n string) (out []*v1.Pod) {
	for _, q := range o.on[n] {
		if *q.Spec.Priority < *p.Spec.Priority {
			out = append(out, q)
		}
	}
	return out
}

func available(nodes int, counts map[string]int) string {
	var parts []string
	for text, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, text))
	}
	sort.Strings(parts)
	return fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(parts, ", "))
}
