package apiserver_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestMatchLabelKeys: a pod's selectors are completed by its labels when it is
// created, also when it is stamped from a template with other labels, and pods
// with the same labels go on sharing them.
func TestMatchLabelKeys(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web", "hash": "1"}},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "main", Image: "app:1"}},
			TopologySpreadConstraints: []v1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: web, MatchLabelKeys: []string{"hash", "absent"}}},
			Affinity: &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{TopologyKey: "zone", LabelSelector: web, MismatchLabelKeys: []string{"hash"}}}}},
		},
	}
	tmpl, err := srv.NewTemplate(pod)
	if err != nil {
		t.Fatal(err)
	}
	stamp := func(name, hash string) *v1.Pod {
		p, err := srv.CreateFromTemplate(tmpl, apiserver.Stamp{Name: name, Labels: map[string]string{"app": "web", "hash": hash}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	created, err := srv.Create(pod)
	if err != nil {
		t.Fatal(err)
	}
	same, other := stamp("same", "1"), stamp("other", "2")
	for _, tc := range []struct {
		pod  *v1.Pod
		hash string
	}{{created.(*v1.Pod), "1"}, {same, "1"}, {other, "2"}, {srv.Pod("default", "same"), "1"}} {
		spread := tc.pod.Spec.TopologySpreadConstraints[0].LabelSelector
		apart := tc.pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector
		got := metav1.FormatLabelSelector(spread) + "; " + metav1.FormatLabelSelector(apart)
		if want := fmt.Sprintf("app=web,hash in (%[1]s); app=web,hash notin (%[1]s)", tc.hash); got != want {
			t.Errorf("%s: %s, want %s", tc.pod.Name, got, want)
		}
	}
	if &same.Spec.TopologySpreadConstraints[0] != &tmpl.Pod().Spec.TopologySpreadConstraints[0] || len(web.MatchExpressions) > 0 {
		t.Error("selectors were copied without need, or the caller's were written to")
	}
}
