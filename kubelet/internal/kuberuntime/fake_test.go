package kuberuntime

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/podtest"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
	"github.com/drydock-sim/drydock/kubelet/internal/network/dns"
)

// fakeRuntime keeps sandboxes and containers, and writes down what it is asked.
type fakeRuntime struct {
	l          *loop.Loop
	n          int
	sandboxes  []*runtimeapi.PodSandboxStatus
	containers []*runtimeapi.ContainerStatus
	boxOf      map[string]string
	absent     map[string]bool          // images
	fail       map[string]error         // by method, or method and container
	takes      map[string]time.Duration // by method, or method and container
	calls      []string
	reads      bool // write reads down too
	configs    map[string]*runtimeapi.ContainerConfig
	boxConfig  *runtimeapi.PodSandboxConfig
}

func (f *fakeRuntime) call(ctx context.Context, method, detail string) error {
	read := strings.HasPrefix(method, "List") || strings.HasSuffix(method, "Status") || method == "Version"
	if !read || f.reads {
		f.calls = append(f.calls, strings.TrimSpace(method+" "+detail))
	}
	d, ok := f.takes[method+" "+strings.Fields(detail + " .")[0]]
	if !ok {
		d = f.takes[method]
	}
	if err := f.l.Sleep(ctx, d); err != nil {
		return grpcstatus.FromContextError(err).Err()
	}
	if err := f.fail[method+" "+strings.Fields(detail + " .")[0]]; err != nil {
		return err
	}
	return f.fail[method]
}

func (f *fakeRuntime) Version(ctx context.Context, v string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: v, RuntimeName: "containerd", RuntimeVersion: "2", RuntimeApiVersion: "v1"}, f.call(ctx, "Version", v)
}

func (f *fakeRuntime) Status(ctx context.Context, _ bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{}}, f.call(ctx, "Status", "")
}

func (f *fakeRuntime) RunPodSandbox(ctx context.Context, c *runtimeapi.PodSandboxConfig, _ string) (string, error) {
	if err := f.call(ctx, "RunPodSandbox", fmt.Sprint(c.Metadata.Attempt)); err != nil {
		return "", err
	}
	f.n++
	f.boxConfig = c
	s := &runtimeapi.PodSandboxStatus{Id: fmt.Sprintf("box%d", c.Metadata.Attempt), Metadata: c.Metadata, CreatedAt: f.l.UnixNano(), Labels: c.Labels, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.7"}}
	f.sandboxes = append(f.sandboxes, s)
	return s.Id, nil
}

func (f *fakeRuntime) StopPodSandbox(ctx context.Context, id string) error {
	err := f.call(ctx, "StopPodSandbox", id)
	for _, s := range f.sandboxes {
		if s.Id == id && err == nil {
			s.State = podtest.NotReady
			for _, c := range f.containers {
				if f.boxOf[c.Id] == id && c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
					f.exit(c.Id, 137)
				}
			}
		}
	}
	return err
}

func (f *fakeRuntime) RemovePodSandbox(ctx context.Context, id string) error {
	err := f.call(ctx, "RemovePodSandbox", id)
	for i, s := range f.sandboxes {
		if s.Id == id && err == nil {
			f.sandboxes = append(f.sandboxes[:i], f.sandboxes[i+1:]...)
			break
		}
	}
	return err
}

func (f *fakeRuntime) PodSandboxStatus(ctx context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	if err := f.call(ctx, "PodSandboxStatus", id); err != nil {
		return nil, err
	}
	for _, s := range f.sandboxes {
		if s.Id == id {
			return &runtimeapi.PodSandboxStatusResponse{Status: s}, nil
		}
	}
	return nil, grpcstatus.Error(codes.NotFound, "no sandbox")
}

func (f *fakeRuntime) ListPodSandbox(ctx context.Context, _ *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	var out []*runtimeapi.PodSandbox
	for _, s := range f.sandboxes {
		out = append(out, &runtimeapi.PodSandbox{Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels})
	}
	return out, f.call(ctx, "ListPodSandbox", "")
}

