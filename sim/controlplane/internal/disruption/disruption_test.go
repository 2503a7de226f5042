package disruption

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

type rig struct {
	t   *testing.T
	l   *loop.Loop
	srv *apiserver.Server
}

func newRig(t *testing.T) *rig {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	New(controller.Options{Group: l.NewGroup("manager"), API: srv.Component("disruption-controller", -1, 0)})
	return &rig{t, l, srv}
}

func (r *rig) ok(_ any, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) until(d time.Duration) {
	r.t.Helper()
	r.ok(nil, r.l.RunUntil(loop.Epoch().Add(d)))
}

var webLabels = map[string]string{"app": "web"}

func (r *rig) budget(name string, spec policyv1.PodDisruptionBudgetSpec) {
	r.t.Helper()
	spec.Selector = &metav1.LabelSelector{MatchLabels: webLabels}
	r.ok(r.srv.Create(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}))
}

func (r *rig) pdb(name string) *policyv1.PodDisruptionBudget {
	return r.srv.Store().Lookup(apiserver.KindPodDisruptionBudget, "default", name).(*policyv1.PodDisruptionBudget)
}

func (r *rig) pod(name string, ready bool, owner apiserver.Object) {
	r.t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: webLabels}, Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}
	if owner != nil {
		k := r.srv.Store().Kinds().Of(owner).Kind
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(string(k)))}
	}
	r.ok(r.srv.Create(p))
	r.setReady(name, ready)
}

func (r *rig) setReady(name string, ready bool) {
	c := *r.srv.Pod("default", name)
	c.Status.Phase = v1.PodRunning
	c.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse}}
	if ready {
		c.Status.Conditions[0].Status = v1.ConditionTrue
	}
	r.ok(r.srv.Update(&c, "status"))
}

func (r *rig) replicaSet(replicas int32) apiserver.Object {
	r.t.Helper()
	o, err := r.srv.Create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "rs"}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: webLabels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: webLabels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}}})
	r.ok(o, err)
	return o
}

func TestStatus(t *testing.T) {
	v := func(s string) *intstr.IntOrString { x := intstr.Parse(s); return &x }
	for _, tc := range []struct {
		name        string
		spec        policyv1.PodDisruptionBudgetSpec
		replicas    int32 // of the pods' ReplicaSet; 0: the pods have none
		ready, pods int
		want        string // expected, desired, healthy, allowed, reason
	}{
		{"minAvailable", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("2")}, 0, 3, 4, "4 2 3 1 SufficientPods"},
		{"minAvailable, none to spare", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("3")}, 0, 3, 4, "4 3 3 0 InsufficientPods"},
		{"maxUnavailable", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("1")}, 5, 5, 5, "5 4 5 1 SufficientPods"},
		{"maxUnavailable, one is missing", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("1")}, 5, 4, 4, "5 4 4 0 InsufficientPods"},
		{"maxUnavailable over all", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("9")}, 5, 5, 5, "5 0 5 5 SufficientPods"},
		{"a share is rounded up", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("30%")}, 5, 5, 5, "5 3 5 2 SufficientPods"},
		{"minAvailable as a share", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("50%")}, 5, 5, 5, "5 3 5 2 SufficientPods"},
		{"pods without a controller", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("1")}, 0, 3, 3, "0 0 3 0 InsufficientPods"},
		{"no pods", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("0")}, 0, 0, 0, "0 0 0 0 InsufficientPods"},
	} {
		r := newRig(t)
		r.budget("pdb", tc.spec)
		var owner apiserver.Object
		if tc.replicas > 0 {
			owner = r.replicaSet(tc.replicas)
		}
		for i := range tc.pods {
			r.pod(fmt.Sprint("p", i), i < tc.ready, owner)
		}
		r.until(10 * time.Second)
		st := r.pdb("pdb").Status
		got := fmt.Sprint(st.ExpectedPods, st.DesiredHealthy, st.CurrentHealthy, st.DisruptionsAllowed, " ", st.Conditions[0].Reason)
		if got != tc.want || st.ObservedGeneration != 1 {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestSyncFails: a budget whose pods' controller has no scale allows nothing.
func TestSyncFails(t *testing.T) {
	r := newRig(t)
	one := intstr.FromInt32(1)
	ds, err := r.srv.Create(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "ds"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: webLabels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: webLabels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}}})
	r.ok(ds, err)
	r.budget("pdb", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one})
	r.pod("p", true, ds)
	r.until(10 * time.Second)
	c := r.pdb("pdb").Status.Conditions[0]
	if c.Status != metav1.ConditionFalse || c.Reason != policyv1.SyncFailedReason || c.Message != "daemonsets.apps does not implement the scale subresource" {
		t.Errorf("condition %+v", c)
	}
}

// TestDisruptedPods: an eviction that was allowed counts for two minutes if the
// pod is not deleted, then the pod counts again, and its condition goes.
func TestDisruptedPods(t *testing.T) {
	r := newRig(t)
	one := intstr.FromInt32(1)
	r.budget("pdb", policyv1.PodDisruptionBudgetSpec{MinAvailable: &one})
	r.pod("a", true, nil)
	r.pod("b", true, nil)
	r.until(10 * time.Second)
	p := *r.pdb("pdb")
	p.Status.DisruptedPods = map[string]metav1.Time{"a": {Time: r.l.Now()}}
	p.Status.DisruptionsAllowed = 0
	r.ok(r.srv.Update(&p, "status"))
	pod := *r.srv.Pod("default", "a")
	pod.Status.Conditions = append(pod.Status.Conditions[:1:1], v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.Time{Time: r.l.Now()}})
	r.ok(r.srv.Update(&pod, "status"))
	for _, at := range []struct {
		second         time.Duration
		allowed, taken int
		disrupted      v1.ConditionStatus
	}{{20, 0, 1, v1.ConditionTrue}, {128, 0, 1, v1.ConditionTrue}, {132, 1, 0, v1.ConditionFalse}} {
		r.until(at.second * time.Second)
		st := r.pdb("pdb").Status
		if int(st.DisruptionsAllowed) != at.allowed || len(st.DisruptedPods) != at.taken {
			t.Errorf("at %d s: %d allowed, disruptedPods %v", at.second, st.DisruptionsAllowed, st.DisruptedPods)
		}
		if c := r.srv.Pod("default", "a").Status.Conditions[1]; c.Status != at.disrupted {
			t.Errorf("at %d s: condition %+v", at.second, c)
		}
	}
}

