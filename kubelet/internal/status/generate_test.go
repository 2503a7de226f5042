package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

var (
	t0     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	always = v1.ContainerRestartPolicyAlways
	never  = v1.ContainerRestartPolicyNever
)

func testPod(policy v1.RestartPolicy, names ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "uid-p", Generation: 1}}
	p.Spec.RestartPolicy = policy
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, "i:"):
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: n[2:], Image: "img"})
		case strings.HasPrefix(n, "s:"):
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: n[2:], Image: "img", RestartPolicy: &always})
		default:
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: n, Image: "img"})
		}
	}
	p.Status.QOSClass = v1.PodQOSBestEffort
	return p
}

// runtimeOf parses "name state[ code]" entries, newest first: running, exited
// N, created, unknown.
func runtimeOf(sandbox bool, entries ...string) *kubecontainer.PodStatus {
	r := &kubecontainer.PodStatus{ID: "uid-p"}
	if sandbox {
		r.SandboxStatuses = []*runtimeapi.PodSandboxStatus{{
			Id: "sb", State: runtimeapi.PodSandboxState_SANDBOX_READY,
			Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"},
		}}
		r.IPs = []string{"10.0.0.1"}
	}
	for i, e := range entries {
		f := strings.Fields(e)
		s := &kubecontainer.Status{
			ID: "id-" + f[0] + "-" + f[1], Name: f[0], Image: "img", ImageRef: "ref", PodSandboxID: "sb",
			CreatedAt: t0.Add(time.Duration(-i) * time.Second), StartedAt: t0.Add(time.Duration(1500-i) * time.Millisecond),
		}
		switch f[1] {
		case "running":
			s.State = kubecontainer.StateRunning
		case "created":
			s.State = kubecontainer.StateCreated
		case "unknown":
			s.State = kubecontainer.StateUnknown
		case "exited":
			s.State = kubecontainer.StateExited
			s.ExitCode = int32(f[2][0] - '0')
			s.Reason = "Error"
			if s.ExitCode == 0 {
				s.Reason = "Completed"
			}
			s.FinishedAt = s.StartedAt.Add(time.Second)
		}
		r.ContainerStatuses = append(r.ContainerStatuses, s)
	}
	return r
}

func generate(pod *v1.Pod, r *kubecontainer.PodStatus, mod ...func(*Input)) v1.PodStatus {
	in := Input{Env: &Env{RuntimeName: "containerd"}, Pod: pod, Runtime: r, Now: t0}
	for _, f := range mod {
		f(&in)
	}
	return GenerateAPIPodStatus(&in)
}

func terminal(in *Input) { in.Terminal = true }

func reasons(byName map[string]string) func(*Input) {
	return func(in *Input) {
		env := *in.Env
		env.Reason = func(_ types.UID, c string) (error, string, bool) {
			r, ok := byName[c]
			return errors.New(r), "msg " + r, ok
		}
		in.Env = &env
	}
}

func describe(s *v1.ContainerStatus) string {
	one := func(st v1.ContainerState) string {
		switch {
		case st.Running != nil:
			return "Running"
		case st.Terminated != nil:
			return "Terminated/" + st.Terminated.Reason
		case st.Waiting != nil:
			return "Waiting/" + st.Waiting.Reason
		}
		return ""
	}
	out := s.Name + " " + one(s.State)
	if l := one(s.LastTerminationState); l != "" {
		out += " last " + l
	}
	return out
}