func (f *fakeRuntime) CreateContainer(ctx context.Context, box string, c *runtimeapi.ContainerConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	if err := f.call(ctx, "CreateContainer", fmt.Sprintf("%s %d", c.Metadata.Name, c.Metadata.Attempt)); err != nil {
		return "", err
	}
	id := fmt.Sprintf("%s-%d", c.Metadata.Name, c.Metadata.Attempt)
	f.boxOf[id] = box
	f.configs[c.Metadata.Name] = c
	f.containers = append(f.containers, &runtimeapi.ContainerStatus{
		Id: id, Metadata: c.Metadata, CreatedAt: f.l.UnixNano(), Image: c.Image, ImageId: c.Image.Image, ImageRef: c.Image.Image, Labels: c.Labels, Annotations: c.Annotations,
	})
	return id, nil
}

func (f *fakeRuntime) StartContainer(ctx context.Context, id string) error {
	if err := f.call(ctx, "StartContainer", id); err != nil {
		f.exit(id, 128)
		return err
	}
	c := f.container(id)
	c.State, c.StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, f.l.UnixNano()
	return nil
}

func (f *fakeRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	err := f.call(ctx, "StopContainer", fmt.Sprintf("%s %d", id, timeout))
	if err == nil {
		f.exit(id, 0)
	}
	return err
}

func (f *fakeRuntime) RemoveContainer(ctx context.Context, id string) error {
	err := f.call(ctx, "RemoveContainer", id)
	for i, c := range f.containers {
		if c.Id == id && err == nil {
			f.containers = append(f.containers[:i], f.containers[i+1:]...)
			break
		}
	}
	return err
}

func (f *fakeRuntime) ListContainers(ctx context.Context, _ *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var out []*runtimeapi.Container
	for _, c := range f.containers {
		out = append(out, &runtimeapi.Container{Id: c.Id, PodSandboxId: f.boxOf[c.Id], Metadata: c.Metadata, Image: c.Image, ImageId: c.ImageId, ImageRef: c.ImageRef, State: c.State, CreatedAt: c.CreatedAt, Labels: c.Labels, Annotations: c.Annotations})
	}
	return out, f.call(ctx, "ListContainers", "")
}

func (f *fakeRuntime) ContainerStatus(ctx context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	if err := f.call(ctx, "ContainerStatus", id); err != nil {
		return nil, err
	}
	if c := f.container(id); c != nil {
		return &runtimeapi.ContainerStatusResponse{Status: c}, nil
	}
	return nil, grpcstatus.Error(codes.NotFound, "no container")
}

func (f *fakeRuntime) ExecSync(ctx context.Context, id string, command []string, _ time.Duration) (stdout, stderr []byte, err error) {
	err = f.call(ctx, "ExecSync", id+" "+strings.Join(command, " "))
	return []byte("out"), []byte("err"), err
}

func (f *fakeRuntime) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	return f.call(ctx, "UpdateRuntimeConfig", config.NetworkConfig.PodCidr)
}

func (f *fakeRuntime) ImageStatus(ctx context.Context, s *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	if err := f.call(ctx, "ImageStatus", s.Image); err != nil || f.absent[s.Image] {
		return &runtimeapi.ImageStatusResponse{}, err
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "sha256:" + s.Image, Size: 1234}}, nil
}

func (f *fakeRuntime) PullImage(ctx context.Context, s *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	if err := f.call(ctx, "PullImage", s.Image); err != nil {
		return "", err
	}
	delete(f.absent, s.Image)
	return "sha256:" + s.Image, nil
}

func (f *fakeRuntime) ListImages(ctx context.Context, _ *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return nil, f.call(ctx, "ListImages", "")
}

func (f *fakeRuntime) container(id string) *runtimeapi.ContainerStatus {
	for _, c := range f.containers {
		if c.Id == id {
			return c
		}
	}
	return nil
}

