package scheduler

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestScores places pods one after the other on two nodes; the totals are those
// that upstream's plugins compute. 300 of each are TaintToleration's.
func TestScores(t *testing.T) {
	size := func(cpu, memory string) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("110")}
		}
	}
	for _, tc := range []struct {
		name string
		a, b func(*v1.Node)
		pod  func(*v1.Pod)
		want []string
	}{
		// What memory the pods count for, 200Mi, hardly fills either node; the larger
		// one's balance suffers less from the CPU, down to its last pod.
		{"cpu alone", size("7", "8Gi"), size("2", "8Gi"), requests("cpu", "1500m"),
			[]string{"a of 456 417", "a of 445 417", "a of 432 417", "a of 422 417", "b alone"}},
		{"cpu alone, little memory", size("7", "4Gi"), size("2", "4Gi"), requests("cpu", "1500m"),
			[]string{"a of 455 416", "a of 442 416", "a of 429 416", "a of 417 416", "b alone"}},
		// NodeResourcesFit scores by the container's 100m, and counts 2500m later.
		{"pod level", size("4", "8Gi"), size("8", "2Gi"), func(p *v1.Pod) {
			p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("2500m")}}
			requests("cpu", "100m")(p)
		}, []string{"b of 456 461", "a of 456 440", "b alone"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.node("a", tc.a)
			r.node("b", tc.b)
			for i, want := range tc.want {
				name := fmt.Sprint("p", i)
				r.pod(name, tc.pod)
				p := r.srv.Pod("default", name)
				cy := r.s.newCycle(r.s.pending[p.UID], p)
				got := "alone"
				start := r.s.start
				r.s.start = 0 // a first
				if nodes, _ := cy.feasible(r.s.table.tree.nodes()); len(nodes) > 1 {
					scores := cy.score(nodes)
					got = fmt.Sprint("of ", scores[0], " ", scores[1])
				}
				r.s.start = start
				r.run(10 * time.Second)
				if got = r.nodeOf(name) + " " + got; got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
		})
	}
}

// TestStrategies: the scores that NodeResourcesFit's strategies give a node of 4 CPUs and 4Gi.
func TestStrategies(t *testing.T) {
	// shape has scores at equal distances.
	shape := func(scores ...int32) *configv1.RequestedToCapacityRatioParam {
		out := &configv1.RequestedToCapacityRatioParam{}
		for i, score := range scores {
			out.Shape = append(out.Shape, configv1.UtilizationShapePoint{Utilization: int32(i) * 100 / int32(len(scores)-1), Score: score})
		}
		return out
	}
	const least, most, ratio = configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio
	half := amounts{cpu: 2000, memory: 1 << 30} // of the CPUs, and a quarter of the memory
	for _, tt := range []struct {
		name     string
		strategy configv1.ScoringStrategyType
		shape    *configv1.RequestedToCapacityRatioParam
		own      amounts
		want     int64
	}{
		{"what is free", least, nil, half, 62},
		{"what is used", most, nil, half, 37},
		{"what is used, rounded", ratio, shape(0, 10), half, 38},
		{"what scores nothing doesn't count", ratio, shape(0, 10), amounts{cpu: 2000}, 50},
		{"nor does it at the other end", ratio, shape(0, 10, 0), amounts{cpu: 2000, memory: 4 << 30}, 100},
		{"nothing counts", ratio, shape(0, 10, 0), amounts{}, 0},
	} {
		s := newScoring(&configv1.ScoringStrategy{
			Type: tt.strategy, Resources: []configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}, RequestedToCapacityRatio: tt.shape,
		})
		if got := s.score(&class{own: tt.own}, &nodeInfo{alloc: amounts{cpu: 4000, memory: 4 << 30}}, nil); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestSpreadOverDyingPods: pods that are being deleted don't count for spreading,
// yet preemption finds room by taking one off its node, as upstream does.
func TestSpreadOverDyingPods(t *testing.T) {
	r := newRig(t)
	r.node("a", func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = "a" })
	r.node("b", func(n *v1.Node) {
		n.Labels[v1.LabelTopologyZone] = "b"
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	})
	web := func(priority, node string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Namespace, p.Labels = "kube-system", map[string]string{"app": "web"}
			p.Spec.PriorityClassName, p.Spec.NodeName = priority, node
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone,
				WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		}
	}
	r.pod("stays", web("system-node-critical", "a"))
	r.pod("goes", web("", "a"))
	if err := r.srv.Delete(apiserver.KindPod, "kube-system", "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.pod("comes", web("system-node-critical", ""))
	r.run(time.Second)
	if got := r.srv.Pod("kube-system", "comes").Status.NominatedNodeName; got != "a" {
		t.Errorf("nominated to %q: %v", got, r.srv.Pod("kube-system", "comes").Status.Conditions)
	}
}
