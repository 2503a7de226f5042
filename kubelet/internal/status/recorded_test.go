package status

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// step is what the runtime and the reason cache say, and what the recording of
// the real kubelet shows then.
type step struct {
	entries []string
	sandbox bool
	reason  string
	mod     func(*Input)
	want    string
}

// recorded plays steps and compares: phase, PodReadyToStartContainers,
// Initialized, Ready, and the first container.
func recorded(t *testing.T, pod *v1.Pod, steps []step) {
	t.Helper()
	m, _, _ := newManager(t)
	for i, st := range steps {
		old, _ := m.GetPodStatus(pod.UID)
		mods := []func(*Input){func(in *Input) { in.Old = old }}
		if st.reason != "" {
			mods = append(mods, reasons(map[string]string{"main": st.reason}))
		}
		if st.mod != nil {
			mods = append(mods, st.mod)
		}
		r := runtimeOf(st.sandbox, st.entries...)
		if n := len(st.entries); n > 0 {
			for j := range r.ContainerStatuses { // attempts count up
				r.ContainerStatuses[j].ID += fmt.Sprint(n - j)
				r.ContainerStatuses[j].RestartCount = int32(n - 1 - j)
			}
		}
		m.SetPodStatus(pod, generate(pod, r, mods...))
		s, _ := m.GetPodStatus(pod.UID)
		c := &s.ContainerStatuses[0]
		got := fmt.Sprintf("%s | %s | %s | %s | %s x%d ready %v started %v", s.Phase, conditionText(s, v1.PodReadyToStartContainers),
			conditionText(s, v1.PodInitialized), conditionText(s, v1.PodReady), describe(c), c.RestartCount, c.Ready, *c.Started)
		if got != st.want {
			t.Errorf("step %d:\n got %s\nwant %s", i, got, st.want)
		}
	}
}

const unreadyMain = "False ContainersNotReady containers with unready status: [main]"

// TestRecordedCrashLoop is the beginning of the recording crashloop-always.
func TestRecordedCrashLoop(t *testing.T) {
	recorded(t, testPod(v1.RestartPolicyAlways, "main"), []step{
		{nil, false, "", nil, "Pending | False | True | " + unreadyMain + " | main Waiting/ContainerCreating x0 ready false started false"},
		{nil, true, "", nil, "Pending | True | True | " + unreadyMain + " | main Waiting/ContainerCreating x0 ready false started false"},
		{[]string{"main running"}, true, "", nil, "Running | True | True | True | main Running x0 ready true started true"},
		{[]string{"main exited 1"}, true, "", nil, "Running | True | True | " + unreadyMain + " | main Terminated/Error x0 ready false started false"},
		{[]string{"main running", "main exited 1"}, true, "", nil, "Running | True | True | True | main Running last Terminated/Error x1 ready true started true"},
		{[]string{"main exited 1", "main exited 1"}, true, "", nil, "Running | True | True | " + unreadyMain + " | main Terminated/Error last Terminated/Error x1 ready false started false"},
		{[]string{"main exited 1", "main exited 1"}, true, "CrashLoopBackOff", nil, "Running | True | True | " + unreadyMain + " | main Waiting/CrashLoopBackOff last Terminated/Error x1 ready false started false"},
	})
}

// TestRecordedCompletion is the recording run-to-completion, and its end once
// the sandbox has stopped.
func TestRecordedCompletion(t *testing.T) {
	stopped := func(in *Input) {
		in.Terminal = true
		in.Runtime.SandboxStatuses = []*runtimeapi.PodSandboxStatus{{Id: "sb", State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}}
	}
	recorded(t, testPod(v1.RestartPolicyNever, "main"), []step{
		{nil, false, "", nil, "Pending | False | True | " + unreadyMain + " | main Waiting/ContainerCreating x0 ready false started false"},
		{[]string{"main running"}, true, "", nil, "Running | True | True | True | main Running x0 ready true started true"},
		{[]string{"main exited 0"}, true, "", nil, "Succeeded | True | True PodCompleted | False PodCompleted | main Terminated/Completed x0 ready false started false"},
		{[]string{"main exited 0"}, true, "", stopped, "Succeeded | False | True PodCompleted | False PodCompleted | main Terminated/Completed x0 ready false started false"},
	})
}

// TestLongTerminationMessage cuts a message to the pod's share.
func TestLongTerminationMessage(t *testing.T) {
	m, _, _ := newManager(t)
	pod := testPod(v1.RestartPolicyNever, "a", "b", "c")
	r := runtimeOf(true, "a exited 1")
	r.ContainerStatuses[0].Message = string(make([]byte, 5000))
	m.SetPodStatus(pod, generate(pod, r))
	s, _ := m.GetPodStatus(pod.UID)
	if n := len(s.ContainerStatuses[0].State.Terminated.Message); n != 4096 {
		t.Errorf("%d bytes", n)
	}
	if len(r.ContainerStatuses[0].Message) != 5000 {
		t.Error("the runtime's status was written to")
	}
}
