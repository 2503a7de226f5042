package scheduler

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

var seeds = flag.Int("scheduler.seeds", 20, "random clusters of TestReference")

// TestReference grows random clusters pod by pod, while nodes and pods come, go
// and change, and holds each decision to the reference: the nodes that pass, the
// scores, the reasons, and victims that are needed and enough.
func TestReference(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playReference(t, uint64(seed)) })
	}
}

func playReference(t *testing.T, seed uint64) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), rig: newRig(t)}
	nodes := 2 + g.IntN(12)
	if seed%5 == 4 {
		nodes = 130 // more than are looked at
	}
	for range nodes {
		g.addNode()
	}
	placed, failed, preempted := 0, 0, 0
	for range 120 {
		g.disturb()
		g.rig.run(30 * time.Second)
		g.settle()
		p := g.addPod()
		if p == nil {
			continue
		}
		switch r := g.check(p); {
		case r.node != nil:
			placed++
		case r.victims != nil:
			preempted++
		default:
			failed++
		}
		g.rig.run(30 * time.Second)
	}
	if placed < 10 {
		t.Errorf("only %d pods were placed", placed)
	}
	if seed == 0 && (failed == 0 || preempted == 0) {
		t.Errorf("%d pods failed, %d preempted: the cluster is too large", failed, preempted)
	}
}

type generator struct {
	*rand.Rand
	rig   *rig
	nodes int
	pods  int
	// templates are what replicas are stamped from: the scheduler remembers nodes
	// for those only.
	templates []*apiserver.Template
}

func (g *generator) one(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) labels(n *v1.Node) {
	n.Labels = map[string]string{v1.LabelHostname: n.Name, "disk": g.one("ssd", "hdd")}
	if g.IntN(6) > 0 {
		n.Labels[v1.LabelTopologyZone] = g.one("a", "b", "c")
	}
}

func (g *generator) addNode() {
	g.nodes++
	g.rig.node(fmt.Sprintf("n%d", g.nodes), func(n *v1.Node) {
		g.labels(n)
		n.Status.Allocatable = v1.ResourceList{
			"cpu": resource.MustParse(g.one("2", "4", "3")), "memory": resource.MustParse(g.one("4Gi", "8Gi")),
			"pods": resource.MustParse(g.one("4", "8", "20")), "x.io/gpu": resource.MustParse(g.one("0", "2"))}
		switch g.IntN(8) {
		case 0:
			n.Spec.Taints = []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}}
		case 1:
			n.Spec.Taints = []v1.Taint{{Key: "soft", Effect: v1.TaintEffectPreferNoSchedule}}
		case 2:
			n.Spec.Unschedulable = true
		}
		if g.IntN(2) == 0 {
			n.Status.Images = []v1.ContainerImage{{Names: []string{"app:1"}, SizeBytes: 700 << 20}}
		}
	})
}

func (g *generator) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": g.one("x", "y")}}
}

func (g *generator) term() v1.PodAffinityTerm {
	t := v1.PodAffinityTerm{TopologyKey: g.one(v1.LabelHostname, v1.LabelTopologyZone, "disk"), LabelSelector: g.selector()}
	if g.IntN(4) == 0 {
		t.Namespaces = []string{"default", "kube-system"}
	}
	return t
}

func (g *generator) addPod() *v1.Pod {
	g.pods++
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", g.pods), Namespace: g.one("default", "default", "kube-system"), Labels: map[string]string{"app": g.one("x", "y", "z")}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: g.one("app:1", "app:2")}}},
	}
	c := &p.Spec.Containers[0]
	if g.IntN(4) > 0 {
		c.Resources.Requests = v1.ResourceList{"cpu": resource.MustParse(g.one("100m", "500m", "1", "2500m")), "memory": resource.MustParse(g.one("64Mi", "1Gi"))}
	}
	if g.IntN(8) == 0 {
		c.Resources.Requests = v1.ResourceList{"x.io/gpu": resource.MustParse("1")}
		c.Resources.Limits = c.Resources.Requests
	}
	if g.IntN(8) == 0 {
		c.Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
	if g.IntN(4) == 0 {
		p.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: v1.TolerationOpExists}}
	}
	if g.IntN(8) == 0 {
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	}
	if g.IntN(3) == 0 {
		p.Spec.PriorityClassName = g.one("system-node-critical", "system-cluster-critical")
	}
	g.addAffinity(p)
	for range g.IntN(5) - 2 {
		k := v1.TopologySpreadConstraint{MaxSkew: int32(1 + g.IntN(2)), TopologyKey: g.one(v1.LabelTopologyZone, v1.LabelHostname, "disk"), LabelSelector: g.selector(),
			WhenUnsatisfiable: v1.UnsatisfiableConstraintAction(g.one("DoNotSchedule", "ScheduleAnyway"))}
		if k.WhenUnsatisfiable == v1.DoNotSchedule && g.IntN(4) == 0 {
			two := int32(2)
			k.MinDomains = &two
		}
		if g.IntN(4) == 0 {
			honor := v1.NodeInclusionPolicyHonor
			k.NodeTaintsPolicy = &honor
		}
		if !slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(o v1.TopologySpreadConstraint) bool { return o.TopologyKey == k.TopologyKey }) {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, k)
		}
	}
	if g.IntN(3) > 0 {
		return g.stamp(p)
	}
	o, err := g.rig.srv.Create(p)
	if err != nil {
		g.rig.t.Fatal(err)
	}
	return o.(*v1.Pod)
}

