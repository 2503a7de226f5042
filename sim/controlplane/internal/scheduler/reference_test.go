package scheduler

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// oracle decides as the scheduler does, plainly: each time from all nodes and
// pods, without anything remembered.
type oracle struct {
	nodes []*v1.Node
	pods  map[string][]*v1.Pod // by node
	svcs  []*v1.Service
}

func (ref *oracle) all(fn func(n *v1.Node, p *v1.Pod)) {
	for _, n := range ref.nodes {
		for _, p := range ref.pods[n.Name] {
			fn(n, p)
		}
	}
}

func refRequests(p *v1.Pod) v1.ResourceList {
	return resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
}

func refTolerates(p *v1.Pod, taints []v1.Taint, effects ...v1.TaintEffect) int {
	bad := 0
	for i := range taints {
		if slices.Contains(effects, taints[i].Effect) && !corev1helper.TolerationsTolerateTaint(klog.Logger{}, p.Spec.Tolerations, &taints[i], false) {
			bad++
		}
	}
	return bad
}

// filter returns the first failing plugin's reasons.
func (ref *oracle) filter(p *v1.Pod, n *v1.Node) []string {
	if n.Spec.Unschedulable {
		return []string{"node(s) were unschedulable"}
	}
	if refTolerates(p, n.Spec.Taints, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute) > 0 {
		return []string{"node(s) had untolerated taint(s)"}
	}
	if ok, _ := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); !ok {
		return []string{"node(s) didn't match Pod's node affinity/selector"}
	}
	for _, o := range ref.pods[n.Name] {
		if conflict(hostPorts(p.Spec.Containers[0].Ports), hostPorts(o.Spec.Containers[0].Ports)) {
			return []string{"node(s) didn't have free ports for the requested pod ports"}
		}
	}
	if why := ref.fit(p, n); len(why) > 0 {
		return why
	}
	if why := ref.spread(p, n); why != "" {
		return []string{why}
	}
	if why := ref.affinity(p, n); why != "" {
		return []string{why}
	}
	return nil
}

func (ref *oracle) fit(p *v1.Pod, n *v1.Node) (why []string) {
	if int64(len(ref.pods[n.Name]))+1 > n.Status.Allocatable.Pods().Value() {
		why = append(why, "Too many pods")
	}
	for name, q := range refRequests(p) {
		used := q.DeepCopy()
		for _, o := range ref.pods[n.Name] {
			used.Add(refRequests(o)[name])
		}
		alloc := n.Status.Allocatable[name]
		if !q.IsZero() && used.Cmp(alloc) > 0 {
			why = append(why, "Insufficient "+string(name))
		}
	}
	slices.Sort(why)
	return why
}

func (ref *oracle) countOn(n *v1.Node, ns string, sel labels.Selector) (k int64) {
	for _, o := range ref.pods[n.Name] {
		if o.Namespace == ns && o.DeletionTimestamp == nil && sel.Matches(labels.Set(o.Labels)) {
			k++
		}
	}
	return k
}

func refSpreads(p *v1.Pod, hard bool) (out []v1.TopologySpreadConstraint) {
	for _, c := range p.Spec.TopologySpreadConstraints {
		if (c.WhenUnsatisfiable == v1.DoNotSchedule) == hard {
			out = append(out, c)
		}
	}
	return out
}

func refHasKeys(n *v1.Node, list []v1.TopologySpreadConstraint) bool {
	return !slices.ContainsFunc(list, func(c v1.TopologySpreadConstraint) bool { _, ok := n.Labels[c.TopologyKey]; return !ok })
}

// domain sums the pods that count for a constraint by topology value.
func (ref *oracle) domains(p *v1.Pod, c v1.TopologySpreadConstraint, list []v1.TopologySpreadConstraint, sel labels.Selector) map[string]int64 {
	out := map[string]int64{}
	for _, n := range ref.nodes {
		if ok, _ := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); !ok || !refHasKeys(n, list) {
			continue
		}
		if c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor && refTolerates(p, n.Spec.Taints, v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute) > 0 {
			continue
		}
		out[n.Labels[c.TopologyKey]] += ref.countOn(n, p.Namespace, sel)
	}
	return out
}

