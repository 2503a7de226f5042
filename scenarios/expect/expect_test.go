package expect

import (
	"fmt"
	"math/rand"
	"sort"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// cluster is a State made by hand.
type cluster struct {
	pods   []*v1.Pod
	nodes  []*v1.Node
	events []*v1.Event
	leases []*coordinationv1.Lease
	calls  []*CRICall

	deployments []*appsv1.Deployment
}

func (c *cluster) Pods() []*v1.Pod                 { return c.pods }
func (c *cluster) Nodes() []*v1.Node               { return c.nodes }
func (c *cluster) Events() []*v1.Event             { return c.events }
func (c *cluster) Leases() []*coordinationv1.Lease { return c.leases }
func (c *cluster) CRICalls() []*CRICall            { return c.calls }
func (c *cluster) Start() time.Time                { return start }
func (c *cluster) Objects(k Kind) any {
	switch k {
	case KindDeployment:
		return c.deployments
	case KindJob:
		return []*batchv1.Job(nil)
	default:
		return []*v1.Namespace(nil)
	}
}
func (c *cluster) Object(k Kind, ns, name string) any {
	for _, l := range c.leases {
		if k == KindLease && l.Namespace == ns && l.Name == name {
			return l
		}
	}
	for _, d := range c.deployments {
		if k == KindDeployment && d.Namespace == ns && d.Name == name {
			return d
		}
	}
	return nil
}
func (c *cluster) Pod(ns, name string) *v1.Pod {
	for _, p := range c.pods {
		if p.Namespace == ns && p.Name == name {
			return p
		}
	}
	return nil
}
func (c *cluster) Node(name string) *v1.Node {
	for _, n := range c.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// setPod puts or removes a pod and returns the change.
func (c *cluster) setPod(p *v1.Pod, remove bool) Change {
	i := sort.Search(len(c.pods), func(i int) bool {
		return c.pods[i].Namespace+"/"+c.pods[i].Name >= p.Namespace+"/"+p.Name
	})
	var ch = Change{Kind: KindPod}
	if i < len(c.pods) && c.pods[i].Name == p.Name && c.pods[i].Namespace == p.Namespace {
		ch.Old = c.pods[i]
		if remove {
			c.pods = append(c.pods[:i:i], c.pods[i+1:]...)
			return ch
		}
		ch.New, c.pods[i] = p, p
		return ch
	}
	c.pods = append(c.pods[:i:i], append([]*v1.Pod{p}, c.pods[i:]...)...)
	ch.New = p
	return ch
}

func pod(name string, phase v1.PodPhase) *v1.Pod {
	ns := "default"
	if a, b, ok := strings.Cut(name, "/"); ok {
		ns, name = a, b
	}
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Status: v1.PodStatus{Phase: phase}}
}

func sample() *cluster {
	p := pod("web", v1.PodRunning)
	p.UID = types.UID("u1")
	p.Labels = map[string]string{"app": "web"}
	p.CreationTimestamp = metav1.Time{Time: start.Add(3 * time.Second)}
	p.Spec.NodeName = "worker-0"
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
	p.Spec.Containers = []v1.Container{{Name: "main", Image: "app:1", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("512Mi")}}}}
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", RestartCount: 2, Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: start.Add(5 * time.Second)}}}}}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}
	e := &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web.1"}, InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"}, Reason: "Started", Count: 3, LastTimestamp: metav1.Time{Time: start.Add(5 * time.Second)}}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "worker-0"}}
	l.Spec.RenewTime = &metav1.MicroTime{Time: start.Add(time.Minute)}
	l.Spec.LeaseDurationSeconds = ptr.To[int32](40)
	return &cluster{pods: []*v1.Pod{p, pod("other/x", v1.PodPending)}, nodes: []*v1.Node{n}, events: []*v1.Event{e}, leases: []*coordinationv1.Lease{l},
		calls: []*CRICall{{Node: "worker-0", Method: "StartContainer", Pod: "default/web", Container: "main", At: 4 * time.Second}}}
}

func compiler(t testing.TB) *Compiler {
	t.Helper()
	c, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t testing.TB, c *Compiler, s Source) *Expectation {
	t.Helper()
	x, errs := c.Compile(s)
	for _, err := range errs {
		t.Fatalf("%s: %v", s.Expr, err)
	}
	return x
}

