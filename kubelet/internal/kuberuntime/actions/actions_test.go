package actions

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

type probeTable map[string]ProbeResult

func (p probeTable) Liveness(id string) ProbeResult { return p["live "+id] }
func (p probeTable) Startup(id string) ProbeResult  { return p["start "+id] }

type actionsCase struct {
	name   string
	pod    *v1.Pod
	status *kubecontainer.PodStatus
	probes ProbeResults
	all    bool
	want   Actions
}

func checkActions(t *testing.T, cases []actionsCase) {
	t.Helper()
	for _, tc := range cases {
		got := Compute(Input{Pod: tc.pod, Status: tc.status, RestartAll: tc.all, Hasher: &kubecontainer.Hasher{}, Probes: tc.probes})
		if tc.want.SandboxID == "" && len(tc.status.SandboxStatuses) > 0 {
			tc.want.SandboxID = tc.status.SandboxStatuses[0].Id
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.name, got, tc.want)
		}
	}
}

func fresh(attempt uint32, inits, regular []int) Actions {
	return Actions{KillPod: true, CreateSandbox: true, Attempt: attempt, InitContainersToStart: inits, ContainersToStart: regular}
}

func TestActionsForANewSandbox(t *testing.T) {
	const always, never, onFailure = v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure
	lost := []*runtimeapi.PodSandboxStatus{podtest.Sandbox(podtest.NotReady, 0)}
	ownOnFailure := podtest.Pod(never, 0, 2)
	p := v1.ContainerRestartPolicyOnFailure
	ownOnFailure.Spec.Containers[0].RestartPolicy = &p
	checkActions(t, []actionsCase{
		{name: "empty runtime", pod: podtest.Pod(always, 0, 2), status: podtest.Status(nil), want: fresh(0, nil, []int{0, 1})},
		{name: "empty runtime, init containers", pod: podtest.Pod(always, 2, 2), status: podtest.Status(nil), want: fresh(0, []int{0}, nil)},
		{name: "sandbox lost", pod: podtest.Pod(always, 0, 1), status: podtest.Status(lost, podtest.Exit("c0", 137)), want: fresh(1, nil, []int{0})},
		{name: "sandbox lost, init containers", pod: podtest.Pod(always, 1, 1), status: podtest.Status(lost, podtest.Exit("c0", 137), podtest.Exit("i0", 0)), want: fresh(1, []int{0}, nil)},
		{name: "never, with containers", pod: podtest.Pod(never, 0, 1), status: podtest.Status(lost, podtest.Exit("c0", 1)), want: Actions{KillPod: true, Attempt: 1}},
		{name: "never, without containers", pod: podtest.Pod(never, 0, 1), status: podtest.Status(lost), want: fresh(1, nil, []int{0})},
		{name: "on failure, one has succeeded", pod: podtest.Pod(onFailure, 0, 2), status: podtest.Status(lost, podtest.Exit("c0", 0), podtest.Exit("c1", 1)), want: fresh(1, nil, []int{1})},
		{name: "on failure, all have succeeded", pod: podtest.Pod(onFailure, 1, 1), status: podtest.Status(lost, podtest.Exit("c0", 0)), want: Actions{KillPod: true, Attempt: 1}},
		{name: "own policy on failure, empty runtime", pod: ownOnFailure, status: podtest.Status(nil), want: fresh(0, nil, []int{0, 1})},
	})
}

