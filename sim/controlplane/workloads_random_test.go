package controlplane

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

var seeds = flag.Int("workloads.seeds", 20, "how many random clusters TestRandomWorkloads tries")

// TestRandomWorkloads runs workloads of all kinds through deletions, deaths, new
// templates and sizes, faults of the API and a new controller manager, and holds
// what they settle at to what they ask for.
func TestRandomWorkloads(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomWorkloads(t, seed) })
	}
}

func randomWorkloads(t *testing.T, seed uint64) {
	draw := rand.New(rand.NewPCG(seed, 1))
	r := newRig(t, seed)
	for i := range 5 {
		if _, err := r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	settled := false
	r.fate = func(p *v1.Pod) (v1.PodPhase, bool) {
		of := metav1.GetControllerOf(p).Kind
		switch {
		case of == "Job" && (settled || draw.IntN(3) > 0):
			return v1.PodSucceeded, false
		case !settled && draw.IntN(8) == 0:
			return v1.PodFailed, false
		case !settled && draw.IntN(8) == 0:
			return v1.PodRunning, false
		}
		return v1.PodRunning, true
	}
	surge := []string{"maxSurge: 1, maxUnavailable: 0", "maxSurge: 0, maxUnavailable: 2", "maxSurge: 50%, maxUnavailable: 50%"}[draw.IntN(3)]
	strategy := "{type: RollingUpdate, rollingUpdate: {" + surge + "}}"
	if draw.IntN(4) == 0 {
		strategy = "{type: Recreate}"
	}
	daemon := []string{"maxSurge: 2, maxUnavailable: 0", "maxSurge: 0, maxUnavailable: 1"}[draw.IntN(2)]
	policy := []string{"OrderedReady", "Parallel"}[draw.IntN(2)]
	manifest := func(kind, name, spec string) {
		r.apply(fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n  %s\n  minReadySeconds: %d\n  selector: {matchLabels: {app: %s}}\n  template: {metadata: {labels: {app: %s}}, spec: {containers: [{name: main, image: \"app:1\"}]}}\n", kind, name, spec, draw.IntN(3), name, name))
	}
	manifest("Deployment", "web", fmt.Sprintf("replicas: %d\n  strategy: %s", draw.IntN(8), strategy))
	manifest("StatefulSet", "db", fmt.Sprintf("replicas: %d\n  podManagementPolicy: %s", draw.IntN(5), policy))
	manifest("DaemonSet", "agent", "updateStrategy: {rollingUpdate: {"+daemon+"}}")
	mode := []string{"Indexed", "NonIndexed"}[draw.IntN(2)]
	r.apply(fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: sums}\nspec: {completions: %d, parallelism: %d, backoffLimit: 1000, completionMode: %s, template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"app:1\"}]}}}\n", 1+draw.IntN(9), 1+draw.IntN(4), mode))
	kinds := []apiserver.Kind{apiserver.KindDeployment, apiserver.KindStatefulSet, apiserver.KindDaemonSet}
	names := []string{"web", "db", "agent"}
	for range 40 {
		r.run(time.Duration(draw.IntN(4000)) * time.Millisecond)
		i := draw.IntN(3)
		switch pods := r.srv.Pods(); draw.IntN(8) {
		case 0:
			r.patch(kinds[i], names[i], fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:%d"}]}}}}`, draw.IntN(4)))
		case 1:
			if i < 2 {
				r.patch(kinds[i], names[i], fmt.Sprintf(`{"spec":{"replicas":%d}}`, draw.IntN(8)))
			}
		case 2, 3:
			if len(pods) > 0 {
				p := pods[draw.IntN(len(pods))]
				if err := r.srv.Delete(apiserver.KindPod, p.Namespace, p.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		case 4, 5:
			if len(pods) > 0 {
				if p := pods[draw.IntN(len(pods))]; p.Status.Phase == v1.PodRunning {
					r.status(p, v1.PodFailed, false)
				}
			}
		case 6:
			end := r.srv.AddFault(apiserver.Fault{Refuse: true, Probability: 0.5})
			r.run(time.Duration(draw.IntN(3000)) * time.Millisecond)
			end()
		case 7:
			r.cp.Stop(ControllerManager)
			r.run(time.Duration(draw.IntN(3000)) * time.Millisecond)
			r.cp.Start(ControllerManager)
		}
	}
	settled = true
	for _, p := range append([]*v1.Pod(nil), r.srv.Pods()...) { // what never gets ready would hold up a set for ever
		// So would two pods that failed and are not wanted any more, upstream too.
		if ref := metav1.GetControllerOf(p); ref != nil && ref.Kind == "StatefulSet" && p.Status.Phase == v1.PodFailed {
			if err := r.srv.Delete(apiserver.KindPod, p.Namespace, p.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if p.Status.Phase == v1.PodRunning {
			if ref := metav1.GetControllerOf(p); ref != nil && ref.Kind == "Job" {
				r.status(p, v1.PodSucceeded, false)
			} else {
				r.status(p, v1.PodRunning, true)
			}
		}
	}
	r.run(30 * time.Minute)
	r.checkSettled(t)
}

func (r *rig) checkSettled(t *testing.T) {
	t.Helper()
	count := map[string]int{}
	for _, p := range r.srv.Pods() {
		if p.DeletionTimestamp == nil && p.Status.Phase == v1.PodRunning {
			count[p.Labels["app"]]++
		}
	}
	d := get[*appsv1.Deployment](r, apiserver.KindDeployment, "web")
	if n := *d.Spec.Replicas; count["web"] != int(n) || d.Status.AvailableReplicas != n || d.Status.UpdatedReplicas != n || d.Status.Replicas != n || d.Status.ObservedGeneration != d.Generation {
		t.Errorf("Deployment: %d pods of %d wanted, status %+v", count["web"], n, d.Status)
	}
	set := get[*appsv1.StatefulSet](r, apiserver.KindStatefulSet, "db")
	if n := *set.Spec.Replicas; count["db"] != int(n) || set.Status.AvailableReplicas != n || set.Status.UpdatedReplicas != n || set.Status.ObservedGeneration != set.Generation {
		t.Errorf("StatefulSet: %d pods of %d wanted, status %+v", count["db"], n, set.Status)
	}
	ds := get[*appsv1.DaemonSet](r, apiserver.KindDaemonSet, "agent")
	if count["agent"] != 5 || ds.Status.NumberAvailable != 5 || ds.Status.UpdatedNumberScheduled != 5 || ds.Status.ObservedGeneration != ds.Generation {
		t.Errorf("DaemonSet: %d pods on 5 nodes, status %+v", count["agent"], ds.Status)
	}
	j := get[*batchv1.Job](r, apiserver.KindJob, "sums")
	if j.Status.Succeeded != *j.Spec.Completions || j.Status.CompletionTime == nil || j.Status.Active != 0 {
		t.Errorf("Job: status %+v", j.Status)
	}
	for _, p := range r.srv.Pods() {
		if len(p.Finalizers) > 0 {
			t.Errorf("pod %s still has %v", p.Name, p.Finalizers)
		}
	}
}
