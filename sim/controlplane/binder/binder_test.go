package binder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/loop"
)

type rig struct {
	t   testing.TB
	l   *loop.Loop
	srv *apiserver.Server
	b   *Binder
}

func newRig(t testing.TB) *rig {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	return &rig{t: t, l: l, srv: srv, b: New(Options{Server: srv})}
}

func (r *rig) run(d time.Duration) {
	r.t.Helper()
	if err := r.l.RunUntil(r.l.Now().Add(d)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) node(name string, edit ...func(*v1.Node)) {
	r.t.Helper()
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Status: v1.NodeStatus{
			Allocatable: v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10"), "x.io/gpu": resource.MustParse("1")},
			Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
	for _, e := range edit {
		e(n)
	}
	if _, err := r.srv.Create(n); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) pod(name string, edit ...func(*v1.Pod)) {
	r.t.Helper()
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "app:1"}}}}
	for _, e := range edit {
		e(p)
	}
	if _, err := r.srv.Create(p); err != nil {
		r.t.Fatal(err)
	}
}

func requests(kv ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		list := v1.ResourceList{}
		for i := 0; i < len(kv); i += 2 {
			list[v1.ResourceName(kv[i])] = resource.MustParse(kv[i+1])
		}
		p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: list, Limits: list}
	}
}

func (r *rig) nodeOf(pod string) string { return r.srv.Pod("default", pod).Spec.NodeName }

func TestLeastRequested(t *testing.T) {
	r := newRig(t)
	r.node("a")
	r.node("b", func(n *v1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("4") })
	for i := range 6 {
		r.pod(fmt.Sprintf("p%d", i), requests("cpu", "500m", "memory", "1Mi"))
	}
	r.run(time.Second)
	var got []string
	for i := range 6 {
		got = append(got, r.nodeOf(fmt.Sprintf("p%d", i)))
	}
	// Use of cpu after each: a 1/4, b 1/8, b 2/8, (tie at 1/4: fewer pods) a, b, b.
	if s := strings.Join(got, " "); s != "a b b a b b" {
		t.Errorf("bound to %s", s)
	}
	p := r.srv.Pod("default", "p0")
	if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Type != v1.PodScheduled || p.Status.Conditions[0].Status != v1.ConditionTrue {
		t.Errorf("conditions %v", p.Status.Conditions)
	}
	ev := r.srv.Events()[0]
	if ev.Reason != "Scheduled" || ev.Message != "Successfully assigned default/p0 to a" || ev.Source.Component != "default-scheduler" {
		t.Errorf("event %v", ev)
	}
}

func TestFilters(t *testing.T) {
	taint := func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}}
	}
	tolerate := func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Key: "k", Operator: v1.TolerationOpExists}} }
	affinity := func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "name", Operator: v1.NodeSelectorOpNotIn, Values: []string{"a"}}}}}}}}
	}
	hostPort := func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 1, HostPort: 80}} }
	none := func(*v1.Node) {}
	for _, tc := range []struct {
		name   string
		node   func(*v1.Node)
		before func(*v1.Pod) // a pod that is bound first, when not nil
		pod    func(*v1.Pod)
		want   string // "" when bound
	}{
		{"fits", none, nil, requests("cpu", "2"), ""},
		{"cpu", none, nil, requests("cpu", "2001m"), "0/1 nodes are available: 1 Insufficient cpu."},
		{"cpu and memory", none, nil, requests("cpu", "3", "memory", "5Gi"), "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."},
		{"used", none, requests("cpu", "1"), requests("cpu", "1500m"), "0/1 nodes are available: 1 Insufficient cpu."},
		{"extended", none, requests("x.io/gpu", "1"), requests("x.io/gpu", "1"), "0/1 nodes are available: 1 Insufficient x.io/gpu."},
		{"pods", func(n *v1.Node) { n.Status.Allocatable["pods"] = resource.MustParse("1") }, func(*v1.Pod) {}, func(*v1.Pod) {}, "0/1 nodes are available: 1 Too many pods."},
		{"selector", none, nil, func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"name": "b"} }, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
		{"affinity", none, nil, affinity, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."},
		{"taint", taint, nil, func(*v1.Pod) {}, "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
		{"tolerated", taint, nil, tolerate, ""},
		{"cordoned", func(n *v1.Node) { n.Spec.Unschedulable = true }, nil, func(*v1.Pod) {}, "0/1 nodes are available: 1 node(s) were unschedulable."},
		{"not ready", func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionFalse }, nil, func(*v1.Pod) {}, "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
		{"host port", none, hostPort, hostPort, "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			r.node("a", tc.node)
			if tc.before != nil {
				r.pod("first", tc.before)
				r.run(time.Second)
				if r.nodeOf("first") != "a" {
					t.Fatal("the first pod was not bound")
				}
			}
			r.pod("p", tc.pod)
			r.run(time.Second)
			if tc.want == "" {
				if r.nodeOf("p") != "a" {
					t.Error("not bound")
				}
				return
			}
			conds := r.srv.Pod("default", "p").Status.Conditions
			if r.nodeOf("p") != "" || len(conds) != 1 || conds[0].Reason != "Unschedulable" || conds[0].Message != tc.want {
				t.Errorf("node %q, conditions %v", r.nodeOf("p"), conds)
			}
			evs := r.srv.Events()
			if ev := evs[len(evs)-1]; ev.Reason != "FailedScheduling" || ev.Type != "Warning" || ev.Message != tc.want {
				t.Errorf("event %v", ev)
			}
		})
	}
}

