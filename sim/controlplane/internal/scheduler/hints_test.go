package scheduler

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

func (r *rig) attempts(pod string) int {
	r.t.Helper()
	q := r.s.pending[r.srv.Pod("default", pod).UID]
	if q == nil {
		r.t.Fatalf("%s is not pending", pod)
	}
	return q.attempts
}

func (r *rig) delete(pod string) {
	r.t.Helper()
	if err := r.srv.Delete(apiserver.KindPod, "default", pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) patch(kind apiserver.Kind, namespace, name, patch, sub string) {
	r.t.Helper()
	if _, err := r.srv.Patch(kind, namespace, name, types.MergePatchType, []byte(patch), sub); err != nil {
		r.t.Fatal(err)
	}
}

// TestDenominated frees the room that was kept for a nominated pod, while the
// victim still terminates.
func TestDenominated(t *testing.T) {
	critical := func(p *v1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }
	for _, test := range []struct {
		name string
		end  func(r *rig)
	}{
		{"deleted", func(r *rig) { r.delete("high") }},
		{"nomination removed", func(r *rig) {
			r.patch(apiserver.KindPod, "default", "high", `{"status":{"nominatedNodeName":null}}`, "status")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.node("a")
			r.pod("low", requests("cpu", "1500m"))
			r.run(time.Second)
			r.pod("high", victim, critical)
			r.run(time.Second)
			if r.srv.Pod("default", "high").Status.NominatedNodeName != "a" {
				t.Fatal("not nominated")
			}
			r.pod("small", requests("cpu", "500m"))
			r.run(5 * time.Second)
			if r.nodeOf("small") != "" {
				t.Fatal("got the room of a pod of higher priority")
			}
			high := r.srv.Pod("default", "high")
			test.end(r)
			r.run(5 * time.Second)
			if r.srv.Pod("default", "low") == nil {
				t.Fatal("the victim is gone already")
			}
			if test.name == "deleted" && r.nodeOf("small") != "a" {
				t.Error("not tried when the nominated pod was deleted")
			}
			if test.name != "deleted" && r.s.pending[high.UID].attempts < 2 {
				t.Error("the pod itself was not tried when its nomination was removed")
			}
		})
	}
}

// TestDenominatedPriority: pods of higher priority never made room for it.
func TestDenominatedPriority(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		at   int32
		want bool
	}{{9, true}, {10, true}, {11, false}} {
		q := &queued{namespace: "default", name: "p", priority: c.at, rejectors: nodeResourcesFit}
		r.pod("p", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x.io/g"}} })
		q.uid = r.srv.Pod("default", "p").UID
		r.s.queue.put(q, unschedulable)
		high := int32(10)
		r.s.moved(event{kind: denominated, pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n"},
			Spec: v1.PodSpec{Priority: &high, Containers: []v1.Container{{Name: "main"}}}}})
		if got := q.place != unschedulable; got != c.want {
			t.Errorf("priority %d: moved %v", c.at, got)
		}
		r.s.queue.put(q, nowhere)
		r.delete("p")
	}
}

// TestNodeHints changes a node, and says whether a refused pod is tried again
// although it still does not fit.
func TestNodeHints(t *testing.T) {
	spread := func(taints v1.NodeInclusionPolicy) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Labels = map[string]string{"app": "x"}
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, NodeTaintsPolicy: &taints, MinDomains: new(int32(3))}}
		}
	}
	for _, test := range []struct {
		name, patch, sub string
		pod              func(*v1.Pod)
		want             bool
	}{
		{"more CPU than it asks for, though others use it", `{"status":{"allocatable":{"cpu":"3"}}}`, "status", requests("cpu", "2500m"), true},
		{"more CPU, but less than it asks for", `{"status":{"allocatable":{"cpu":"3"}}}`, "status", requests("cpu", "3500m"), false},
		{"more memory, which it does not ask for", `{"status":{"allocatable":{"memory":"8Gi"}}}`, "status", requests("cpu", "1"), false},
		{"a label that is no domain", `{"metadata":{"labels":{"other":"x"}}}`, "", spread(v1.NodeInclusionPolicyIgnore), false},
		{"another domain", `{"metadata":{"labels":{"zone":"z2"}}}`, "", spread(v1.NodeInclusionPolicyIgnore), true},
		{"a taint", `{"spec":{"taints":[{"key":"k","effect":"PreferNoSchedule"}]}}`, "", spread(v1.NodeInclusionPolicyIgnore), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.node("a", func(n *v1.Node) { n.Labels["zone"] = "z1" })
			r.pod("used", requests("cpu", "1500m"), func(p *v1.Pod) { p.Labels = map[string]string{"app": "x"} })
			r.run(time.Second)
			r.pod("p", test.pod)
			r.run(5 * time.Second)
			if r.attempts("p") != 1 {
				t.Fatalf("%d attempts before the change", r.attempts("p"))
			}
			r.patch(apiserver.KindNode, "", "a", test.patch, test.sub)
			r.run(5 * time.Second)
			if got := r.attempts("p") > 1; got != test.want {
				t.Errorf("tried again: %v", got)
			}
		})
	}
}

