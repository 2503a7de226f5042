package status

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

func list(cpu, memory string) v1.ResourceList {
	out := v1.ResourceList{}
	if cpu != "" {
		out[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		out[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return out
}

// TestResources: the allocated resources are the base, what the runtime reports
// of a running container goes over them.
func TestResources(t *testing.T) {
	allocated := v1.ResourceRequirements{Requests: list("200m", "64Mi"), Limits: list("400m", "128Mi")}
	for _, tc := range []struct {
		name     string
		spec     v1.ResourceRequirements
		state    string
		reported *kubecontainer.Resources
		memory   int64 // the actuated request
		prev     *v1.ResourceRequirements
		want     v1.ResourceRequirements
	}{
		{name: "not running", spec: allocated, state: "c exited 0", reported: &kubecontainer.Resources{MilliCPULimit: 1}, want: allocated},
		{name: "as allocated", spec: allocated, state: "c running", memory: 64 << 20,
			reported: &kubecontainer.Resources{MilliCPURequest: 200, MilliCPULimit: 400, MemoryLimit: 128 << 20}, want: allocated},
		{name: "not actuated yet", spec: allocated, state: "c running", memory: 32 << 20,
			reported: &kubecontainer.Resources{MilliCPURequest: 100, MilliCPULimit: 100, MemoryLimit: 64 << 20},
			want:     v1.ResourceRequirements{Requests: list("100m", "32Mi"), Limits: list("100m", "64Mi")}},
		{name: "no list gets nothing", spec: v1.ResourceRequirements{Requests: list("200m", "")}, state: "c running",
			reported: &kubecontainer.Resources{MilliCPURequest: 100, MilliCPULimit: 100, MemoryLimit: 64 << 20},
			want:     v1.ResourceRequirements{Requests: list("100m", "")}},
		{name: "what is too small to be seen stays", spec: v1.ResourceRequirements{Requests: list("1m", ""), Limits: list("5m", "")}, state: "c running",
			reported: &kubecontainer.Resources{MilliCPURequest: 2, MilliCPULimit: 10},
			want:     v1.ResourceRequirements{Requests: list("1m", ""), Limits: list("5m", "")}},
		{name: "nothing reported", spec: allocated, state: "c running", prev: &v1.ResourceRequirements{Requests: list("50m", "16Mi"), Limits: list("60m", "32Mi")},
			want: v1.ResourceRequirements{Requests: list("50m", "16Mi"), Limits: list("60m", "32Mi")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := testPod(v1.RestartPolicyAlways, "c")
			p.Spec.Containers[0].Resources = tc.spec
			before := p.DeepCopy()
			r := runtimeOf(true, tc.state)
			r.ContainerStatuses[0].Resources = tc.reported
			s := generate(p, r, func(in *Input) {
				in.Resizing = true
				in.ActuatedMemoryRequest = func(string) int64 { return tc.memory }
				if tc.prev != nil {
					in.Old = &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
						Name: "c", ContainerID: "containerd://" + r.ContainerStatuses[0].ID, Resources: tc.prev,
						State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
					}}}
				}
			})
			got := s.ContainerStatuses[0]
			if got.Resources == nil || !equality.Semantic.DeepEqual(*got.Resources, tc.want) {
				t.Errorf("got %v", got.Resources)
			}
			if !equality.Semantic.DeepEqual(got.AllocatedResources, tc.spec.Requests) {
				t.Errorf("allocated %v", got.AllocatedResources)
			}
			if !equality.Semantic.DeepEqual(p, before) {
				t.Error("the pod was written to")
			}
		})
	}
}

