package kinds

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodState(t *testing.T) {
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	always := v1.ContainerRestartPolicyAlways
	waits := func(why string) v1.ContainerState {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: why}}
	}
	ended := func(code int32, why string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: why}}
	}
	runs := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	for _, tc := range []struct {
		name                    string
		pod                     v1.Pod
		ready, reason, restarts string
	}{
		{"new", v1.Pod{Status: v1.PodStatus{Phase: v1.PodPending}}, "0/1", "Pending", "0"},
		{"init", v1.Pod{Status: v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{{State: ended(0, "Completed")}, {State: waits("PodInitializing")}}}}, "0/1", "Init:1/0", "0"},
		{"init fails", v1.Pod{Status: v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{{RestartCount: 2, State: ended(3, "")}}}}, "0/1", "Init:ExitCode:3", "2"},
		{"sidecar", v1.Pod{
			Spec: v1.PodSpec{InitContainers: []v1.Container{{Name: "s", RestartPolicy: &always}}},
			Status: v1.PodStatus{
				InitContainerStatuses: []v1.ContainerStatus{{Name: "s", Started: new(true), Ready: true, RestartCount: 1, State: runs}},
				ContainerStatuses:     []v1.ContainerStatus{{Ready: true, State: runs, RestartCount: 2}},
				Phase:                 v1.PodRunning,
			}}, "2/2", "Running", "3"},
		{"crashed before", v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
			RestartCount: 1, State: waits("CrashLoopBackOff"),
			LastTerminationState: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now.Add(-5 * time.Minute))}},
		}}}}, "0/1", "CrashLoopBackOff", "1 (5m ago)"},
		{"one of two ended", v1.Pod{Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{State: ended(0, "Completed")}, {Ready: true, State: runs}}}}, "1/1", "NotReady", "0"},
		{"lost", v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}, Status: v1.PodStatus{Reason: "NodeLost"}}, "0/1", "Unknown", "0"},
		{"goes", v1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}, Status: v1.PodStatus{Phase: v1.PodRunning}}, "0/1", "Terminating", "0"},
	} {
		tc.pod.Spec.Containers = []v1.Container{{Name: "c"}}
		columns := podTable()
		for i, want := range map[int]string{1: tc.ready, 2: tc.reason, 3: tc.restarts} {
			if got := columns[i].Cell(&tc.pod, now); got != want {
				t.Errorf("%s: %s: got %v, want %s", tc.name, columns[i].Name, got, want)
			}
		}
	}
}