// stamp makes a replica of one of a few templates; p is one while there are fewer.
func (g *generator) stamp(p *v1.Pod) *v1.Pod {
	srv := g.rig.srv
	if len(g.templates) < 6 {
		t, err := srv.NewTemplate(p)
		if err != nil {
			g.rig.t.Fatal(err)
		}
		g.templates = append(g.templates, t)
	}
	st := apiserver.Stamp{Name: p.Name}
	if g.IntN(4) == 0 {
		st.Labels = p.Labels
	}
	out, err := srv.CreateFromTemplate(g.templates[g.IntN(len(g.templates))], st)
	if err != nil {
		g.rig.t.Fatal(err)
	}
	return out
}

func (g *generator) addAffinity(p *v1.Pod) {
	a := &v1.Affinity{}
	switch g.IntN(10) {
	case 0:
		a.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{g.term()}}
	case 1:
		a.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{g.term()}}
	case 2:
		a.PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: g.term()}}}
		a.PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 30, PodAffinityTerm: g.term()}}}
	case 3:
		a.NodeAffinity = &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 5, Preference: v1.NodeSelectorTerm{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"hdd"}}}}}}}
	case 4:
		a.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpNotIn, Values: []string{"a"}}}}}}}
	default:
		return
	}
	p.Spec.Affinity = a
}

// disturb changes something: a pod ends, a node is relabelled, goes, or comes.
func (g *generator) disturb() {
	srv := g.rig.srv
	pods, nodes := srv.Pods(), srv.Nodes()
	must := func(err error) {
		if err != nil {
			g.rig.t.Fatal(err)
		}
	}
	switch g.IntN(12) {
	case 0, 1, 2:
		if len(pods) > 0 {
			p := pods[g.IntN(len(pods))]
			opts := metav1.DeleteOptions{}
			if g.IntN(2) == 0 {
				opts.GracePeriodSeconds = new(int64)
			}
			must(srv.Delete(apiserver.KindPod, p.Namespace, p.Name, opts))
		}
	case 3:
		n := nodes[g.IntN(len(nodes))].DeepCopy()
		g.labels(n)
		_, err := srv.Update(n, "")
		must(err)
	case 4:
		if len(nodes) > 2 {
			must(srv.Delete(apiserver.KindNode, "", nodes[g.IntN(len(nodes))].Name, metav1.DeleteOptions{}))
		}
		g.addNode()
	case 5:
		if len(pods) > 0 {
			p := pods[g.IntN(len(pods))]
			_, err := srv.Patch(apiserver.KindPod, p.Namespace, p.Name, types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, g.one("x", "y", "z"))), "")
			must(err)
		}
	case 6:
		name := g.one("x", "y")
		if srv.Store().Lookup(apiserver.KindService, "default", name) != nil {
			must(srv.Delete(apiserver.KindService, "default", name, metav1.DeleteOptions{}))
		} else {
			_, err := srv.Create(&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []v1.ServicePort{{Port: 80}}}})
			must(err)
		}
	}
}

// settle has evictions come to their end: the reference knows no nominated pods.
func (g *generator) settle() {
	for range 20 {
		var waits *queued
		for _, n := range g.rig.s.table.slots {
			if n != nil && len(n.nominated) > 0 {
				waits = n.nominated[0]
				break
			}
		}
		if waits == nil {
			return
		}
		gone := false
		for _, p := range slices.Clone(g.rig.srv.Pods()) {
			if p.DeletionTimestamp != nil {
				gone = true
				if err := g.rig.srv.Delete(apiserver.KindPod, p.Namespace, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
					g.rig.t.Fatal(err)
				}
			}
		}
		if !gone {
			if err := g.rig.srv.Delete(apiserver.KindPod, waits.namespace, waits.name, metav1.DeleteOptions{}); err != nil {
				g.rig.t.Fatal(err)
			}
		}
		g.rig.run(30 * time.Second)
	}
	g.rig.t.Fatal("pods stay nominated")
}

