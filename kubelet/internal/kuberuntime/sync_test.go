package kuberuntime

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
)

const present = `Pulled: Container image "img" already present on machine and can be accessed by the pod`

func started(path string) []string {
	return []string{path + " " + present, path + " Created: Container created", path + " Started: Container started"}
}

func withGrace(pod *v1.Pod, seconds int64) *v1.Pod {
	pod.Spec.TerminationGracePeriodSeconds = &seconds
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].ImagePullPolicy = v1.PullIfNotPresent
	}
	return pod
}

func TestFirstSyncIssuesTheseCalls(t *testing.T) {
	r := newRig(t)
	r.f.reads = true
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	r.do(func(ctx context.Context) {
		if res := r.m.SyncPod(ctx, pod, podtest.Status(nil), nil, r.b, false); res.Error() != nil || len(res.SyncResults) != 3 {
			t.Errorf("%v %+v", res.Error(), res.SyncResults)
		}
	})
	r.expect("start", "RunPodSandbox 0, PodSandboxStatus box0, ImageStatus img:latest, ImageStatus img, CreateContainer c0 0, StartContainer c0-0", started("spec.containers{c0}")...)
	r.f.reads = false
	if res := r.sync(pod); len(res.SyncResults) != 0 {
		t.Errorf("a sync of an unchanged pod did %+v", res.SyncResults)
	}
	r.expect("resync", "")
}

// As recorded in crashloop-always: restarts at once, then held back 10 s.
func TestCrashLoop(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	r.sync(pod)
	r.f.exit("c0-0", 1)
	r.took()
	r.sync(pod)
	r.expect("first restart", "CreateContainer c0 1, StartContainer c0-1", started("spec.containers{c0}")...)
	r.f.exit("c0-1", 1)
	exited := time.Unix(0, r.l.UnixNano())
	res := r.sync(pod)
	r.expect("held back", "", "spec.containers{c0} BackOff: Back-off restarting failed container c0 in pod p_ns(u)")
	err := res.Error()
	if want := `failed to "StartContainer" for "c0" with CrashLoopBackOff: "back-off 10s restarting failed container=c0 pod=p_ns(u)"`; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	var b *kubecontainer.BackoffError
	if !errors.As(err, &b) || !errors.Is(err, kubecontainer.ErrCrashLoopBackOff) || !b.Expiry.Equal(exited.Add(10*time.Second)) {
		t.Errorf("%v: %+v", err, b)
	}
	r.do(func(ctx context.Context) { _ = r.l.Sleep(ctx, 10*time.Second) })
	r.sync(pod)
	r.expect("second restart", "CreateContainer c0 2, StartContainer c0-2", started("spec.containers{c0}")...)
}

// As recorded in init-sequence, then init-fails-never.
func TestInitContainers(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyNever, 2, 1), 30)
	r.sync(pod)
	r.expect("first", "RunPodSandbox 0, CreateContainer i0 0, StartContainer i0-0", started("spec.initContainers{i0}")...)
	r.sync(pod)
	r.expect("waits", "")
	r.f.exit("i0-0", 0)
	r.sync(pod)
	r.expect("second", "CreateContainer i1 0, StartContainer i1-0", started("spec.initContainers{i1}")...)
	r.f.exit("i1-0", 0)
	r.sync(pod)
	r.expect("regular", "CreateContainer c0 0, StartContainer c0-0", started("spec.containers{c0}")...)

	failing := newRig(t)
	failing.sync(pod)
	failing.f.exit("i0-0", 1)
	failing.took()
	failing.sync(pod)
	failing.expect("failed", "StopPodSandbox box0")
}

func TestInitContainerPruning(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 1, 1), 30)
	r.sync(pod)
	for _, id := range []string{"i0-0", "i0-1"} {
		r.f.exit(id, 1)
		r.do(func(ctx context.Context) { _ = r.l.Sleep(ctx, time.Minute) })
		r.took()
		r.sync(pod)
	}
	calls, _ := r.took()
	if want := "RemoveContainer i0-0, CreateContainer i0 2, StartContainer i0-2"; calls != want {
		t.Errorf("%s", calls)
	}
}