// TestIndex: budgets follow webLabels, and a pod of two budgets is told of.
func TestIndex(t *testing.T) {
	r := newRig(t)
	zero := intstr.FromInt32(0)
	r.budget("first", policyv1.PodDisruptionBudgetSpec{MinAvailable: &zero})
	r.pod("a", true, nil)
	r.until(5 * time.Second)
	r.budget("second", policyv1.PodDisruptionBudgetSpec{MinAvailable: &zero})
	r.pod("b", true, nil)
	r.until(10 * time.Second)
	if a, b := r.pdb("first").Status.ExpectedPods, r.pdb("second").Status.ExpectedPods; a != 2 || b != 2 {
		t.Errorf("%d and %d pods, want 2 and 2", a, b)
	}
	found := false
	for _, e := range r.srv.Events() {
		found = found || e.Reason == "MultiplePodDisruptionBudgets" && e.Message == `Pod "default"/"b" matches multiple PodDisruptionBudgets.  Chose "first" arbitrarily.`
	}
	if !found {
		t.Error("no event tells of the pod of two budgets")
	}
	r.ok(nil, r.srv.Delete(apiserver.KindPod, "default", "a", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	r.until(15 * time.Second)
	if a, b := r.pdb("first").Status.ExpectedPods, r.pdb("second").Status.ExpectedPods; a != 1 || b != 2 {
		t.Errorf("%d and %d pods after one was deleted, want 1 and 2: of two budgets only the first hears of a pod", a, b)
	}
}

// TestWrites holds what a write of a pod that changes nothing of what is counted does: it has the
// budget find out that its controller was scaled, and warnings come again.
func TestWrites(t *testing.T) {
	r := newRig(t)
	one := intstr.FromInt32(1)
	half := intstr.FromString("50%")
	rs := r.replicaSet(2)
	r.budget("one", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one})
	r.pod("a", true, rs)
	r.pod("b", true, rs)
	r.until(10 * time.Second)
	touch := func(name string) {
		c := *r.srv.Pod("default", name)
		c.Status.Message += "."
		r.ok(r.srv.Update(&c, "status"))
	}
	scaled := *rs.(*appsv1.ReplicaSet)
	scaled.Spec.Replicas = new(int32(5))
	r.ok(r.srv.Update(&scaled, ""))
	r.until(20 * time.Second)
	if n := r.pdb("one").Status.ExpectedPods; n != 2 {
		t.Errorf("%d pods are expected before a pod was written, want 2", n)
	}
	touch("a")
	r.until(30 * time.Second)
	if st := r.pdb("one").Status; st.ExpectedPods != 5 || st.DesiredHealthy != 4 {
		t.Errorf("%d pods are expected and %d to be healthy after a pod was written, want 5 and 4", st.ExpectedPods, st.DesiredHealthy)
	}
	r.pod("bare", true, nil)
	r.until(40 * time.Second)
	count := func(reason string) (n int32) {
		for _, e := range r.srv.Events() {
			if e.Reason == reason {
				n += max(e.Count, 1)
			}
		}
		return n
	}
	was := count("UnmanagedPods")
	touch("a")
	r.until(50 * time.Second)
	if n := count("UnmanagedPods"); was == 0 || n != was+1 {
		t.Errorf("%d warnings of pods without a controller after one more write, %d before", n, was)
	}
	r.budget("two", policyv1.PodDisruptionBudgetSpec{MinAvailable: &half})
	r.until(60 * time.Second)
	touch("a")
	touch("b")
	r.until(70 * time.Second)
	for _, pod := range []string{"a", "b"} {
		found := false
		for _, e := range r.srv.Events() {
			found = found || e.Reason == "MultiplePodDisruptionBudgets" && e.InvolvedObject.Name == pod
		}
		if !found {
			t.Errorf("nothing says that %s has two budgets", pod)
		}
	}
}

// TestStaleAtStart holds that a process that has just started looks after the conditions of the one
// before it.
func TestStaleAtStart(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	t.Cleanup(l.Close)
	r := &rig{t, l, apiserver.New(apiserver.Options{Loop: l})}
	r.pod("a", true, nil)
	p := *r.srv.Pod("default", "a")
	p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.Time{Time: loop.Epoch()}}}
	r.ok(r.srv.Update(&p, "status"))
	c := New(controller.Options{Group: l.NewGroup("manager"), API: r.srv.Component("disruption-controller", -1, 0)})
	c.onChange(apiserver.Change{Type: watch.Added, Kind: apiserver.KindPod, New: r.srv.Pod("default", "a")})
	for _, at := range []struct {
		second time.Duration
		status v1.ConditionStatus
	}{{119, v1.ConditionTrue}, {122, v1.ConditionFalse}} {
		r.until(at.second * time.Second)
		if is := r.srv.Pod("default", "a").Status.Conditions[0].Status; is != at.status {
			t.Errorf("at %d s: %s, want %s", at.second, is, at.status)
		}
	}
}
