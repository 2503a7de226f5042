package kuberuntime

import (
	"fmt"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

const (
	ready    = runtimeapi.PodSandboxState_SANDBOX_READY
	notReady = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
)

func testPod(policy v1.RestartPolicy, inits, regular int) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}}
	pod.Spec.RestartPolicy = policy
	for i := range inits {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: fmt.Sprintf("i%d", i), Image: "img"})
	}
	for i := range regular {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Image: "img"})
	}
	return pod
}

func sidecar(pod *v1.Pod, i int) *v1.Pod {
	always := v1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers[i].RestartPolicy = &always
	return pod
}

func sandbox(state runtimeapi.PodSandboxState, attempt uint32) *runtimeapi.PodSandboxStatus {
	return &runtimeapi.PodSandboxStatus{
		Id: fmt.Sprintf("s%d", attempt), State: state, Metadata: &runtimeapi.PodSandboxMetadata{Attempt: attempt},
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"},
	}
}

// cs is a container status; its ID is its name.
func cs(name string, state kubecontainer.State, code int32) *kubecontainer.Status {
	return &kubecontainer.Status{ID: name, Name: name, State: state, ExitCode: code, Hash: kubecontainer.HashContainer(&v1.Container{Name: name, Image: "img"})}
}

func run(name string) *kubecontainer.Status { return cs(name, kubecontainer.StateRunning, 0) }
func exit(name string, code int32) *kubecontainer.Status {
	return cs(name, kubecontainer.StateExited, code)
}

func podStatus(sandboxes []*runtimeapi.PodSandboxStatus, containers ...*kubecontainer.Status) *kubecontainer.PodStatus {
	return &kubecontainer.PodStatus{ID: "u", Name: "p", Namespace: "ns", SandboxStatuses: sandboxes, ContainerStatuses: containers}
}

func inReady(containers ...*kubecontainer.Status) *kubecontainer.PodStatus {
	return podStatus([]*runtimeapi.PodSandboxStatus{sandbox(ready, 0)}, containers...)
}

type probeTable map[string]ProbeResult

func (p probeTable) Liveness(id string) ProbeResult { return p["live "+id] }
func (p probeTable) Startup(id string) ProbeResult  { return p["start "+id] }

func TestSandboxChanged(t *testing.T) {
	pod := testPod(v1.RestartPolicyAlways, 0, 1)
	host := testPod(v1.RestartPolicyAlways, 0, 1)
	host.Spec.HostNetwork = true
	onHost := sandbox(ready, 2)
	onHost.Network = nil
	onHost.Linux = &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}
	noIP := sandbox(ready, 3)
	noIP.Network.Ip = ""
	noNetwork := sandbox(ready, 3)
	noNetwork.Network = nil
	for _, tc := range []struct {
		name    string
		pod     *v1.Pod
		list    []*runtimeapi.PodSandboxStatus
		changed bool
		attempt uint32
		id      string
	}{
		{"none", pod, nil, true, 0, ""},
		{"two ready", pod, []*runtimeapi.PodSandboxStatus{sandbox(ready, 4), sandbox(ready, 3)}, true, 5, "s4"},
		{"newest not ready", pod, []*runtimeapi.PodSandboxStatus{sandbox(notReady, 4), sandbox(ready, 3)}, true, 5, "s4"},
		{"another network", pod, []*runtimeapi.PodSandboxStatus{onHost}, true, 3, ""},
		{"another network for the host", host, []*runtimeapi.PodSandboxStatus{sandbox(ready, 1)}, true, 2, ""},
		{"no IP", pod, []*runtimeapi.PodSandboxStatus{noIP}, true, 4, "s3"},
		{"no network told", pod, []*runtimeapi.PodSandboxStatus{noNetwork}, false, 3, "s3"},
		{"host network", host, []*runtimeapi.PodSandboxStatus{onHost}, false, 2, "s2"},
		{"good", pod, []*runtimeapi.PodSandboxStatus{sandbox(ready, 4), sandbox(notReady, 3)}, false, 4, "s4"},
	} {
		changed, attempt, id := sandboxChanged(tc.pod, podStatus(tc.list))
		if changed != tc.changed || attempt != tc.attempt || id != tc.id {
			t.Errorf("%s: %v %d %q", tc.name, changed, attempt, id)
		}
		if PodSandboxReady(tc.pod, podStatus(tc.list)) == tc.changed {
			t.Errorf("%s: ready %v", tc.name, !tc.changed)
		}
	}
}

