//go:build linux

package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
	"github.com/drydock-sim/drydock/fakecri/server"
)

// A pod's life over the socket.
func TestLife(t *testing.T) {
	r := newRig(t, sleeper)
	ctx := testContext(t)
	v, err := r.rt.Version(ctx, &runtimeapi.VersionRequest{Version: "0.1.0"})
	if err != nil || v.Version != "0.1.0" || v.RuntimeName == "" || v.RuntimeVersion == "" || v.RuntimeApiVersion == "" {
		t.Fatalf("Version: %v, %v", v, err)
	}
	sandbox := r.runSandbox(t, "web")
	id := r.runContainer(t, sandbox, containerConfig("app"))
	st, err := r.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil || st.Status.State != runtimeapi.ContainerState_CONTAINER_RUNNING || st.Info != nil {
		t.Fatalf("ContainerStatus: %v, %v", st, err)
	}
	if !proto.Equal(st.Status.Metadata, containerConfig("app").Metadata) || st.Status.Labels["io.kubernetes.container.name"] != "app" {
		t.Errorf("what was given has not come back: %v", st.Status)
	}
	if _, err := r.rt.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 60}); err != nil {
		t.Fatalf("StopContainer: %v", err)
	}
	for range 2 {
		if _, err := r.rt.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			t.Fatalf("StopPodSandbox: %v", err)
		}
	}
	ps, err := r.rt.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil || ps.Status.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		t.Fatalf("PodSandboxStatus: %v, %v", ps, err)
	}
	for range 2 {
		if _, err := r.rt.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			t.Fatalf("RemovePodSandbox: %v", err)
		}
	}
	_, err = r.rt.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandbox})
	wantCode(t, "PodSandboxStatus of a removed sandbox", err, codes.NotFound)
	_, err = r.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	wantCode(t, "ContainerStatus in a removed sandbox", err, codes.NotFound)
	_, err = r.rt.CheckpointContainer(ctx, &runtimeapi.CheckpointContainerRequest{ContainerId: id})
	wantCode(t, "CheckpointContainer", err, codes.Unimplemented)
}

// A command's exit code is in the response; only what keeps it from running,
// or its timeout, is an error.
func TestExecSync(t *testing.T) {
	r := newRig(t, sleeper, fakecritest.WithRuntime(func(o *fakecri.Options) {
		o.Programs = append([]fakecri.Program{{
			Match: fakecri.Match{Container: "exec"},
			Behaviour: fakecri.Behaviour{Exec: []fakecri.ExecRule{
				{Command: "fail*", Exit: 3, Output: "no\n"},
				{Command: "sleep*", Takes: fakecri.Range{Min: time.Hour, Max: time.Hour}},
			}},
		}}, o.Programs...)
	}))
	id := r.runContainer(t, r.runSandbox(t, "web"), containerConfig("exec"))
	ctx := testContext(t)
	resp, err := r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"fail", "now"}})
	if err != nil || resp.ExitCode != 3 || string(resp.Stdout)+string(resp.Stderr) != "no\n" {
		t.Errorf("a command that exits 3: %v, %v", resp, err)
	}
	began := time.Now()
	_, err = r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sleep", "3600"}, Timeout: 1})
	wantCode(t, "ExecSync beyond its timeout", err, codes.DeadlineExceeded)
	if d := time.Since(began); d < time.Second || d > 20*time.Second {
		t.Errorf("a timeout of 1s took %v", d)
	}
	_, err = r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: "nope", Cmd: []string{"true"}})
	wantCode(t, "ExecSync in no container", err, codes.NotFound)
}

