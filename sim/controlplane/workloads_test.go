package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// rig is an API with the workload controllers and kubelets that take a second
// for everything.
type rig struct {
	t   testing.TB
	l   *loop.Loop
	srv *apiserver.Server
	cp  *ControlPlane
	// fate says what becomes of a pod that starts: its phase, and whether it is
	// ready. Nil is Running and ready.
	fate func(*v1.Pod) (v1.PodPhase, bool)
}

func newRig(t testing.TB, seed uint64) *rig {
	l := loop.New(loop.Options{Name: "api", Seed: seed})
	t.Cleanup(l.Close)
	r := &rig{t: t, l: l, srv: apiserver.New(apiserver.Options{Loop: l})}
	r.srv.OnChange(r.kubelet)
	r.cp = New(r.srv, Options{Disable: []string{Scheduler, "node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller", "disruption-controller", "endpointslice-controller", "horizontal-pod-autoscaler-controller"}})
	return r
}

// kubelet starts and stops pods.
func (r *rig) kubelet(c apiserver.Change) {
	if c.Kind != apiserver.KindPod || c.Type == "DELETED" {
		return
	}
	pod := c.New.(*v1.Pod)
	if c.Old == nil {
		r.l.Root().After(time.Second, func() { r.start(pod.Namespace, pod.Name, pod.UID) })
	}
	if pod.DeletionTimestamp != nil && (c.Old == nil || c.Old.(*v1.Pod).DeletionTimestamp == nil) {
		r.l.Root().After(time.Second, func() { r.stop(pod.Namespace, pod.Name, pod.UID) })
	}
}

func (r *rig) start(namespace, name string, uid types.UID) {
	pod := r.srv.Pod(namespace, name)
	if pod == nil || pod.UID != uid || pod.DeletionTimestamp != nil {
		return
	}
	if pod.Spec.NodeName == "" {
		node := "node"
		if a := pod.Spec.Affinity; a != nil { // a daemon's
			node = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		}
		if _, err := r.srv.Bind(namespace, name, node, metav1.ObjectMeta{UID: uid}); err != nil {
			r.t.Error(err)
		}
		pod = r.srv.Pod(namespace, name)
	}
	phase, ready := v1.PodRunning, true
	if r.fate != nil {
		phase, ready = r.fate(pod)
	}
	r.status(pod, phase, ready)
}