type actionsCase struct {
	name   string
	pod    *v1.Pod
	status *kubecontainer.PodStatus
	probes ProbeResults
	all    bool
	want   podActions
}

func checkActions(t *testing.T, cases []actionsCase) {
	t.Helper()
	for _, tc := range cases {
		got := computePodActions(actionsInput{pod: tc.pod, status: tc.status, restartAll: tc.all, hasher: &kubecontainer.Hasher{}, probes: tc.probes})
		if tc.want.SandboxID == "" && len(tc.status.SandboxStatuses) > 0 {
			tc.want.SandboxID = tc.status.SandboxStatuses[0].Id
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.name, got, tc.want)
		}
	}
}

func fresh(attempt uint32, inits, regular []int) podActions {
	return podActions{KillPod: true, CreateSandbox: true, Attempt: attempt, InitContainersToStart: inits, ContainersToStart: regular}
}

func TestActionsForANewSandbox(t *testing.T) {
	const always, never, onFailure = v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure
	lost := []*runtimeapi.PodSandboxStatus{sandbox(notReady, 0)}
	ownOnFailure := testPod(never, 0, 2)
	p := v1.ContainerRestartPolicyOnFailure
	ownOnFailure.Spec.Containers[0].RestartPolicy = &p
	checkActions(t, []actionsCase{
		{name: "empty runtime", pod: testPod(always, 0, 2), status: podStatus(nil), want: fresh(0, nil, []int{0, 1})},
		{name: "empty runtime, init containers", pod: testPod(always, 2, 2), status: podStatus(nil), want: fresh(0, []int{0}, nil)},
		{name: "sandbox lost", pod: testPod(always, 0, 1), status: podStatus(lost, exit("c0", 137)), want: fresh(1, nil, []int{0})},
		{name: "sandbox lost, init containers", pod: testPod(always, 1, 1), status: podStatus(lost, exit("c0", 137), exit("i0", 0)), want: fresh(1, []int{0}, nil)},
		{name: "never, with containers", pod: testPod(never, 0, 1), status: podStatus(lost, exit("c0", 1)), want: podActions{KillPod: true, Attempt: 1}},
		{name: "never, without containers", pod: testPod(never, 0, 1), status: podStatus(lost), want: fresh(1, nil, []int{0})},
		{name: "on failure, one has succeeded", pod: testPod(onFailure, 0, 2), status: podStatus(lost, exit("c0", 0), exit("c1", 1)), want: fresh(1, nil, []int{1})},
		{name: "on failure, all have succeeded", pod: testPod(onFailure, 1, 1), status: podStatus(lost, exit("c0", 0)), want: podActions{KillPod: true, Attempt: 1}},
		{name: "own policy on failure, empty runtime", pod: ownOnFailure, status: podStatus(nil), want: fresh(0, nil, []int{0, 1})},
	})
}