func (ref *oracle) spread(p *v1.Pod, n *v1.Node) string {
	list := refSpreads(p, true)
	for _, c := range list {
		v, ok := n.Labels[c.TopologyKey]
		if !ok {
			return "node(s) didn't match pod topology spread constraints (missing required label)"
		}
		sel, _ := metav1.LabelSelectorAsSelector(c.LabelSelector)
		d := ref.domains(p, c, list, sel)
		low := int64(math.MaxInt32)
		for _, k := range d {
			low = min(low, k)
		}
		if c.MinDomains != nil && int32(len(d)) < *c.MinDomains {
			low = 0
		}
		self := int64(0)
		if sel.Matches(labels.Set(p.Labels)) {
			self = 1
		}
		if d[v]+self-low > int64(c.MaxSkew) {
			return "node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}

func refMatches(t *v1.PodAffinityTerm, of, p *v1.Pod) bool {
	ns := t.Namespaces
	if len(ns) == 0 {
		ns = []string{of.Namespace}
	}
	sel, _ := metav1.LabelSelectorAsSelector(t.LabelSelector)
	return slices.Contains(ns, p.Namespace) && sel.Matches(labels.Set(p.Labels))
}

func refTerms(p *v1.Pod) (affinity, anti []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm) {
	if a := p.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			affinity = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			preferred = append(preferred, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
		}
		if a.PodAntiAffinity != nil {
			anti = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			for _, w := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				w.Weight = -w.Weight
				preferred = append(preferred, w)
			}
		}
	}
	return affinity, anti, preferred
}

// same reports whether two nodes share the value of a key.
func same(a, b *v1.Node, key string) bool {
	x, ok := a.Labels[key]
	y, ok2 := b.Labels[key]
	return ok && ok2 && x == y
}

func (ref *oracle) affinity(p *v1.Pod, n *v1.Node) string {
	affinity, anti, _ := refTerms(p)
	matchesAll := func(o *v1.Pod) bool {
		return !slices.ContainsFunc(affinity, func(t v1.PodAffinityTerm) bool { return !refMatches(&t, p, o) })
	}
	if len(affinity) > 0 {
		exist, anywhere := true, false
		for _, t := range affinity {
			if _, ok := n.Labels[t.TopologyKey]; !ok {
				return "node(s) didn't match pod affinity rules"
			}
			here := false
			ref.all(func(m *v1.Node, o *v1.Pod) {
				if _, ok := m.Labels[t.TopologyKey]; ok && matchesAll(o) {
					anywhere = true
					here = here || same(m, n, t.TopologyKey)
				}
			})
			exist = exist && here
		}
		if !exist && (anywhere || !matchesAll(p)) {
			return "node(s) didn't match pod affinity rules"
		}
	}
	bad := ""
	ref.all(func(m *v1.Node, o *v1.Pod) {
		for _, t := range anti {
			if refMatches(&t, p, o) && same(m, n, t.TopologyKey) {
				bad = "node(s) didn't match pod anti-affinity rules"
			}
		}
	})
	if bad != "" {
		return bad
	}
	ref.all(func(m *v1.Node, o *v1.Pod) {
		_, theirs, _ := refTerms(o)
		for _, t := range theirs {
			if refMatches(&t, o, p) && same(m, n, t.TopologyKey) {
				bad = "node(s) didn't satisfy existing pods anti-affinity rules"
			}
		}
	})
	return bad
}

// scores returns the weighted sums of the plugins' scores.
func (ref *oracle) scores(p *v1.Pod, nodes []*v1.Node) []int64 {
	out := make([]int64, len(nodes))
	taints, prefer := make([]int64, len(nodes)), make([]int64, len(nodes))
	for i, n := range nodes {
		out[i] = ref.least(p, n) + ref.balance(p, n) + ref.images(p, n)
		taints[i] = int64(refTolerates(p, n.Spec.Taints, v1.TaintEffectPreferNoSchedule))
		if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
			terms, _ := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
			prefer[i] = terms.Score(n)
		}
	}
	pods := ref.podScores(p, nodes)
	spread := ref.spreadScores(p, nodes)
	for i := range nodes {
		t := int64(100)
		if m := slices.Max(taints); m > 0 {
			t = 100 - 100*taints[i]/m
		}
		out[i] += 3 * t
		if m := slices.Max(prefer); m > 0 {
			out[i] += 2 * (100 * prefer[i] / m)
		}
		if lo, hi := slices.Min(pods), slices.Max(pods); hi > lo {
			out[i] += 2 * int64(100*(float64(pods[i]-lo)/float64(hi-lo)))
		}
		out[i] += 2 * spread[i]
	}
	return out
}

// use returns requested and allocatable of CPU and memory.
func (ref *oracle) use(p *v1.Pod, n *v1.Node, defaults bool) (with, without, alloc [2]float64) {
	o := resourcehelper.PodResourcesOptions{}
	if defaults {
		o.NonMissingContainerRequests = v1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("200Mi")}
	}
	add := func(p *v1.Pod, to *[2]float64) {
		r := resourcehelper.PodRequests(p, o)
		to[0] += float64(r.Cpu().MilliValue())
		to[1] += float64(r.Memory().Value())
	}
	for _, x := range ref.pods[n.Name] {
		add(x, &without)
	}
	with = without
	add(p, &with)
	return with, without, [2]float64{float64(n.Status.Allocatable.Cpu().MilliValue()), float64(n.Status.Allocatable.Memory().Value())}
}

