package prober

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/probe/exec"
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

// Failures count up to the threshold; then the probe holds until there is
// another container, which begins with a clean count.
func TestLivenessThreshold(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", LivenessProbe: probeSpec(httpGet())}}
	r.running("1", true)
	r.m.AddPod(r.pod)
	r.to(15 * time.Second) // succeeds at 0 and 10
	r.code = 500
	r.to(35 * time.Second)
	r.wantResult(r.m.Liveness, "1", results.Success)
	r.to(65 * time.Second)
	r.wantResult(r.m.Liveness, "1", results.Failure)
	fails := "spec.containers{c} | Warning | Unhealthy | Liveness probe failed: HTTP probe failed with statuscode: 500"
	r.wantEvents("20s | "+fails, "30s | "+fails, "40s | "+fails)
	r.running("2", true)
	r.to(85 * time.Second)
	r.wantResult(r.m.Liveness, "1", nil)
	r.wantResult(r.m.Liveness, "2", results.Success) // two failures, not three
	r.wantEvents("1m10s | "+fails, "1m20s | "+fails)
	r.to(91 * time.Second)
	r.wantResult(r.m.Liveness, "2", results.Failure)
}

func TestSuccessThreshold(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", ReadinessProbe: probeSpec(httpGet(), func(p *v1.Probe) { p.SuccessThreshold, p.FailureThreshold = 3, 1 })}}
	r.running("1", true)
	r.m.AddPod(r.pod)
	for _, step := range []struct {
		at   time.Duration
		code int
		want results.Result
	}{{0, 200, results.Failure}, {10, 200, results.Failure}, {20, 200, results.Success}, {30, 500, results.Failure}, {40, 200, results.Failure}, {50, 500, results.Failure},
		{60, 200, results.Failure}, {70, 200, results.Failure}, {80, 200, results.Success}} {
		r.code = step.code
		r.to(step.at*time.Second + 5*time.Second)
		r.wantResult(r.m.Readiness, "1", step.want)
	}
}

// The readiness probe of a container that isn't ready runs when a status is
// generated, and the ticks go on from there. What is asked for during a probe
// runs right after it.
func TestTrigger(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", ReadinessProbe: probeSpec(command(), every(3))}}
	r.exec = func(ctx context.Context, timeout time.Duration) ([]byte, error) {
		if err := r.l.Sleep(ctx, timeout); err != nil {
			return nil, err
		}
		return nil, &exec.TimeoutError{Err: errors.New(`"check"`), Timeout: timeout}
	}
	r.m.AddPod(r.pod) // the tick at 0 finds no container
	r.to(300 * time.Millisecond)
	r.running("1", true)
	r.m.TriggerReadiness(uid, "c")
	r.to(900 * time.Millisecond)
	r.m.TriggerReadiness(uid, "c") // runs at 1.3
	r.m.TriggerReadiness(uid, "c") // is the same
	r.to(9 * time.Second)
	r.wantRuns("300ms 1 check", "1.3s 1 check", "4.3s 1 check", "7.3s 1 check")
	r.to(10500 * time.Millisecond)
	fails := "s | spec.containers{c} | Warning | Unhealthy | Readiness probe failed: command timed out: \"check\" timed out after 1s"
	r.running("2", true)
	r.to(11500 * time.Millisecond)
	r.wantEvents("11.3" + fails)
}

// A probe that takes longer than its period: one tick is kept, the others are
// dropped, and the ticks stay on their grid.
func TestSlowProbe(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", LivenessProbe: probeSpec(command(), every(1))}}
	takes := 3500 * time.Millisecond
	r.exec = func(ctx context.Context, _ time.Duration) ([]byte, error) {
		d := takes
		takes = 0
		return nil, r.l.Sleep(ctx, d)
	}
	r.running("1", true)
	r.m.AddPod(r.pod)
	r.to(5500 * time.Millisecond)
	r.wantRuns("0s 1 check", "3.5s 1 check", "4s 1 check", "5s 1 check")
}