func TestLostSandbox(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 1, 1), 7)
	r.sync(pod)
	r.f.exit("i0-0", 0)
	r.sync(pod)
	r.f.sandboxes[0].State = podtest.NotReady
	r.took()
	r.sync(pod)
	events := append([]string{"SandboxChanged: Pod sandbox changed, it will be killed and re-created.", "spec.containers{c0} Killing: Stopping container c0"}, started("spec.initContainers{i0}")...)
	r.expect("lost", "StopContainer c0-0 7, StopPodSandbox box0, RemoveContainer i0-0, RunPodSandbox 1, CreateContainer i0 1, StartContainer i0-1", events...)
}

func TestChangedImage(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)
	r.sync(pod)
	r.took()
	changed := pod.DeepCopy()
	changed.Spec.Containers[0].Image = "img:2"
	r.sync(changed)
	r.expect("changed", "StopContainer c0-0 30, CreateContainer c0 1, StartContainer c0-1",
		"spec.containers{c0} Killing: Container c0 definition changed, will be restarted",
		`spec.containers{c0} Pulled: Container image "img:2" already present on machine and can be accessed by the pod`,
		"spec.containers{c0} Created: Container created", "spec.containers{c0} Started: Container started")
}

func TestStartFailures(t *testing.T) {
	status := grpcstatus.Error(codes.Unknown, "no c0-0 today")
	for _, tc := range []struct {
		method, err, calls string
		events             []string
	}{
		{
			"RunPodSandbox", `failed to "CreatePodSandbox" for "p_ns(u)" with CreatePodSandboxError: "Failed to create sandbox for pod \"p_ns(u)\": rpc error: code = Unknown desc = no c0-0 today"`,
			"RunPodSandbox 0", []string{"FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = no c0-0 today"},
		},
		{
			"PodSandboxStatus", "failed to SyncPod: rpc error: code = Unknown desc = no c0-0 today",
			"RunPodSandbox 0", []string{"FailedPodSandBoxStatus: Unable to get pod sandbox status: rpc error: code = Unknown desc = no c0-0 today"},
		},
		{
			"ImageStatus", `failed to "StartContainer" for "c0" with ImageInspectError: "Failed to inspect image \"\": rpc error: code = Unknown desc = no c0-0 today"`,
			"RunPodSandbox 0", []string{`spec.containers{c0} InspectFailed: Failed to inspect image "": rpc error: code = Unknown desc = no c0-0 today`, "spec.containers{c0} Failed: Error: ImageInspectError"},
		},
		{
			"CreateContainer", `failed to "StartContainer" for "c0" with CreateContainerError: "no c0-0 today"`,
			"RunPodSandbox 0, CreateContainer c0 0", []string{"spec.containers{c0} " + present, "spec.containers{c0} Failed: Error: no c0-0 today"},
		},
		{
			"StartContainer", `failed to "StartContainer" for "c0" with RunContainerError: "no c0-0 today"`,
			"RunPodSandbox 0, CreateContainer c0 0, StartContainer c0-0", []string{"spec.containers{c0} " + present, "spec.containers{c0} Created: Container created", "spec.containers{c0} Failed: Error: no c0 today"},
		},
	} {
		r := newRig(t)
		r.f.fail[tc.method] = status
		res := r.sync(withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30))
		if res.Error() == nil || res.Error().Error() != tc.err {
			t.Errorf("%s: %v", tc.method, res.Error())
		}
		r.expect(tc.method, tc.calls, tc.events...)
	}
}

func TestSandboxErrorOfAPodThatEndsIsSilent(t *testing.T) {
	r := newRig(t)
	r.f.fail["RunPodSandbox"] = grpcstatus.Error(codes.Canceled, "cancelled")
	r.states.terminating = map[uidType]bool{"u": true}
	if res := r.sync(withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30)); res.Error() != nil {
		t.Error(res.Error())
	}
	r.expect("silent", "RunPodSandbox 0")
}