// TestPhase has a row for each rule of the phase and its tests of containers.
func TestPhase(t *testing.T) {
	rows := []struct {
		name   string
		policy v1.RestartPolicy
		names  string
		state  string // runtime entries, comma separated
		mod    []func(*Input)
		want   v1.PodPhase
	}{
		{"new", "Always", "a", "", nil, "Pending"},
		{"running", "Always", "a", "a running", nil, "Running"},
		{"created only", "Always", "a", "a created", nil, "Pending"},
		{"unknown state", "Always", "a", "a unknown", nil, "Pending"},
		{"one never started", "Always", "a,b", "a running", nil, "Pending"},
		{"all exited 0 never", "Never", "a,b", "a exited 0,b exited 0", nil, "Succeeded"},
		{"one exited 1 never", "Never", "a,b", "a exited 0,b exited 1", nil, "Failed"},
		{"one of two exited never", "Never", "a,b", "a exited 1,b running", nil, "Running"},
		{"exited 1 onfailure", "OnFailure", "a", "a exited 1", nil, "Running"},
		{"exited 0 onfailure", "OnFailure", "a", "a exited 0", nil, "Succeeded"},
		{"exited 0 and 1 onfailure", "OnFailure", "a,b", "a exited 0,b exited 1", nil, "Running"},
		{"exited 0 always", "Always", "a", "a exited 0", nil, "Running"},
		{"exited 0 always, terminal", "Always", "a", "a exited 0", []func(*Input){terminal}, "Succeeded"},
		{"exited 1 always, terminal", "Always", "a", "a exited 1", []func(*Input){terminal}, "Failed"},
		{"never ran, terminal", "Always", "a", "", []func(*Input){terminal}, "Pending"},
		{"crash loop beside running", "Always", "a,b", "a exited 1,b running", []func(*Input){reasons(map[string]string{"a": "CrashLoopBackOff"})}, "Running"},
		{"crash loop alone", "Always", "a", "a exited 1", []func(*Input){reasons(map[string]string{"a": "CrashLoopBackOff"})}, "Running"},
		{"image pull beside running", "Always", "a,b", "a running", []func(*Input){reasons(map[string]string{"b": "ErrImagePull"})}, "Pending"},
		{"init running", "Always", "i:i,a", "i running", nil, "Pending"},
		{"init failed never", "Never", "i:i,a", "i exited 1", nil, "Failed"},
		{"init failed always", "Always", "i:i,a", "i exited 1", nil, "Pending"},
		{"init failed onfailure, waits", "OnFailure", "i:i,a", "i exited 1", []func(*Input){reasons(map[string]string{"i": "CrashLoopBackOff"})}, "Pending"},
		{"second init missing", "Always", "i:i,i:j,a", "i exited 0", nil, "Pending"},
		{"init done, running", "Always", "i:i,a", "i exited 0,a running", nil, "Running"},
		{"sidecar starts", "Always", "s:s,a", "s running", nil, "Pending"},
		{"sidecar and main run", "Always", "s:s,a", "s running,a running", nil, "Running"},
		{"sidecar runs, main done", "Never", "s:s,a", "s running,a exited 0", nil, "Running"},
		{"sidecar done, main done", "Never", "s:s,a", "s exited 1,a exited 0", nil, "Succeeded"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			pod := testPod(row.policy, strings.Split(row.names, ",")...)
			var entries []string
			if row.state != "" {
				entries = strings.Split(row.state, ",")
			}
			s := generate(pod, runtimeOf(true, entries...), row.mod...)
			if s.Phase != row.want {
				t.Errorf("phase %s, want %s", s.Phase, row.want)
			}
		})
	}
}

// prevStatus makes an old status of one container "a".
func prevStatus(state, last v1.ContainerState, restarts int32) func(*Input) {
	return func(in *Input) {
		in.Old = &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
			Name: "a", Image: "img", ContainerID: "containerd://old", State: state, LastTerminationState: last, RestartCount: restarts}}}
	}
}

func waitingPrev(r string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: r}}
}

