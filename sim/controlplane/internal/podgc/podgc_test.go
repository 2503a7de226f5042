package podgc

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

type rig struct {
	t   *testing.T
	l   *loop.Loop
	srv *apiserver.Server
}

func newRig(t *testing.T, threshold int) *rig {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	New(Options{Options: controller.Options{Group: l.NewGroup("manager"), API: srv.Component("pod-garbage-collector-controller", -1, 0)}, TerminatedPodThreshold: threshold})
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

func (r *rig) pod(name, node string, st v1.PodStatus, finalizers ...string) {
	r.t.Helper()
	r.ok(r.srv.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}, Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}))
	p := *r.srv.Pod("default", name)
	p.Status = st
	r.ok(r.srv.Update(&p, "status"))
}

func (r *rig) names() (out []string) {
	for _, p := range r.srv.Pods() {
		out = append(out, p.Name)
	}
	return out
}

// TestTerminated: of the pods that have ended those that were evicted go first,
// then the oldest.
func TestTerminated(t *testing.T) {
	r := newRig(t, 3)
	r.ok(r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	for i := range 5 {
		st := v1.PodStatus{Phase: v1.PodSucceeded}
		if i == 3 {
			st = v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"}
		}
		r.pod(fmt.Sprint("p", i), "n", st)
		r.until(time.Duration(i+1) * 2 * time.Second)
	}
	r.pod("running", "n", v1.PodStatus{Phase: v1.PodRunning})
	r.until(19 * time.Second)
	if got := fmt.Sprint(r.names()); got != "[p0 p1 p2 p3 p4 running]" {
		t.Errorf("before the first pass: %s", got)
	}
	r.until(21 * time.Second)
	if got := fmt.Sprint(r.names()); got != "[p1 p2 p4 running]" {
		t.Errorf("after a pass: %s", got)
	}
}

// TestOrphans: the pods of a node that is gone are Failed and deleted by the
// first pass after the quarantine, unless the node comes back before.
func TestOrphans(t *testing.T) {
	r := newRig(t, 0)
	for _, n := range []string{"gone", "back"} {
		r.ok(r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}}))
		r.pod("on-"+n, n, v1.PodStatus{Phase: v1.PodRunning}, "example.com/look")
		r.until(5 * time.Second)
		r.ok(nil, r.srv.Delete(apiserver.KindNode, "", n, metav1.DeleteOptions{}))
	}
	r.until(50 * time.Second)
	r.ok(r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "back"}}))
	r.until(59 * time.Second)
	if p := r.srv.Pod("default", "on-gone"); p.Status.Phase != v1.PodRunning {
		t.Errorf("within the quarantine: %s", p.Status.Phase)
	}
	r.until(61 * time.Second) // seen missing at 20 s
	p := r.srv.Pod("default", "on-gone")
	if p.Status.Phase != v1.PodFailed || p.DeletionTimestamp == nil || len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Reason != "DeletionByPodGC" {
		t.Errorf("after it: %s, deleted %v, %+v", p.Status.Phase, p.DeletionTimestamp, p.Status.Conditions)
	}
	r.until(5 * time.Minute)
	if p := r.srv.Pod("default", "on-back"); p.Status.Phase != v1.PodRunning || p.DeletionTimestamp != nil {
		t.Errorf("of the node that is back: %s, deleted %v", p.Status.Phase, p.DeletionTimestamp)
	}
}

// TestOutOfService: pods that are being deleted on a node that is not ready and
// tainted out-of-service go at once; others stay.
func TestOutOfService(t *testing.T) {
	r := newRig(t, 0)
	r.ok(r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: v1.TaintNodeOutOfService, Effect: v1.TaintEffectNoExecute}}},
		Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionUnknown}}}}))
	r.pod("stays", "n", v1.PodStatus{Phase: v1.PodRunning})
	r.pod("goes", "n", v1.PodStatus{Phase: v1.PodRunning})
	r.ok(nil, r.srv.Delete(apiserver.KindPod, "default", "goes", metav1.DeleteOptions{}))
	r.until(21 * time.Second)
	if got := fmt.Sprint(r.names()); got != "[stays]" {
		t.Errorf("left: %s", got)
	}
}

// TestIdle: with nothing to find no pass runs.
func TestIdle(t *testing.T) {
	r := newRig(t, 0)
	r.ok(r.srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	r.pod("p", "n", v1.PodStatus{Phase: v1.PodSucceeded})
	r.until(time.Second)
	before := r.l.Steps()
	r.until(30 * time.Minute)
	if n := r.l.Steps() - before; n > 1 {
		t.Errorf("%d steps in half an hour", n)
	}
}
