package kuberuntime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
	"github.com/drydock-sim/drydock/kubelet/internal/probe/exec"
)

type exitError int

func (e exitError) Error() string   { return fmt.Sprintf("command 'hook' exited with %d: ", int(e)) }
func (e exitError) ExitStatus() int { return int(e) }

func execHook(command ...string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: command}}
}

// The postStart hook holds up what comes after it in the sync; its failure
// kills the container.
func TestPostStart(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 2), 30)
	pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: execHook("hook")}
	r.f.takes["ExecSync"] = 3 * time.Minute // longer than a request may take
	start := r.l.Now()
	if result := r.sync(pod); result.Error() != nil {
		t.Error(result.Error())
	}
	calls, _ := r.took()
	if want := "RunPodSandbox 0, CreateContainer c0 0, StartContainer c0-0, ExecSync c0-0 hook, CreateContainer c1 0, StartContainer c1-0"; calls != want {
		t.Errorf("calls %s", calls)
	}
	if d := r.l.Since(start); d < 3*time.Minute || d > 4*time.Minute {
		t.Errorf("took %v", d)
	}

	r = newRig(t)
	r.f.fail["ExecSync"] = exitError(1)
	result := r.sync(pod)
	if want := `failed to "StartContainer" for "c0" with PostStartHookError: "Exec lifecycle hook ([hook]) for Container \"c0\" in Pod \"p_ns(u)\" failed - error: command 'hook' exited with 1: , message: \"outerr\""`; result.Error() == nil || result.Error().Error() != want {
		t.Errorf("%v\nwant %s", result.Error(), want)
	}
	calls, events := r.took()
	if want := "RunPodSandbox 0, CreateContainer c0 0, StartContainer c0-0, ExecSync c0-0 hook, StopContainer c0-0 30, CreateContainer c1 0, StartContainer c1-0"; calls != want {
		t.Errorf("calls %s", calls)
	}
	want := "spec.containers{c0} Started: Container started\nspec.containers{c0} FailedPostStartHook: PostStartHook failed\nspec.containers{c0} Killing: FailedPostStartHook\n"
	if !contains(events, want) {
		t.Errorf("events\n%s", events)
	}
}

func contains(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// A preStop hook has its share of the grace period.
func TestPreStop(t *testing.T) {
	for _, tc := range []struct {
		name     string
		hook     *v1.LifecycleHandler
		takes    time.Duration
		fails    bool
		override *int64
		calls    string
		failed   bool // event
		took     time.Duration
	}{
		{name: "short", hook: execHook("x"), takes: 4700 * time.Millisecond, calls: "ExecSync c0-0 x, StopContainer c0-0 26", took: 4700 * time.Millisecond},
		{name: "longer than the grace", hook: execHook("x"), takes: 40 * time.Second, calls: "ExecSync c0-0 x, StopContainer c0-0 2", took: 30 * time.Second},
		{name: "fails", hook: execHook("x"), fails: true, calls: "ExecSync c0-0 x, StopContainer c0-0 30", failed: true},
		{name: "override", hook: execHook("x"), takes: 3 * time.Second, override: new(int64(4)), calls: "ExecSync c0-0 x, StopContainer c0-0 2", took: 3 * time.Second},
		{name: "grace of 1", hook: execHook("x"), takes: 10 * time.Second, override: new(int64(1)), calls: "ExecSync c0-0 x, StopContainer c0-0 2", took: time.Second},
		{name: "grace of 0: no hook", hook: execHook("x"), override: new(int64(0)), calls: "StopContainer c0-0 2"},
		{name: "sleep", hook: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3}}, calls: "StopContainer c0-0 27", took: 3 * time.Second},
		{name: "long sleep", hook: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 60}}, calls: "StopContainer c0-0 2", took: 30 * time.Second},
	} {
		r := newRig(t)
		pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
		r.sync(pod)
		pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: tc.hook}
		r.took()
		r.f.takes["ExecSync"] = tc.takes
		if tc.fails {
			r.f.fail["ExecSync"] = exitError(1)
		}
		start := r.l.Now()
		var took time.Duration
		r.do(func(ctx context.Context) {
			if err := r.m.KillPod(ctx, pod, kubecontainer.RunningPod(r.status(ctx)), tc.override); err != nil {
				t.Error(err)
			}
			took = r.l.Since(start).Round(time.Millisecond)
		})
		events := []string{"spec.containers{c0} Killing: Stopping container c0"}
		if tc.failed {
			events = append(events, "spec.containers{c0} FailedPreStopHook: PreStopHook failed")
		}
		r.expect(tc.name, tc.calls+", StopPodSandbox box0", events...)
		if took != tc.took {
			t.Errorf("%s: took %v, want %v", tc.name, took, tc.took)
		}
	}
}

