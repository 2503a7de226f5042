package kuberuntime

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

type uidType = types.UID

func TestGracePeriod(t *testing.T) {
	probe := &v1.Probe{TerminationGracePeriodSeconds: new(int64(60))}
	for _, tc := range []struct {
		name           string
		deletion, spec *int64
		startup, live  *v1.Probe
		reason         actions.Reason
		want           int64
	}{
		{name: "neither", want: 2},
		{name: "spec", spec: new(int64(30)), want: 30},
		{name: "deletion", deletion: new(int64(5)), spec: new(int64(30)), want: 5},
		{name: "deletion 0", deletion: new(int64(0)), spec: new(int64(30)), want: 0},
		{name: "liveness", spec: new(int64(30)), live: probe, reason: actions.ReasonLivenessProbe, want: 60},
		{name: "liveness without its own", spec: new(int64(30)), live: &v1.Probe{}, reason: actions.ReasonLivenessProbe, want: 30},
		{name: "startup, only liveness has its own", spec: new(int64(30)), live: probe, startup: &v1.Probe{}, reason: actions.ReasonStartupProbe, want: 30},
		{name: "startup", spec: new(int64(30)), startup: probe, reason: actions.ReasonStartupProbe, want: 60},
		{name: "liveness while deleted", deletion: new(int64(5)), spec: new(int64(30)), live: probe, reason: actions.ReasonLivenessProbe, want: 5},
	} {
		pod := &v1.Pod{}
		pod.DeletionGracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds = tc.deletion, tc.spec
		if got := gracePeriod(pod, &v1.Container{StartupProbe: tc.startup, LivenessProbe: tc.live}, tc.reason); got != tc.want {
			t.Errorf("%s: %d", tc.name, got)
		}
	}
}

func TestKillPod(t *testing.T) {
	for _, tc := range []struct {
		name     string
		override *int64
		want     int64
	}{{"own grace", nil, 30}, {"override", new(int64(5)), 5}, {"override below the minimum", new(int64(1)), 2}} {
		r := newRig(t)
		pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 3), 30)
		r.sync(pod)
		r.took()
		r.f.takes["StopContainer"] = 4 * time.Second
		start := r.l.Now()
		r.do(func(ctx context.Context) {
			if err := r.m.KillPod(ctx, pod, kubecontainer.RunningPod(r.status(ctx)), tc.override); err != nil {
				t.Error(err)
			}
		})
		// Side by side, in the order of the spec; the sandbox afterwards.
		r.expect(tc.name, fmt.Sprintf("StopContainer c0-0 %d, StopContainer c1-0 %[1]d, StopContainer c2-0 %[1]d, StopPodSandbox box0", tc.want),
			"spec.containers{c0} Killing: Stopping container c0", "spec.containers{c1} Killing: Stopping container c1", "spec.containers{c2} Killing: Stopping container c2")
		if got := r.l.Since(start).Round(time.Second); got != 4*time.Second {
			t.Errorf("%s: took %v", tc.name, got)
		}
	}
}

func TestKillGoesOnWhenItsContextEnds(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 2), 30)
	r.sync(pod)
	r.took()
	r.f.takes["StopContainer"] = 4 * time.Second
	r.do(func(ctx context.Context) {
		st := r.status(ctx)
		ctx, cancel := loop.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := r.m.KillPod(ctx, pod, kubecontainer.RunningPod(st), nil); err != nil {
			t.Error(err)
		}
	})
	if calls, _ := r.took(); !strings.HasSuffix(calls, "StopPodSandbox box0") {
		t.Error(calls)
	}
}