func (ref *oracle) least(p *v1.Pod, n *v1.Node) int64 {
	with, _, alloc := ref.use(p, n, true)
	var sum int64
	for i := range with {
		if with[i] <= alloc[i] {
			sum += (int64(alloc[i]) - int64(with[i])) * 100 / int64(alloc[i])
		}
	}
	return sum / 2
}

func (ref *oracle) balance(p *v1.Pod, n *v1.Node) int64 {
	with, without, alloc := ref.use(p, n, false)
	if with == without {
		return 0
	}
	of := func(x [2]float64) int64 {
		return int64((1 - math.Abs((min(x[0]/alloc[0], 1)-min(x[1]/alloc[1], 1))/2)) * 100)
	}
	return 50 + (50+of(with)-of(without))/2
}

func (ref *oracle) images(p *v1.Pod, n *v1.Node) int64 {
	find := func(n *v1.Node) int64 {
		for _, im := range n.Status.Images {
			if slices.Contains(im.Names, p.Spec.Containers[0].Image) {
				return im.SizeBytes
			}
		}
		return 0
	}
	have := 0
	for _, m := range ref.nodes {
		if find(m) > 0 {
			have++
		}
	}
	size := int64(float64(find(n)) * (float64(have) / float64(len(ref.nodes))))
	const mb = 1 << 20
	size = min(max(size, 23*mb), 1000*mb)
	return 100 * (size - 23*mb) / (1000*mb - 23*mb)
}

func (ref *oracle) podScores(p *v1.Pod, nodes []*v1.Node) []int64 {
	out := make([]int64, len(nodes))
	_, _, mine := refTerms(p)
	ref.all(func(m *v1.Node, o *v1.Pod) {
		add := func(key string, w int64) {
			for i, n := range nodes {
				if same(n, m, key) {
					out[i] += w
				}
			}
		}
		for _, w := range mine {
			if refMatches(&w.PodAffinityTerm, p, o) {
				add(w.PodAffinityTerm.TopologyKey, int64(w.Weight))
			}
		}
		hard, _, theirs := refTerms(o)
		for _, t := range hard {
			if refMatches(&t, o, p) {
				add(t.TopologyKey, 1)
			}
		}
		for _, w := range theirs {
			if refMatches(&w.PodAffinityTerm, o, p) {
				add(w.PodAffinityTerm.TopologyKey, int64(w.Weight))
			}
		}
	})
	return out
}

func (ref *oracle) spreadScores(p *v1.Pod, nodes []*v1.Node) []int64 {
	out := make([]int64, len(nodes))
	list := refSpreads(p, false)
	own := len(p.Spec.TopologySpreadConstraints) > 0
	if !own {
		set := labels.Set{}
		for _, s := range ref.svcs {
			if s.Namespace == p.Namespace && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels)) {
				set = labels.Merge(set, s.Spec.Selector)
			}
		}
		if len(set) > 0 {
			sel := &metav1.LabelSelector{MatchLabels: set}
			list = []v1.TopologySpreadConstraint{{MaxSkew: 3, TopologyKey: v1.LabelHostname, LabelSelector: sel}, {MaxSkew: 5, TopologyKey: v1.LabelTopologyZone, LabelSelector: sel}}
		}
	}
	if len(list) == 0 {
		return out
	}
	left := func(n *v1.Node) bool { return own && !refHasKeys(n, list) }
	raw := make([]float64, len(nodes))
	for _, c := range list {
		sel, _ := metav1.LabelSelectorAsSelector(c.LabelSelector)
		values := map[string]bool{}
		size := 0
		for _, n := range nodes {
			if !left(n) {
				values[n.Labels[c.TopologyKey]] = true
				size++
			}
		}
		need := list
		if !own {
			need = nil
		}
		d := ref.domains(p, c, need, sel)
		if c.TopologyKey != v1.LabelHostname {
			size = len(values)
		}
		for i, n := range nodes {
			v, ok := n.Labels[c.TopologyKey]
			if !ok || left(n) {
				continue
			}
			k := d[v]
			if c.TopologyKey == v1.LabelHostname {
				k = ref.countOn(n, p.Namespace, sel)
			}
			raw[i] += float64(k)*math.Log(float64(size+2)) + float64(c.MaxSkew-1)
		}
	}
	lo, hi := int64(math.MaxInt64), int64(0)
	for i, n := range nodes {
		out[i] = int64(math.Round(raw[i]))
		if !left(n) {
			lo, hi = min(lo, out[i]), max(hi, out[i])
		}
	}
	for i, n := range nodes {
		switch {
		case left(n):
			out[i] = 0
		case hi == 0:
			out[i] = 100
		default:
			out[i] = 100 * (hi + lo - out[i]) / hi
		}
	}
	return out
}