// status sets a pod's phase and readiness.
func (r *rig) status(pod *v1.Pod, phase v1.PodPhase, ready bool) {
	st := *pod.Status.DeepCopy()
	st.Phase = phase
	cond := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: metav1.Time{Time: r.l.Now().Truncate(time.Second)}}
	if ready {
		cond.Status = v1.ConditionTrue
	}
	kept := st.Conditions[:0]
	for _, c := range st.Conditions {
		if c.Type != v1.PodReady {
			kept = append(kept, c)
		} else if c.Status == cond.Status {
			cond.LastTransitionTime = c.LastTransitionTime
		}
	}
	st.Conditions = append(kept, cond)
	if _, err := r.srv.PatchPodStatus(pod.Namespace, pod.Name, pod.UID, &pod.Status, &st); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) stop(namespace, name string, uid types.UID) {
	pod := r.srv.Pod(namespace, name)
	if pod == nil || pod.UID != uid {
		return
	}
	if pod.Status.Phase == v1.PodRunning {
		r.status(pod, v1.PodFailed, false)
	}
	none := int64(0)
	if err := r.srv.Delete(apiserver.KindPod, namespace, name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) run(d time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(r.l.Now().Add(d)); err != nil {
		r.t.Fatal(err)
	}
}

// apply applies manifests, separated by "---".
func (r *rig) apply(manifests string) {
	r.t.Helper()
	for _, m := range strings.Split(manifests, "\n---\n") {
		obj, err := apiserver.NewKinds().Decode([]byte(m))
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.srv.Apply(obj); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) patch(k apiserver.Kind, name, patch string) {
	r.t.Helper()
	if _, err := r.srv.Patch(k, "default", name, types.StrategicMergePatchType, []byte(patch), ""); err != nil {
		r.t.Fatal(err)
	}
}

func get[T apiserver.Object](r *rig, k apiserver.Kind, name string) T {
	r.t.Helper()
	obj, ok := r.srv.Store().Lookup(k, "default", name).(T)
	if !ok {
		r.t.Fatalf("there is no %s %s", k, name)
	}
	return obj
}

// events returns the events of a kind's objects as "reason: message", oldest first.
func (r *rig) events(k apiserver.Kind, reasons ...string) []string {
	var out []string
	for _, e := range r.srv.Events() {
		if e.InvolvedObject.Kind != string(k) {
			continue
		}
		for _, reason := range reasons {
			if e.Reason == reason {
				out = append(out, reason+": "+e.Message)
			}
		}
	}
	return out
}

// live counts the pods that are neither ended nor ending.
func (r *rig) live() int {
	n := 0
	for _, p := range r.srv.Pods() {
		if p.DeletionTimestamp == nil && p.Status.Phase != v1.PodFailed && p.Status.Phase != v1.PodSucceeded {
			n++
		}
	}
	return n
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1"}]}
`

func TestDeploymentRollsOut(t *testing.T) {
	r := newRig(t, 1)
	r.apply(web)
	r.run(20 * time.Second)
	d := get[*appsv1.Deployment](r, apiserver.KindDeployment, "web")
	if d.Status.AvailableReplicas != 4 || d.Status.ObservedGeneration != 1 || d.Annotations["deployment.kubernetes.io/revision"] != "1" {
		t.Fatalf("status %+v, annotations %v", d.Status, d.Annotations)
	}
	conditions := map[appsv1.DeploymentConditionType]string{}
	for _, c := range d.Status.Conditions {
		conditions[c.Type] = fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
	if conditions[appsv1.DeploymentProgressing] != "True NewReplicaSetAvailable" || conditions[appsv1.DeploymentAvailable] != "True MinimumReplicasAvailable" {
		t.Errorf("conditions %v", conditions)
	}
	least, most := 4, 0
	r.srv.OnChange(func(c apiserver.Change) {
		if c.Kind == apiserver.KindPod {
			ready := 0
			for _, p := range r.srv.Pods() {
				if p.DeletionTimestamp == nil && p.Status.Phase == v1.PodRunning {
					ready++
				}
			}
			least, most = min(least, ready), max(most, r.live())
		}
	})
	r.patch(apiserver.KindDeployment, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"app:2"}]}}}}`)
	r.run(60 * time.Second)
	d = get[*appsv1.Deployment](r, apiserver.KindDeployment, "web")
	if d.Status.UpdatedReplicas != 4 || d.Status.Replicas != 4 || d.Status.AvailableReplicas != 4 {
		t.Errorf("after the rollout: %+v", d.Status)
	}
	if least < 3 || most > 5 {
		t.Errorf("at least %d were running and at most %d pods there; maxUnavailable and maxSurge are 1", least, most)
	}
	for _, p := range r.srv.Pods() {
		if p.Spec.Containers[0].Image != "app:2" {
			t.Errorf("pod %s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
	for _, e := range r.events(apiserver.KindDeployment, "ScalingReplicaSet") {
		t.Log(e)
	}
}

func TestStatefulSetInOrder(t *testing.T) {
	r := newRig(t, 2)
	r.apply(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "db:1"}]}
`)
	r.run(20 * time.Second)
	set := get[*appsv1.StatefulSet](r, apiserver.KindStatefulSet, "db")
	if set.Status.AvailableReplicas != 3 || set.Status.CurrentRevision != set.Status.UpdateRevision {
		t.Fatalf("status %+v", set.Status)
	}
	want := "[SuccessfulCreate: Create Pod db-0 in StatefulSet db successful SuccessfulCreate: Create Pod db-1 in StatefulSet db successful SuccessfulCreate: Create Pod db-2 in StatefulSet db successful]"
	if got := fmt.Sprint(r.events(apiserver.KindStatefulSet, "SuccessfulCreate")); got != want {
		t.Errorf("events %s", got)
	}
	p := r.srv.Pod("default", "db-1")
	if p.Spec.Hostname != "db-1" || p.Spec.Subdomain != "db" || p.Labels["apps.kubernetes.io/pod-index"] != "1" || p.Labels["statefulset.kubernetes.io/pod-name"] != "db-1" {
		t.Errorf("db-1: hostname %q, subdomain %q, labels %v", p.Spec.Hostname, p.Spec.Subdomain, p.Labels)
	}
	r.patch(apiserver.KindStatefulSet, "db", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"template":{"spec":{"containers":[{"name":"main","image":"db:2"}]}}}}`)
	r.run(40 * time.Second)
	for i, image := range []string{"db:1", "db:2", "db:2"} {
		if p := r.srv.Pod("default", fmt.Sprintf("db-%d", i)); p == nil || p.Spec.Containers[0].Image != image {
			t.Errorf("with partition 1, db-%d is not %s", i, image)
		}
	}
	want = "[SuccessfulDelete: Delete Pod db-2 in StatefulSet db successful SuccessfulDelete: Delete Pod db-1 in StatefulSet db successful]"
	if got := fmt.Sprint(r.events(apiserver.KindStatefulSet, "SuccessfulDelete")); got != want {
		t.Errorf("events %s", got)
	}
}

func TestDaemonSetOnEveryNode(t *testing.T) {
	r := newRig(t, 3)
	for i := range 4 {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
		if i == 3 {
			n.Spec.Taints = []v1.Taint{{Key: "x", Effect: v1.TaintEffectNoSchedule}}
		}
		if _, err := r.srv.Create(n); err != nil {
			t.Fatal(err)
		}
	}
	r.apply(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "agent:1"}]}
