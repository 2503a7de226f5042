package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

type rig struct {
	t   testing.TB
	l   *loop.Loop
	srv *apiserver.Server
	s   *Scheduler
}

func newRig(t testing.TB) *rig {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	return &rig{t: t, l: l, srv: srv, s: New(Options{Group: l.NewGroup("kube-scheduler"), API: srv.Component("kube-scheduler", 0, 0)})}
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
	// Least allocated and balance: a 75+87, b 81+90 and so on; each goes where there is more.
	if s := strings.Join(got, " "); strings.Count(s, "a") != 2 || !strings.HasPrefix(s, "b") {
		t.Errorf("bound to %s", s)
	}
	p := r.srv.Pod("default", "p0")
	if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Type != v1.PodScheduled || p.Status.Conditions[0].Status != v1.ConditionTrue {
		t.Errorf("conditions %v", p.Status.Conditions)
	}
	ev := r.srv.Events()[0]
	if ev.Reason != "Scheduled" || ev.Message != "Successfully assigned default/p0 to b" || ev.ReportingController != "default-scheduler" || ev.Action != "Binding" {
		t.Errorf("event %v", ev)
	}
}

// What preemption adds to a refusal on one node.
const (
	noHelp    = " no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	noVictims = " no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
)

func named(p *v1.Pod, node string) {
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
}

