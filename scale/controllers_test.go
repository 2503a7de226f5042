package scale

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

func TestControllers(t *testing.T) {
	w, err := ParseWorkload("testdata/controllers.yaml", readFile(t, "testdata/controllers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := small()
	cfg.Workload, cfg.Nodes, cfg.Churn, cfg.For = w, 10, 1, 5*time.Minute
	pods := map[string]*v1.Pod{}
	var c *sim.Cluster
	kinds := map[apiserver.Kind]int{}
	r := mustRun(t, cfg, Options{Attach: func(cl *sim.Cluster) {
		c = cl
		created(pods)(c)
	}, Progress: func(p Progress) {
		if p.Phase == PhaseSteady {
			for _, k := range []apiserver.Kind{apiserver.KindDeployment, apiserver.KindStatefulSet, apiserver.KindDaemonSet, apiserver.KindJob} {
				list, _ := c.API().List(k, "default")
				kinds[k] = len(list)
			}
		}
	}})
	if !r.Settled {
		t.Errorf("%+v", r)
	}
	by := map[string]int{}
	for _, p := range pods {
		by[p.Labels[LabelClass]]++
		if len(p.OwnerReferences) != 1 {
			t.Errorf("%s has the owners %v", p.Name, p.OwnerReferences)
		}
	}
	if kinds[apiserver.KindDeployment] < 8 || kinds[apiserver.KindStatefulSet] != 7 || kinds[apiserver.KindDaemonSet] != 2 || kinds[apiserver.KindJob] < 30 {
		t.Errorf("%v", kinds)
	}
	// Of 300 pods that churn takes in five minutes about 240 are among the 80 of
	// Deployments; those of StatefulSets keep their names. A Job may just begin.
	jobs := kinds[apiserver.KindJob]
	if n := by["web"] - 80; n < 178 || n > 302 || by["db"] != 20 || by["agent"] != 20 || by["batch"] > 5*jobs || by["batch"] < 5*(jobs-2) {
		t.Errorf("%v, %d replaced", by, n)
	}
	if r.Pods.Succeeded < 100 || r.Pods.Failed > 0 {
		t.Errorf("%+v", r.Pods)
	}
}