func TestExpressions(t *testing.T) {
	c, s := compiler(t), sample()
	for _, expr := range []string{
		`pod("default/web").status.phase == "Running"`,
		`pod("web").metadata.name == "web"`,
		`pod("web").metadata.namespace == "default"`,
		`pod("default/none").status.phase == ""`,
		`!exists(pod("none")) && exists(pod("web"))`,
		`pods().size() == 2 && pods("other").size() == 1`,
		`pods().all(p, p.metadata.name != "")`,
		`pods().exists(p, p.status.phase == "Pending" && p.metadata.namespace == "other")`,
		`pods().filter(p, p.status.phase == "Running").map(p, p.metadata.name) == ["web"]`,
		`pod("web").metadata.labels["app"] == "web" && pod("web").metadata.labels["none"] == ""`,
		`pod("web").metadata.labels.app == "web"`,
		`has(pod("web").metadata.labels.app) && !has(pod("web").metadata.labels.none)`,
		`exists(pod("web").metadata.labels["app"]) && !exists(pod("web").metadata.labels["none"])`,
		`"app" in pod("web").metadata.labels && !("none" in pod("web").metadata.labels)`,
		`!has(pod("web").metadata.deletionTimestamp) && has(pod("web").spec.terminationGracePeriodSeconds)`,
		`exists(pod("web").status.containerStatuses[0].state.running) && !exists(pod("web").status.containerStatuses[0].state.terminated)`,
		`pod("web").status.containerStatuses[0].state.terminated.exitCode == 0`,
		`pod("web").status.containerStatuses[7].restartCount == 0`,
		`pod("none").status.containerStatuses[0].restartCount == 0`,
		`pod("web").spec.terminationGracePeriodSeconds == 30 && pod("none").spec.terminationGracePeriodSeconds == 0`,
		`containerStatus(pod("web"), "main").restartCount == 2 && containerStatus(pod("web"), "x").name == ""`,
		`restarts("web") == 2 && restarts(pod("web")) == 2 && restarts("none") == 0`,
		`ready(pod("web")) && ready(node("worker-0")) && !ready(pod("none"))`,
		`condition(pod("web"), "Ready").status == "True" && condition(node("worker-0"), "Ready").reason == "KubeletReady"`,
		`condition(node("none"), "Ready").status == ""`,
		`events().filter(e, e.reason == "Started").size() == 1`,
		`events("default/web").all(e, e.count == 3 && e.type == "")`,
		`events("worker-0").size() == 0`,
		`nodes().all(n, ready(n))`,
		`since(pod("web").metadata.creationTimestamp) == duration("3s")`,
		`pod("web").metadata.creationTimestamp < events()[0].lastTimestamp`,
		`since(lease("worker-0").spec.renewTime) == duration("1m") && lease("worker-0").spec.leaseDurationSeconds == 40`,
		`leases().size() == 1 && leases().all(l, l.spec.leaseDurationSeconds == 40) && !exists(lease("none"))`,
		`criCalls().exists(c, c.method == "StartContainer" && c.at < duration("5s") && c.error == "")`,
		`pod("web").spec.containers[0].resources.requests["memory"].compareTo(quantity("500Mi")) > 0`,
		`pod("web").spec.containers[0].resources.requests["cpu"] == quantity("0")`,
		`pod("web").spec.containers.all(c, c.image.startsWith("app:"))`,
		`time() == duration("0s")`,
		`pods().exists_one(p, p.status.phase == "Running")`,
		`pods().filter(p, p.metadata.namespace == "default").all(p, p.status.phase == "Running")`,
		`pods() == pods() && pod("web") == pod("web") && pod("web") != pod("other/x")`,
		`"Running" in pods().map(p, p.status.phase)`,
		`[1, 2, 3].sum() == 6 && "abc".find("b.*") == "bc"`,
	} {
		x := compile(t, c, Source{Form: At, T: End, Expr: expr})
		e := New([]*Expectation{x}, s, Options{})
		e.Begin()
		if v := e.Finish(0, false)[0]; v.Outcome != Held {
			t.Errorf("%s: %s: %v", expr, v.Reason, v.Values)
		}
		// The incremental way must say the same.
		if !x.NeedsCRICalls() {
			x = compile(t, c, Source{Form: By, T: End, Expr: expr})
			e = New([]*Expectation{x}, s, Options{})
			e.Begin()
			if v := e.Verdicts()[0]; v.Outcome != Held {
				t.Errorf("by: %s: %s %v", expr, v.Outcome, e.runs[0].err)
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	c := compiler(t)
	for _, tt := range []struct{ form, expr, want string }{
		{"at", `pod("web").status.fase == "Running"`, `1:18: v1.PodStatus has no field "fase" (did you mean "phase"?)`},
		{"at", `pods().all(p, p.status.phase == 3)`, `1:30: found no matching overload for '_==_' applied to '(string, int)'`},
		{"at", `podz().size() == 1`, `1:5: there is no "podz" (did you mean "pods"?)`},
		{"at", `pod(3).status.phase == ""`, `1:4: found no matching overload for 'pod' applied to '(int)'`},
		{"at", `pod("web").status.phase`, `1:1: an expectation must be true or false, but this is of type string`},
		{"always", `criCalls().size() == 0`, `1:1: criCalls() can be used with at only, not with always`},
		{"by", `cgroups("worker").all(c, c.pids == 1)`, `1:1: cgroups() can be used with at only, not with by`},
		{"never", `containerResources("web", "app").oomScoreAdj == 3`, `1:1: containerResources() can be used with at only, not with never`},
		{"at", `cgroups("worker").all(c, c.share == 1)`, `1:27: drydock.Cgroup has no field "share"`},
		{"at", `pods().all(p, `, `1:15: syntax error: mismatched input '<EOF>' expecting`},
		{"at", "true &&\n  pod(\"web\").spec.nodeNam == \"\"", `2:18: v1.PodSpec has no field "nodeNam" (did you mean "nodeName"?)`},
		{"at", `pods().all(p, p.status.conditions.all(c, c.tipe == "Ready"))`, `1:43: v1.PodCondition has no field "tipe" (did you mean "type"?)`},
	} {
		_, errs := c.Compile(Source{Form: Form(tt.form), T: End, Expr: tt.expr})
		if len(errs) == 0 {
			t.Errorf("%s: compiles", tt.expr)
			continue
		}
		if got := fmt.Sprintf("%d:%d: %s", errs[0].Line, errs[0].Column, errs[0].Message); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.expr, got, tt.want)
		}
	}
}

func TestAggregatesAreFound(t *testing.T) {
	c := compiler(t)
	for expr, want := range map[string]int{
		`pods().all(p, p.status.phase == "Running")`:                                                 1,
		`pods().filter(p, p.status.phase == "Running").size() >= 2 && nodes().exists(n, ready(n))`:   2,
		`size(pods("a").filter(p, true)) == 3`:                                                       1,
		`pods().all(p, p.status.phase == pod("web").status.phase)`:                                   0,
		`pods().all(p, nodes().exists(n, n.metadata.name == p.spec.nodeName))`:                       0,
		`pods().all(p, p.status.containerStatuses.all(c, c.ready && p.status.phase == "Running"))`:   1,
		`pods().filter(p, ready(p)).exists(p, since(p.metadata.creationTimestamp) > duration("1s"))`: 1,
		`events().filter(e, e.reason == "x").map(e, e.count).sum() > 3`:                              0,
		`pods().size() == 3`: 1,
	} {
		if x := compile(t, c, Source{Form: By, T: End, Expr: expr}); len(x.aggs) != want {
			t.Errorf("%s: %d aggregates, want %d", expr, len(x.aggs), want)
		}
	}
}

// step is something that happens in TestForms.
type step struct {
	at  time.Duration
	pod string // name=phase, "-name" removes; "" only advances
}

func play(e *Engine, s *cluster, steps []step, end time.Duration) []Verdict {
	e.Begin()
	for _, st := range steps {
		for {
			d, ok := e.NextDeadline()
			if !ok || d > st.at {
				break
			}
			e.Advance(d)
		}
		name, phase, _ := strings.Cut(st.pod, "=")
		if rest, ok := strings.CutPrefix(name, "-"); ok {
			e.Changed(s.setPod(pod(rest, ""), true), st.at)
		} else if name != "" {
			e.Changed(s.setPod(pod(name, v1.PodPhase(phase)), false), st.at)
		}
	}
	for {
		d, ok := e.NextDeadline()
		if !ok || d > end {
			break
		}
		e.Advance(d)
	}
	return e.Finish(end, false)
}

func TestForms(t *testing.T) {
	c := compiler(t)
	const sec = time.Second
	running := `pod("web").status.phase == "Running"`
	steps := []step{{1 * sec, "web=Pending"}, {2 * sec, "web=Running"}, {10 * sec, "web=Failed"}, {20 * sec, "web=Running"}}
	for _, tt := range []struct {
		src  Source
		want string
	}{
		{Source{Form: At, T: 5 * sec, Expr: running}, "held 5s "},
		{Source{Form: At, T: 15 * sec, Expr: running}, "failed 15s was false at 15s"},
		{Source{Form: At, T: End, Expr: running}, "held 1m0s "},
		{Source{Form: By, T: 5 * sec, Expr: running}, "held 2s "},
		{Source{Form: By, T: 1500 * time.Millisecond, Expr: running}, "failed 1.5s did not become true by 1.5s"},
		{Source{Form: By, T: End, Expr: `pod("web").status.phase == "Succeeded"`}, "failed 1m0s did not become true by the end, 1m0s"},
		{Source{Form: By, From: 12 * sec, T: 30 * sec, Expr: running}, "held 20s "},
		{Source{Form: By, From: 5 * sec, T: 30 * sec, Expr: running}, "held 5s "},
		{Source{Form: By, From: 12 * sec, T: 15 * sec, Expr: running}, "failed 15s did not become true by 15s"},
		{Source{Form: By, From: 12 * sec, T: 12 * sec, Expr: running}, "failed 12s did not become true by 12s"},
		{Source{Form: For, From: 4 * sec, Span: 5 * sec, T: End, Expr: running}, "held 9s "},
		{Source{Form: For, From: 6 * sec, Span: 5 * sec, T: End, Expr: running}, "held 25s "},
		{Source{Form: Always, From: 3 * sec, Until: End, Expr: running}, "failed 10s was false at 10s"},
		{Source{Form: Always, From: 3 * sec, Until: 9 * sec, Expr: running}, "held 9s "},
		{Source{Form: Always, From: 1500 * time.Millisecond, Until: End, Expr: running}, "failed 1.5s was false at 1.5s"},
		{Source{Form: Always, From: 25 * sec, Until: End, Expr: running}, "held 1m0s "},
		{Source{Form: Never, Until: End, Expr: `pod("web").status.phase == "Failed"`}, "failed 10s was true at 10s"},
		{Source{Form: Never, Until: 9 * sec, Expr: `pod("web").status.phase == "Failed"`}, "held 9s "},
		{Source{Form: For, Span: 8 * sec, T: End, Expr: running}, "held 10s "},
		{Source{Form: For, Span: 9 * sec, T: End, Expr: running}, "held 29s "},
		{Source{Form: For, Span: 9 * sec, T: 28 * sec, Expr: running}, "failed 28s did not hold for 9s in a row by 28s"},
		{Source{Form: For, Span: 40 * sec, T: End, Expr: running}, "held 1m0s "},
		{Source{Form: For, Span: 41 * sec, T: End, Expr: running}, "failed 1m0s did not hold for 41s in a row by the end, 1m0s"},
		{Source{Form: At, T: End, Expr: `phases("web") == ["Pending", "Running", "Failed", "Running"]`}, "held 1m0s "},
		{Source{Form: At, T: End, Expr: `transitions("web").map(t, t.time) == [duration("1s"), duration("2s"), duration("10s"), duration("20s")]`}, "held 1m0s "},
		{Source{Form: By, T: End, Expr: `transitions("web").filter(t, t.phase == "Running").size() == 2`}, "held 20s "},
		{Source{Form: Always, Until: End, Expr: `1 / pods().size() < 5`}, "failed 0s could not be evaluated: division by zero"},
		{Source{Form: By, T: End, Expr: `time() >= duration("30s")`}, "held 30s "},
	} {
		for _, naive := range []bool{false, true} {
			e := New([]*Expectation{compile(t, c, tt.src)}, &cluster{}, Options{Naive: naive})
			s := &cluster{}
			e.view.state = s
			v := play(e, s, steps, 60*sec)[0]
			if got := fmt.Sprintf("%s %s %s", v.Outcome, v.At, v.Reason); got != tt.want {
				t.Errorf("%s %s (naive %v):\n got %s\nwant %s", tt.src.Form, tt.src.Expr, naive, got, tt.want)
			}
		}
	}
}

func TestEarlyEnd(t *testing.T) {
	c := compiler(t)
	e := New([]*Expectation{compile(t, c, Source{Form: At, T: time.Hour, Expr: "true"})}, &cluster{}, Options{})
	e.Begin()
	if v := e.Finish(time.Minute, true)[0]; v.Outcome != Undecided || v.Reason != "the run ended at 1m0s" {
		t.Errorf("got %+v", v)
	}
}

func TestFailureTellsWhatItSaw(t *testing.T) {
	c := compiler(t)
	for expr, want := range map[string]string{
		`pod("default/web").status.phase == "Failed"`:                                     `pod("default/web").status.phase = "Running" | pod default/web`,
		`pods().all(p, p.status.phase == "Running")`:                                      `pods().all(p, p.status.phase == "Running") = false; p.status.phase of other/x = "Pending"; false of 2 pods = 1 (other/x) | pod other/x`,
		`events().filter(e, e.reason == "Started").size() == 2`:                           `events().filter(e, e.reason == "Started").size() = 1; true of 1 events = 1 (default/web.1) | pod default/web`,
		`restarts("web") > 5 || condition(node("worker-0"), "Ready").status == "Unknown"`: `restarts("web") = 2; condition(node("worker-0"), "Ready").status = "True" | pod default/web, node worker-0`,
	} {
		e := New([]*Expectation{compile(t, c, Source{Form: At, T: End, Expr: expr})}, sample(), Options{})
		e.Begin()
		v := e.Finish(0, false)[0]
		var parts, objs []string
		for _, x := range v.Values {
			parts = append(parts, x.Expr+" = "+x.Value)
		}
		for _, o := range v.Objects {
			objs = append(objs, string(o.Kind)+" "+objKey{o.Namespace, o.Name}.String())
		}
		if got := strings.Join(parts, "; ") + " | " + strings.Join(objs, ", "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", expr, got, want)
		}
	}
}

// TestFailureIsAboutItsCulprits: the objects of a failure are those that made it fail, and no
// others that the expression reads.
func TestFailureIsAboutItsCulprits(t *testing.T) {
	c, s := compiler(t), &cluster{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "redis"} {
		s.setPod(pod(name, v1.PodRunning), false)
		s.deployments = append(s.deployments, deployment("default", name, 3))
	}
	s.setPod(pod("redis", v1.PodPending), false)
	s.deployments[6] = deployment("default", "redis", 0)
	s.nodes = []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}
	const ready = "deployments().all(d, d.status.readyReplicas == d.spec.replicas)"
	for _, tt := range []struct {
		form       Form
		expr, want string
	}{
		{By, "pods().size() > 0 && " + ready, "deployment default/redis"},
		{By, ready + " && pods().all(p, p.status.phase == 'Running')", "deployment default/redis, pod default/redis"},
		{By, "pods().size() == 7 && nodes().size() == 1 && pod('a').status.phase == 'Failed'", "pod default/a"},
		{By, "pod('a').status.phase == 'Running' && (node('n1').spec.unschedulable || pod('b').status.phase == 'Failed')", "node n1, pod default/b"},
		{By, "pods().exists(p, p.metadata.name == 'redis' && p.status.phase == 'Running')", "pod default/redis"},
		{By, "pods().exists(p, p.metadata.name == 'gone' && p.status.phase == 'Running')", ""},
		{By, "!pods().exists(p, p.status.phase == 'Pending')", "pod default/redis"},
		{By, "pods().filter(p, p.status.phase == 'Running').size() == 7", "pod default/redis"},
		{By, "7 <= pods().filter(p, p.status.phase == 'Running').size()", "pod default/redis"},
		{By, "pods().filter(p, p.status.phase == 'Pending').size() < 1", "pod default/redis"},
		{By, "pods().filter(p, p.status.phase == 'Pending').size() == 0", "pod default/redis"},
		{By, "pods().size() == 8", ""},
		{By, "pods().all(p, pod(p.metadata.namespace + '/' + p.metadata.name).status.phase == 'Running')", "pod default/redis"},
		{By, "pods().size() > 0 ? " + ready + " : pod('a').status.phase == 'Failed'", "deployment default/redis"},
		{Never, "pods().size() > 0 && pods().exists(p, p.status.phase == 'Pending')", "pod default/a, pod default/b, pod default/c, pod default/d, pod default/e, pod default/redis"},
		{Never, "pods().filter(p, p.status.phase == 'Running').size() < 7", "pod default/redis"},
		{At, "pod('a').status.phase == 'Running' && logs('b', 'main').contains('hello')", "pod default/b"},
		{At, "metric('n1', 'x') > 1.0", "node n1"},
		{By, "events('b').exists(e, e.reason == 'Started')", "pod default/b"},
	} {
		e := New([]*Expectation{compile(t, c, Source{Form: tt.form, T: End, Until: End, Expr: tt.expr})}, s, Options{})
		e.Begin()
		v := e.Finish(0, false)[0]
		var objs []string
		for _, o := range v.Objects {
			objs = append(objs, string(o.Kind)+" "+objKey{o.Namespace, o.Name}.String())
		}
		if got := strings.Join(objs, ", "); got != tt.want || v.Outcome != Failed {
			t.Errorf("%s %s: %s, %v\n got %s\nwant %s", tt.form, tt.expr, v.Outcome, v.Values, got, tt.want)
		}
	}
}