func TestContainerStatus(t *testing.T) {
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: t0}}}
	ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", ContainerID: "containerd://old"}}
	none := v1.ContainerState{}
	deleted := func(in *Input) { p := *in.Pod; p.DeletionTimestamp = &metav1.Time{Time: t0}; in.Pod = &p }
	rows := []struct {
		name     string
		runtime  string
		mod      []func(*Input)
		want     string
		restarts int32
	}{
		{"none", "", nil, "a Waiting/ContainerCreating", 0},
		{"gone, prev terminated", "", []func(*Input){prevStatus(ended, none, 2)}, "a Terminated/Error", 2},
		{"gone, prev waiting", "", []func(*Input){prevStatus(waitingPrev("CrashLoopBackOff"), ended, 2)}, "a Waiting/ContainerCreating last Terminated/Error", 2},
		{"gone, prev running", "", []func(*Input){prevStatus(running, none, 2)}, "a Waiting/ContainerCreating last Terminated/ContainerStatusUnknown", 3},
		{"gone, prev running, deleted", "", []func(*Input){prevStatus(running, none, 2), deleted}, "a Waiting/ContainerCreating last Terminated/ContainerStatusUnknown", 2},
		{"gone, prev running with last", "", []func(*Input){prevStatus(running, ended, 2)}, "a Waiting/ContainerCreating last Terminated/Error", 2},
		{"running", "a running", nil, "a Running", 0},
		{"created", "a created", nil, "a Waiting/", 0},
		{"exited", "a exited 1", nil, "a Terminated/Error", 0},
		{"unknown", "a unknown", nil, "a Waiting/", 0},
		{"unknown, prev running", "a unknown", []func(*Input){prevStatus(running, none, 2)}, "a Terminated/ContainerStatusUnknown", 3},
		{"two", "a running,a exited 1", nil, "a Running last Terminated/Error", 0},
		{"running, prev terminated with the same count", "a running", []func(*Input){prevStatus(ended, none, 2)}, "a Running last Terminated/Error", 3},
		{"never below prev", "a running", []func(*Input){prevStatus(running, ended, 4)}, "a Running last Terminated/Error", 4},
		{"cannot start", "", []func(*Input){reasons(map[string]string{"a": "ErrImagePull"})}, "a Waiting/ErrImagePull", 0},
		{"back-off", "a exited 1", []func(*Input){reasons(map[string]string{"a": "CrashLoopBackOff"})}, "a Waiting/CrashLoopBackOff last Terminated/Error", 0},
		{"stale reason of a running one", "a running", []func(*Input){reasons(map[string]string{"a": "CrashLoopBackOff"})}, "a Running", 0},
		{"stale reason, deleted", "a exited 1", []func(*Input){reasons(map[string]string{"a": "CrashLoopBackOff"}), deleted}, "a Terminated/Error", 0},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var entries []string
			if row.runtime != "" {
				entries = strings.Split(row.runtime, ",")
			}
			s := generate(testPod(v1.RestartPolicyAlways, "a"), runtimeOf(true, entries...), row.mod...)
			got := &s.ContainerStatuses[0]
			if d := describe(got); d != row.want || got.RestartCount != row.restarts {
				t.Errorf("%s, restarts %d; want %s, %d", d, got.RestartCount, row.want, row.restarts)
			}
			if got.State.Running == nil && got.Ready {
				t.Error("ready, not running")
			}
			if got.Started == nil || *got.Started != (got.State.Running != nil) {
				t.Errorf("started %v", got.Started)
			}
		})
	}
}

func TestInitContainerWithoutRuntimeStatus(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, "i:i", "a")
	s := generate(pod, runtimeOf(true, "a running"))
	got := s.InitContainerStatuses[0]
	if describe(&got) != "i Terminated/Completed" || got.State.Terminated.Message != messageInitDone || !got.Ready {
		t.Errorf("%s ready %v", describe(&got), got.Ready)
	}
	if s.Phase != v1.PodRunning {
		t.Errorf("phase %s", s.Phase)
	}
}

func conditionText(s *v1.PodStatus, t v1.PodConditionType) string {
	c := FindCondition(s.Conditions, t)
	if c == nil {
		return "none"
	}
	return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
}