// As recorded in image-absent: one container starts, the other's image can't
// be pulled; its pulls are 10 s, then 20 s apart at least.
func TestImageThatCantBePulled(t *testing.T) {
	r := newRig(t)
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 2), 30)
	pod.Spec.Containers[1].Image = "bad:1"
	r.f.absent["bad:1"] = true
	r.f.fail["PullImage"] = grpcstatus.Error(codes.Unknown, "connection refused")
	res := r.sync(pod)
	if want := `failed to "StartContainer" for "c1" with ErrImagePull: "connection refused"`; res.Error() == nil || res.Error().Error() != want {
		t.Errorf("%v", res.Error())
	}
	pull := []string{`spec.containers{c1} Pulling: Pulling image "bad:1"`, `spec.containers{c1} Failed: Failed to pull image "bad:1": connection refused`, "spec.containers{c1} Failed: Error: ErrImagePull"}
	r.expect("pull", "RunPodSandbox 0, CreateContainer c0 0, StartContainer c0-0, PullImage bad:1", append(started("spec.containers{c0}"), pull...)...)
	res = r.sync(pod)
	if want := `failed to "StartContainer" for "c1" with ImagePullBackOff: "Back-off pulling image \"bad:1\": ErrImagePull: connection refused"`; res.Error() == nil || res.Error().Error() != want {
		t.Errorf("%v", res.Error())
	}
	r.expect("back-off", "", `spec.containers{c1} BackOff: Back-off pulling image "bad:1"`, "spec.containers{c1} Failed: Error: ImagePullBackOff")
	for _, wait := range []time.Duration{10 * time.Second, 20 * time.Second} {
		r.do(func(ctx context.Context) { _ = r.l.Sleep(ctx, wait-time.Second) })
		r.sync(pod)
		r.expect("still in back-off", "", `spec.containers{c1} BackOff: Back-off pulling image "bad:1"`, "spec.containers{c1} Failed: Error: ImagePullBackOff")
		r.do(func(ctx context.Context) { _ = r.l.Sleep(ctx, time.Second) })
		r.sync(pod)
		r.expect("pull again", "PullImage bad:1", pull...)
	}
}

// The start of a sidecar that fails doesn't keep the others from starting, that
// of another init container does.
func TestInitContainerStartFailures(t *testing.T) {
	for _, restartable := range []bool{true, false} {
		r := newRig(t)
		pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 1, 2), 30)
		if restartable {
			podtest.Sidecar(pod, 0)
		}
		r.f.fail["CreateContainer i0"] = grpcstatus.Error(codes.Unknown, "no")
		st := podtest.InReady(podtest.Run("c1")) // initialized, the sidecar and c0 are missing
		want := "CreateContainer i0 0, CreateContainer c0 0, StartContainer c0-0"
		if !restartable {
			st, want = podtest.InReady(), "CreateContainer i0 0"
		}
		r.do(func(ctx context.Context) {
			if res := r.m.SyncPod(ctx, pod, st, nil, r.b, false); res.Error() == nil {
				t.Error("no error")
			}
		})
		if calls, _ := r.took(); calls != want {
			t.Errorf("sidecar %v: %s", restartable, calls)
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	r := newRig(t)
	r.f.takes["RunPodSandbox"] = time.Hour
	start := r.l.Now()
	res := r.sync(withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 1), 30))
	if res.Error() == nil || r.l.Since(start).Round(time.Second) != 4*time.Minute {
		t.Errorf("%v after %v", res.Error(), r.l.Since(start))
	}
}

func BenchmarkResync(b *testing.B) {
	r := newRig(&testing.T{})
	pod := withGrace(podtest.Pod(v1.RestartPolicyAlways, 0, 2), 30)
	st := podtest.InReady(podtest.Run("c1"), podtest.Run("c0"))
	b.ReportAllocs()
	for b.Loop() {
		if res := r.m.SyncPod(context.Background(), pod, st, nil, r.b, false); len(res.SyncResults) != 0 {
			b.Fatal("did something")
		}
	}
}