// TestIncrementalEqualsNaive plays random histories both ways.
func TestIncrementalEqualsNaive(t *testing.T) {
	c := compiler(t)
	var xs []*Expectation
	for _, expr := range []string{
		`pods().all(p, p.status.phase == "Running")`,
		`pods().exists(p, p.status.phase == "Failed" && p.metadata.namespace == "a")`,
		`pods().filter(p, p.status.phase == "Running").size() > 4`,
		`pods("a").filter(p, p.status.phase == "Running").all(p, p.metadata.name != "p3")`,
		`pods().exists_one(p, p.status.phase == "Failed")`,
		`pods().size() > 5 && pods("a").size() < 3`,
		`pods().all(p, 10 / size(p.status.phase) > 0)`,
		`pods().filter(p, 10 / size(p.status.phase) > 0).exists(p, p.metadata.name == "p1")`,
		`pod("a/p1").status.phase == "Running" && !pods().exists(p, p.status.phase == "Failed")`,
		`pods().filter(p, p.status.phase == "Failed").map(p, p.metadata.name).size() > 2`,
		`transitions("a/p1").size() > 6`,
	} {
		for _, src := range []Source{{Form: By, T: 30 * time.Second}, {Form: Always, From: 5 * time.Second, Until: End}, {Form: Never, From: 2 * time.Second, Until: 40 * time.Second}, {Form: For, Span: 2 * time.Second, T: End}, {Form: At, T: 20 * time.Second}} {
			src.Expr = expr
			xs = append(xs, compile(t, c, src))
		}
	}
	phases := []string{"Pending", "Running", "Running", "Running", "Failed", ""}
	outcomes := map[string]int{}
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		var steps []step
		at := time.Duration(0)
		for range 60 {
			at += time.Duration(rnd.Intn(2000)) * time.Millisecond
			name := fmt.Sprintf("%s/p%d", []string{"a", "b"}[rnd.Intn(2)], rnd.Intn(4))
			if rnd.Intn(5) == 0 {
				steps = append(steps, step{at, "-" + name})
			} else {
				steps = append(steps, step{at, name + "=" + phases[rnd.Intn(len(phases))]})
			}
		}
		var got [2][]Verdict
		for i := range got {
			s := &cluster{}
			got[i] = play(New(xs, s, Options{Naive: i == 1}), s, steps, at+time.Second)
		}
		for i := range xs {
			a, b := got[0][i], got[1][i]
			outcomes[string(a.Form())+string(a.Outcome)]++
			if a.Outcome != b.Outcome || a.At != b.At || a.Reason != b.Reason {
				t.Fatalf("seed %d, %s %s: incremental %s %s %s, naive %s %s %s", seed, xs[i].Form, xs[i].Expr, a.Outcome, a.At, a.Reason, b.Outcome, b.At, b.Reason)
			}
		}
	}
	if len(outcomes) < 8 {
		t.Errorf("the histories are too much alike: %v", outcomes)
	}
}