func TestConditions(t *testing.T) {
	gates := func(in *Input) {
		p := *in.Pod
		p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "x/a"}, {ConditionType: "x/b"}}
		p.Status.Conditions = []v1.PodCondition{{Type: "x/a", Status: v1.ConditionFalse}}
		in.Pod = &p
	}
	wasInitialized := func(in *Input) {
		in.Old = &v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodInitialized, Status: v1.ConditionTrue}}}
	}
	rows := []struct {
		name    string
		policy  v1.RestartPolicy
		names   string
		state   string
		sandbox bool
		mod     []func(*Input)
		want    map[v1.PodConditionType]string
	}{
		{"new", "Always", "b,a", "", false, nil, map[v1.PodConditionType]string{
			v1.PodReadyToStartContainers: "False", v1.PodInitialized: "True", v1.PodScheduled: "True",
			v1.PodReady:                "False ContainersNotReady containers with unready status: [b a]",
			v1.ContainersReady:         "False ContainersNotReady containers with unready status: [b a]",
			v1.AllContainersRestarting: "none",
		}},
		{"new with init", "Always", "i:i,a", "", true, nil, map[v1.PodConditionType]string{
			v1.PodReadyToStartContainers: "True",
			v1.PodInitialized:            "False ContainersNotInitialized containers with incomplete status: [i]",
		}},
		{"init again after it was initialized", "Always", "i:i,a", "i running", true, []func(*Input){wasInitialized}, map[v1.PodConditionType]string{
			v1.PodInitialized: "True"}},
		{"running", "Always", "a", "a running", true, nil, map[v1.PodConditionType]string{
			v1.PodReady: "True", v1.ContainersReady: "True", v1.PodReadyToStartContainers: "True"}},
		{"succeeded", "Never", "a", "a exited 0", false, nil, map[v1.PodConditionType]string{
			v1.PodReady: "False PodCompleted", v1.ContainersReady: "False PodCompleted", v1.PodInitialized: "True PodCompleted"}},
		{"failed", "Never", "a,b", "a exited 1,b exited 0", true, nil, map[v1.PodConditionType]string{
			v1.PodReady: "False PodFailed", v1.ContainersReady: "False PodFailed", v1.PodInitialized: "True"}},
		{"gates", "Always", "a", "a running", true, []func(*Input){gates}, map[v1.PodConditionType]string{
			v1.ContainersReady: "True",
			v1.PodReady:        `False ReadinessGatesNotReady the status of pod readiness gate "x/a" is not "True", but False, corresponding condition of pod readiness gate "x/b" does not exist.`,
			"x/a":              "False"}},
		{"gates of a pod that is not ready anyway", "Always", "a", "", true, []func(*Input){gates}, map[v1.PodConditionType]string{
			v1.PodReady: "False ContainersNotReady containers with unready status: [a]"}},
		{"sidecar unready", "Always", "s:s,a", "s exited 1,a running", true, nil, map[v1.PodConditionType]string{
			v1.ContainersReady: "False ContainersNotReady containers with unready status: [s]", v1.PodInitialized: "True"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			pod := testPod(row.policy, strings.Split(row.names, ",")...)
			var entries []string
			if row.state != "" {
				entries = strings.Split(row.state, ",")
			}
			s := generate(pod, runtimeOf(row.sandbox, entries...), row.mod...)
			for c, want := range row.want {
				if got := conditionText(&s, c); got != want {
					t.Errorf("%s: %q, want %q", c, got, want)
				}
			}
		})
	}
}

func TestConditionOrderAndForeign(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, "a")
	pod.Status.Conditions = []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue}, {Type: "x/gate", Status: v1.ConditionTrue}, {Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "api"}}
	s := generate(pod, runtimeOf(true, "a running"), func(in *Input) {
		in.Old = &v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "old"}}}
		in.ResizeConditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue}}
	})
	var got []string
	for _, c := range s.Conditions {
		got = append(got, string(c.Type))
	}
	want := "x/gate DisruptionTarget PodResizePending PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled"
	if strings.Join(got, " ") != want {
		t.Errorf("order %v, want %s", got, want)
	}
	if conditionText(&s, v1.DisruptionTarget) != "True old" {
		t.Errorf("DisruptionTarget %s", conditionText(&s, v1.DisruptionTarget))
	}
}

func TestTerminalPhaseStays(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, "a")
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = v1.PodFailed, "Evicted", "m"
	s := generate(pod, runtimeOf(true, "a running"))
	if s.Phase != v1.PodFailed || s.Reason != "Evicted" || s.Message != "m" {
		t.Errorf("%s %s %s", s.Phase, s.Reason, s.Message)
	}
}

func TestActiveDeadline(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, "a")
	d := int64(30)
	pod.Spec.ActiveDeadlineSeconds = &d
	told := 0
	at := func(after time.Duration) v1.PodStatus {
		return generate(pod, runtimeOf(true, "a running"), func(in *Input) {
			in.Old = &v1.PodStatus{Phase: v1.PodRunning, StartTime: &metav1.Time{Time: t0}}
			in.Now = t0.Add(after)
			in.Env.DeadlineExceeded = func(*v1.Pod) { told++ }
		})
	}
	if s := at(29 * time.Second); s.Phase != v1.PodRunning || told != 0 {
		t.Errorf("before: %s, told %d", s.Phase, told)
	}
	if s := at(30 * time.Second); s.Phase != v1.PodFailed || s.Reason != "DeadlineExceeded" || told != 1 {
		t.Errorf("after: %s %s, told %d", s.Phase, s.Reason, told)
	}
}