func TestActionsForRegularContainers(t *testing.T) {
	const always, never, onFailure = v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure
	deleted := podtest.Pod(always, 0, 1)
	now := metav1.NewTime(loop.Epoch())
	deleted.DeletionTimestamp = &now
	probed := func(policy v1.RestartPolicy) *v1.Pod {
		pod := podtest.Pod(policy, 0, 2)
		pod.Spec.Containers[0].LivenessProbe, pod.Spec.Containers[0].StartupProbe = &v1.Probe{}, &v1.Probe{}
		return pod
	}
	changed := podtest.Run("c0")
	changed.Hash = "1"
	unknown := podtest.Container("c0", kubecontainer.StateUnknown, 0)
	ephemeral := podtest.Pod(always, 0, 1)
	for _, n := range []string{"e0", "e1"} {
		ephemeral.Spec.EphemeralContainers = append(ephemeral.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: n}})
	}
	kill := func(message string, reason Reason) []Kill {
		return []Kill{{ID: "c0", Name: "c0", Message: message, Reason: reason}}
	}
	checkActions(t, []actionsCase{
		{name: "all running", pod: podtest.Pod(always, 0, 2), status: podtest.InReady(podtest.Run("c0"), podtest.Run("c1"))},
		{name: "none created yet", pod: podtest.Pod(never, 0, 2), status: podtest.InReady(), want: Actions{ContainersToStart: []int{0, 1}}},
		{name: "created", pod: podtest.Pod(never, 0, 1), status: podtest.InReady(podtest.Container("c0", kubecontainer.StateCreated, 0)), want: Actions{ContainersToStart: []int{0}}},
		{name: "exited, always", pod: podtest.Pod(always, 0, 2), status: podtest.InReady(podtest.Exit("c0", 0), podtest.Run("c1")), want: Actions{ContainersToStart: []int{0}}},
		{name: "failed, on failure", pod: podtest.Pod(onFailure, 0, 1), status: podtest.InReady(podtest.Exit("c0", 2)), want: Actions{ContainersToStart: []int{0}}},
		{name: "only the newest counts", pod: podtest.Pod(onFailure, 0, 1), status: podtest.InReady(podtest.Run("c0"), podtest.Exit("c0", 2))},
		{name: "succeeded, on failure, other runs", pod: podtest.Pod(onFailure, 0, 2), status: podtest.InReady(podtest.Exit("c0", 0), podtest.Run("c1"))},
		{name: "all done", pod: podtest.Pod(onFailure, 0, 2), status: podtest.InReady(podtest.Exit("c0", 0), podtest.Exit("c1", 0)), want: Actions{KillPod: true}},
		{name: "all done, sidecar runs", pod: podtest.Sidecar(podtest.Pod(never, 1, 1), 0), status: podtest.InReady(podtest.Exit("c0", 0), podtest.Run("i0")), want: Actions{KillPod: true}},
		{name: "all done, sidecar exited", pod: podtest.Sidecar(podtest.Pod(never, 1, 1), 0), status: podtest.InReady(podtest.Exit("c0", 0), podtest.Exit("i0", 0)), want: Actions{ContainersToStart: nil, InitContainersToStart: []int{0}}},
		{name: "deleted, exited", pod: deleted, status: podtest.InReady(podtest.Exit("c0", 1)), want: Actions{KillPod: true}},
		{name: "deleted, not created", pod: deleted, status: podtest.InReady(), want: Actions{KillPod: true}},
		{name: "unknown", pod: podtest.Pod(never, 0, 1), status: podtest.InReady(unknown), want: Actions{
			ContainersToStart: []int{0}, ContainersToKill: kill(`Container is in "unknown" state, try killing it before restart`, ReasonUnknown)}},
		{name: "definition changed, also never", pod: podtest.Pod(never, 0, 1), status: podtest.InReady(changed), want: Actions{
			ContainersToStart: []int{0}, ContainersToKill: kill("Container c0 definition changed, will be restarted", ReasonNone)}},
		{name: "liveness failed", pod: probed(always), status: podtest.InReady(podtest.Run("c0"), podtest.Run("c1")), probes: probeTable{"live c0": ProbeFailure}, want: Actions{
			ContainersToStart: []int{0}, ContainersToKill: kill("Container c0 failed liveness probe, will be restarted", ReasonLivenessProbe)}},
		{name: "startup failed, never", pod: probed(never), status: podtest.InReady(podtest.Run("c0"), podtest.Run("c1")), probes: probeTable{"start c0": ProbeFailure}, want: Actions{
			ContainersToKill: kill("Container c0 failed startup probe", ReasonStartupProbe)}},
		{name: "liveness of another one failed", pod: probed(always), status: podtest.InReady(podtest.Run("c0"), podtest.Run("c1")), probes: probeTable{"live c1": ProbeFailure}},
		{name: "ephemeral, one has run", pod: ephemeral, status: podtest.InReady(podtest.Run("c0"), podtest.Exit("e0", 1)), want: Actions{EphemeralContainersToStart: []int{1}}},
	})
}