func (v Verdict) Form() Form { return v.Expectation.Form }

func benchmark(b *testing.B, naive bool, n int) {
	c := compiler(b)
	x := compile(b, c, Source{Form: Always, Until: End, Expr: `pods().all(p, p.status.phase != "Failed")`})
	s := &cluster{}
	for i := range n {
		s.pods = append(s.pods, pod(fmt.Sprintf("p%06d", i), v1.PodRunning))
	}
	e := New([]*Expectation{x}, s, Options{Naive: naive})
	e.Begin()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p := s.pods[i%n]
		i++
		e.Changed(Change{Kind: KindPod, Old: p, New: p}, time.Second)
	}
	if e.runs[0].done {
		b.Fatal("it is decided")
	}
}

func BenchmarkChangeOf150000Pods(b *testing.B)      { benchmark(b, false, 150000) }
func BenchmarkChangeOf150000PodsNaive(b *testing.B) { benchmark(b, true, 150000) }

func BenchmarkNewCompiler(b *testing.B) {
	for b.Loop() {
		compiler(b)
	}
}

func BenchmarkCompile(b *testing.B) {
	c := compiler(b)
	for b.Loop() {
		compile(b, c, Source{Form: Always, Until: End, Expr: `pods().all(p, p.status.phase != "Failed")`})
	}
}
