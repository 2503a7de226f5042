package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// meterTest feeds a meter what the API would: each object's changes follow from
// the one before.
type meterTest struct {
	m    *meter
	last map[string]apiserver.Object
}

func newMeterTest() *meterTest {
	t := &meterTest{last: map[string]apiserver.Object{}}
	t.m = newMeter(func(ns, name string) *v1.Pod {
		p, _ := t.last["pod "+ns+"/"+name].(*v1.Pod)
		return p
	})
	return t
}

func (t *meterTest) put(sec float64, key string, o apiserver.Object) {
	c := apiserver.Change{Type: watch.Modified, Old: t.last[key], New: o, Verb: "patch"}
	if c.Old == nil {
		c.Type = watch.Added
	}
	t.last[key] = o
	t.m.change(&c, time.Duration(sec*float64(time.Second)))
}

func (t *meterTest) remove(sec float64, key string) {
	o := t.last[key]
	delete(t.last, key)
	t.m.change(&apiserver.Change{Type: watch.Deleted, Old: o, New: o, Verb: "delete"}, time.Duration(sec*float64(time.Second)))
}

type podOption func(*v1.Pod)

func ready(p *v1.Pod) {
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
}
func deleting(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func mirror(p *v1.Pod) {
	p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"}
}
func phase(ph v1.PodPhase, reason, message string) podOption {
	return func(p *v1.Pod) { p.Status.Phase, p.Status.Reason, p.Status.Message = ph, reason, message }
}
func disrupted(message string) podOption {
	return func(p *v1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet, Message: message})
	}
}
func restarted(counts ...int32) podOption {
	return func(p *v1.Pod) {
		for i, n := range counts {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: fmt.Sprint("c", i), RestartCount: n})
		}
	}
}

func (t *meterTest) pod(sec float64, name, uid string, opts ...podOption) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)}, Spec: v1.PodSpec{NodeName: "n"}, Status: v1.PodStatus{QOSClass: v1.PodQOSBurstable}}
	for _, o := range opts {
		o(p)
	}
	t.put(sec, "pod default/"+name, p)
}

func (t *meterTest) event(sec float64, name, reason, message, kind, pod, uid string, count int32) {
	t.put(sec, "event "+name, &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Reason: reason, Message: message, Count: count,
		InvolvedObject: v1.ObjectReference{Kind: kind, Namespace: "default", Name: pod, UID: types.UID(uid)}, Source: v1.EventSource{Host: "n"},
	})
}

func (t *meterTest) node(sec float64, conditions ...v1.NodeConditionType) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, c := range conditions {
		n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: c, Status: v1.ConditionTrue})
	}
	t.put(sec, "node n", n)
}

// text is what the meter tells at 100 s.
func (t *meterTest) text() string {
	var pods []*v1.Pod
	for _, o := range t.last {
		if p, ok := o.(*v1.Pod); ok {
			pods = append(pods, p)
		}
	}
	m := t.m.metrics(pods, 100*time.Second)
	var out []string
	for _, l := range []struct {
		what string
		ends []PodEnd
	}{{"evicted", m.Evictions}, {"rejected", m.Rejections}, {"preempted", m.Preemptions}, {"shut down", m.Shutdowns}} {
		for _, e := range l.ends {
			out = append(out, fmt.Sprintf("%s %v %s %s %s", l.what, e.At.Seconds(), e.Pod, e.QoS, e.Reason))
		}
	}
	if m.SystemOOMs > 0 {
		out = append(out, fmt.Sprint("system OOMs ", m.SystemOOMs))
	}
	for _, r := range m.Restarts {
		out = append(out, fmt.Sprintf("restarts %s %d", r.Pod, r.Restarts))
	}
	for _, p := range m.Pressure {
		out = append(out, fmt.Sprintf("%s %s %dx%v", p.Node, p.Condition, p.Times, p.For))
	}
	for _, a := range m.Availability {
		out = append(out, fmt.Sprintf("%s %v/%v", a.Name, a.Ready.Seconds(), a.Asked.Seconds()))
	}
	return strings.Join(out, "; ")
}

const lowMemory = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. "