// A call that is cancelled in mid-flight leaves nothing behind: its name is
// free.
func TestCancelledCalls(t *testing.T) {
	r := newRig(t, sleeper)
	sandbox := r.runSandbox(t, "web")
	for _, tc := range []struct {
		method string
		call   func(ctx context.Context) error
	}{
		{"RunPodSandbox", func(ctx context.Context) error {
			_, err := r.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sandboxConfig("other")})
			return err
		}},
		{"CreateContainer", func(ctx context.Context) error {
			_, err := r.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: containerConfig("app")})
			return err
		}},
		{"PullImage", func(ctx context.Context) error {
			_, err := r.img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "new:1"}})
			return err
		}},
	} {
		t.Run(tc.method, func(t *testing.T) {
			before, _ := r.Server.Server().State()
			remove := r.Fault(fakecri.Fault{Method: tc.method, Hang: true})
			ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
			defer cancel()
			wantCode(t, "a call whose deadline passes", tc.call(ctx), codes.DeadlineExceeded)
			r.quiet(t)
			ctx, cancel2 := context.WithCancel(testContext(t))
			time.AfterFunc(50*time.Millisecond, cancel2)
			wantCode(t, "a call that is cancelled", tc.call(ctx), codes.Canceled)
			r.quiet(t)
			remove()
			if after, _ := r.Server.Server().State(); after.Sandboxes != before.Sandboxes || after.Containers != before.Containers || after.Images != before.Images {
				t.Errorf("something is left behind: %+v after %+v", after, before)
			}
			if err := tc.call(testContext(t)); err != nil {
				t.Errorf("the same call again: %v", err)
			}
		})
	}
}

// quiet waits until the server has no call in flight: a client knows of its end
// before the server does.
func (r *rig) quiet(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		st, err := r.Server.Server().State()
		if err != nil {
			t.Fatal(err)
		}
		if st.Running == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d calls still run", st.Running)
		}
	}
}

// A pull whose deadline is shorter than it takes is aborted.
func TestPullDeadline(t *testing.T) {
	r := newRig(t, fakecritest.WithRuntime(func(o *fakecri.Options) {
		o.ImagePull = fakecri.Range{Min: time.Minute, Max: time.Minute}
	}))
	ctx, cancel := context.WithTimeout(testContext(t), 20*time.Millisecond)
	defer cancel()
	resp, err := r.img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "busybox"}})
	wantCode(t, "PullImage", err, codes.DeadlineExceeded)
	if resp.GetImageRef() != "" {
		t.Errorf("a reference: %v", resp)
	}
	st, err := r.img.ImageStatus(testContext(t), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: "busybox"}})
	if err != nil || st.Image != nil {
		t.Errorf("image: %v, %v", st, err)
	}
}

// The streamed lists have what the unary ones have, each item once, in
// messages that are not empty.
func TestStreamedLists(t *testing.T) {
	r := newRig(t, sleeper)
	r.fill(t, 600)
	ctx := testContext(t)
	unary, err := r.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := r.rt.StreamContainers(ctx, &runtimeapi.StreamContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := &runtimeapi.ListContainersResponse{}
	messages := 0
	for {
		m, err := stream.Recv()
		if err != nil {
			break
		}
		if len(m.Containers) == 0 {
			t.Error("an empty message")
		}
		messages++
		got.Containers = append(got.Containers, m.Containers...)
	}
	if !proto.Equal(got, unary) || messages < 2 {
		t.Errorf("%d containers in %d messages, want %d", len(got.Containers), messages, len(unary.Containers))
	}
	pods, err := r.rt.StreamPodSandboxes(ctx, &runtimeapi.StreamPodSandboxesRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"io.kubernetes.pod.name": "pod-10"}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := pods.Recv()
	if err != nil || len(m.PodSandboxes) != 1 {
		t.Fatalf("StreamPodSandboxes by label: %v, %v", m, err)
	}
	if _, err := pods.Recv(); err == nil || err.Error() != "EOF" {
		t.Errorf("after the only item: %v", err)
	}
	images, err := r.img.StreamImages(ctx, &runtimeapi.StreamImagesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if im, err := images.Recv(); err != nil || len(im.Images) == 0 {
		t.Errorf("StreamImages: %v, %v", im, err)
	}
}

// The list that is remembered is never an old one.
func TestListsAreCurrent(t *testing.T) {
	r := newRig(t, sleeper)
	ids := r.fill(t, 40)
	ctx := testContext(t)
	all := func() []*runtimeapi.Container {
		t.Helper()
		var last []*runtimeapi.Container
		for range 2 {
			list, err := r.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
			if err != nil {
				t.Fatal(err)
			}
			last = list.Containers
		}
		return last
	}
	for i, id := range ids {
		if got := all(); len(got) != len(ids)-i || got[0].Id != id || got[0].State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			t.Fatalf("%d containers, the first %v; want %d, and %s running", len(got), got[0], len(ids)-i, id)
		}
		if _, err := r.rt.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
			t.Fatal(err)
		}
		got := all()
		if got[0].State != runtimeapi.ContainerState_CONTAINER_EXITED {
			t.Fatalf("%v has stopped", got[0])
		}
		one, err := r.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{Id: id}})
		if err != nil || !proto.Equal(one.Containers[0], got[0]) { // a short list is encoded as it is
			t.Fatalf("%v, %v; want %v", one, err, got[0])
		}
		if _, err := r.rt.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
			t.Fatal(err)
		}
	}
}

