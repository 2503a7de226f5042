//go:build linux

package server_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/fakecri/server"
)

func (r *rig) subscribe(t *testing.T, ctx context.Context) runtimeapi.RuntimeService_GetContainerEventsClient {
	t.Helper()
	stream, err := r.rt.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	return stream
}

// The events of a container that exits by itself, and of its sandbox.
func TestEvents(t *testing.T) {
	r := newRig(t, fakecritest.WithRuntime(func(o *fakecri.Options) {
		o.Images = []fakecri.Image{{Name: "app:1", Present: true}}
		o.Programs = []fakecri.Program{{Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: time.Millisecond, Max: time.Millisecond}, ExitCode: 3}}}
	}))
	ctx := testContext(t)
	stream := r.subscribe(t, ctx)
	began := time.Now()
	sandbox := r.runSandbox(t, "web")
	id := r.runContainer(t, sandbox, containerConfig("app"))
	got := map[string][]runtimeapi.ContainerEventType{}
	recv := func() *runtimeapi.ContainerEventResponse {
		t.Helper()
		ev, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got[ev.ContainerId] = append(got[ev.ContainerId], ev.ContainerEventType)
		if ev.PodSandboxStatus.GetMetadata().GetUid() != "uid-web" || ev.CreatedAt < began.UnixNano() {
			t.Errorf("event %v", ev)
		}
		return ev
	}
	const stopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	for {
		ev := recv()
		if ev.ContainerId == id && ev.ContainerEventType == stopped {
			if st := ev.ContainersStatuses; len(st) != 1 || st[0].ExitCode != 3 || st[0].State != runtimeapi.ContainerState_CONTAINER_EXITED {
				t.Errorf("statuses: %v", st)
			}
			break
		}
	}
	for range 2 {
		if _, err := r.rt.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.rt.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.rt.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox}); err != nil {
		t.Fatal(err)
	}
	for recv().ContainerEventType != runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT || len(got[sandbox]) < 4 {
	}
	want := []runtimeapi.ContainerEventType{0, 1, 2, 3}
	if !slices.Equal(got[id], want) || !slices.Equal(got[sandbox], want) {
		t.Errorf("events %v", got)
	}
}

// Several subscribers get the same; one that has left costs nothing.
func TestSubscribers(t *testing.T) {
	r := newRig(t, sleeper)
	ctx, cancel := context.WithCancel(testContext(t))
	left := r.subscribe(t, ctx)
	a, b := r.subscribe(t, testContext(t)), r.subscribe(t, testContext(t))
	cancel()
	_, err := left.Recv()
	wantCode(t, "a stream that was cancelled", err, codes.Canceled)
	r.runSandbox(t, "web")
	for range 2 {
		x, errx := a.Recv()
		y, erry := b.Recv()
		if errx != nil || erry != nil || x.ContainerId != y.ContainerId || x.ContainerEventType != y.ContainerEventType {
			t.Errorf("%v, %v and %v, %v", x, errx, y, erry)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		st, err := r.Server.Server().State()
		if err != nil {
			t.Fatal(err)
		}
		if st.Subscribers == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d subscribers, want 2", st.Subscribers)
		}
	}
}

// A subscriber that doesn't read is dropped; the runtime never waits for it.
func TestSlowSubscriber(t *testing.T) {
	r := newRig(t, sleeper, fakecritest.WithOptions(func(o *server.Options) { o.EventBuffer = 4 }))
	ctx := testContext(t)
	stream := r.subscribe(t, ctx)
	big := sandboxConfig("web")
	big.Annotations = map[string]string{"big": string(make([]byte, 256<<10))}
	for range 50 { // more than flow control lets through
		resp, err := r.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: big})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.rt.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: resp.PodSandboxId}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for n := 0; err == nil; n++ {
		if _, err = stream.Recv(); n > 200 {
			t.Fatal("the stream goes on")
		}
	}
	wantCode(t, "the stream's end", err, codes.ResourceExhausted)
}