// All preStop hooks run at once; only the stopping is ordered.
func TestSidecarPreStopsAreNotOrdered(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Sidecar(podtest.Pod(v1.RestartPolicyAlways, 1, 1), 0), 30)
	for range 2 {
		r.sync(pod)
	}
	r.took()
	for _, c := range []*v1.Container{&pod.Spec.Containers[0], &pod.Spec.InitContainers[0]} {
		c.Lifecycle = &v1.Lifecycle{PreStop: execHook("x")}
	}
	r.f.takes["ExecSync c0-0"], r.f.takes["ExecSync i0-0"], r.f.takes["StopContainer"] = 5*time.Second, 2*time.Second, 4*time.Second
	r.do(func(ctx context.Context) {
		if err := r.m.KillPod(ctx, pod, kubecontainer.RunningPod(r.status(ctx)), nil); err != nil {
			t.Error(err)
		}
	})
	// The sidecar waits for 2 s of its hook and 7 s for its turn.
	if calls, _ := r.took(); calls != "ExecSync i0-0 x, ExecSync c0-0 x, StopContainer c0-0 25, StopContainer i0-0 21, StopPodSandbox box0" &&
		calls != "ExecSync c0-0 x, ExecSync i0-0 x, StopContainer c0-0 25, StopContainer i0-0 21, StopPodSandbox box0" {
		t.Error(calls)
	}
}

// A container that a failed liveness probe kills gets its preStop hook, and the
// probe's own grace period.
func TestPreStopOnRestart(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	c := &pod.Spec.Containers[0]
	c.LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: new(int64(7))}
	c.Lifecycle = &v1.Lifecycle{PreStop: execHook("x")}
	r.sync(pod)
	r.took()
	r.f.takes["ExecSync"] = 2 * time.Second
	r.m.o.Probes = failing{}
	r.sync(pod)
	if calls, events := r.took(); calls != "ExecSync c0-0 x, StopContainer c0-0 5, CreateContainer c0 1, StartContainer c0-1" ||
		!contains(events, "Killing: Container c0 failed liveness probe, will be restarted") {
		t.Error(calls, events)
	}
}

type failing struct{}

func (failing) Liveness(string) actions.ProbeResult { return actions.ProbeFailure }
func (failing) Startup(string) actions.ProbeResult  { return actions.ProbeNone }

// What RunInContainer makes of a command's end.
func TestRunInContainer(t *testing.T) {
	for _, tc := range []struct {
		name    string
		takes   time.Duration
		err     error
		timeout time.Duration
		cancel  bool
		want    string
		late    bool
	}{
		{name: "ok"},
		{name: "exits", err: exitError(3), want: "command 'hook' exited with 3: "},
		{name: "the runtime says it is late", err: grpcstatus.Error(codes.DeadlineExceeded, "failed to exec in container: timeout 1s exceeded"), timeout: time.Second,
			want: `command timed out: "sh -c sleep 5" timed out after 1s`, late: true},
		{name: "the runtime says nothing", takes: time.Hour, timeout: time.Second, want: `command timed out: "sh -c sleep 5" timed out after 1s`, late: true},
		{name: "cancelled", takes: time.Hour, cancel: true, want: "rpc error: code = Canceled desc = context canceled"},
		{name: "other error", err: grpcstatus.Error(codes.Unknown, "boom"), want: "rpc error: code = Unknown desc = boom"},
	} {
		r := newRig(t)
		r.f.takes["ExecSync"] = tc.takes
		if tc.err != nil {
			r.f.fail["ExecSync"] = tc.err
		}
		var err error
		var out []byte
		r.do(func(ctx context.Context) {
			ctx, cancel := loop.WithCancel(ctx)
			defer cancel()
			if tc.cancel {
				r.l.Root().After(time.Second, cancel)
			}
			out, err = r.m.RunInContainer(ctx, "id", []string{"sh", "-c", "sleep 5"}, tc.timeout)
		})
		late := (*exec.TimeoutError)(nil)
		if fmt.Sprint(err) != fmt.Sprint(tc.want) && (err != nil || tc.want != "") || errors.As(err, &late) != tc.late {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.want == "" && string(out) != "outerr" {
			t.Errorf("%s: output %q", tc.name, out)
		}
	}
}

func TestStopSignal(t *testing.T) {
	quit := v1.SIGQUIT
	for _, tc := range []struct {
		gate bool
		l    *v1.Lifecycle
		want runtimeapi.Signal
	}{
		{true, nil, runtimeapi.Signal_RUNTIME_DEFAULT},
		{true, &v1.Lifecycle{}, runtimeapi.Signal_RUNTIME_DEFAULT},
		{true, &v1.Lifecycle{StopSignal: &quit}, runtimeapi.Signal_SIGQUIT},
		{false, &v1.Lifecycle{StopSignal: &quit}, runtimeapi.Signal_RUNTIME_DEFAULT},
	} {
		r := newRig(t)
		r.m.o.Node.StopSignals = tc.gate
		if got := r.m.stopSignal(&v1.Container{Lifecycle: tc.l}); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}
