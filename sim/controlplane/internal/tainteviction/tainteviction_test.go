package tainteviction

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

func seconds(n int64) *int64 { return &n }

func TestToleratedFor(t *testing.T) {
	a := v1.Taint{Key: "a", Effect: v1.TaintEffectNoExecute}
	b := v1.Taint{Key: "b", Value: "x", Effect: v1.TaintEffectNoExecute}
	tol := func(key string, secs *int64) v1.Toleration {
		return v1.Toleration{Key: key, Operator: v1.TolerationOpExists, TolerationSeconds: secs}
	}
	for _, tc := range []struct {
		taints      []v1.Taint
		tolerations []v1.Toleration
		wait        time.Duration
		ok          bool
	}{
		{[]v1.Taint{a}, nil, 0, false},
		{[]v1.Taint{a}, []v1.Toleration{tol("b", nil)}, 0, false},
		{[]v1.Taint{a}, []v1.Toleration{tol("a", nil)}, -1, true},
		{[]v1.Taint{a}, []v1.Toleration{tol("a", seconds(300))}, 300 * time.Second, true},
		{[]v1.Taint{a}, []v1.Toleration{tol("a", seconds(-5))}, 0, true},
		{[]v1.Taint{a, b}, []v1.Toleration{tol("a", seconds(300))}, 0, false},
		{[]v1.Taint{a, b}, []v1.Toleration{tol("a", seconds(300)), tol("b", seconds(20))}, 20 * time.Second, true},
		{[]v1.Taint{a, b}, []v1.Toleration{tol("a", seconds(300)), tol("b", nil)}, 300 * time.Second, true},
		{[]v1.Taint{a}, []v1.Toleration{tol("b", seconds(1)), tol("a", seconds(300))}, 300 * time.Second, true}, // one that is not used does not count
		{[]v1.Taint{a}, []v1.Toleration{tol("a", seconds(300)), tol("", nil)}, 300 * time.Second, true},         // the first that matches is
	} {
		if wait, ok := toleratedFor(tc.taints, tc.tolerations); wait != tc.wait || ok != tc.ok {
			t.Errorf("%v %v: %v %v, want %v %v", tc.taints, tc.tolerations, wait, ok, tc.wait, tc.ok)
		}
	}
}

// TestTaintGoes: a taint that goes cancels the deletion, and one that comes
// back starts the time anew.
func TestTaintGoes(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	defer l.Close()
	srv := apiserver.New(apiserver.Options{Loop: l})
	New(controller.Options{Group: l.NewGroup("manager"), API: srv.Component("taint-eviction-controller", -1, 0)})
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(srv.Create(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	for i, secs := range []int64{30, 100} {
		check(srv.Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "a", Image: "a:1"}},
			Tolerations: []v1.Toleration{{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: seconds(secs)}}}}))
	}
	taint := func(on bool) {
		var taints []v1.Taint
		if on {
			taints = []v1.Taint{{Key: v1.TaintNodeUnreachable, Effect: v1.TaintEffectNoExecute}}
		}
		check(srv.PatchNodeTaints("n", "", taints))
	}
	deleted := map[string]time.Duration{}
	srv.OnChange(func(ch apiserver.Change) {
		if p, ok := ch.New.(*v1.Pod); ok && p.DeletionTimestamp != nil && deleted[p.Name] == 0 {
			deleted[p.Name] = l.Since(loop.Epoch()).Truncate(time.Second)
		}
	})
	at := func(d time.Duration, on bool) { l.Root().At(loop.Epoch().Add(d), func() { taint(on) }) }
	at(10*time.Second, true)
	at(60*time.Second, false)
	at(100*time.Second, true)
	if err := l.RunUntil(loop.Epoch().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if deleted["p0"] != 40*time.Second || deleted["p1"] != 200*time.Second {
		t.Errorf("deleted at %v, want p0 at 40 s and p1 at 200 s", deleted)
	}
	messages := map[string]int{}
	for _, e := range srv.Events() {
		messages[e.Message]++
	}
	if messages["Cancelling deletion of Pod default/p1"] != 1 || messages["Marking for deletion Pod default/p1"] != 1 {
		t.Errorf("events %v", messages)
	}
}