`)
	r.run(20 * time.Second)
	ds := get[*appsv1.DaemonSet](r, apiserver.KindDaemonSet, "agent")
	if ds.Status.DesiredNumberScheduled != 3 || ds.Status.NumberAvailable != 3 || ds.Status.UpdatedNumberScheduled != 3 {
		t.Fatalf("status %+v", ds.Status)
	}
	r.patch(apiserver.KindDaemonSet, "agent", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"agent:2"}]}}}}`)
	if _, err := r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n4"}}); err != nil {
		t.Fatal(err)
	}
	r.run(40 * time.Second)
	ds = get[*appsv1.DaemonSet](r, apiserver.KindDaemonSet, "agent")
	if ds.Status.DesiredNumberScheduled != 4 || ds.Status.NumberAvailable != 4 || ds.Status.UpdatedNumberScheduled != 4 || ds.Annotations["deprecated.daemonset.template.generation"] != "2" {
		t.Errorf("after the rollout: status %+v, annotations %v", ds.Status, ds.Annotations)
	}
}

// TestDaemonSetRevisions: a DaemonSet takes over the revisions of one that was deleted without them,
// and lets go of those that its selector doesn't mean any more.
func TestDaemonSetRevisions(t *testing.T) {
	r := newRig(t, 3)
	r.create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}})
	const agent = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "agent:1"}]}
`
	// revisions are their numbers, and whose they are.
	revisions := func() string {
		var out []string
		for _, rev := range apiserver.Objects[*appsv1.ControllerRevision](r.srv.Store(), apiserver.KindControllerRevision) {
			whose := "nobody's"
			if ref := metav1.GetControllerOf(rev); ref != nil {
				whose = "another's"
				if ds, ok := r.srv.Store().Lookup(apiserver.KindDaemonSet, "default", "agent").(*appsv1.DaemonSet); ok && ds.UID == ref.UID {
					whose = "its own"
				}
			}
			out = append(out, fmt.Sprintf("%d %s", rev.Revision, whose))
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	check := func(when, want string) {
		t.Helper()
		r.run(20 * time.Second)
		if got := revisions(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	r.apply(agent)
	r.run(20 * time.Second)
	r.patch(apiserver.KindDaemonSet, "agent", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"agent:2"}]}}}}`)
	check("after an update", "1 its own, 2 its own")
	orphan := metav1.DeletePropagationOrphan
	if err := r.srv.Delete(apiserver.KindDaemonSet, "default", "agent", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	check("after it was deleted", "1 nobody's, 2 nobody's")
	r.apply(strings.Replace(agent, "agent:1", "agent:2", 1))
	check("after it came again", "1 its own, 2 its own")
	for _, rev := range slices.Clone(apiserver.Objects[*appsv1.ControllerRevision](r.srv.Store(), apiserver.KindControllerRevision)) {
		r.patch(apiserver.KindControllerRevision, rev.Name, `{"metadata":{"labels":{"app":"other"}}}`)
	}
	check("with other labels", "1 nobody's, 2 nobody's")
}

// TestReplicaSetLetGo: a ReplicaSet whose labels the Deployment doesn't select any more is nobody's,
// with its pods, and the Deployment makes another one.
func TestReplicaSetLetGo(t *testing.T) {
	r := newRig(t, 1)
	r.apply(web)
	r.run(20 * time.Second)
	first := apiserver.Objects[*appsv1.ReplicaSet](r.srv.Store(), apiserver.KindReplicaSet)[0].Name
	r.patch(apiserver.KindReplicaSet, first, `{"metadata":{"labels":{"app":"other"}}}`)
	r.run(20 * time.Second)
	if rs := get[*appsv1.ReplicaSet](r, apiserver.KindReplicaSet, first); len(rs.OwnerReferences) > 0 || *rs.Spec.Replicas != 4 {
		t.Errorf("the first one has %d replicas and owners %v", *rs.Spec.Replicas, rs.OwnerReferences)
	}
	d := get[*appsv1.Deployment](r, apiserver.KindDeployment, "web")
	if n := len(apiserver.Objects[*appsv1.ReplicaSet](r.srv.Store(), apiserver.KindReplicaSet)); n != 2 || d.Status.AvailableReplicas != 4 || r.live() != 8 {
		t.Errorf("%d ReplicaSets, %d pods, status %+v", n, r.live(), d.Status)
	}
}