func TestActionsForRegularContainers(t *testing.T) {
	const always, never, onFailure = v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure
	deleted := testPod(always, 0, 1)
	now := metav1.NewTime(loop.Epoch())
	deleted.DeletionTimestamp = &now
	probed := func(policy v1.RestartPolicy) *v1.Pod {
		pod := testPod(policy, 0, 2)
		pod.Spec.Containers[0].LivenessProbe, pod.Spec.Containers[0].StartupProbe = &v1.Probe{}, &v1.Probe{}
		return pod
	}
	changed := run("c0")
	changed.Hash = "1"
	unknown := cs("c0", kubecontainer.StateUnknown, 0)
	ephemeral := testPod(always, 0, 1)
	for _, n := range []string{"e0", "e1"} {
		ephemeral.Spec.EphemeralContainers = append(ephemeral.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: n}})
	}
	kill := func(message string, reason killReason) []containerToKill {
		return []containerToKill{{id: "c0", name: "c0", message: message, reason: reason}}
	}
	checkActions(t, []actionsCase{
		{name: "all running", pod: testPod(always, 0, 2), status: inReady(run("c0"), run("c1"))},
		{name: "none created yet", pod: testPod(never, 0, 2), status: inReady(), want: podActions{ContainersToStart: []int{0, 1}}},
		{name: "created", pod: testPod(never, 0, 1), status: inReady(cs("c0", kubecontainer.StateCreated, 0)), want: podActions{ContainersToStart: []int{0}}},
		{name: "exited, always", pod: testPod(always, 0, 2), status: inReady(exit("c0", 0), run("c1")), want: podActions{ContainersToStart: []int{0}}},
		{name: "failed, on failure", pod: testPod(onFailure, 0, 1), status: inReady(exit("c0", 2)), want: podActions{ContainersToStart: []int{0}}},
		{name: "only the newest counts", pod: testPod(onFailure, 0, 1), status: inReady(run("c0"), exit("c0", 2))},
		{name: "succeeded, on failure, other runs", pod: testPod(onFailure, 0, 2), status: inReady(exit("c0", 0), run("c1"))},
		{name: "all done", pod: testPod(onFailure, 0, 2), status: inReady(exit("c0", 0), exit("c1", 0)), want: podActions{KillPod: true}},
		{name: "all done, sidecar runs", pod: sidecar(testPod(never, 1, 1), 0), status: inReady(exit("c0", 0), run("i0")), want: podActions{KillPod: true}},
		{name: "all done, sidecar exited", pod: sidecar(testPod(never, 1, 1), 0), status: inReady(exit("c0", 0), exit("i0", 0)), want: podActions{ContainersToStart: nil, InitContainersToStart: []int{0}}},
		{name: "deleted, exited", pod: deleted, status: inReady(exit("c0", 1)), want: podActions{KillPod: true}},
		{name: "deleted, not created", pod: deleted, status: inReady(), want: podActions{KillPod: true}},
		{name: "unknown", pod: testPod(never, 0, 1), status: inReady(unknown), want: podActions{
			ContainersToStart: []int{0}, ContainersToKill: kill(`Container is in "unknown" state, try killing it before restart`, reasonUnknown)}},
		{name: "definition changed, also never", pod: testPod(never, 0, 1), status: inReady(changed), want: podActions{
			ContainersToStart: []int{0}, ContainersToKill: kill("Container c0 definition changed, will be restarted", reasonNone)}},
		{name: "liveness failed", pod: probed(always), status: inReady(run("c0"), run("c1")), probes: probeTable{"live c0": ProbeFailure}, want: podActions{
			ContainersToStart: []int{0}, ContainersToKill: kill("Container c0 failed liveness probe, will be restarted", reasonLivenessProbe)}},
		{name: "startup failed, never", pod: probed(never), status: inReady(run("c0"), run("c1")), probes: probeTable{"start c0": ProbeFailure}, want: podActions{
			ContainersToKill: kill("Container c0 failed startup probe", reasonStartupProbe)}},
		{name: "liveness of another one failed", pod: probed(always), status: inReady(run("c0"), run("c1")), probes: probeTable{"live c1": ProbeFailure}},
		{name: "ephemeral, one has run", pod: ephemeral, status: inReady(run("c0"), exit("e0", 1)), want: podActions{EphemeralContainersToStart: []int{1}}},
	})
}

