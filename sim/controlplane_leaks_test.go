package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// leakWorkloads are what a round of TestControlPlaneLeaks may create; %[1]s is a name
// that nothing had before.
var leakWorkloads = []string{`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 6
  minReadySeconds: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "%[1]s:1", resources: {requests: {cpu: 20m}}}]
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %[1]s}}}}
`, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  replicas: 3
  serviceName: %[1]s
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "db:1"}]}
`, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: "agent:1"}]}
`, `
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s}
spec:
  completions: 20
  parallelism: 10
  completionMode: Indexed
  backoffLimit: 3
  ttlSecondsAfterFinished: 20
  template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: "batch:1"}]}}
`, `
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s}
spec:
  completions: 6
  parallelism: 6
  backoffLimit: 2
  template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: "failing:1"}]}}
`, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: %[1]s}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {parallelism: 3, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "batch:1"}]}}}}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 4
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, never: placed}}
    spec: {nodeSelector: {there: is-none}, containers: [{name: main, image: "web:1"}]}
`}

// leakCompanions go with a workload.
const leakCompanions = `
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: %[1]s}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %[1]s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}
  maxReplicas: 8
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`

// boundedSizes are what need not be as short in the end as in the beginning: what is
// kept per name of a zone, as upstream's node lifecycle controller does; lists that
// are used again; what the scheduler keeps by nodes that are there, and what it
// bounds itself (scheduler.TestForgets).
var boundedSizes = []string{
	"nodelifecycle.Controller.byAge", "nodelifecycle.Controller.zones",
	"scheduler.Scheduler.feasibleScratch", "scheduler.Scheduler.rawScratch", "scheduler.Scheduler.refused", "scheduler.Scheduler.seenScratch",
	"scheduler.Scheduler.spreadScratch", "scheduler.Scheduler.totalScratch", "scheduler.Scheduler.zoneScratch", "scheduler.Scheduler.imageScratch",
	"scheduler.nodeTable.was", "scheduler.affinityState.", "scheduler.cycle.",
	"scheduler.nodeTable.free", "scheduler.nodeTable.lastGen", "scheduler.nodeTable.slots", "scheduler.nodeTable.images", "scheduler.nodeInfo.", "scheduler.topoKey.",
	"scheduler.classTable.cached", "scheduler.classTable.byKey", "scheduler.class.", "scheduler.labelIndex.carrier", "scheduler.labelIndex.tall",
	"scheduler.tally.", "scheduler.term.", "scheduler.counts.", "scheduler.labelSet.", "scheduler.nodeTree.",
}

// leakRig is a cluster whose objects come and go.
type leakRig struct {
	t    *testing.T
	c    *Cluster
	draw *rand.Rand
	made int // names so far
	pods map[string]bool
}

func newLeakRig(t *testing.T, seed uint64) *leakRig {
	c, err := New(Options{Seed: seed, Census: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	second := fakecri.Range{Min: time.Second, Max: 3 * time.Second}
	programs := []fakecri.Program{
		{Match: fakecri.Match{Image: "batch:1"}, Behaviour: fakecri.Behaviour{RunFor: second}},
		{Match: fakecri.Match{Image: "failing:1"}, Behaviour: fakecri.Behaviour{RunFor: second, ExitCode: 1}},
	}
	for i := range 4 {
		zone := fmt.Sprintf("z%d", i%2)
		if _, err := c.AddNode(NodeOptions{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{v1.LabelTopologyZone: zone}, Runtime: fakecri.Options{Programs: programs}}); err != nil {
			t.Fatal(err)
		}
	}
	r := &leakRig{t: t, c: c, draw: rand.New(rand.NewPCG(seed, 1)), pods: map[string]bool{}}
	c.API().OnChange(func(ch apiserver.Change) {
		if ch.Kind == apiserver.KindPod {
			r.pods[string(ch.New.GetUID())] = true
		}
	})
	return r
}

func (r *leakRig) run(d time.Duration) {
	r.t.Helper()
	if err := r.c.RunUntil(r.c.Now() + d); err != nil {
		r.t.Fatal(err)
	}
}

func (r *leakRig) apply(namespace, manifests, name string) {
	r.t.Helper()
	for m := range strings.SplitSeq(fmt.Sprintf(manifests, name), "\n---\n") {
		obj, err := apiserver.NewKinds().Decode([]byte(m))
		if err != nil {
			r.t.Fatal(err)
		}
		obj.SetNamespace(namespace)
		if _, err := r.c.API().Apply(obj); err != nil {
			r.t.Fatal(err)
		}
	}
}

// sizes are those of the control plane's maps and slices that are not empty.
func (r *leakRig) sizes() map[string]int {
	out := walkControlPlane(r.c.ControlPlane(), nil).sizes
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out
}

// leakKinds are what is deleted by name.
var leakKinds = []apiserver.Kind{
	apiserver.KindDeployment, apiserver.KindStatefulSet, apiserver.KindDaemonSet, apiserver.KindJob, apiserver.KindCronJob,
	apiserver.KindService, apiserver.KindPodDisruptionBudget, apiserver.KindHorizontalPodAutoscaler,
}

// remove deletes the workloads that a draw of keep in 1000 does not spare, each in one of
// the three ways.
func (r *leakRig) remove(keep int) {
	policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
	for _, k := range leakKinds {
		list, err := r.c.Store().List(k, "")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, obj := range list {
			if r.draw.IntN(1000) < keep {
				continue
			}
			policy := policies[r.draw.IntN(3)]
			if err := r.c.API().Delete(k, obj.GetNamespace(), obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// clear deletes all pods, and what workloads have left without an owner.
func (r *leakRig) clear() {
	for _, k := range []apiserver.Kind{apiserver.KindReplicaSet, apiserver.KindControllerRevision, apiserver.KindJob, apiserver.KindEndpointSlice, apiserver.KindPod} {
		list, err := r.c.Store().List(k, "")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, obj := range list {
			if err := r.c.API().Delete(k, obj.GetNamespace(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// ghost adds a node whose kubelet never reports, or takes one away.
func (r *leakRig) ghost() {
	for _, n := range r.c.API().Nodes() {
		if strings.HasPrefix(n.Name, "ghost") && r.draw.IntN(2) == 0 {
			if err := r.c.API().Delete(apiserver.KindNode, "", n.Name, metav1.DeleteOptions{}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.made++
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ghost-%d", r.made), Labels: map[string]string{v1.LabelTopologyZone: fmt.Sprintf("zone-%d", r.made)}}}
	n.Status.Images = []v1.ContainerImage{{Names: []string{n.Name + "/image:1"}, SizeBytes: 1 << 20}}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: metav1.Time{Time: r.c.API().Loop().Now()}}}
	if _, err := r.c.API().Create(n); err != nil {
		r.t.Fatal(err)
	}
}

// round changes something, and lets less time pass than most of it takes.
func (r *leakRig) round() {
	r.made++
	name := fmt.Sprintf("w%d", r.made)
	namespace := "default"
	switch r.draw.IntN(12) {
	case 0:
		namespace = "ns-" + name
		if _, err := r.c.API().Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			r.t.Fatal(err)
		}
		r.c.At(r.c.Now()+time.Duration(r.draw.IntN(20_000))*time.Millisecond+1, func() {
			if err := r.c.API().Delete(apiserver.KindNamespace, "", namespace, metav1.DeleteOptions{}); err != nil {
				r.t.Error(err)
			}
		})
	case 1:
		r.ghost()
	case 2:
		end := r.c.API().AddFault(apiserver.Fault{Refuse: true, Probability: 0.3})
		r.run(time.Duration(r.draw.IntN(3000)) * time.Millisecond)
		end()
	}
	r.apply(namespace, leakWorkloads[r.draw.IntN(len(leakWorkloads))], name)
	if r.draw.IntN(2) == 0 {
		r.apply(namespace, leakCompanions, name)
	}
	r.run(time.Duration(r.draw.IntN(8000)) * time.Millisecond)
	for _, d := range apiserver.Objects[*appsv1.Deployment](r.c.Store(), apiserver.KindDeployment) {
		if r.draw.IntN(8) == 0 {
			patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:%d"}]}}}}`, r.made)
			if _, err := r.c.API().Patch(apiserver.KindDeployment, d.GetNamespace(), d.GetName(), "application/strategic-merge-patch+json", []byte(patch), ""); err != nil && !strings.Contains(err.Error(), "terminat") {
				r.t.Fatal(err)
			}
		}
	}
	for _, p := range slices.Clone(r.c.Store().Pods()) {
		if r.draw.IntN(20) == 0 {
			if err := r.c.API().Delete(apiserver.KindPod, p.Namespace, p.Name, metav1.DeleteOptions{}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.remove(700)
}

// TestControlPlaneLeaks lets thousands of pods and hundreds of workloads, nodes and
// namespaces come and go, at times at which controllers are in the middle of
// something. In the end every map and list of every controller is as long as it
// was in the beginning.
func TestControlPlaneLeaks(t *testing.T) {
	skipOneLoop(t)
	r := newLeakRig(t, 1)
	r.run(2 * time.Minute)
	before := r.sizes()
	for range 340 {
		r.round()
	}
	for len(r.c.Store().Pods()) > 0 || len(r.c.API().Nodes()) > 4 {
		r.remove(0)
		r.clear()
		for _, n := range r.c.API().Nodes() {
			if strings.HasPrefix(n.Name, "ghost") {
				if err := r.c.API().Delete(apiserver.KindNode, "", n.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.run(2 * time.Minute)
	}
	r.run(90 * time.Minute) // events' TTL, the scheduler's event series, back-offs
	t.Logf("%d pods in %v", len(r.pods), r.c.Now())
	if len(r.pods) < 2500 {
		t.Errorf("only %d pods were there", len(r.pods))
	}
	after := r.sizes()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if after[name] > before[name] && !slices.ContainsFunc(boundedSizes, func(b string) bool { return strings.HasPrefix(name, b) }) {
			t.Errorf("%s: %d entries, %d in the beginning", name, after[name], before[name])
		}
	}
	for _, l := range r.c.Census().Leaks {
		t.Error(l)
	}
	if n := len(r.c.ControlPlane().Parts()); n < 16 {
		t.Errorf("only %d parts were looked at", n)
	}
}