// TestAffinityHints changes a pod on the only node, and says where the pod goes that did not fit
// beside it.
func TestAffinityHints(t *testing.T) {
	terms := []v1.PodAffinityTerm{{TopologyKey: "name", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	beside := func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
	apart := func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
	relabel := func(app string) func(r *rig) {
		return func(r *rig) {
			r.patch(apiserver.KindPod, "default", "first", `{"metadata":{"labels":{"app":"`+app+`"}}}`, "")
		}
	}
	for _, test := range []struct {
		name  string
		first string // its label
		pod   func(*v1.Pod)
		do    func(r *rig)
		tried bool // again
		node  string
	}{
		{"the pod that it keeps off has another label", "web", apart, relabel("db"), true, "a"},
		{"it has another label that doesn't matter", "web", apart, func(r *rig) {
			r.patch(apiserver.KindPod, "default", "first", `{"metadata":{"labels":{"x":"y"}}}`, "")
		}, false, ""},
		{"it goes", "web", apart, func(r *rig) { r.delete("first") }, true, "a"},
		{"the pod has the label that it wants", "db", beside, relabel("web"), true, "a"},
		{"another one goes", "db", beside, func(r *rig) { r.delete("first") }, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.node("a")
			r.pod("first", func(p *v1.Pod) { p.Labels = map[string]string{"app": test.first} })
			r.run(time.Second)
			r.pod("p", test.pod)
			r.run(5 * time.Second)
			q := r.s.pending[r.srv.Pod("default", "p").UID]
			if q == nil || q.attempts != 1 {
				t.Fatal("tried again, or on a node, before the change")
			}
			test.do(r)
			r.run(5 * time.Second)
			if tried, node := q.attempts > 1, r.nodeOf("p"); tried != test.tried || node != test.node {
				t.Errorf("tried again: %v, on %q", tried, node)
			}
		})
	}
}

// TestShrunk: a pod on a node that asks for less helps those that ask for the same.
func TestShrunk(t *testing.T) {
	amount := func(cpu, gpu int64) request {
		r := request{amounts: amounts{cpu: cpu}}
		if gpu > 0 {
			r.ext = []extended{{"x.io/gpu", gpu}}
		}
		return r
	}
	for _, c := range []struct {
		was, is, want request
		helps         bool
	}{
		{amount(2, 0), amount(1, 0), amount(1, 0), true},
		{amount(1, 0), amount(2, 0), amount(1, 0), false},
		{amount(1, 2), amount(2, 1), amount(1, 0), false},
		{amount(1, 2), amount(2, 1), amount(0, 1), true},
		{amount(1, 1), amount(1, 0), amount(0, 1), true},
	} {
		freed := c.was.beyond(&c.is)
		if got := c.want.overlaps(&freed); got != c.helps {
			t.Errorf("%v to %v for %v: %v", c.was, c.is, c.want, got)
		}
	}
}

// TestPendingHints changes a refused pod itself.
func TestPendingHints(t *testing.T) {
	unschedulable := func(n *v1.Node) { n.Spec.Unschedulable = true }
	tainted := func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}} }
	toleration := func(key string) string {
		return fmt.Sprintf(`{"spec":{"tolerations":[
			{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
			{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
			{"key":%q,"operator":"Exists"}]}}`, key)
	}
	for _, test := range []struct {
		name, patch string
		node        func(*v1.Node)
		want        bool
	}{
		{"any toleration, of a tainted node", toleration("some"), tainted, true},
		{"another toleration than the cordon's", toleration("some"), unschedulable, false},
		{"the cordon's toleration", toleration(v1.TaintNodeUnschedulable), unschedulable, true},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, tainted, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.node("a", test.node, func(n *v1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1") })
			r.pod("p", requests("cpu", "2"))
			r.run(5 * time.Second)
			r.patch(apiserver.KindPod, "default", "p", test.patch, "")
			r.run(5 * time.Second)
			if got := r.attempts("p") > 1; got != test.want {
				t.Errorf("tried again: %v", got)
			}
		})
	}
}