func TestActionsForInitContainers(t *testing.T) {
	const always, never, onFailure = v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure
	oom := exit("i0", 0)
	oom.Reason = "OOMKilled"
	twoSidecars := sidecar(sidecar(testPod(always, 3, 1), 0), 2)
	started := sidecar(testPod(always, 2, 1), 0)
	started.Spec.InitContainers[0].StartupProbe, started.Spec.InitContainers[0].LivenessProbe = &v1.Probe{}, &v1.Probe{}
	last := sidecar(testPod(always, 1, 1), 0)
	last.Spec.InitContainers[0].LivenessProbe = &v1.Probe{}
	killI0 := func(message string, reason killReason) []containerToKill {
		return []containerToKill{{id: "i0", name: "i0", message: message, reason: reason}}
	}
	unknown := cs("i0", kubecontainer.StateUnknown, 0)
	changed := run("i0")
	changed.Hash = "1"
	checkActions(t, []actionsCase{
		{name: "first not created", pod: testPod(always, 2, 1), status: inReady(), want: podActions{InitContainersToStart: []int{0}}},
		{name: "first created", pod: testPod(always, 2, 1), status: inReady(cs("i0", kubecontainer.StateCreated, 0)), want: podActions{InitContainersToStart: []int{0}}},
		{name: "first running", pod: testPod(always, 2, 1), status: inReady(run("i0"))},
		{name: "first done", pod: testPod(always, 2, 1), status: inReady(exit("i0", 0)), want: podActions{InitContainersToStart: []int{1}}},
		{name: "second failed, first done", pod: testPod(onFailure, 2, 1), status: inReady(exit("i1", 1), exit("i0", 0)), want: podActions{InitContainersToStart: []int{1}}},
		{name: "all done", pod: testPod(always, 2, 2), status: inReady(exit("i1", 0), exit("i0", 0)), want: podActions{ContainersToStart: []int{0, 1}}},
		{name: "failed, always", pod: testPod(always, 1, 1), status: inReady(exit("i0", 1)), want: podActions{InitContainersToStart: []int{0}}},
		{name: "failed, never", pod: testPod(never, 2, 1), status: inReady(exit("i0", 1)), want: podActions{KillPod: true}},
		{name: "OOM killed with code 0, never", pod: testPod(never, 1, 1), status: inReady(oom), want: podActions{ContainersToStart: nil, InitContainersToStart: nil, KillPod: true}},
		{name: "unknown, always", pod: testPod(always, 1, 1), status: inReady(unknown), want: podActions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0(unknownInit, reasonUnknown)}},
		{name: "unknown, never", pod: testPod(never, 1, 1), status: inReady(unknown), want: podActions{KillPod: true}},
		{name: "regular running, init gone", pod: testPod(always, 1, 1), status: inReady(run("c0"))},
		{name: "regular running, init failed long ago", pod: testPod(always, 1, 1), status: inReady(run("c0"), exit("i0", 1))},
		{name: "only an exited regular one", pod: testPod(always, 1, 1), status: inReady(exit("c0", 1)), want: podActions{InitContainersToStart: []int{0}}},

		{name: "sidecar running lets the next go", pod: twoSidecars, status: inReady(run("i0")), want: podActions{InitContainersToStart: []int{1}}},
		{name: "last sidecar running", pod: twoSidecars, status: inReady(run("i2"), exit("i1", 0), run("i0")), want: podActions{ContainersToStart: []int{0}}},
		{name: "earlier sidecar died", pod: twoSidecars, status: inReady(exit("i1", 1), exit("i0", 0)), want: podActions{InitContainersToStart: []int{0, 1}}},
		{name: "sidecars gone, pod initialized", pod: twoSidecars, status: inReady(run("c0")), want: podActions{InitContainersToStart: []int{0, 2}}},
		{name: "sidecar without a startup result", pod: started, status: inReady(run("i0")), probes: probeTable{}},
		{name: "sidecar started", pod: started, status: inReady(run("i0")), probes: probeTable{"start i0": ProbeSuccess}, want: podActions{InitContainersToStart: []int{1}}},
		{name: "sidecar failed to start up", pod: started, status: inReady(run("i0")), probes: probeTable{"start i0": ProbeFailure}, want: podActions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0("Init container i0 failed startup probe", reasonStartupProbe)}},
		{name: "sidecar failed liveness", pod: last, status: inReady(run("c0"), run("i0")), probes: probeTable{"live i0": ProbeFailure}, want: podActions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0("Init container i0 failed liveness probe", reasonLivenessProbe)}},
		{name: "sidecar changed", pod: last, status: inReady(run("c0"), changed), want: podActions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0("Init container i0 definition changed", reasonNone)}},
		{name: "nobody probes", pod: started, status: inReady(run("i0")), want: podActions{InitContainersToStart: []int{1}}},
	})
}

func TestActionsForRestartAll(t *testing.T) {
	pod := testPod(v1.RestartPolicyNever, 1, 2)
	never := v1.ContainerRestartPolicyNever
	pod.Spec.Containers[0].RestartPolicy = &never
	pod.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	checkActions(t, []actionsCase{{
		name: "source last", pod: pod, all: true, status: inReady(exit("c0", 42), run("c1"), exit("i0", 0)),
		want: podActions{ContainersToReset: []containerToReset{{id: "c1", name: "c1", killFirst: true}, {id: "i0", name: "i0"}, {id: "c0", name: "c0"}}},
	}})
}

// A resync of an unchanged pod costs hardly anything.
func TestUnchangedPodAllocatesNothing(t *testing.T) {
	in := actionsInput{pod: testPod(v1.RestartPolicyAlways, 2, 2), status: inReady(run("c1"), run("c0"), exit("i1", 0), exit("i0", 0)), hasher: &kubecontainer.Hasher{}}
	if n := testing.AllocsPerRun(100, func() {
		if a := computePodActions(in); !a.idle() {
			t.Fatal("not idle")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkComputePodActionsUnchanged(b *testing.B) {
	in := actionsInput{pod: testPod(v1.RestartPolicyAlways, 0, 1), status: inReady(run("c0")), hasher: &kubecontainer.Hasher{}}
	b.ReportAllocs()
	for b.Loop() {
		if a := computePodActions(in); !a.idle() {
			b.Fatal("not idle")
		}
	}
}
