package kuberuntime

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
)

// remote gives each CRI call its deadline: runtimeRequestTimeout, twice that
// for RunPodSandbox, with the grace period on top for StopContainer, none for
// PullImage (upstream k8s.io/cri-client).
// The deadlines are the client's, as with cri-client: the runtime goes on after
// one, which is why what a call did is found out by listing.
type remote struct {
	rt      RuntimeService
	changes ChangeLister // nil if there is none
	lean    LeanRuntime  // nil: rt gets and gives whole messages
	im      ImageService
	timeout time.Duration // below 0: none
	l       *loop.Loop
	metrics *metrics.Kubelet // nil: nobody counts
}

// within makes a call with a deadline, and counts it; with d of 0 or less it has none.
func within[T any](ctx context.Context, r *remote, o metrics.Operation, d time.Duration, call func(ctx context.Context) (T, error)) (out T, err error) {
	begun := r.l.UnixNano()
	if d <= 0 {
		out, err = call(ctx)
	} else {
		out, err = loop.Within(ctx, d, call)
	}
	r.metrics.Call(o, r.l.UnixNano()-begun, err)
	return out, err
}

// do is within for calls that return only an error.
func (r *remote) do(ctx context.Context, o metrics.Operation, d time.Duration, call func(ctx context.Context) error) error {
	_, err := within(ctx, r, o, d, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (r *remote) Version(ctx context.Context, v string) (*runtimeapi.VersionResponse, error) {
	return within(ctx, r, metrics.Version, r.timeout, func(ctx context.Context) (*runtimeapi.VersionResponse, error) { return r.rt.Version(ctx, v) })
}

func (r *remote) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return within(ctx, r, metrics.Status, r.timeout, func(ctx context.Context) (*runtimeapi.StatusResponse, error) { return r.rt.Status(ctx, verbose) })
}

func (r *remote) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	return r.do(ctx, metrics.UpdateRuntimeConfig, r.timeout, func(ctx context.Context) error { return r.rt.UpdateRuntimeConfig(ctx, config) })
}

// RunPodSandbox may take twice as long as other calls: it sets up the network.
func (r *remote) RunPodSandbox(ctx context.Context, config *sandboxConfig, handler string) (string, error) {
	return within(ctx, r, metrics.RunPodSandbox, 2*r.timeout, func(ctx context.Context) (string, error) {
		if r.lean != nil {
			return r.lean.RunPodSandboxOf(ctx, config, handler)
		}
		return r.rt.RunPodSandbox(ctx, config.Config(), handler)
	})
}

func (r *remote) StopPodSandbox(ctx context.Context, id string) error {
	return r.do(ctx, metrics.StopPodSandbox, r.timeout, func(ctx context.Context) error { return r.rt.StopPodSandbox(ctx, id) })
}

func (r *remote) RemovePodSandbox(ctx context.Context, id string) error {
	return r.do(ctx, metrics.RemovePodSandbox, r.timeout, func(ctx context.Context) error { return r.rt.RemovePodSandbox(ctx, id) })
}

// PodSandboxStatus may lack labels and annotations. It is nil if the runtime
// answers without one.
func (r *remote) PodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	return within(ctx, r, metrics.PodSandboxStatus, r.timeout, func(ctx context.Context) (*runtimeapi.PodSandboxStatus, error) {
		if r.lean != nil {
			return r.lean.LeanPodSandboxStatus(ctx, id)
		}
		resp, err := r.rt.PodSandboxStatus(ctx, id, false)
		return resp.GetStatus(), err
	})
}

func (r *remote) ListPodSandbox(ctx context.Context, f *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return within(ctx, r, metrics.ListPodSandbox, r.timeout, func(ctx context.Context) ([]*runtimeapi.PodSandbox, error) { return r.rt.ListPodSandbox(ctx, f) })
}