func TestMetrics(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*meterTest)
		want string // what is told at 100 s
	}{
		{"ready half of the time", func(t *meterTest) { t.pod(0, "a", "1"); t.pod(50, "a", "1", ready) }, "default/a 50/100"},
		{"ready comes and goes", func(t *meterTest) {
			t.pod(10, "a", "1")
			t.pod(20, "a", "1", ready)
			t.pod(25, "a", "1", ready)
			t.pod(30, "a", "1")
			t.pod(90, "a", "1", ready)
		}, "default/a 20/90"},
		{"asked for until it is to be deleted", func(t *meterTest) {
			t.pod(0, "a", "1", ready)
			t.pod(40, "a", "1", ready, deleting)
			t.remove(70, "pod default/a")
		}, "default/a 40/40"},
		{"removed at once", func(t *meterTest) { t.pod(0, "a", "1", ready); t.remove(30, "pod default/a") }, "default/a 30/30"},
		{"two pods of one name", func(t *meterTest) {
			t.pod(0, "a", "1", ready)
			t.remove(30, "pod default/a")
			t.pod(50, "a", "2")
			t.pod(60, "a", "2", ready)
		}, "default/a 70/80"},
		{"a job is asked for until it has succeeded", func(t *meterTest) {
			t.pod(0, "a", "1", ready)
			t.pod(30, "a", "1", phase(v1.PodSucceeded, "", ""))
		}, "default/a 30/30"},
		{"one that failed is still asked for", func(t *meterTest) {
			t.pod(0, "a", "1", ready)
			t.pod(30, "a", "1", phase(v1.PodFailed, "", ""))
		}, "default/a 30/100"},
		{"restarts of all containers, and none twice", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(1, "a", "1", restarted(1, 0))
			t.pod(2, "a", "1", restarted(1, 2))
			t.pod(3, "a", "1", restarted(1, 2))
			t.remove(4, "pod default/a")
			t.pod(5, "a", "2")
			t.pod(6, "a", "2", restarted(1, 0))
		}, "restarts default/a 4; default/a 0/99"},
		{"a count that falls is no restart", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(1, "a", "1", restarted(3))
			t.pod(2, "a", "1", restarted(2))
			t.pod(3, "a", "1", restarted(3))
		}, "restarts default/a 4; default/a 0/100"},
		{"evicted, told by event and status", func(t *meterTest) {
			t.pod(0, "a", "1", ready)
			t.event(10, "e", "Evicted", lowMemory, "Pod", "a", "1", 1)
			t.pod(11, "a", "1", phase(v1.PodFailed, "Evicted", lowMemory))
			t.pod(12, "a", "1", phase(v1.PodFailed, "Evicted", lowMemory))
		}, "evicted 10 default/a Burstable memory; default/a 11/100"},
		{"evicted, told by the status only", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(11, "a", "1", phase(v1.PodFailed, "Evicted", "Usage of EmptyDir volume \"d\" exceeds the limit \"5Mi\". "))
		}, "evicted 11 default/a Burstable limit; default/a 0/100"},
		{"evicted and succeeded", func(t *meterTest) {
			t.pod(0, "a", "1", ready)
			t.event(10, "e", "Evicted", lowMemory, "Pod", "a", "1", 1)
			t.pod(20, "a", "1", phase(v1.PodSucceeded, "", ""))
		}, "evicted 10 default/a Burstable memory; default/a 20/100"},
		{"an event that comes when the pod is gone", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(11, "a", "1", phase(v1.PodFailed, "Evicted", lowMemory))
			t.remove(12, "pod default/a")
			t.event(13, "e", "Evicted", lowMemory, "Pod", "a", "1", 1)
		}, "evicted 11 default/a Burstable memory; default/a 0/12"},
		{"evicted again under the same name", func(t *meterTest) {
			for i := range 2 {
				uid, at := fmt.Sprint(i), float64(10*i)
				t.pod(at, "a", uid)
				t.pod(at+1, "a", uid, phase(v1.PodFailed, "Evicted", lowMemory))
				t.remove(at+2, "pod default/a")
			}
		}, "evicted 1 default/a Burstable memory; evicted 11 default/a Burstable memory; default/a 0/4"},
		{"a static pod, told of by two UIDs", func(t *meterTest) {
			t.pod(0, "a", "1", mirror)
			t.event(10, "e", "Evicted", lowMemory, "Pod", "a", "hash", 1)
			t.pod(11, "a", "1", mirror, phase(v1.PodFailed, "Evicted", lowMemory))
		}, "evicted 10 default/a Burstable memory; default/a 0/100"},
		{"not let in by a node under pressure", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.event(1, "e", "Evicted", "The node had condition: [MemoryPressure]. ", "Pod", "a", "1", 1)
			t.pod(2, "a", "1", phase(v1.PodFailed, "Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. "))
		}, "rejected 2 default/a Burstable Evicted; default/a 0/100"},
		{"no room", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(2, "a", "1", phase(v1.PodFailed, "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu, requested: 1"))
		}, "rejected 2 default/a Burstable OutOfcpu; default/a 0/100"},
		{"preempted", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(2, "a", "1", phase(v1.PodFailed, "Preempting", "Preempted in order to admit critical pod"))
		}, "preempted 2 default/a Burstable Preempting; default/a 0/100"},
		{"shut down", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(2, "a", "1", phase(v1.PodFailed, "Terminated", "Pod was terminated in response to imminent node shutdown."))
		}, "shut down 2 default/a Burstable Terminated; default/a 0/100"},
		{"preempted, ended well", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(2, "a", "1", phase(v1.PodSucceeded, "", ""), disrupted("Pod was preempted by Kubelet to accommodate a critical pod."))
		}, "preempted 2 default/a Burstable Preempting; default/a 0/100"},
		{"shut down, ended well", func(t *meterTest) {
			t.pod(0, "a", "1")
			t.pod(2, "a", "1", phase(v1.PodSucceeded, "", ""), disrupted("Pod was terminated in response to imminent node shutdown."))
			t.pod(3, "a", "1", phase(v1.PodSucceeded, "", ""), disrupted("Pod was terminated in response to imminent node shutdown."))
		}, "shut down 2 default/a Burstable Terminated; default/a 0/100"},
		{"pressure twice, the second lasting", func(t *meterTest) {
			t.node(0, v1.NodeReady)
			t.node(10, v1.NodeReady, v1.NodeMemoryPressure)
			t.node(15, v1.NodeReady, v1.NodeMemoryPressure, v1.NodeDiskPressure)
			t.node(30, v1.NodeReady, v1.NodeDiskPressure)
			t.node(95, v1.NodeReady, v1.NodeMemoryPressure)
		}, "n DiskPressure 1x1m20s; n MemoryPressure 2x25s"},
		{"not ready counts from the first time that it was", func(t *meterTest) {
			t.node(0)
			t.node(20, v1.NodeReady)
			t.node(50)
			t.node(60, v1.NodeReady)
		}, "n NotReady 1x10s"},
		{"a node that is removed", func(t *meterTest) {
			t.node(0, v1.NodeReady, v1.NodePIDPressure)
			t.remove(40, "node n")
		}, "n PIDPressure 1x40s"},
		{"SystemOOM events that are counted up", func(t *meterTest) {
			t.event(1, "e", "SystemOOM", "System OOM encountered, victim process: a, pid: 1", "Node", "n", "n", 1)
			t.event(2, "e", "SystemOOM", "System OOM encountered, victim process: a, pid: 1", "Node", "n", "n", 3)
			t.event(3, "f", "SystemOOM", "System OOM encountered, victim process: a, pid: 2", "Node", "n", "n", 1)
		}, "system OOMs 4"},
	} {
		x := newMeterTest()
		tt.do(x)
		if got := x.text(); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestMetricsOfRecords(t *testing.T) {
	m := newMeter(nil)
	start := time.Unix(100, 0)
	rec := func(kind trace.Kind, verb, reason string) {
		m.record(&trace.Record{At: start.Add(2 * time.Second).UnixNano(), Node: "n", Kind: kind, Object: "container default/a/main", Verb: verb, Fields: []trace.Field{trace.Str("reason", reason)}}, start)
	}
	rec(trace.KindProcess, "exit", "OOMKilled")
	rec(trace.KindProcess, "exit", "Error")
	rec(trace.KindProcess, "start", "")
	rec(trace.KindEvent, "exit", "OOMKilled")
	if got := fmt.Sprint(m.out.OOMKills); got != "[{2s default/a main n }]" {
		t.Errorf("got %s", got)
	}
}

// TestAvailabilityOfWorkloads: what counts are the replicas that a workload wants, whatever its pods
// are called and however they ended.
func TestAvailabilityOfWorkloads(t *testing.T) {
	m := newMeterTest()
	owned := func(kind, name string) podOption {
		return func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
		}
	}
	deployment := func(sec float64, replicas int32) {
		m.put(sec, "deployment", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}})
	}
	deployment(0, 1)
	m.put(0, "rs", &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: new(true)}},
	}})
	web := owned("ReplicaSet", "web-1")
	// The first is evicted at 300 s and stays Failed; the second takes its place within 6 s.
	m.pod(0, "web-1-a", "a", web)
	m.pod(0, "web-1-a", "a", web, ready)
	m.pod(300, "web-1-a", "a", web, phase(v1.PodFailed, "Evicted", "The node was low on resource: memory. "))
	m.pod(300, "web-1-b", "b", web)
	m.pod(306, "web-1-b", "b", web, ready)
	// More than is wanted counts for no more.
	m.pod(400, "web-1-c", "c", web)
	m.pod(400, "web-1-c", "c", web, ready)
	m.pod(500, "web-1-c", "c", web, ready, deleting)
	m.remove(501, "pod default/web-1-c")
	m.put(0, "job", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sums"}, Spec: batchv1.JobSpec{Completions: new(int32(1))}})
	m.pod(0, "sums-a", "d", owned("Job", "sums"))
	m.pod(10, "sums-a", "d", owned("Job", "sums"), ready)
	m.put(20, "job", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sums"}, Spec: batchv1.JobSpec{Completions: new(int32(1))}, Status: batchv1.JobStatus{Succeeded: 1}})
	got := m.m.metrics(nil, 600*time.Second)
	var lines []string
	for _, a := range got.Availability {
		lines = append(lines, fmt.Sprintf("%s %v/%v", a.Workload, a.Ready.Seconds(), a.Asked.Seconds()))
	}
	if want := "Job default/sums 10/20, Deployment default/web 594/600"; strings.Join(lines, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(lines, ", "), want)
	}
	if len(got.Evictions) != 1 || got.Evictions[0].Workload.String() != "Deployment default/web" {
		t.Errorf("evictions: %+v", got.Evictions)
	}
	// It wants none from 600 s on.
	deployment(600, 0)
	if a := m.m.metrics(nil, 700*time.Second).Availability[1]; a.Ready != 594*time.Second || a.Asked != 600*time.Second {
		t.Errorf("then %v/%v", a.Ready, a.Asked)
	}
}