func TestHostNetworkIPs(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, "a")
	pod.Spec.HostNetwork = true
	host := HostIPs([]v1.NodeAddress{{Type: v1.NodeExternalIP, Address: "1.2.3.4"}, {Type: v1.NodeHostName, Address: "h"},
		{Type: v1.NodeInternalIP, Address: "10.1.0.1"}, {Type: v1.NodeInternalIP, Address: "fd00::1"}})
	s := generate(pod, &kubecontainer.PodStatus{}, func(in *Input) { in.Env.HostIPs = func() []v1.HostIP { return host } })
	if s.HostIP != "10.1.0.1" || s.PodIP != "10.1.0.1" || len(s.PodIPs) != 2 || s.PodIPs[1].IP != "fd00::1" {
		t.Errorf("%s %s %v", s.HostIP, s.PodIP, s.PodIPs)
	}
}

func TestUnchangedSharesEverything(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, "a", "b")
	r := runtimeOf(true, "a running", "b running")
	first := generate(pod, r)
	second := generate(pod, r, func(in *Input) { in.Old = &first })
	if &first.Conditions[0] != &second.Conditions[0] || &first.ContainerStatuses[0] != &second.ContainerStatuses[0] || &first.PodIPs[0] != &second.PodIPs[0] {
		t.Error("an unchanged status was made anew")
	}
	env := &Env{RuntimeName: "containerd"}
	if n := testing.AllocsPerRun(100, func() {
		GenerateAPIPodStatus(&Input{Env: env, Pod: pod, Runtime: r, Old: &first, Now: t0})
	}); n > 0 {
		t.Errorf("%v allocations for an unchanged status", n)
	}
}

// TestRestartAll follows the recording restart-all-containers: a container
// exits by a rule, everything is removed, then begins again.
func TestRestartAll(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, "i:i", "a", "b")
	pod.Spec.Containers[0].RestartPolicy = &never
	pod.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{8}},
	}}
	old := generate(pod, runtimeOf(true, "a running", "b running", "i exited 0"))
	step := func(entries ...string) v1.PodStatus {
		prev := old
		old = generate(pod, runtimeOf(true, entries...), func(in *Input) { in.Old = &prev })
		return old
	}
	s := step("a exited 8", "b running", "i exited 0")
	if got := conditionText(&s, v1.AllContainersRestarting); got != "True RestartAllContainersStarted container exited with restart policy rule" || s.Phase != v1.PodRunning {
		t.Errorf("after the exit: %s, %s", got, s.Phase)
	}
	s = step()
	for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
		if describe(&c) != c.Name+" Waiting/RestartingAllContainers last Terminated/RestartingAllContainers" || c.RestartCount != 1 {
			t.Errorf("removed: %s, restarts %d", describe(&c), c.RestartCount)
		}
	}
	if !s.InitContainerStatuses[0].Ready || s.Phase != v1.PodRunning || conditionText(&s, v1.AllContainersRestarting) != "False" {
		t.Errorf("removed: init ready %v, %s, %s", s.InitContainerStatuses[0].Ready, s.Phase, conditionText(&s, v1.AllContainersRestarting))
	}
	s = step("i running")
	if s.Phase != v1.PodPending || describe(&s.ContainerStatuses[0]) != "a Waiting/PodInitializing last Terminated/RestartingAllContainers" || s.InitContainerStatuses[0].RestartCount != 1 {
		t.Errorf("again: %s, %s, %d", s.Phase, describe(&s.ContainerStatuses[0]), s.InitContainerStatuses[0].RestartCount)
	}
	if conditionText(&s, v1.PodInitialized) != "True" {
		t.Errorf("Initialized %s", conditionText(&s, v1.PodInitialized))
	}
}