// CreateContainer takes a config without labels where the runtime is lean.
func (r *remote) CreateContainer(ctx context.Context, id string, config *runtimeapi.ContainerConfig, sandbox *sandboxConfig) (string, error) {
	return within(ctx, r, metrics.CreateContainer, r.timeout, func(ctx context.Context) (string, error) {
		if r.lean != nil {
			return r.lean.CreateContainerOf(ctx, id, config)
		}
		return r.rt.CreateContainer(ctx, id, config, sandbox.Config())
	})
}

func (r *remote) StartContainer(ctx context.Context, id string) error {
	return r.do(ctx, metrics.StartContainer, r.timeout, func(ctx context.Context) error { return r.rt.StartContainer(ctx, id) })
}

// StopContainer has the grace period, in seconds, on top of the usual time.
func (r *remote) StopContainer(ctx context.Context, id string, grace int64) error {
	d := r.timeout
	if d > 0 {
		d += time.Duration(grace) * time.Second
	}
	return r.do(ctx, metrics.StopContainer, d, func(ctx context.Context) error { return r.rt.StopContainer(ctx, id, grace) })
}

func (r *remote) RemoveContainer(ctx context.Context, id string) error {
	return r.do(ctx, metrics.RemoveContainer, r.timeout, func(ctx context.Context) error { return r.rt.RemoveContainer(ctx, id) })
}

func (r *remote) ListContainers(ctx context.Context, f *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return within(ctx, r, metrics.ListContainers, r.timeout, func(ctx context.Context) ([]*runtimeapi.Container, error) { return r.rt.ListContainers(ctx, f) })
}

func (r *remote) ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatusResponse, error) {
	return within(ctx, r, metrics.ContainerStatus, r.timeout, func(ctx context.Context) (*runtimeapi.ContainerStatusResponse, error) {
		return r.rt.ContainerStatus(ctx, id, false)
	})
}

// inspect is ContainerStatus, maybe without labels.
func (r *remote) inspect(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	return within(ctx, r, metrics.ContainerStatus, r.timeout, func(ctx context.Context) (*runtimeapi.ContainerStatus, error) {
		if r.lean != nil {
			return r.lean.LeanContainerStatus(ctx, id)
		}
		resp, err := r.rt.ContainerStatus(ctx, id, false)
		return resp.GetStatus(), err
	})
}

func (r *remote) ListImages(ctx context.Context, f *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return within(ctx, r, metrics.ListImages, r.timeout, func(ctx context.Context) ([]*runtimeapi.Image, error) { return r.im.ListImages(ctx, f) })
}

func (r *remote) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return within(ctx, r, metrics.ImageStatus, r.timeout, func(ctx context.Context) (*runtimeapi.ImageStatusResponse, error) {
		return r.im.ImageStatus(ctx, image, verbose)
	})
}

// PullImage has no deadline: nobody can tell how long a pull may take.
func (r *remote) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, config *runtimeapi.PodSandboxConfig) (string, error) {
	return within(ctx, r, metrics.PullImage, 0, func(ctx context.Context) (string, error) {
		return r.im.PullImage(ctx, image, auth, config)
	})
}

// changedPods is what a ChangeLister returns.
type changedPods[T any] struct {
	pods  []*runtimeapi.PodSandboxMetadata
	lists [][]T // what each has
	all   bool
}

func (r *remote) ListPodSandboxChanges(ctx context.Context, podUID string) (changedPods[*runtimeapi.PodSandbox], error) {
	return within(ctx, r, metrics.ListPodSandbox, r.timeout, func(ctx context.Context) (c changedPods[*runtimeapi.PodSandbox], err error) {
		c.pods, c.lists, c.all, err = r.changes.ListPodSandboxChanges(ctx, podUID)
		return c, err
	})
}

func (r *remote) ListContainersChanges(ctx context.Context, podUID string) (changedPods[*runtimeapi.Container], error) {
	return within(ctx, r, metrics.ListContainers, r.timeout, func(ctx context.Context) (c changedPods[*runtimeapi.Container], err error) {
		c.pods, c.lists, c.all, err = r.changes.ListContainersChanges(ctx, podUID)
		return c, err
	})
}