func TestActionsForInitContainers(t *testing.T) {
	const always, never, onFailure = v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure
	oom := podtest.Exit("i0", 0)
	oom.Reason = "OOMKilled"
	twoSidecars := podtest.Sidecar(podtest.Sidecar(podtest.Pod(always, 3, 1), 0), 2)
	started := podtest.Sidecar(podtest.Pod(always, 2, 1), 0)
	started.Spec.InitContainers[0].StartupProbe, started.Spec.InitContainers[0].LivenessProbe = &v1.Probe{}, &v1.Probe{}
	last := podtest.Sidecar(podtest.Pod(always, 1, 1), 0)
	last.Spec.InitContainers[0].LivenessProbe = &v1.Probe{}
	killI0 := func(message string, reason Reason) []Kill {
		return []Kill{{ID: "i0", Name: "i0", Message: message, Reason: reason}}
	}
	unknown := podtest.Container("i0", kubecontainer.StateUnknown, 0)
	changed := podtest.Run("i0")
	changed.Hash = "1"
	checkActions(t, []actionsCase{
		{name: "first not created", pod: podtest.Pod(always, 2, 1), status: podtest.InReady(), want: Actions{InitContainersToStart: []int{0}}},
		{name: "first created", pod: podtest.Pod(always, 2, 1), status: podtest.InReady(podtest.Container("i0", kubecontainer.StateCreated, 0)), want: Actions{InitContainersToStart: []int{0}}},
		{name: "first running", pod: podtest.Pod(always, 2, 1), status: podtest.InReady(podtest.Run("i0"))},
		{name: "first done", pod: podtest.Pod(always, 2, 1), status: podtest.InReady(podtest.Exit("i0", 0)), want: Actions{InitContainersToStart: []int{1}}},
		{name: "second failed, first done", pod: podtest.Pod(onFailure, 2, 1), status: podtest.InReady(podtest.Exit("i1", 1), podtest.Exit("i0", 0)), want: Actions{InitContainersToStart: []int{1}}},
		{name: "all done", pod: podtest.Pod(always, 2, 2), status: podtest.InReady(podtest.Exit("i1", 0), podtest.Exit("i0", 0)), want: Actions{ContainersToStart: []int{0, 1}}},
		{name: "failed, always", pod: podtest.Pod(always, 1, 1), status: podtest.InReady(podtest.Exit("i0", 1)), want: Actions{InitContainersToStart: []int{0}}},
		{name: "failed, never", pod: podtest.Pod(never, 2, 1), status: podtest.InReady(podtest.Exit("i0", 1)), want: Actions{KillPod: true}},
		{name: "OOM killed with code 0, never", pod: podtest.Pod(never, 1, 1), status: podtest.InReady(oom), want: Actions{ContainersToStart: nil, InitContainersToStart: nil, KillPod: true}},
		{name: "unknown, always", pod: podtest.Pod(always, 1, 1), status: podtest.InReady(unknown), want: Actions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0(unknownInit, ReasonUnknown)}},
		{name: "unknown, never", pod: podtest.Pod(never, 1, 1), status: podtest.InReady(unknown), want: Actions{KillPod: true}},
		{name: "regular running, init gone", pod: podtest.Pod(always, 1, 1), status: podtest.InReady(podtest.Run("c0"))},
		{name: "regular running, init failed long ago", pod: podtest.Pod(always, 1, 1), status: podtest.InReady(podtest.Run("c0"), podtest.Exit("i0", 1))},
		{name: "only an exited regular one", pod: podtest.Pod(always, 1, 1), status: podtest.InReady(podtest.Exit("c0", 1)), want: Actions{InitContainersToStart: []int{0}}},

		{name: "sidecar running lets the next go", pod: twoSidecars, status: podtest.InReady(podtest.Run("i0")), want: Actions{InitContainersToStart: []int{1}}},
		{name: "last sidecar running", pod: twoSidecars, status: podtest.InReady(podtest.Run("i2"), podtest.Exit("i1", 0), podtest.Run("i0")), want: Actions{ContainersToStart: []int{0}}},
		{name: "earlier sidecar died", pod: twoSidecars, status: podtest.InReady(podtest.Exit("i1", 1), podtest.Exit("i0", 0)), want: Actions{InitContainersToStart: []int{0, 1}}},
		{name: "sidecars gone, pod initialized", pod: twoSidecars, status: podtest.InReady(podtest.Run("c0")), want: Actions{InitContainersToStart: []int{0, 2}}},
		{name: "sidecar without a startup result", pod: started, status: podtest.InReady(podtest.Run("i0")), probes: probeTable{}},
		{name: "sidecar started", pod: started, status: podtest.InReady(podtest.Run("i0")), probes: probeTable{"start i0": ProbeSuccess}, want: Actions{InitContainersToStart: []int{1}}},
		{name: "sidecar failed to start up", pod: started, status: podtest.InReady(podtest.Run("i0")), probes: probeTable{"start i0": ProbeFailure}, want: Actions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0("Init container i0 failed startup probe", ReasonStartupProbe)}},
		{name: "sidecar failed liveness", pod: last, status: podtest.InReady(podtest.Run("c0"), podtest.Run("i0")), probes: probeTable{"live i0": ProbeFailure}, want: Actions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0("Init container i0 failed liveness probe", ReasonLivenessProbe)}},
		{name: "sidecar changed", pod: last, status: podtest.InReady(podtest.Run("c0"), changed), want: Actions{
			InitContainersToStart: []int{0}, ContainersToKill: killI0("Init container i0 definition changed", ReasonNone)}},
		{name: "nobody probes", pod: started, status: podtest.InReady(podtest.Run("i0")), want: Actions{InitContainersToStart: []int{1}}},
	})
}

