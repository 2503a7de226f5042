package job

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(s int) metav1.Time { return metav1.Time{Time: t0.Add(time.Duration(s) * time.Second)} }

// ended is a container that ended s seconds after t0; one with s < 0 has not been started.
func ended(name string, s int) v1.ContainerStatus {
	st := v1.ContainerStatus{Name: name}
	if s < 0 {
		st.State.Waiting = &v1.ContainerStateWaiting{Reason: "PodInitializing"}
		return st
	}
	st.State.Terminated = &v1.ContainerStateTerminated{FinishedAt: at(s)}
	return st
}

// pod is a pod that has not been ready from its creation on.
func pod(sidecars, containers []v1.ContainerStatus) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}}
	always := v1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []v1.Container{{Name: "once"}, {Name: "sidecar", RestartPolicy: &always}}
	p.Status = v1.PodStatus{InitContainerStatuses: sidecars, ContainerStatuses: containers,
		Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: at(1)}}}
	return p
}

// TestFinishedAt holds when a pod ended to upstream's getFinishedTime.
func TestFinishedAt(t *testing.T) {
	grace := int64(30)
	deleted := &v1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0), DeletionTimestamp: new(at(50)), DeletionGracePeriodSeconds: &grace}}
	for _, c := range []struct {
		name string
		pod  *v1.Pod
		want int
	}{
		{"the last container", pod(nil, []v1.ContainerStatus{ended("a", 10), ended("b", 9)}), 10},
		{"a sidecar ends last", pod([]v1.ContainerStatus{ended("sidecar", 12)}, []v1.ContainerStatus{ended("a", 10)}), 12},
		{"an init container that runs once does not matter", pod([]v1.ContainerStatus{ended("once", 12)}, []v1.ContainerStatus{ended("a", 10)}), 10},
		{"a sidecar that runs", pod([]v1.ContainerStatus{ended("sidecar", -1)}, []v1.ContainerStatus{ended("a", 10)}), 1},
		{"containers were never started, the sidecar was", pod([]v1.ContainerStatus{ended("once", 6), ended("sidecar", 8)}, []v1.ContainerStatus{ended("a", -1)}), 8},
		{"nothing was started", pod(nil, []v1.ContainerStatus{ended("a", -1)}), 1},
		{"deleted before it had a status", deleted, 20},
		{"nothing to go by", &v1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(3)}}, 3},
	} {
		if got := finishedAt(c.pod); !got.Equal(at(c.want).Time) {
			t.Errorf("%s: %v, want %v", c.name, got, at(c.want))
		}
	}
}

// TestFailures holds what counts for the back-off to upstream's newBackoffRecord.
func TestFailures(t *testing.T) {
	pods := func(list ...int) (out []*v1.Pod) {
		for _, s := range list {
			out = append(out, pod(nil, []v1.ContainerStatus{ended("a", s)}))
		}
		return out
	}
	for _, c := range []struct {
		name              string
		before            failures
		succeeded, failed []*v1.Pod
		n, last           int
	}{
		{name: "the first", failed: pods(10, 12), n: 2, last: 12},
		{name: "more", before: failures{2, t0.Add(12 * time.Second)}, failed: pods(20), n: 3, last: 20},
		{name: "one that ended before those that were seen", before: failures{2, t0.Add(12 * time.Second)}, failed: pods(5), n: 3, last: 5},
		{name: "nothing new", before: failures{2, t0.Add(12 * time.Second)}, n: 2, last: 12},
		{name: "a success", before: failures{2, t0.Add(12 * time.Second)}, succeeded: pods(20), n: 0, last: -1},
		{name: "a success and failures on both sides of it", before: failures{2, t0.Add(12 * time.Second)}, succeeded: pods(20), failed: pods(19, 21, 22), n: 2, last: 22},
	} {
		got := c.before.with(c.succeeded, c.failed)
		want := time.Time{}
		if c.last >= 0 {
			want = at(c.last).Time
		}
		if got.n != c.n || !got.last.Equal(want) {
			t.Errorf("%s: %d, the last at %v; want %d at %v", c.name, got.n, got.last, c.n, want)
		}
	}
}

// TestLeastActive holds which of two running pods is deleted first to upstream's ActivePods.
func TestLeastActive(t *testing.T) {
	running := func(created int, sidecar int32, restarts ...int32) *v1.Pod {
		p := pod([]v1.ContainerStatus{{Name: "once", RestartCount: 9}, {Name: "sidecar", RestartCount: sidecar}}, nil)
		p.CreationTimestamp, p.Spec.NodeName, p.Status.Phase = at(created), "n", v1.PodRunning
		for _, n := range restarts {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{RestartCount: n})
		}
		return p
	}
	for _, c := range []struct {
		name  string
		first *v1.Pod
		then  *v1.Pod
	}{
		{"most restarts of one container, not of all", running(0, 0, 3, 0), running(5, 0, 2, 2)},
		{"a sidecar's come after the containers'", running(0, 0, 2), running(5, 9, 1)},
		{"then the sidecar's", running(0, 1, 2), running(5, 0, 2)},
		{"then the younger", running(5, 1, 2), running(0, 1, 2)},
	} {
		if leastActive(c.first, c.then) >= 0 || leastActive(c.then, c.first) <= 0 {
			t.Errorf("%s: the other one", c.name)
		}
	}
}