type fakeProbes struct {
	startup, readiness map[string]bool
	workers            map[string]bool
	triggered          int
}

func (f *fakeProbes) Startup(id kubecontainer.ContainerID) (bool, bool) {
	v, ok := f.startup[id.ID]
	return v, ok
}
func (f *fakeProbes) Readiness(id kubecontainer.ContainerID) (bool, bool) {
	v, ok := f.readiness[id.ID]
	return v, ok
}
func (f *fakeProbes) HasStartupWorker(_ types.UID, c string) bool   { return f.workers["startup "+c] }
func (f *fakeProbes) HasReadinessWorker(_ types.UID, c string) bool { return f.workers["readiness "+c] }
func (f *fakeProbes) TriggerReadiness(types.UID, string)            { f.triggered++ }

func TestProbes(t *testing.T) {
	readyAPI := func(in *Input) {
		p := *in.Pod
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		in.Pod = &p
	}
	restarted := func(in *Input) { in.Env.KubeletStart = t0.Add(time.Minute) }
	rows := []struct {
		name                      string
		probes                    fakeProbes
		mod                       []func(*Input)
		started, ready, triggered bool
	}{
		{name: "no probes", started: true, ready: true},
		{name: "startup waits", probes: fakeProbes{workers: map[string]bool{"startup a": true}}},
		{name: "startup done", probes: fakeProbes{startup: map[string]bool{"id-a-running": true}, workers: map[string]bool{"startup a": true}}, started: true, ready: true},
		{name: "startup failed", probes: fakeProbes{startup: map[string]bool{"id-a-running": false}}},
		{name: "readiness unknown", probes: fakeProbes{workers: map[string]bool{"readiness a": true}}, started: true, triggered: true},
		{name: "readiness ok", probes: fakeProbes{readiness: map[string]bool{"id-a-running": true}, workers: map[string]bool{"readiness a": true}}, started: true, ready: true},
		{name: "readiness failed", probes: fakeProbes{readiness: map[string]bool{"id-a-running": false}, workers: map[string]bool{"readiness a": true}}, started: true, triggered: true},
		{name: "kubelet restart keeps ready", probes: fakeProbes{workers: map[string]bool{"readiness a": true}}, mod: []func(*Input){readyAPI, restarted}, started: true, ready: true, triggered: true},
		{name: "kubelet restart keeps not ready", probes: fakeProbes{workers: map[string]bool{"readiness a": true}}, mod: []func(*Input){restarted}, started: true, triggered: true},
		{name: "kubelet restart before there are workers, ready", mod: []func(*Input){readyAPI, restarted}, started: true, ready: true},
		{name: "kubelet restart before there are workers, not ready", mod: []func(*Input){restarted}, started: true},
		{name: "kubelet restart, and a probe that knows", probes: fakeProbes{readiness: map[string]bool{"id-a-running": false}, workers: map[string]bool{"readiness a": true}},
			mod: []func(*Input){readyAPI, restarted}, started: true, triggered: true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			pod := testPod(v1.RestartPolicyAlways, "a")
			pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{}
			probes := row.probes
			mod := append([]func(*Input){func(in *Input) { in.Env.Probes = &probes }}, row.mod...)
			s := generate(pod, runtimeOf(true, "a running"), mod...)
			c := s.ContainerStatuses[0]
			if *c.Started != row.started || c.Ready != row.ready || probes.triggered > 0 != row.triggered {
				t.Errorf("started %v ready %v triggered %d", *c.Started, c.Ready, probes.triggered)
			}
		})
	}
}

func BenchmarkUnchanged(b *testing.B) {
	m, _, _ := newManager(b)
	pod := testPod(v1.RestartPolicyAlways, "a")
	r := runtimeOf(true, "a running")
	env := &Env{RuntimeName: "containerd"}
	m.SetPodStatus(pod, GenerateAPIPodStatus(&Input{Env: env, Pod: pod, Runtime: r, Now: t0}))
	b.ReportAllocs()
	for b.Loop() {
		old, _ := m.GetPodStatus(pod.UID)
		m.SetPodStatus(pod, GenerateAPIPodStatus(&Input{Env: env, Pod: pod, Runtime: r, Old: old, Now: t0}))
	}
}
