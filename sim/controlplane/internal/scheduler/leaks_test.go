package scheduler

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestForgets has pods with labels and terms of their own, and nodes with names of
// their own, come and go: what is counted by them is bounded.
func TestForgets(t *testing.T) {
	r := newRig(t)
	r.node("stays")
	none := int64(0)
	remove := func(k apiserver.Kind, namespace, name string) {
		t.Helper()
		if err := r.srv.Delete(k, namespace, name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
			t.Fatal(err)
		}
	}
	r.pod("stays", apart("stays"))
	most := map[string]int{}
	for i := range 3 * fewTallies {
		name := fmt.Sprintf("w%d", i)
		r.pod(name, apart(name))
		r.pod(name+"-nowhere", apart(name+"-nowhere"), func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"there": "is-none"} })
		if i%50 == 0 {
			r.node(name, func(n *v1.Node) { n.Labels[v1.LabelHostname] = name })
		}
		r.run(time.Minute)
		remove(apiserver.KindPod, "default", name)
		remove(apiserver.KindPod, "default", name+"-nowhere")
		if i%50 == 0 {
			remove(apiserver.KindNode, "", name)
		}
		r.run(time.Second)
		for what, n := range map[string]int{
			"tallies": len(r.s.labels.tallies), "carriers": len(r.s.labels.carriers), "label sets": len(r.s.labels.sets), "pending": len(r.s.pending),
			"host names": len(r.s.table.hostname.values), "nodes": len(r.s.table.slots), "services": len(r.s.classes.services), "images": len(r.s.table.images),
		} {
			most[what] = max(most[what], n)
		}
	}
	for what, limit := range map[string]int{
		"tallies": fewTallies + 64, "carriers": fewTallies + 64, "label sets": 1, "pending": 0, "host names": 2, "nodes": 2,
	} {
		if most[what] > limit || limit > 0 && most[what] == 0 {
			t.Errorf("%s: up to %d, want at most %d", what, most[what], limit)
		}
	}
	// The term of the pod that stayed still counts.
	r.pod("twin", func(p *v1.Pod) { p.Labels = map[string]string{"app": "stays"} })
	r.run(time.Minute)
	if n := r.nodeOf("twin"); n != "" {
		t.Errorf("the twin is on %s", n)
	}
}

// apart keeps pods of an app on different hosts.
func apart(app string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Labels = map[string]string{"app": app}
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: "name", LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}}}
	}
}
