package prober

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/prober/results"
)

func (r *rig) wantResult(m *results.Manager, id string, want any) {
	r.t.Helper()
	got, ok := m.Get(id)
	if want == nil && ok || want != nil && (!ok || got != want) {
		r.t.Errorf("%s: result of %s is %v (known %v), want %v", r.now(), id, got, ok, want)
	}
}

// What a tick does before it probes.
func TestTick(t *testing.T) {
	yes, no := true, false
	ago := func(d time.Duration) v1.ContainerState { // before the tick
		return v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: epochPlus(time.Hour - d)}}}
	}
	ended := func(code int32) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	for _, tc := range []struct {
		name      string
		probeType probeType
		status    *v1.ContainerStatus // nil: the pod has none
		phase     v1.PodPhase
		policy    v1.RestartPolicy
		delay     int32
		deleted   bool
		restarts  bool // all containers
		probed    bool
		ends      bool
		result    any // before the probe's own
	}{
		{name: "no status"},
		{name: "no container ID", status: &v1.ContainerStatus{}},
		{name: "pod failed", status: &v1.ContainerStatus{ContainerID: "x://1", State: ended(1)}, phase: v1.PodFailed, ends: true},
		{name: "pod succeeded", status: &v1.ContainerStatus{ContainerID: "x://1", State: ended(0)}, phase: v1.PodSucceeded, ends: true},
		{name: "waits", probeType: liveness, status: &v1.ContainerStatus{ContainerID: "x://1"}, result: results.Failure},
		{name: "exited, comes back", probeType: readiness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ended(1)}, result: results.Failure},
		{name: "exited for good", probeType: readiness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ended(1)}, policy: v1.RestartPolicyNever, ends: true},
		{name: "exited with success, on failure", status: &v1.ContainerStatus{ContainerID: "x://1", State: ended(0)}, policy: v1.RestartPolicyOnFailure, ends: true},
		{name: "exited, all restart", status: &v1.ContainerStatus{ContainerID: "x://1", State: ended(1)}, policy: v1.RestartPolicyNever, restarts: true, result: results.Failure},
		{name: "liveness, not started", probeType: liveness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &no}, result: results.Success},
		{name: "liveness, unknown whether started", probeType: liveness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second)}, result: results.Success},
		{name: "liveness", probeType: liveness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &yes}, probed: true, result: results.Success},
		{name: "readiness, not started", probeType: readiness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &no}, result: results.Failure},
		{name: "startup", probeType: startup, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &no}, probed: true, result: results.Unknown},
		{name: "startup, started", probeType: startup, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &yes}, result: results.Unknown},
		{name: "delay not over", probeType: liveness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(4900 * time.Millisecond), Started: &yes}, delay: 5, result: results.Success},
		{name: "delay over", probeType: liveness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &yes}, delay: 5, probed: true, result: results.Success},
		{name: "liveness, deleted", probeType: liveness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &yes}, deleted: true, ends: true},
		{name: "startup, deleted", probeType: startup, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &no}, deleted: true, ends: true},
		{name: "readiness, deleted", probeType: readiness, status: &v1.ContainerStatus{ContainerID: "x://1", State: ago(5 * time.Second), Started: &yes}, deleted: true, probed: true, result: results.Failure},
	} {
		r := newRig(t)
		r.exec = func(ctx context.Context, _ time.Duration) ([]byte, error) { return nil, r.l.Sleep(ctx, time.Minute) }
		if tc.policy != "" {
			r.pod.Spec.RestartPolicy = tc.policy
		}
		if tc.deleted {
			r.pod.DeletionTimestamp = &metav1.Time{Time: r.l.Now()}
		}
		p := probeSpec(command(), func(p *v1.Probe) { p.InitialDelaySeconds = tc.delay })
		c := v1.Container{Name: "c"}
		*[...]**v1.Probe{&c.LivenessProbe, &c.ReadinessProbe, &c.StartupProbe}[tc.probeType] = p
		r.pod.Spec.Containers = []v1.Container{c}
		if tc.status != nil {
			tc.status.Name = "c"
			r.set(*tc.status)
			if tc.phase != "" {
				r.status[uid].Phase = tc.phase
			}
			if tc.restarts {
				r.status[uid].Conditions = []v1.PodCondition{{Type: v1.AllContainersRestarting, Status: v1.ConditionTrue}}
			}
		}
		r.m.AddPod(r.pod)
		r.to(time.Second)
		if got := len(r.runs) > 0; got != tc.probed {
			t.Errorf("%s: probed %v", tc.name, got)
		}
		if got := r.m.Workers() == 0; got != tc.ends {
			t.Errorf("%s: ended %v", tc.name, got)
		}
		if tc.result != nil {
			r.wantResult(r.m.resultsOf(tc.probeType), "1", tc.result)
		} else {
			r.wantResult(r.m.resultsOf(tc.probeType), "1", nil)
		}
	}
}