func TestJobCompletes(t *testing.T) {
	r := newRig(t, 4)
	failures := 1
	r.fate = func(p *v1.Pod) (v1.PodPhase, bool) {
		if failures > 0 {
			failures--
			return v1.PodFailed, false
		}
		return v1.PodSucceeded, false
	}
	r.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: sums}
spec:
  completions: 5
  parallelism: 2
  completionMode: Indexed
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "app:1"}]}}
`)
	r.run(2 * time.Minute)
	j := get[*batchv1.Job](r, apiserver.KindJob, "sums")
	if j.Status.Succeeded != 5 || j.Status.Failed != 1 || j.Status.CompletedIndexes != "0-4" || j.Status.CompletionTime == nil {
		t.Fatalf("status %+v", j.Status)
	}
	if got := fmt.Sprint(r.events(apiserver.KindJob, "Completed")); got != "[Completed: Job completed]" {
		t.Errorf("events %s", got)
	}
	for _, p := range r.srv.Pods() {
		if len(p.Finalizers) > 0 {
			t.Errorf("pod %s still has %v", p.Name, p.Finalizers)
		}
	}
}

func TestJobFails(t *testing.T) {
	r := newRig(t, 5)
	r.fate = func(p *v1.Pod) (v1.PodPhase, bool) { return v1.PodFailed, false }
	r.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: sums}
spec:
  backoffLimit: 2
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "app:1"}]}}
`)
	r.run(3 * time.Minute)
	j := get[*batchv1.Job](r, apiserver.KindJob, "sums")
	if j.Status.Failed != 3 || !strings.Contains(fmt.Sprint(j.Status.Conditions), "BackoffLimitExceeded") {
		t.Fatalf("status %+v", j.Status)
	}
	if got := fmt.Sprint(r.events(apiserver.KindJob, "BackoffLimitExceeded")); got != "[BackoffLimitExceeded: Job has reached the specified backoff limit]" {
		t.Errorf("events %s", got)
	}
	var at []time.Duration
	for _, p := range r.srv.Pods() {
		at = append(at, p.CreationTimestamp.Sub(r.srv.Pods()[0].CreationTimestamp.Time))
	}
	// Each failure takes a second; the back-off is 10 s and 20 s from then on.
	if len(at) != 3 || at[1] < 11*time.Second || at[1] > 13*time.Second || at[2]-at[1] < 21*time.Second || at[2]-at[1] > 23*time.Second {
		t.Errorf("pods were made at %v", at)
	}
}

func TestCronJob(t *testing.T) {
	r := newRig(t, 6)
	r.fate = func(p *v1.Pod) (v1.PodPhase, bool) { return v1.PodSucceeded, false }
	r.apply(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "*/2 * * * *"
  successfulJobsHistoryLimit: 2
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "app:1"}]}}}}
`)
	r.run(9 * time.Minute)
	if got := r.events(apiserver.KindCronJob, "SuccessfulCreate"); len(got) != 4 || got[0] != fmt.Sprintf("SuccessfulCreate: Created job tick-%d", (loop.Epoch().Unix()+120)/60) {
		t.Errorf("created %v", got)
	}
	if jobs := apiserver.Objects[*batchv1.Job](r.srv.Store(), apiserver.KindJob); len(jobs) != 2 {
		t.Errorf("%d jobs are kept", len(jobs))
	}
	cj := get[*batchv1.CronJob](r, apiserver.KindCronJob, "tick")
	if len(cj.Status.Active) != 0 || cj.Status.LastSuccessfulTime == nil || !cj.Status.LastScheduleTime.Time.Equal(loop.Epoch().Add(8*time.Minute)) {
		t.Errorf("status %+v", cj.Status)
	}
}

// TestDeletedJobFreesItsPods orphans a job's pods: nobody counts them any more.
func TestDeletedJobFreesItsPods(t *testing.T) {
	r := newRig(t, 7)
	r.apply("apiVersion: batch/v1\nkind: Job\nmetadata: {name: sums}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"app:1\"}]}}}\n")
	r.run(5 * time.Second)
	orphan := metav1.DeletePropagationOrphan
	if err := r.srv.Delete(apiserver.KindJob, "default", "sums", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Second)
	if pods := r.srv.Pods(); len(pods) != 1 || len(pods[0].Finalizers) > 0 || r.srv.Store().Lookup(apiserver.KindJob, "default", "sums") != nil {
		t.Errorf("%d pods, the first with finalizers %v", len(pods), pods[0].Finalizers)
	}
}