func TestKillErrors(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	r.sync(pod)
	r.f.fail["StopContainer"] = fmt.Errorf("boom")
	r.took()
	r.do(func(ctx context.Context) {
		err := r.m.KillPod(ctx, pod, kubecontainer.RunningPod(r.status(ctx)), nil)
		if want := `failed to "KillContainer" for "c0" with KillContainerError: "boom"`; err == nil || err.Error() != want {
			t.Error(err)
		}
	})
	if calls, _ := r.took(); calls != "StopContainer c0-0 30, StopPodSandbox box0" {
		t.Error(calls)
	}
	r.f.fail = map[string]error{"StopPodSandbox": fmt.Errorf("boom")}
	r.do(func(ctx context.Context) {
		err := r.m.KillPod(ctx, nil, kubecontainer.RunningPod(r.status(ctx)), new(int64(1)))
		if want := `failed to "KillPodSandbox" for "u" with KillPodSandboxError: "boom"`; err == nil || err.Error() != want {
			t.Error(err)
		}
	})
	if calls, _ := r.took(); calls != "StopPodSandbox box0" {
		t.Error(calls)
	}
}

func TestSidecarsEndAfterTheOthers(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Sidecar(podtest.Sidecar(podtest.Pod(v1.RestartPolicyAlways, 2, 1), 0), 1), 30)
	for range 3 {
		r.sync(pod)
	}
	r.took()
	r.f.takes["StopContainer"] = 5 * time.Second
	r.do(func(ctx context.Context) {
		if err := r.m.KillPod(ctx, pod, kubecontainer.RunningPod(r.status(ctx)), nil); err != nil {
			t.Error(err)
		}
	})
	calls, _ := r.took()
	if want := "StopContainer c0-0 30, StopContainer i1-0 25, StopContainer i0-0 20, StopPodSandbox box0"; calls != want {
		t.Errorf("%s", calls)
	}
	// What doesn't end in time is not waited for any longer than the grace.
	slow := newRig(t)
	for range 3 {
		slow.sync(pod)
	}
	slow.took()
	slow.f.takes["StopContainer c0-0"] = 100 * time.Second
	slow.do(func(ctx context.Context) {
		if err := slow.m.KillPod(ctx, pod, kubecontainer.RunningPod(slow.status(ctx)), new(int64(10))); err != nil {
			t.Error(err)
		}
	})
	calls, _ = slow.took()
	if want := "StopContainer c0-0 10, StopContainer i0-0 2, StopContainer i1-0 2, StopPodSandbox box0"; calls != want {
		t.Errorf("%s", calls)
	}
}

func TestGarbageCollect(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	for i := range 3 {
		r.sync(pod)
		r.f.exit(fmt.Sprintf("c0-%d", i), 1)
		r.do(func(ctx context.Context) { _ = r.l.Sleep(ctx, time.Minute) })
	}
	gc := func(policy GCPolicy, ready, all bool) string {
		r.took()
		r.do(func(ctx context.Context) {
			if err := r.m.GarbageCollect(ctx, policy, ready, all); err != nil {
				t.Error(err)
			}
		})
		calls, _ := r.took()
		return calls
	}
	if got, want := gc(GCPolicy{MaxPerPodContainer: -1, MaxContainers: -1}, true, false), ""; got != want {
		t.Errorf("no bounds: %s", got)
	}
	if got, want := gc(GCPolicy{MinAge: time.Hour, MaxContainers: -1}, true, false), ""; got != want {
		t.Errorf("too young: %s", got)
	}
	if got, want := gc(GCPolicy{MaxPerPodContainer: -1, MaxContainers: 2}, true, false), "RemoveContainer c0-0"; got != want {
		t.Errorf("two at most: %s", got)
	}
	if got, want := gc(DefaultGCPolicy(), true, false), "RemoveContainer c0-1"; got != want {
		t.Errorf("default: %s", got)
	}
	r.f.sandboxes[0].State = podtest.NotReady
	if got := gc(DefaultGCPolicy(), true, false); got != "" {
		t.Errorf("the last sandbox stays: %s", got)
	}
	r.states.runtime = map[types.UID]bool{"u": true}
	if got := gc(DefaultGCPolicy(), true, false); got != "" {
		t.Errorf("terminated, not all: %s", got)
	}
	r.states.content = map[types.UID]bool{"u": true}
	if got := gc(DefaultGCPolicy(), false, false); got != "" {
		t.Errorf("sources not ready: %s", got)
	}
	if got, want := gc(DefaultGCPolicy(), true, false), "RemoveContainer c0-2, StopPodSandbox box0, RemovePodSandbox box0"; got != want {
		t.Errorf("gone: %s", got)
	}
}