// When the pod begins to terminate commands are cancelled, now and later, and
// count for nothing; readiness goes on until the pod is gone.
func TestTermination(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", LivenessProbe: probeSpec(command(), every(1)), ReadinessProbe: probeSpec(command(), every(2)), StartupProbe: probeSpec(httpGet(), every(1))}}
	r.running("1", true)
	r.exec = func(ctx context.Context, _ time.Duration) ([]byte, error) {
		return nil, rpcCanceled(r.l.Sleep(ctx, 500*time.Millisecond))
	}
	r.m.AddPod(r.pod)
	r.to(4200 * time.Millisecond)
	r.wantResult(r.m.Readiness, "1", results.Success)
	r.take()
	r.m.Cancel(uid)
	r.m.StopLivenessAndStartup(r.pod)
	r.to(8500 * time.Millisecond)
	r.wantResult(r.m.Liveness, "1", nil)
	r.wantResult(r.m.Readiness, "1", results.Success)
	if n := r.m.Workers(); n != 1 {
		t.Errorf("%d workers, want that of readiness", n)
	}
	e := " probe errored and resulted in unknown state: rpc error: code = Canceled desc = context canceled"
	w := "spec.containers{c} | Warning | Unhealthy | "
	r.wantEvents("4.2s | "+w+"Readiness"+e, "4.2s | "+w+"Liveness"+e, "6s | "+w+"Readiness"+e, "8s | "+w+"Readiness"+e)
	r.m.RemovePod(r.pod)
	r.to(20 * time.Second)
	r.wantEvents()
	r.wantResult(r.m.Readiness, "1", nil)
	if r.m.Workers() != 0 || len(r.m.pods) != 0 {
		t.Errorf("%d workers, %d pods are left", r.m.Workers(), len(r.m.pods))
	}
}

// An error of the probe itself is tried three times at once and counts for
// nothing.
func TestErrors(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", LivenessProbe: probeSpec(command(), func(p *v1.Probe) { p.FailureThreshold = 1 })}}
	r.running("1", true)
	r.exec = func(context.Context, time.Duration) ([]byte, error) { return nil, errors.New("boom") }
	r.m.AddPod(r.pod)
	r.to(5 * time.Second)
	if len(r.runs) != 3 {
		t.Errorf("%d tries, want 3", len(r.runs))
	}
	r.wantEvents("0s | spec.containers{c} | Warning | Unhealthy | Liveness probe errored and resulted in unknown state: boom")
	r.wantResult(r.m.Liveness, "1", results.Success)
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

// A worker that ended for good is not made anew by each sync, only when its
// container runs again.
func TestEndedWorkerStaysEnded(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.RestartPolicy = v1.RestartPolicyNever
	r.pod.Spec.Containers = []v1.Container{{Name: "c", ReadinessProbe: probeSpec(httpGet())}}
	r.running("1", true)
	r.m.AddPod(r.pod)
	r.to(time.Second)
	r.exited("1", 0)
	r.to(20 * time.Second)
	updates := r.m.Readiness.Updates().Len()
	for range 3 {
		r.m.AddPod(r.pod)
		r.to(40 * time.Second)
	}
	if r.m.Workers() != 0 || r.m.has(uid, "c", readiness) || r.m.Readiness.Updates().Len() != updates {
		t.Error("the worker came back")
	}
	r.running("2", true)
	r.m.AddPod(r.pod)
	if r.m.Workers() != 1 {
		t.Error("the worker did not come back for another container")
	}
}

// Only changes are told of, the first result among them.
func TestUpdates(t *testing.T) {
	r := newRig(t)
	r.pod.Spec.Containers = []v1.Container{{Name: "c", ReadinessProbe: probeSpec(httpGet(), func(p *v1.Probe) { p.FailureThreshold = 1 })}}
	r.running("1", true)
	r.m.AddPod(r.pod)
	r.to(25 * time.Second)
	r.code = 404
	r.to(45 * time.Second)
	var got []results.Result
	for {
		u, ok := r.m.Readiness.Updates().TryGet()
		if !ok {
			break
		}
		if u.ContainerID != "1" || u.PodUID != uid {
			t.Errorf("update %+v", u)
		}
		got = append(got, u.Result)
	}
	if len(got) != 3 || got[0] != results.Failure || got[1] != results.Success || got[2] != results.Failure {
		t.Errorf("updates %v", got)
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