// TestVictimGone: a victim that is gone when its turn comes is no failure.
func TestVictimGone(t *testing.T) {
	r := newRig(t)
	r.node("a")
	r.pod("low", victim)
	r.run(time.Second)
	low := r.srv.Pod("default", "low")
	r.pod("high", victim, func(p *v1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })
	r.delete("low")
	var err error
	r.l.Root().Go("evict", func(ctx context.Context) {
		err = r.s.evictPod(ctx, r.srv.Pod("default", "high"), low, "a")
	})
	r.run(time.Second)
	if err != nil {
		t.Error(err)
	}
	if ev := r.event("low", "Preempted"); ev != nil {
		t.Errorf("event %v", ev)
	}
}

// TestPreempting: a preemptor is left alone until its last victim goes.
func TestPreempting(t *testing.T) {
	r := newRig(t)
	r.node("a")
	r.pod("low", victim)
	r.run(time.Second)
	low := r.srv.Pod("default", "low")
	q := &queued{preempting: true}
	if !r.s.preempting(q) {
		t.Error("others are still to be evicted")
	}
	q.lastVictim = low
	if !r.s.preempting(q) {
		t.Error("the last victim is still there")
	}
	if err := r.srv.Delete(apiserver.KindPod, "default", "low", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if r.s.preempting(q) {
		t.Error("the last victim is being deleted")
	}
	r.delete("low")
	if r.s.preempting(q) {
		t.Error("the last victim is gone")
	}
}

// TestDeletedWhileBinding: the binding fails, which is told, and the room is free.
func TestDeletedWhileBinding(t *testing.T) {
	r := newRig(t)
	r.node("a")
	r.pod("p", victim, func(p *v1.Pod) { p.Finalizers = []string{"x.io/f"} })
	for range 100 {
		if r.s.assumed[r.srv.Pod("default", "p").UID] != nil {
			break
		}
		r.run(time.Millisecond)
	}
	if r.nodeOf("p") != "" {
		t.Fatal("bound already")
	}
	r.delete("p")
	r.run(time.Second)
	const want = `running Bind plugin "DefaultBinder": Operation cannot be fulfilled on pods/binding "p": pod p is being deleted, cannot be assigned to a host`
	if ev := r.event("p", "FailedScheduling"); ev == nil || ev.Message != want {
		t.Errorf("event %v", ev)
	}
	r.pod("q", victim)
	r.run(time.Second)
	if r.nodeOf("q") != "a" {
		t.Error("the room of a pod that was not bound is not free")
	}
}

// TestTaintsBlindly tries a pod that fits nowhere again when a node's taints change: the resources'
// plugin asks for nodes that come and not for taints, which upstream gives it without a hint.
func TestTaintsBlindly(t *testing.T) {
	r := newRig(t)
	r.node("a")
	r.pod("big", requests("cpu", "1000"))
	r.run(time.Minute)
	before := r.attempts("big")
	r.patch(apiserver.KindNode, "", "a", `{"metadata":{"labels":{"x":"y"}}}`, "")
	r.run(time.Minute)
	if n := r.attempts("big"); n != before {
		t.Fatalf("%d attempts after a change of labels, want %d", n, before)
	}
	r.patch(apiserver.KindNode, "", "a", `{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`, "")
	r.run(time.Minute)
	if n := r.attempts("big"); n != before+1 {
		t.Fatalf("%d attempts after a change of taints, want %d", n, before+1)
	}
}