// TestPodTotals: the sums of requests and limits are told of every pod, empty
// ones of a pod that asks for nothing.
func TestPodTotals(t *testing.T) {
	env := &Env{RuntimeName: "containerd", Totals: &TotalsMemo{}}
	p := testPod(v1.RestartPolicyAlways, "a", "b")
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Resources.Requests = list("100m", "10Mi")
	}
	s := generate(p, runtimeOf(true, "a running", "b running"), func(in *Input) { in.Env = env })
	if !equality.Semantic.DeepEqual(s.AllocatedResources, list("200m", "20Mi")) ||
		!equality.Semantic.DeepEqual(s.Resources, &v1.ResourceRequirements{Requests: list("200m", "20Mi")}) {
		t.Errorf("got %v, %v", s.AllocatedResources, s.Resources)
	}
	none := generate(testPod(v1.RestartPolicyAlways, "a"), runtimeOf(true, "a running"), func(in *Input) { in.Env = env })
	if none.AllocatedResources != nil || !equality.Semantic.DeepEqual(none.Resources, &v1.ResourceRequirements{}) {
		t.Errorf("got %v, %v of a pod that asks for nothing", none.AllocatedResources, none.Resources)
	}
	gpu := testPod(v1.RestartPolicyAlways, "a")
	gpu.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/gpu": resource.MustParse("1"), v1.ResourceCPU: resource.MustParse("2")}
	for phase, want := range map[v1.PodPhase]v1.ResourceList{v1.PodPending: gpu.Spec.Containers[0].Resources.Limits, v1.PodRunning: list("2", "")} {
		gpu.Status.Phase = phase
		s = generate(gpu, runtimeOf(true, "a running"), func(in *Input) { in.Env = env })
		if !equality.Semantic.DeepEqual(s.Resources.Limits, want) {
			t.Errorf("%s: got limits %v, want %v", phase, s.Resources.Limits, want)
		}
	}
	q := p.DeepCopy()
	q.Spec.Resources = &v1.ResourceRequirements{Requests: list("500m", ""), Limits: list("1", "")}
	q.Status.Phase = v1.PodRunning
	s = generate(q, runtimeOf(true, "a running", "b running"), func(in *Input) {
		in.Env = env
		in.PodCgroup = func() (int64, int64, int64) { return 300, 2000, 0 }
	})
	if !equality.Semantic.DeepEqual(s.AllocatedResources, list("500m", "20Mi")) ||
		!equality.Semantic.DeepEqual(s.Resources, &v1.ResourceRequirements{Requests: list("300m", "20Mi"), Limits: list("2", "")}) {
		t.Errorf("got %v, %v", s.AllocatedResources, s.Resources)
	}
	env.Totals.Of(p)
	if n := testing.AllocsPerRun(10, func() { env.Totals.Of(p) }); n != 0 {
		t.Errorf("%v allocations for a known spec", n)
	}
}

// TestResizeConditions: transition times move with the reason, the generation
// of a resize in progress stays, and a reason is not cleared by an empty one.
func TestResizeConditions(t *testing.T) {
	m, _, l := newManager(t)
	if !m.SetPodResizePending("u", v1.PodReasonDeferred, "no room", 2) {
		t.Error("nothing new")
	}
	pending, _ := m.PodResizeConditions("u")
	first := pending.LastTransitionTime
	l.RunUntil(l.Now().Add(90e9))
	if m.SetPodResizePending("u", v1.PodReasonDeferred, "still no room", 2) {
		t.Error("another message is no news")
	}
	pending, _ = m.PodResizeConditions("u")
	if !pending.LastTransitionTime.Equal(&first) || pending.LastProbeTime.Equal(&first) || pending.Message != "still no room" {
		t.Errorf("got %+v", pending)
	}
	if !m.SetPodResizePending("u", v1.PodReasonDeferred, "still no room", 3) || !m.SetPodResizePending("u", v1.PodReasonInfeasible, "never", 3) {
		t.Error("another generation or reason is no news")
	}
	m.ClearPodResizePending("u")
	if !m.SetPodResizeInProgress("u", "", "", 3) || !m.SetPodResizeInProgress("u", v1.PodReasonError, "no", 4) || m.SetPodResizeInProgress("u", v1.PodReasonError, "no", 4) {
		t.Error("news are told wrongly")
	}
	m.SetPodResizeInProgress("u", "", "", 5)
	if _, p := m.PodResizeConditions("u"); p.Reason != v1.PodReasonError || p.ObservedGeneration != 3 {
		t.Errorf("got %+v", p)
	}
	if len(m.ResizeConditions("u")) != 1 {
		t.Errorf("got %v", m.ResizeConditions("u"))
	}
	if g, cleared := m.ClearPodResizeInProgress("u"); g != 3 || !cleared {
		t.Errorf("cleared %t of generation %d", cleared, g)
	}
	if _, cleared := m.ClearPodResizeInProgress("u"); cleared || m.ResizeConditions("u") != nil || len(m.resizes) != 0 {
		t.Error("something is left")
	}
}
