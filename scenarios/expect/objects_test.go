package expect

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func deployment(ns, name string, ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
		Status: appsv1.DeploymentStatus{ReadyReplicas: ready, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: v1.ConditionTrue, Reason: "MinimumReplicasAvailable"}}},
	}
}

// TestObjectFunctions reads objects that only controllers know.
func TestObjectFunctions(t *testing.T) {
	c, s := compiler(t), sample()
	s.deployments = []*appsv1.Deployment{deployment("default", "web", 3), deployment("other", "web", 1)}
	for _, expr := range []string{
		`deployment("web").status.readyReplicas == 3 && deployment("other/web").status.readyReplicas == 1`,
		`deployments().size() == 2 && deployments("other").size() == 1 && deployments("none").size() == 0`,
		`deployments().exists_one(d, d.status.readyReplicas == d.spec.replicas)`,
		`deployments("default").all(d, d.metadata.generation == 2)`,
		`!exists(deployment("none")) && exists(deployment("web")) && deployment("none").spec.replicas == 0`,
		`condition(deployment("web"), "Available").reason == "MinimumReplicasAvailable"`,
		`condition(deployment("web"), "Progressing").status == "" && condition(job("none"), "Complete").status == ""`,
		`jobs().size() == 0 && !exists(hpa("web")) && pdb("web").status.disruptionsAllowed == 0`,
		`!exists(ns("gone")) && namespaces().size() == 0`,
		`exists(deployment("web").spec.strategy) == false && has(deployment("web").spec.replicas)`,
	} {
		x := compile(t, c, Source{Form: At, T: End, Expr: expr})
		e := New([]*Expectation{x}, s, Options{})
		e.Begin()
		if v := e.Finish(0, false)[0]; v.Outcome != Held {
			t.Errorf("%s: %s: %v", expr, v.Reason, v.Values)
		}
	}
}

// TestObjectAggregates runs random changes of Deployments past an engine that
// counts and one that evaluates everything anew.
func TestObjectAggregates(t *testing.T) {
	c := compiler(t)
	var xs []*Expectation
	for _, expr := range []string{
		`deployments().all(d, d.status.readyReplicas > 0)`,
		`deployments("a").filter(d, d.status.readyReplicas == 3).size() < 4`,
		`deployments().exists(d, d.status.readyReplicas == 0) || pods().size() == 0`,
		`deployment("a/d1").status.readyReplicas < 3`,
		`deployments().map(d, d.status.readyReplicas).sum() < 14`,
		`time() < duration("40s") || deployments().size() < 9`,
	} {
		xs = append(xs, compile(t, c, Source{Form: Always, Expr: expr, Until: End}), compile(t, c, Source{Form: By, Expr: "!(" + expr + ")", T: 70 * time.Second}))
	}
	for seed := range int64(30) {
		rnd := rand.New(rand.NewSource(seed))
		s := &cluster{}
		quick, naive := New(xs, s, Options{}), New(xs, s, Options{Naive: true})
		quick.Begin()
		naive.Begin()
		if !quick.Wants(KindDeployment) || quick.Wants(KindJob) || quick.Wants(KindLease) {
			t.Fatal("the engine does not know what it reads")
		}
		for step := range 80 {
			d := deployment([]string{"a", "b"}[rnd.Intn(2)], fmt.Sprintf("d%d", rnd.Intn(6)), int32(rnd.Intn(4)))
			at := slices.IndexFunc(s.deployments, func(o *appsv1.Deployment) bool { return o.Namespace == d.Namespace && o.Name == d.Name })
			ch := Change{Kind: KindDeployment}
			switch {
			case at < 0:
				s.deployments = append(slices.Clone(s.deployments), d)
				ch.New = d
			case rnd.Intn(4) == 0:
				ch.Old = s.deployments[at]
				s.deployments = slices.Delete(slices.Clone(s.deployments), at, at+1)
			default:
				ch.Old, ch.New = s.deployments[at], d
				s.deployments = slices.Clone(s.deployments)
				s.deployments[at] = d
			}
			now := time.Duration(step) * time.Second
			quick.Changed(ch, now)
			naive.Changed(ch, now)
		}
		a, b := quick.Finish(80*time.Second, false), naive.Finish(80*time.Second, false)
		for i := range a {
			if a[i].Outcome != b[i].Outcome || a[i].At != b[i].At {
				t.Errorf("seed %d: %s: %s at %v, evaluated anew %s at %v", seed, xs[i].Expr, a[i].Outcome, a[i].At, b[i].Outcome, b[i].At)
			}
		}
	}
}