// exit ends a container that has one.
func (f *fakeRuntime) exit(id string, code int32) {
	if c := f.container(id); c != nil {
		c.State, c.ExitCode, c.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, code, f.l.UnixNano()
	}
}

// rig is a manager over the fake, with a pod to sync.
type rig struct {
	t      *testing.T
	l      *loop.Loop
	g      *loop.Group
	f      *fakeRuntime
	m      *Manager
	b      *kubecontainer.Backoff
	events []string
	states podStates
}

type podStates struct{ terminating, content, runtime map[types.UID]bool }

func (p *podStates) IsPodTerminationRequested(u types.UID) bool { return p.terminating[u] }
func (p *podStates) ShouldPodContentBeRemoved(u types.UID) bool { return p.content[u] }
func (p *podStates) ShouldPodRuntimeBeRemoved(u types.UID) bool { return p.runtime[u] }

func (r *rig) Event(ref *v1.ObjectReference, _, reason, message string) {
	r.events = append(r.events, strings.TrimSpace(ref.FieldPath+" "+reason+": "+message))
}

func newRig(t *testing.T) *rig {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	r := &rig{t: t, l: l, g: l.NewGroup("kubelet"), b: kubecontainer.NewBackoff(kubecontainer.BackoffBase, kubecontainer.BackoffMax)}
	r.f = &fakeRuntime{l: l, boxOf: map[string]string{}, absent: map[string]bool{}, fail: map[string]error{}, takes: map[string]time.Duration{}, configs: map[string]*runtimeapi.ContainerConfig{}}
	var err error
	r.m, err = New(Options{
		Loop: l, Group: r.g, RuntimeService: r.f, ImageService: r.f, Recorder: r, PodStates: &r.states,
		Images: images.Options{QPS: 5, Burst: 10}, Node: NodeConfig{Resources: resources.Options{MemoryCapacity: 8 << 30}, DNS: dns.Configurer{ClusterDNS: []string{"10.96.0.10"}}},
		Helper: plainHelper{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// do runs fn as a task to its end, for up to an hour.
func (r *rig) do(fn func(ctx context.Context)) {
	r.t.Helper()
	task := r.g.Go("test", fn)
	for i := 0; i < 36000 && !task.Done(); i++ {
		if err := r.l.RunUntil(r.l.Now().Add(100 * time.Millisecond)); err != nil {
			r.t.Fatal(err)
		}
	}
	if !task.Done() {
		r.t.Fatal("the task did not end")
	}
}

func (r *rig) status(ctx context.Context) *kubecontainer.PodStatus {
	p, err := r.m.GetPod(ctx, "u")
	if err != nil {
		r.t.Fatal(err)
	}
	if p == nil {
		return &kubecontainer.PodStatus{ID: "u"}
	}
	s, err := r.m.GetPodStatus(ctx, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// sync reads the pod back and syncs it.
func (r *rig) sync(pod *v1.Pod) (result kubecontainer.PodSyncResult) {
	r.t.Helper()
	r.do(func(ctx context.Context) { result = r.m.SyncPod(ctx, pod, r.status(ctx), nil, r.b, false) })
	return result
}

// took returns the calls and events since the last time.
func (r *rig) took() (calls, events string) {
	calls, events = strings.Join(r.f.calls, ", "), strings.Join(r.events, "\n")
	r.f.calls, r.events = nil, nil
	return calls, events
}

func (r *rig) expect(what, calls string, events ...string) {
	r.t.Helper()
	gotCalls, gotEvents := r.took()
	if gotCalls != calls {
		r.t.Errorf("%s: calls\n got %s\nwant %s", what, gotCalls, calls)
	}
	if want := strings.Join(events, "\n"); gotEvents != want {
		r.t.Errorf("%s: events\n got %s\nwant %s", what, gotEvents, want)
	}
}

// useFS gives the manager files after it was made.
func (r *rig) useFS(files FileSystem) {
	r.m.o.FS, r.m.logs.fs, r.m.messages.fs, r.m.dns.fs = files, files, files, files
}