// A kubelet that restarts waits a random part of the period, and keeps what the
// API says of containers that ran well before it.
func TestKubeletRestart(t *testing.T) {
	for _, tc := range []struct {
		name    string
		age     time.Duration
		sidecar bool
		want    [3]any // liveness, readiness, startup
	}{
		{"old", time.Hour, false, [3]any{nil, nil, nil}},
		{"old sidecar", time.Hour, true, [3]any{nil, nil, results.Success}},
		{"new", 5 * time.Second, false, [3]any{results.Success, results.Failure, results.Unknown}},
	} {
		r := newRig(t)
		r.exec = func(ctx context.Context, _ time.Duration) ([]byte, error) { return nil, r.l.Sleep(ctx, time.Minute) }
		c := v1.Container{Name: "c", LivenessProbe: probeSpec(command()), ReadinessProbe: probeSpec(command()), StartupProbe: probeSpec(command())}
		if tc.sidecar {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
			r.pod.Spec.InitContainers = []v1.Container{c}
		} else {
			r.pod.Spec.Containers = []v1.Container{c}
		}
		yes := true
		r.set(v1.ContainerStatus{Name: "c", ContainerID: "containerd://1", Started: &yes,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Time{Time: r.l.Now().Add(-tc.age)}}}})
		r.newManager() // the new kubelet's
		r.m.AddPod(r.pod)
		r.to(time.Millisecond)
		if len(r.runs) != 0 {
			t.Errorf("%s: probes ran at once: %v", tc.name, r.runs)
		}
		r.to(10 * time.Second)
		if len(r.runs) != 2 { // liveness and readiness, within one period
			t.Errorf("%s: probes %v", tc.name, r.runs)
		}
		for i, m := range []*results.Manager{r.m.Liveness, r.m.Readiness, r.m.Startup} {
			r.wantResult(m, "1", tc.want[i])
		}
	}
}

func TestAddPodAndCleanup(t *testing.T) {
	r := newRig(t)
	always := v1.ContainerRestartPolicyAlways
	r.pod.Spec.InitContainers = []v1.Container{
		{Name: "plain", ReadinessProbe: probeSpec(httpGet())},
		{Name: "side", RestartPolicy: &always, StartupProbe: probeSpec(httpGet()), LivenessProbe: probeSpec(httpGet())},
	}
	r.pod.Spec.Containers = []v1.Container{{Name: "a"}, {Name: "b", ReadinessProbe: probeSpec(httpGet()), LivenessProbe: probeSpec(httpGet())}}
	r.m.AddPod(r.pod)
	r.m.AddPod(r.pod)
	if n := r.m.Workers(); n != 4 {
		t.Errorf("%d workers, want 4", n)
	}
	r.m.StopLivenessAndStartup(r.pod)
	if n := r.m.Workers(); n != 3 || !r.m.has(uid, "b", readiness) || !r.m.has(uid, "side", liveness) {
		t.Errorf("%d workers, want that of readiness and the sidecar's", n)
	}
	r.m.CleanupPods(func(u types.UID) bool { return u == uid })
	if n := r.m.Workers(); n != 3 {
		t.Errorf("%d workers, want 3: the pod is wanted", n)
	}
	r.m.CleanupPods(func(types.UID) bool { return false })
	if r.m.Workers() != 0 || len(r.m.pods) != 0 {
		t.Error("workers of a pod that is not wanted are left")
	}
}