func namedToo(p *v1.Pod, node string) {
	t := &p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	t.MatchFields = append(t.MatchFields, v1.NodeSelectorRequirement{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}})
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
		{"cpu", none, nil, requests("cpu", "2001m"), "0/1 nodes are available: 1 Insufficient cpu." + noHelp},
		{"cpu and memory", none, nil, requests("cpu", "3", "memory", "5Gi"), "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory." + noHelp},
		{"used", none, requests("cpu", "1"), requests("cpu", "1500m"), "0/1 nodes are available: 1 Insufficient cpu." + noVictims},
		{"extended", none, requests("x.io/gpu", "1"), requests("x.io/gpu", "1"), "0/1 nodes are available: 1 Insufficient x.io/gpu." + noVictims},
		{"pods", func(n *v1.Node) { n.Status.Allocatable["pods"] = resource.MustParse("1") }, func(*v1.Pod) {}, func(*v1.Pod) {}, "0/1 nodes are available: 1 Too many pods." + noVictims},
		{"selector", none, nil, func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"name": "b"} }, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." + noHelp},
		{"affinity", none, nil, affinity, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." + noHelp},
		{"taint", taint, nil, func(*v1.Pod) {}, "0/1 nodes are available: 1 node(s) had untolerated taint(s)." + noHelp},
		{"tolerated", taint, nil, tolerate, ""},
		{"cordoned", func(n *v1.Node) { n.Spec.Unschedulable = true }, nil, func(*v1.Pod) {}, "0/1 nodes are available: 1 node(s) were unschedulable." + noHelp},
		{"not ready", func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionFalse }, nil, func(*v1.Pod) {}, ""}, // its taint would count
		{"an exabyte", func(n *v1.Node) { n.Status.Allocatable["memory"] = resource.MustParse("8E") }, requests("memory", "4E"), requests("memory", "5E"), "0/1 nodes are available: 1 Insufficient memory." + noVictims},
		{"another exabyte", func(n *v1.Node) { n.Status.Allocatable["memory"] = resource.MustParse("8E") }, requests("memory", "4E"), requests("memory", "4E"), ""},
		{"no room at all", func(n *v1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("8E") }, requests("cpu", "8E"), requests("cpu", "8E"), "0/1 nodes are available: 1 Insufficient cpu." + noVictims},
		{"named", none, nil, func(p *v1.Pod) { named(p, "b") }, "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity]." + noHelp},
		{"named and here", none, nil, func(p *v1.Pod) { named(p, "a") }, ""},
		{"named contradictorily", none, nil, func(p *v1.Pod) { named(p, "a"); namedToo(p, "b") }, "0/1 nodes are available: pod affinity terms conflict. not found"},
		{"never preempts", none, requests("cpu", "1"), func(p *v1.Pod) {
			requests("cpu", "1500m")(p)
			p.Spec.PriorityClassName = "meek"
		}, "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."},
		{"host port", none, hostPort, hostPort, "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports." + noVictims},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			never := v1.PreemptNever
			if _, err := r.srv.Create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "meek"}, Value: 10, PreemptionPolicy: &never}); err != nil {
				t.Fatal(err)
			}
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
	if r.nodeOf("q") != "" || r.s.Pending() != 1 {
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

// victim makes a pod that holds the whole node a.
func victim(p *v1.Pod) { requests("cpu", "2")(p) }

func TestPreemption(t *testing.T) {
	r := newRig(t)
	r.node("a")
	r.pod("low", victim)
	r.run(time.Second)
	r.pod("high", victim, func(p *v1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })
	r.run(time.Second)
	low, high := r.srv.Pod("default", "low"), r.srv.Pod("default", "high")
	if low.DeletionTimestamp == nil || *low.DeletionGracePeriodSeconds != 30 || high.Status.NominatedNodeName != "a" {
		t.Fatalf("low deleted %v, high nominated to %q", low.DeletionTimestamp, high.Status.NominatedNodeName)
	}
	if c := low.Status.Conditions[len(low.Status.Conditions)-1]; c.Type != v1.DisruptionTarget || c.Reason != "PreemptionByScheduler" ||
		c.Message != "default-scheduler: preempting to accommodate a higher priority pod" {
		t.Errorf("condition %v", c)
	}
	ev := r.event("low", "Preempted")
	if ev == nil || ev.Type != v1.EventTypeNormal || ev.Action != "Preempting" || ev.Message != fmt.Sprintf("Preempted by pod %s on node a", high.UID) || ev.Related.Name != "high" {
		t.Errorf("event %v", ev)
	}
	if ev := r.event("high", "FailedScheduling"); ev == nil || ev.Message != "0/1 nodes are available: 1 Insufficient cpu." {
		t.Errorf("event %v", ev)
	}
	// While the victim terminates, neither is another evicted nor is the room given away.
	r.pod("late", victim)
	r.run(10 * time.Second)
	if err := r.srv.Delete(apiserver.KindPod, "default", "low", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	r.run(time.Second)
	if r.nodeOf("high") != "a" || r.nodeOf("late") != "" || r.srv.Pod("default", "high").Status.NominatedNodeName != "" {
		t.Errorf("high on %q (nominated %q), late on %q", r.nodeOf("high"), r.srv.Pod("default", "high").Status.NominatedNodeName, r.nodeOf("late"))
	}
}

// TestNoVictims: what is said of nodes where evictions don't help, beside those without victims.
func TestNoVictims(t *testing.T) {
	r := newRig(t)
	for _, n := range []string{"a", "b", "c"} {
		r.node(n)
	}
	on := func(node, class string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.NodeName, p.Spec.PriorityClassName = node, class }
	}
	r.pod("a-low", requests("cpu", "500m"), on("a", ""))
	r.pod("a-high", requests("cpu", "1500m"), on("a", "system-node-critical"))
	r.pod("b-low", requests("memory", "1Gi"), on("b", ""))
	r.pod("b-high", requests("cpu", "1", "memory", "3Gi"), on("b", "system-node-critical"))
	r.pod("c-high", victim, on("c", "system-node-critical"))
	r.pod("p", requests("cpu", "1", "memory", "2Gi"), on("", "system-cluster-critical"))
	r.run(time.Second)
	const want = "0/3 nodes are available: 1 Insufficient memory, 2 Insufficient cpu. no new claims to deallocate, preemption: " +
		"0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 No preemption victims found for incoming pod."
	if ev := r.event("p", "FailedScheduling"); ev == nil || ev.Message != want {
		t.Errorf("event %v", ev)
	}
}

// TestVictims chooses between nodes: the victims of least importance, budgets
// kept where they can be.
func TestVictims(t *testing.T) {
	r := newRig(t)
	class := func(name string, value int32) {
		if _, err := r.srv.Create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	class("mid", 10)
	class("high", 100)
	with := func(node, prio string, labels map[string]string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.NodeName, p.Spec.PriorityClassName, p.Labels = node, prio, labels
		}
	}
	for _, n := range []string{"a", "b", "c", "d"} {
		r.node(n)
	}
	r.pod("guarded", victim, with("a", "", map[string]string{"app": "guarded"}))
	r.pod("b-mid", victim, with("b", "mid", nil))
	r.pod("c-1", requests("cpu", "1"), with("c", "", nil))
	r.pod("c-2", requests("cpu", "1"), with("c", "", nil))
	r.pod("d-1", victim, with("d", "", nil))
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}}}
	if _, err := r.srv.Create(pdb); err != nil {
		t.Fatal(err)
	}
	want := []string{"d-1", "c-1 c-2", "b-mid", "guarded"}
	for i := range want {
		r.pod(fmt.Sprintf("high-%d", i), victim, func(p *v1.Pod) { p.Spec.PriorityClassName = "high" })
		r.run(time.Second)
		var gone []string
		for _, p := range slices.Clone(r.srv.Pods()) {
			if p.DeletionTimestamp == nil {
				continue
			}
			gone = append(gone, p.Name)
			if err := r.srv.Delete(apiserver.KindPod, "default", p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(gone, " "); got != want[i] {
			t.Errorf("preemption %d evicted %q, want %q", i, got, want[i])
		}
		r.run(time.Second)
		if r.nodeOf(fmt.Sprintf("high-%d", i)) == "" {
			t.Errorf("high-%d is pending", i)
		}
	}
}

// TestEventSeries: a refusal that recurs is one event with a count.
func TestEventSeries(t *testing.T) {
	r := newRig(t)
	r.pod("p")
	r.run(20 * time.Minute)
	// Tries after 1, 2, 4, 8 and then each 10 s; the first event has the version before the condition.
	var names []string
	var count int32
	for _, ev := range r.srv.Events() {
		names = append(names, ev.Reason)
		if ev.Series != nil {
			count = ev.Series.Count
		}
	}
	if strings.Join(names, " ") != "FailedScheduling FailedScheduling" || count != 2 {
		t.Errorf("events %v, count %d", names, count)
	}
	r.run(20 * time.Minute) // refreshed at 30 min
	for _, ev := range r.srv.Events() {
		if ev.Series != nil {
			count = ev.Series.Count
		}
	}
	if count < 150 {
		t.Errorf("count %d", count)
	}
}

// TestFlush: a pod is tried again after five minutes though nothing happened.
func TestFlush(t *testing.T) {
	r := newRig(t)
	r.node("a")
	r.pod("p", requests("cpu", "3"))
	r.run(time.Minute)
	q := r.s.pending[r.srv.Pod("default", "p").UID]
	if q.attempts != 1 || q.place != unschedulable {
		t.Fatalf("%d attempts, place %d", q.attempts, q.place)
	}
	r.run(3*time.Minute + 59*time.Second)
	if q.attempts != 1 {
		t.Errorf("%d attempts after 4:59", q.attempts)
	}
	r.run(32 * time.Second)
	if q.attempts != 2 {
		t.Errorf("%d attempts after 5:31", q.attempts)
	}
}

// TestBindFailure: a pod whose binding fails is tried again after its back-off.
func TestBindFailure(t *testing.T) {
	r := newRig(t)
	r.node("a")
	heal := r.srv.AddFault(apiserver.Fault{Verb: "create", Resource: "pods/binding", Refuse: true})
	r.pod("p", requests("cpu", "2"))
	r.run(5 * time.Second)
	c := r.srv.Pod("default", "p").Status.Conditions
	if len(c) != 1 || c[0].Reason != "SchedulerError" || !strings.HasPrefix(c[0].Message, `running Bind plugin "DefaultBinder": `) {
		t.Fatalf("conditions %v", c)
	}
	if n := r.s.table.byName["a"]; n.pods != 0 || n.cpu.value() != 0 {
		t.Errorf("%d pods are counted", n.pods)
	}
	heal()
	r.run(15 * time.Second)
	if r.nodeOf("p") != "a" {
		t.Error("not bound")
	}
}

// event returns the last event about a pod with a reason.
func (r *rig) event(pod, reason string) *v1.Event {
	var out *v1.Event
	for _, ev := range r.srv.Events() {
		if ev.InvolvedObject.Name == pod && ev.Reason == reason {
			out = ev
		}
	}
	return out
}

// TestNamespaceLabels: whom a namespaceSelector means changes with the labels of
// namespaces, also for pods like those that were placed before.
func TestNamespaceLabels(t *testing.T) {
	r := newRig(t)
	if _, err := r.srv.Create(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); err != nil {
		t.Fatal(err)
	}
	r.node("a")
	r.pod("web", func(p *v1.Pod) { p.Namespace, p.Labels = "other", map[string]string{"app": "web"} })
	apart := func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey:       "name",
			LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}},
		}}}}
	}
	r.pod("before", apart)
	r.run(time.Second)
	if r.nodeOf("before") != "a" {
		t.Fatalf("not bound: %v", r.srv.Pod("default", "before").Status.Conditions)
	}
	if _, err := r.srv.Patch(apiserver.KindNamespace, "", "other", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"x"}}}`), ""); err != nil {
		t.Fatal(err)
	}
	r.pod("after", apart)
	r.run(time.Second)
	if n := r.nodeOf("after"); n != "" {
		t.Errorf("bound to %s beside a pod of the namespace", n)
	}
}

// TestWaitingForVolumes: a pod is bound although more pods than the client has requests under way wait
// for their volumes.
func TestWaitingForVolumes(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	r := &rig{t: t, l: l, srv: srv, s: New(Options{Group: l.NewGroup("kube-scheduler"), API: srv.Component("kube-scheduler", -1, 0)})}
	r.node("a", func(n *v1.Node) { n.Status.Allocatable["pods"] = resource.MustParse("5000") })
	late := storagev1.VolumeBindingWaitForFirstConsumer
	class := "disks"
	for _, o := range []apiserver.Object{
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "disks.example.com", VolumeBindingMode: &late},
		&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"}, Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}, StorageClassName: &class,
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{"storage": resource.MustParse("1Gi")}},
		}},
	} {
		if _, err := srv.Create(o); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxRequests + 1 {
		r.pod(fmt.Sprint("waits-", i), func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		})
	}
	r.run(5 * time.Second)
	r.pod("plain")
	r.run(5 * time.Second)
	if got := r.nodeOf("plain"); got != "a" {
		t.Errorf("plain is on %q", got)
	}
	if got := r.srv.Pod("default", "waits-2000"); got.Spec.NodeName != "" || got.Status.NominatedNodeName != "a" {
		t.Errorf("the last one that waits is on %q, nominated to %q", got.Spec.NodeName, got.Status.NominatedNodeName)
	}
}

// TestVolumeChangesMeanwhile: a volume that somebody writes to between the pod's placing and the
// binding has the pod placed anew.
func TestVolumeChangesMeanwhile(t *testing.T) {
	r := newRig(t)
	r.node("a")
	late := storagev1.VolumeBindingWaitForFirstConsumer
	size := v1.ResourceList{"storage": resource.MustParse("1Gi")}
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	for _, o := range []apiserver.Object{
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disks"}, Provisioner: "disks.example.com", VolumeBindingMode: &late},
		&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
			AccessModes: modes, StorageClassName: "disks", Capacity: size,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "disks.example.com", VolumeHandle: "1"}},
		}},
		&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"}, Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: new("disks"), Resources: v1.VolumeResourceRequirements{Requests: size},
		}},
	} {
		if _, err := r.srv.Create(o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.srv.Patch(apiserver.KindPersistentVolume, "", "pv", types.MergePatchType, []byte(`{"status":{"phase":"Available"}}`), "status"); err != nil {
		t.Fatal(err)
	}
	changed := false
	r.srv.OnChange(func(ch apiserver.Change) {
		if !changed && ch.New.(*v1.Pod).Status.NominatedNodeName != "" {
			changed = true
			if _, err := r.srv.Patch(apiserver.KindPersistentVolume, "", "pv", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), ""); err != nil {
				t.Error(err)
			}
		}
	}, apiserver.KindPod)
	r.pod("web", func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	r.run(30 * time.Second)
	ev := r.event("web", "FailedScheduling")
	if ev == nil || !strings.Contains(ev.Message, "the object has been modified") {
		t.Errorf("told: %v", ev)
	}
	if pv := r.srv.Store().Lookup(apiserver.KindPersistentVolume, "", "pv").(*v1.PersistentVolume); pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Name != "data" {
		t.Errorf("the volume was not bound at the second try: %v", pv.Spec.ClaimRef)
	}
}