func TestActionsForRestartAll(t *testing.T) {
	pod := podtest.Pod(v1.RestartPolicyNever, 1, 2)
	never := v1.ContainerRestartPolicyNever
	pod.Spec.Containers[0].RestartPolicy = &never
	pod.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	checkActions(t, []actionsCase{{
		name: "source last", pod: pod, all: true, status: podtest.InReady(podtest.Exit("c0", 42), podtest.Run("c1"), podtest.Exit("i0", 0)),
		want: Actions{ContainersToReset: []Reset{{ID: "c1", Name: "c1", KillFirst: true}, {ID: "i0", Name: "i0"}, {ID: "c0", Name: "c0"}}},
	}})
}

// A resync of an unchanged pod costs hardly anything.
func TestUnchangedPodAllocatesNothing(t *testing.T) {
	in := Input{Pod: podtest.Pod(v1.RestartPolicyAlways, 2, 2), Status: podtest.InReady(podtest.Run("c1"), podtest.Run("c0"), podtest.Exit("i1", 0), podtest.Exit("i0", 0)), Hasher: &kubecontainer.Hasher{}}
	if n := testing.AllocsPerRun(100, func() {
		if a := Compute(in); !a.Idle() {
			t.Fatal("not idle")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkComputePodActionsUnchanged(b *testing.B) {
	in := Input{Pod: podtest.Pod(v1.RestartPolicyAlways, 0, 1), Status: podtest.InReady(podtest.Run("c0")), Hasher: &kubecontainer.Hasher{}}
	b.ReportAllocs()
	for b.Loop() {
		if a := Compute(in); !a.Idle() {
			b.Fatal("not idle")
		}
	}
}