// Many clients at once, some of which go away in the middle of their calls.
func TestManyClients(t *testing.T) {
	r := newRig(t, sleeper, fakecritest.WithLatency(), fakecritest.WithSpeed(50))
	clients, calls := 16, 150
	if testing.Short() {
		calls = 40
	}
	var wg sync.WaitGroup
	for n := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewPCG(1, uint64(n)))
			conn := r.Dial()
			defer conn.Close()
			c := runtimeapi.NewRuntimeServiceClient(conn)
			for i := range calls {
				churn(c, rnd, fmt.Sprintf("pod-%d-%d", n, i%7))
			}
		}()
	}
	wg.Wait()
	// What a client sent before it went away may arrive after all.
	for ctx := testContext(t); ; time.Sleep(10 * time.Millisecond) {
		list, err := r.rt.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Items {
			if _, err := r.rt.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil {
				t.Errorf("RemovePodSandbox: %v", err)
			}
		}
		st, err := r.Server.Server().State()
		if err == nil && st.Sandboxes == 0 && st.Containers == 0 {
			break
		}
		if err != nil || ctx.Err() != nil || t.Failed() {
			t.Fatalf("in the end: %+v, %v", st, err)
		}
	}
}

// churn makes a few calls about a pod, of which about a third are cut off.
func churn(c runtimeapi.RuntimeServiceClient, rnd *rand.Rand, pod string) {
	call := func(fn func(ctx context.Context) error) bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if rnd.IntN(3) == 0 {
			ctx, cancel = context.WithTimeout(context.Background(), time.Duration(rnd.IntN(3000))*time.Microsecond)
		}
		defer cancel()
		return fn(ctx) == nil
	}
	var sandbox, container string
	if !call(func(ctx context.Context) error {
		resp, err := c.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sandboxConfig(pod)})
		sandbox = resp.GetPodSandboxId()
		return err
	}) {
		return
	}
	if call(func(ctx context.Context) error {
		resp, err := c.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: containerConfig("app")})
		container = resp.GetContainerId()
		return err
	}) {
		call(func(ctx context.Context) error {
			_, err := c.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container})
			return err
		})
		call(func(ctx context.Context) error {
			_, err := c.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: container, Cmd: []string{"true"}})
			return err
		})
	}
	call(func(ctx context.Context) error {
		_, err := c.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
		return err
	})
	call(func(ctx context.Context) error {
		stream, err := c.StreamPodSandboxes(ctx, &runtimeapi.StreamPodSandboxesRequest{})
		if err == nil {
			_, err = stream.Recv() // and leaves
		}
		return err
	})
	call(func(ctx context.Context) error {
		_, err := c.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox})
		return err
	})
	call(func(ctx context.Context) error {
		_, err := c.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox})
		return err
	})
}

