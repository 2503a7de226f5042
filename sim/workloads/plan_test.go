package workloads

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

const (
	// actsBegin and actsEnd bound what is done to a cluster. What is at rest is judged at rest:
	// by then a dead node's pods were evicted (six minutes), what a full quota refused was tried
	// again (after 1000 s at most), an autoscaler has scaled down, and each pod that fits nowhere
	// has been tried again since (five and a half minutes).
	actsBegin = 40 * time.Second
	actsEnd   = 8 * time.Minute
	rest      = 60 * time.Minute
)

// step is a thing that happens. It depends on no other: what it is about may not be there.
type step struct {
	at   time.Duration
	text string
	do   func(r *run)
}

// plan is a cluster and what happens to it, all of which the seed says.
type plan struct {
	seed  uint64
	nodes []sim.NodeOptions
	steps []step
}

// maker draws a plan.
type maker struct {
	*rand.Rand
	plan *plan
	// work are the workloads drawn so far.
	work []*workload
}

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func one[T any](m *maker, list ...T) T { return list[m.IntN(len(list))] }

func (m *maker) between(lo, hi int) int { return lo + m.IntN(hi-lo+1) }

func (m *maker) seconds(lo, hi int) time.Duration {
	return time.Duration(m.between(lo*1000, hi*1000)) * time.Millisecond
}

func (m *maker) step(at time.Duration, do func(r *run), format string, args ...any) {
	m.plan.steps = append(m.plan.steps, step{at, fmt.Sprintf(format, args...), do})
}

// newPlan draws the plan of a seed.
func newPlan(seed uint64) *plan {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 18)), plan: &plan{seed: seed}}
	m.drawNodes()
	m.step(0, func(r *run) { r.begin() }, "namespaces and priorities")
	if m.chance(40) {
		m.quota()
	}
	for i := range m.between(3, 7) {
		m.workload(i)
	}
	for range m.between(6, 24) {
		m.act(m.seconds(int(actsBegin/time.Second), int(actsEnd/time.Second)))
	}
	slices.SortStableFunc(m.plan.steps, func(a, b step) int { return int(a.at - b.at) })
	return m.plan
}

func (m *maker) drawNodes() {
	for i := range m.between(3, 7) {
		n := sim.NodeOptions{
			Name:   fmt.Sprintf("n%d", i),
			Labels: map[string]string{v1.LabelTopologyZone: one(m, "a", "b", "c"), "disk": one(m, "ssd", "hdd")},
			Capacity: v1.ResourceList{
				v1.ResourceCPU: resource.MustParse(one(m, "2", "4", "8")), v1.ResourceMemory: resource.MustParse(one(m, "4Gi", "8Gi")),
				v1.ResourcePods: resource.MustParse(one(m, "6", "12", "30")),
			},
		}
		if m.chance(15) {
			n.Taints = []v1.Taint{{Key: "dedicated", Value: "batch", Effect: v1.TaintEffectNoSchedule}}
		}
		m.plan.nodes = append(m.plan.nodes, n)
	}
}

// quota bounds a namespace.
func (m *maker) quota() {
	hard := v1.ResourceList{}
	if m.chance(70) {
		hard[v1.ResourcePods] = resource.MustParse(fmt.Sprint(m.between(2, 12)))
	}
	if len(hard) == 0 || m.chance(40) {
		hard[v1.ResourceRequestsCPU] = resource.MustParse(fmt.Sprint(m.between(1, 6)))
	}
	q := &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "q"}, Spec: v1.ResourceQuotaSpec{Hard: hard}}
	at := time.Second
	if m.chance(30) {
		at = m.seconds(60, 300)
	}
	m.step(at, func(r *run) { r.create(q.DeepCopy()) }, "quota b/q: %s", list(hard))
	if m.chance(40) {
		m.step(m.seconds(200, 450), func(r *run) { r.delete(apiserver.KindResourceQuota, "b", "q", "") }, "quota b/q goes")
	}
}

// list writes amounts in order.
func list(l v1.ResourceList) string {
	var out []string
	for name, q := range l {
		out = append(out, fmt.Sprintf("%s=%s", name, q.String()))
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}
