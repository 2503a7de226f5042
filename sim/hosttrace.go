package sim

import (
	"context"
	"time"

	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// tracedRuntime records the calls of a runtime outside that change something,
// as fakecri does for its own.
type tracedRuntime struct {
	internalapi.RuntimeService
	l   *loop.Loop
	rec *trace.Recorder
	// names are the node's sandboxes and containers by their IDs.
	names map[string]named
}

// named is what a record calls a sandbox or container, and its attempt.
type named struct {
	object  string
	attempt int64
}

// noTimeout is a call without a timeout of its own.
const noTimeout = -1

// traced is one call.
type traced struct {
	// named: its attempt is negative if there is none.
	named
	verb    string
	timeout int64
	image   string
	podCIDR string
	start   time.Time
}

func (t *traced) done(l *loop.Loop, rec *trace.Recorder, err error) {
	var fields []trace.Field
	if t.timeout >= 0 {
		fields = append(fields, trace.Int("timeout", t.timeout))
	}
	if t.attempt >= 0 {
		fields = append(fields, trace.Int("attempt", t.attempt))
	}
	if t.image != "" {
		fields = append(fields, trace.Str("image", t.image))
	}
	if t.podCIDR != "" {
		fields = append(fields, trace.Str("podCIDR", t.podCIDR))
	}
	fields = append(fields, trace.Int("tookMs", l.Since(t.start).Milliseconds()))
	if err != nil {
		st, _ := status.FromError(err)
		fields = append(fields, trace.Str("error", st.Code().String()), trace.Str("message", st.Message()))
	}
	rec.Record(trace.KindCRI, t.object, t.verb, fields...)
}

// of begins a call about something that this node's kubelets have made; what
// is unknown is called by its ID.
func (t tracedRuntime) of(verb, kind, id string, timeout int64) *traced {
	n, ok := t.names[id]
	if !ok {
		n = named{kind + " " + id, -1}
	}
	return &traced{named: n, verb: verb, timeout: timeout, start: t.l.Now()}
}

// did makes such a call, one that answers with an error or nothing, and records it.
func (t tracedRuntime) did(verb, kind, id string, timeout int64, call func() error) error {
	c := t.of(verb, kind, id, timeout)
	err := call()
	c.done(t.l, t.rec, err)
	return err
}

// RunPodSandbox implements internalapi.RuntimeService.
func (t tracedRuntime) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	m := config.GetMetadata()
	n := named{"pod " + m.GetNamespace() + "/" + m.GetName(), int64(m.GetAttempt())}
	c := &traced{named: n, verb: "RunPodSandbox", timeout: noTimeout, start: t.l.Now()}
	id, err := t.RuntimeService.RunPodSandbox(ctx, config, handler)
	if err == nil {
		t.names[id] = n
	}
	c.done(t.l, t.rec, err)
	return id, err
}

// StopPodSandbox implements internalapi.RuntimeService.
func (t tracedRuntime) StopPodSandbox(ctx context.Context, id string) error {
	return t.did("StopPodSandbox", "pod", id, noTimeout, func() error { return t.RuntimeService.StopPodSandbox(ctx, id) })
}

// RemovePodSandbox implements internalapi.RuntimeService.
func (t tracedRuntime) RemovePodSandbox(ctx context.Context, id string) error {
	return t.did("RemovePodSandbox", "pod", id, noTimeout, func() error { return t.RuntimeService.RemovePodSandbox(ctx, id) })
}

// CreateContainer implements internalapi.RuntimeService.
func (t tracedRuntime) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	m := sandboxConfig.GetMetadata()
	n := named{"container " + m.GetNamespace() + "/" + m.GetName() + "/" + config.GetMetadata().GetName(), int64(config.GetMetadata().GetAttempt())}
	c := &traced{named: n, verb: "CreateContainer", timeout: noTimeout, image: config.GetImage().GetUserSpecifiedImage(), start: t.l.Now()}
	id, err := t.RuntimeService.CreateContainer(ctx, sandbox, config, sandboxConfig)
	if err == nil {
		t.names[id] = n
	}
	c.done(t.l, t.rec, err)
	return id, err
}

// StartContainer implements internalapi.RuntimeService.
func (t tracedRuntime) StartContainer(ctx context.Context, id string) error {
	return t.did("StartContainer", "container", id, noTimeout, func() error { return t.RuntimeService.StartContainer(ctx, id) })
}

// StopContainer implements internalapi.RuntimeService.
func (t tracedRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	return t.did("StopContainer", "container", id, timeout, func() error { return t.RuntimeService.StopContainer(ctx, id, timeout) })
}

// RemoveContainer implements internalapi.RuntimeService.
func (t tracedRuntime) RemoveContainer(ctx context.Context, id string) error {
	return t.did("RemoveContainer", "container", id, noTimeout, func() error { return t.RuntimeService.RemoveContainer(ctx, id) })
}

// UpdateContainerResources implements internalapi.RuntimeService.
func (t tracedRuntime) UpdateContainerResources(ctx context.Context, id string, r *runtimeapi.ContainerResources) error {
	return t.did("UpdateContainerResources", "container", id, noTimeout, func() error { return t.RuntimeService.UpdateContainerResources(ctx, id, r) })
}

// UpdateRuntimeConfig implements internalapi.RuntimeService.
func (t tracedRuntime) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	c := &traced{named: named{"runtime", -1}, verb: "UpdateRuntimeConfig", timeout: noTimeout, podCIDR: config.GetNetworkConfig().GetPodCidr(), start: t.l.Now()}
	err := t.RuntimeService.UpdateRuntimeConfig(ctx, config)
	c.done(t.l, t.rec, err)
	return err
}

// ReopenContainerLog implements internalapi.RuntimeService.
func (t tracedRuntime) ReopenContainerLog(ctx context.Context, id string) error {
	return t.did("ReopenContainerLog", "container", id, noTimeout, func() error { return t.RuntimeService.ReopenContainerLog(ctx, id) })
}

// tracedImages is tracedRuntime for images.
type tracedImages struct {
	internalapi.ImageManagerService
	l   *loop.Loop
	rec *trace.Recorder
}

// PullImage implements internalapi.ImageManagerService.
func (t tracedImages) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	c := &traced{named: named{"image " + image.GetImage(), -1}, verb: "PullImage", timeout: noTimeout, image: image.GetImage(), start: t.l.Now()}
	ref, err := t.ImageManagerService.PullImage(ctx, image, auth, sandbox)
	c.done(t.l, t.rec, err)
	return ref, err
}

// RemoveImage implements internalapi.ImageManagerService.
func (t tracedImages) RemoveImage(ctx context.Context, image *runtimeapi.ImageSpec) error {
	c := &traced{named: named{"image " + image.GetImage(), -1}, verb: "RemoveImage", timeout: noTimeout, image: image.GetImage(), start: t.l.Now()}
	err := t.ImageManagerService.RemoveImage(ctx, image)
	c.done(t.l, t.rec, err)
	return err
}