// Clients see the wall clock, whatever the runtime's own clock does.
func TestSpeed(t *testing.T) {
	const speed = 1000
	r := newRig(t, sleeper, fakecritest.WithSpeed(speed), fakecritest.WithRuntime(func(o *fakecri.Options) {
		o.Programs = append([]fakecri.Program{
			{Match: fakecri.Match{Container: "short"}, Behaviour: fakecri.Behaviour{RunFor: fakecri.Range{Min: 100 * time.Second, Max: 100 * time.Second}}},
			{Match: fakecri.Match{Container: "stubborn"}, Behaviour: fakecri.Behaviour{OnTerm: fakecri.OnTerm{Ignore: true}}},
			{Match: fakecri.Match{Container: "slow"}, Behaviour: fakecri.Behaviour{Exec: []fakecri.ExecRule{{Takes: fakecri.Range{Min: 20 * time.Hour, Max: 20 * time.Hour}}}}},
		}, o.Programs...)
	}))
	ctx := testContext(t)
	began := time.Now()
	sandbox := r.runSandbox(t, "web")
	id := r.runContainer(t, sandbox, containerConfig("short"))
	var st *runtimeapi.ContainerStatus
	for {
		resp, err := r.rt.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			t.Fatal(err)
		}
		if st = resp.Status; st.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	ended := time.Now()
	for _, ts := range []int64{st.CreatedAt, st.StartedAt, st.FinishedAt} {
		if at := time.Unix(0, ts); at.Before(began) || at.After(ended.Add(time.Second)) {
			t.Errorf("a time of %v, while the test ran from %v to %v", at, began, ended)
		}
	}
	if ran := time.Duration(st.FinishedAt - st.StartedAt); ran < 99*time.Millisecond || ran > 20*time.Second {
		t.Errorf("100s at speed %d took %v", speed, ran)
	}
	list, err := r.rt.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil || list.Containers[0].CreatedAt != st.CreatedAt {
		t.Errorf("list: %v, %v; want created at %d", list, err, st.CreatedAt)
	}
	// A timeout is the client's seconds.
	id = r.runContainer(t, sandbox, containerConfig("stubborn"))
	began = time.Now()
	if _, err := r.rt.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 1}); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d < 900*time.Millisecond || d > 20*time.Second {
		t.Errorf("a stop with a timeout of 1s took %v", d)
	}
	id = r.runContainer(t, sandbox, containerConfig("slow"))
	_, err = r.rt.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"probe"}, Timeout: 1})
	wantCode(t, "ExecSync", err, codes.DeadlineExceeded)
	if err == nil || !strings.Contains(err.Error(), "timeout 1s exceeded") {
		t.Errorf("ExecSync with a timeout of 1s: %v", err)
	}
}

// A server stops with calls in flight and streams open.
func TestStop(t *testing.T) {
	r := newRig(t, sleeper)
	sandbox := r.runSandbox(t, "web")
	r.Fault(fakecri.Fault{Method: "CreateContainer", Hang: true})
	errs := make(chan error, 2)
	ctx := testContext(t)
	go func() {
		_, err := r.rt.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: containerConfig("app")})
		errs <- err
	}()
	events, err := r.rt.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Header(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := events.Recv()
		errs <- err
	}()
	for st, _ := r.Server.Server().State(); st.Calls < 3; st, _ = r.Server.Server().State() {
		time.Sleep(time.Millisecond)
	}
	r.Close()
	for range 2 {
		wantCode(t, "a call when the server stops", <-errs, codes.Unavailable)
	}
	if err := r.Server.Server().Do(func(*fakecri.Runtime) {}); err == nil {
		t.Error("Do works after the end")
	}
}

// A panic inside ends one call, not the server, and is told in one line.
func TestPanic(t *testing.T) {
	var mu sync.Mutex
	var said []string
	s, err := server.New(server.Options{Warn: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if err := s.Do(func(*fakecri.Runtime) { panic("two\nlines") }); err == nil {
		t.Error("no error")
	}
	st, err := s.State()
	if err != nil || st.Panics != 1 {
		t.Errorf("state: %+v, %v", st, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) != 1 || strings.Contains(said[0], "\n") || !strings.Contains(said[0], "two lines") {
		t.Errorf("said: %q", said)
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		want string
		opts server.Options
	}{
		{"speed: -1 is not within 0.001 and 10000", server.Options{Speed: -1}},
		{"grace: -1ns is negative", server.Options{Grace: -1}},
		{"eventBuffer: -1 is negative", server.Options{EventBuffer: -1}},
		{`faults[0]: method: no CRI method "X"`, server.Options{Faults: []fakecri.Fault{{Method: "X", Hang: true}}}},
		{`podCIDR: netip.ParsePrefix("x"): no '/'`, server.Options{Runtime: fakecri.Options{PodCIDR: "x"}}},
	} {
		s, err := server.New(tc.opts)
		if err == nil {
			s.Stop()
		}
		if err == nil || err.Error() != tc.want {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}
