package scheduler

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// benchCases are what a cluster of 5,000 nodes in three zones is filled with, up to 30
// pods a node: pods of one template, by what keeps them apart or together.
func benchCases() []benchCase {
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "p"}}
	spread := func(key string, when v1.UnsatisfiableConstraintAction) v1.TopologySpreadConstraint {
		return v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: when, LabelSelector: app}
	}
	byZone := func(p *v1.Pod) {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{spread(v1.LabelTopologyZone, v1.DoNotSchedule)}
	}
	apart := func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: v1.LabelHostname, LabelSelector: app}}}}
	}
	return []benchCase{
		{"plain", 150_000, func(*v1.Pod) {}, false},
		{"service", 150_000, func(*v1.Pod) {}, true},
		{"spread", 10_000, byZone, false},
		{"spread over selected nodes", 10_000, func(p *v1.Pod) {
			p.Spec.NodeSelector = map[string]string{v1.LabelTopologyRegion: "r"}
			byZone(p)
		}, false},
		{"spread if possible", 10_000, func(p *v1.Pod) {
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{spread(v1.LabelTopologyZone, v1.ScheduleAnyway), spread(v1.LabelHostname, v1.ScheduleAnyway)}
		}, false},
		{"anti-affinity", 5_000, apart, false},
		{"spread and anti-affinity", 5_000, func(p *v1.Pod) { byZone(p); apart(p) }, false},
		{"spread over hosts and anti-affinity", 5_000, func(p *v1.Pod) {
			byZone(p)
			apart(p)
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, spread(v1.LabelHostname, v1.DoNotSchedule))
		}, false},
	}
}

type benchCase struct {
	name string
	pods int
	edit func(*v1.Pod)
	svc  bool
}

// rig returns a cluster whose scheduler has not yet heard of the pods.
func (tc *benchCase) rig(b *testing.B) *rig {
	r := benchRig(b, 5000)
	if tc.svc {
		if _, err := r.srv.Create(&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": "p"},
			Ports: []v1.ServicePort{{Port: 80}}}}); err != nil {
			b.Fatal(err)
		}
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "p"}}, Spec: v1.PodSpec{Containers: []v1.Container{{
		Name: "main", Image: "app:1", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}}}}}}
	tc.edit(pod)
	tmpl, err := r.srv.NewTemplate(pod)
	if err != nil {
		b.Fatal(err)
	}
	for i := range tc.pods {
		if _, err := r.srv.CreateFromTemplate(tmpl, apiserver.Stamp{Name: fmt.Sprintf("p-%d", i)}); err != nil {
			b.Fatal(err)
		}
	}
	return r
}

// BenchmarkSchedule has the API's share in it: binding, and the writing of events.
func BenchmarkSchedule(b *testing.B) {
	for _, tc := range benchCases() {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				r := tc.rig(b)
				b.StartTimer()
				r.run(10 * time.Second)
				b.StopTimer()
				if k := r.s.Pending(); k > 0 {
					b.Fatalf("%d pods are pending", k)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(tc.pods*b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

// BenchmarkCycles is the scheduler alone: what it writes is handed over and not awaited.
func BenchmarkCycles(b *testing.B) {
	for _, tc := range benchCases() {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				r := tc.rig(b)
				now := r.l.UnixNano() + int64(time.Minute)
				r.s.admit(now)
				b.StartTimer()
				for q := r.s.queue.pop(now); q != nil; q = r.s.queue.pop(now) {
					r.s.schedule(q)
				}
				b.StopTimer()
				if k := len(r.s.assumed); k != tc.pods {
					b.Fatalf("%d of %d pods are placed", k, tc.pods)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(tc.pods*b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

func benchRig(b *testing.B, nodes int) *rig {
	r := newRig(b)
	for i := range nodes {
		r.node(fmt.Sprintf("n%d", i), func(n *v1.Node) {
			n.Labels = map[string]string{v1.LabelHostname: n.Name, v1.LabelTopologyZone: fmt.Sprintf("z%d", i%3), v1.LabelTopologyRegion: "r"}
			n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
		})
	}
	return r
}