// check compares the scheduler's decision on a pod with the reference's.
func (g *generator) check(p *v1.Pod) result {
	t, s := g.rig.t, g.rig.s
	t.Helper()
	ref := g.reference()
	start := s.start
	q := s.pending[p.UID]
	cy := s.newCycle(q, p)
	r := cy.run()
	s.start = start
	var feasible []*v1.Node
	reasons := map[string]int{}
	for i := range ref.nodes {
		n := ref.nodes[(start+i)%len(ref.nodes)]
		if why := ref.filter(p, n); len(why) > 0 {
			for _, w := range why {
				reasons[w]++
			}
		} else if feasible = append(feasible, n); len(feasible) == feasibleToFind(len(ref.nodes), 0) {
			break
		}
	}
	if len(feasible) == 0 {
		var parts []string
		for w, k := range reasons {
			parts = append(parts, fmt.Sprintf("%d %s", k, w))
		}
		slices.Sort(parts)
		want := fmt.Sprintf("0/%d nodes are available: %s.", len(ref.nodes), strings.Join(parts, ", "))
		if r.node != nil || !strings.HasPrefix(r.message, want) {
			t.Fatalf("%s: %v %q, want %q", p.Name, r.node, r.message, want)
		}
		if r.victims != nil {
			g.checkVictims(ref, p, r.victims)
		}
		return r
	}
	if r.node == nil {
		t.Fatalf("%s: %q, but %d nodes pass", p.Name, r.message, len(feasible))
	}
	want := ref.scores(p, feasible)
	if len(feasible) > 1 {
		cy = s.newCycle(q, p)
		nodes, _ := cy.feasible(s.table.tree.nodes())
		s.start = start
		for i, got := range cy.score(nodes) {
			if nodes[i].name != feasible[i].Name || got != want[i] {
				t.Fatalf("%s: node %d of %d: %s with %d, want %s with %d", p.Name, i, len(feasible), nodes[i].name, got, feasible[i].Name, want[i])
			}
		}
	}
	at := slices.IndexFunc(feasible, func(n *v1.Node) bool { return n.Name == r.node.name })
	if at < 0 || want[at] != slices.Max(want) {
		t.Fatalf("%s went to %s, which is not the best", p.Name, r.node.name)
	}
	return r
}

// checkVictims: the pod fits without them, and not with any of them.
func (g *generator) checkVictims(ref *oracle, p *v1.Pod, c *candidate) {
	t := g.rig.t
	all := ref.pods[c.node.name]
	without := func(keep *v1.Pod) {
		ref.pods[c.node.name] = slices.DeleteFunc(slices.Clone(all), func(o *v1.Pod) bool {
			return o != keep && slices.ContainsFunc(c.victims, func(v *v1.Pod) bool { return v.UID == o.UID })
		})
	}
	defer func() { ref.pods[c.node.name] = all }()
	without(nil)
	if why := ref.filter(p, c.node.node); why != nil {
		t.Fatalf("%s does not fit on %s without the victims: %v", p.Name, c.node.name, why)
	}
	for _, v := range c.victims {
		if corev1helper.PodPriority(v) >= corev1helper.PodPriority(p) {
			t.Fatalf("%s would evict %s of no lower priority", p.Name, v.Name)
		}
		without(v)
		if a := p.Spec.Affinity; a == nil && len(p.Spec.TopologySpreadConstraints) == 0 && ref.filter(p, c.node.node) == nil {
			t.Fatalf("%s need not evict %s from %s", p.Name, v.Name, c.node.name)
		}
	}
}

func (g *generator) reference() *oracle {
	ref := &oracle{pods: map[string][]*v1.Pod{}}
	for _, n := range g.rig.s.table.tree.nodes() {
		ref.nodes = append(ref.nodes, n.node)
	}
	for _, p := range g.rig.srv.Pods() {
		if holds(p) {
			ref.pods[p.Spec.NodeName] = append(ref.pods[p.Spec.NodeName], p)
		}
	}
	ref.svcs = apiserver.Objects[*v1.Service](g.rig.srv.Store(), apiserver.KindService)
	return ref
}