func TestRetry(t *testing.T) {
	r := newRig(t)
	r.pod("p", requests("cpu", "2"))
	r.run(5 * time.Second)
	if c := r.srv.Pod("default", "p").Status.Conditions; len(c) != 1 || c[0].Message != "no nodes available to schedule pods" {
		t.Fatalf("conditions %v", c)
	}
	r.node("a")
	r.run(5 * time.Second)
	if r.nodeOf("p") != "a" {
		t.Fatal("not bound when a node came")
	}
	r.pod("q", requests("cpu", "2"))
	r.run(5 * time.Second)
	if r.nodeOf("q") != "" || r.b.Pending() != 1 {
		t.Fatal("bound to a full node")
	}
	n := len(r.srv.Events())
	p := r.srv.Pod("default", "p")
	st := p.Status
	st.Phase = v1.PodSucceeded
	if _, err := r.srv.PatchPodStatus("default", "p", p.UID, &p.Status, &st); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Second)
	if r.nodeOf("q") != "a" || len(r.srv.Events()) != n+1 {
		t.Error("not bound when room came")
	}
	r.pod("gated", func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "x.io/g"}} })
	r.run(time.Second)
	if r.nodeOf("gated") != "" {
		t.Error("a gated pod was bound")
	}
	if err := r.srv.Delete(apiserver.KindPod, "default", "q", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.srv.Patch(apiserver.KindPod, "default", "gated", types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), ""); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Second)
	if r.nodeOf("gated") != "a" {
		t.Error("not bound when the gate was taken away")
	}
}

func TestPriority(t *testing.T) {
	r := newRig(t)
	r.pod("low", requests("cpu", "2"))
	r.pod("high", requests("cpu", "2"), func(p *v1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })
	r.node("a")
	r.run(5 * time.Second)
	if r.nodeOf("high") != "a" || r.nodeOf("low") != "" {
		t.Errorf("high on %q, low on %q", r.nodeOf("high"), r.nodeOf("low"))
	}
}

func BenchmarkBind(b *testing.B) {
	for b.Loop() {
		r := newRig(b)
		for i := range 1000 {
			r.node(fmt.Sprintf("n%d", i), func(n *v1.Node) { n.Status.Allocatable["pods"] = resource.MustParse("110") })
		}
		tmpl, err := r.srv.NewTemplate(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "app:1"}}}})
		if err != nil {
			b.Fatal(err)
		}
		for i := range 30000 {
			if _, err := r.srv.CreateFromTemplate(tmpl, apiserver.Stamp{Name: fmt.Sprintf("p-%d", i)}); err != nil {
				b.Fatal(err)
			}
		}
		r.run(time.Second)
		for _, p := range r.srv.Pods() {
			if p.Spec.NodeName == "" {
				b.Fatal("not bound")
			}
		}
	}
}
