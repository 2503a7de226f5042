//go:build linux

package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// The labels of what a run makes: LabelRun on everything, with the run's name;
// LabelScope on what a scenario's kubelet makes, with the scenario's.
const (
	LabelRun   = "drydock.dev/conformance-run"
	LabelScope = "drydock.dev/scope"
)

// scope is the labels by which a kubelet's own things are known. name is "" for
// direct checks: they own everything of the run. A scenario's kubelet has both labels, so two
// kubelets on one runtime never see each other's pods.
type scope struct{ run, name string }

// with returns labels and the scope's.
func (s scope) with(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	// Both labels also make names of the run findable for a person with crictl.
	out[LabelRun] = s.run
	if s.name != "" {
		out[LabelScope] = s.name
	}
	return out
}

// without takes the scope's labels out again. The kubelet compares labels with its own, so it
// must not see these.
func (s scope) without(labels map[string]string) map[string]string {
	if _, ok := labels[LabelRun]; !ok {
		return labels
	}
	out := maps.Clone(labels)
	delete(out, LabelRun)
	delete(out, LabelScope)
	return out
}

// has reports whether labels are of this scope. Direct checks' scope has no name, and so covers
// the whole run.
func (s scope) has(labels map[string]string) bool {
	return labels[LabelRun] == s.run && (s.name == "" || labels[LabelScope] == s.name)
}

// scopedRuntime is a runtime on which a kubelet sees, and so ends, only what it
// made itself: what it makes gets the scope's labels, lists are filtered by them,
// by the runtime and then, whatever the runtime made of that, once more. Its
// calls are recorded. A runtime that ignores filters would otherwise have the
// kubelet remove the pods of whoever else uses it.
type scopedRuntime struct {
	internalapi.RuntimeService
	scope scope
	rec   *recorder
}

// did records a call; call is the one that it was. It is for calls of a client in the process,
// which no interceptor sees.
func did[T any](r *recorder, method string, req any, call func() (T, error)) (T, error) {
	began := time.Now()
	v, err := call()
	r.add(method, began, req, v, err)
	return v, err
}

// done is did for calls without an answer.
func done(r *recorder, method string, req any, call func() error) error {
	_, err := did(r, method, req, func() (any, error) { return nil, call() })
	return err
}

// mine are the items of a list that are of the scope, without its labels. labels finds an
// item's; nil means that it has none.
func mine[T any](s scope, list []T, labels func(T) *map[string]string) []T {
	return lists.Filter(list, func(x T) bool {
		l := labels(x)
		if l == nil || !s.has(*l) {
			return false
		}
		*l = s.without(*l)
		return true
	})
}

// RunPodSandbox implements internalapi.RuntimeService.
func (s *scopedRuntime) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	config = s.sandboxConfig(config)
	id, err := did(s.rec, "RunPodSandbox", config, func() (string, error) { return s.RuntimeService.RunPodSandbox(ctx, config, handler) })
	// Noted even if the call failed with an ID.
	s.rec.madeSandbox(id)
	return id, err
}

// sandboxConfig is a configuration with the scope's labels. The kubelet's own value must not
// change, so it is a copy.
func (s *scopedRuntime) sandboxConfig(in *runtimeapi.PodSandboxConfig) *runtimeapi.PodSandboxConfig {
	out := proto.Clone(in).(*runtimeapi.PodSandboxConfig)
	if out != nil {
		out.Labels = s.scope.with(in.GetLabels())
	}
	return out
}

// StopPodSandbox implements internalapi.RuntimeService.
func (s *scopedRuntime) StopPodSandbox(ctx context.Context, id string) error {
	return done(s.rec, "StopPodSandbox", id, func() error { return s.RuntimeService.StopPodSandbox(ctx, id) })
}

// RemovePodSandbox implements internalapi.RuntimeService.
func (s *scopedRuntime) RemovePodSandbox(ctx context.Context, id string) error {
	return done(s.rec, "RemovePodSandbox", id, func() error { return s.RuntimeService.RemovePodSandbox(ctx, id) })
}

// PodSandboxStatus implements internalapi.RuntimeService.
func (s *scopedRuntime) PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	r, err := did(s.rec, "PodSandboxStatus", id, func() (*runtimeapi.PodSandboxStatusResponse, error) {
		return s.RuntimeService.PodSandboxStatus(ctx, id, verbose)
	})
	if r.GetStatus() != nil {
		r.Status.Labels = s.scope.without(r.Status.Labels)
	}
	return r, err
}

// ListPodSandbox implements internalapi.RuntimeService.
func (s *scopedRuntime) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	// The runtime's own filter spares the transport; what it let through is
	// looked at again below.
	f := &runtimeapi.PodSandboxFilter{Id: filter.GetId(), State: filter.GetState(), LabelSelector: s.scope.with(filter.GetLabelSelector())}
	// An error comes back with whatever was listed.
	list, err := did(s.rec, "ListPodSandbox", f, func() ([]*runtimeapi.PodSandbox, error) { return s.RuntimeService.ListPodSandbox(ctx, f) })
	return mine(s.scope, list, func(x *runtimeapi.PodSandbox) *map[string]string { return &x.Labels }), err
}

// CreateContainer implements internalapi.RuntimeService.
func (s *scopedRuntime) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error) {
	c := s.containerConfig(config)
	id, err := did(s.rec, "CreateContainer", c, func() (string, error) {
		return s.RuntimeService.CreateContainer(ctx, sandbox, c, s.sandboxConfig(sandboxConfig))
	})
	s.rec.madeContainer(id)
	return id, err
}

// containerConfig is a configuration with the scope's labels.
func (s *scopedRuntime) containerConfig(in *runtimeapi.ContainerConfig) *runtimeapi.ContainerConfig {
	out := proto.Clone(in).(*runtimeapi.ContainerConfig)
	out.Labels = s.scope.with(in.GetLabels())
	return out
}

// StartContainer implements internalapi.RuntimeService.
func (s *scopedRuntime) StartContainer(ctx context.Context, id string) error {
	return done(s.rec, "StartContainer", id, func() error { return s.RuntimeService.StartContainer(ctx, id) })
}

// StopContainer implements internalapi.RuntimeService.
func (s *scopedRuntime) StopContainer(ctx context.Context, id string, timeout int64) error {
	return done(s.rec, "StopContainer", fmt.Sprintf("%s, timeout %d", id, timeout), func() error { return s.RuntimeService.StopContainer(ctx, id, timeout) })
}

// RemoveContainer implements internalapi.RuntimeService.
func (s *scopedRuntime) RemoveContainer(ctx context.Context, id string) error {
	return done(s.rec, "RemoveContainer", id, func() error { return s.RuntimeService.RemoveContainer(ctx, id) })
}

// ListContainers implements internalapi.RuntimeService.
func (s *scopedRuntime) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	f := &runtimeapi.ContainerFilter{Id: filter.GetId(), State: filter.GetState(), PodSandboxId: filter.GetPodSandboxId(), LabelSelector: s.scope.with(filter.GetLabelSelector())}
	list, err := did(s.rec, "ListContainers", f, func() ([]*runtimeapi.Container, error) { return s.RuntimeService.ListContainers(ctx, f) })
	return mine(s.scope, list, func(x *runtimeapi.Container) *map[string]string { return &x.Labels }), err
}

// ContainerStatus implements internalapi.RuntimeService.
func (s *scopedRuntime) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	r, err := did(s.rec, "ContainerStatus", id, func() (*runtimeapi.ContainerStatusResponse, error) {
		return s.RuntimeService.ContainerStatus(ctx, id, verbose)
	})
	if r.GetStatus() != nil {
		r.Status.Labels = s.scope.without(r.Status.Labels)
	}
	return r, err
}

// UpdateContainerResources implements internalapi.RuntimeService.
func (s *scopedRuntime) UpdateContainerResources(ctx context.Context, id string, res *runtimeapi.ContainerResources) error {
	return done(s.rec, "UpdateContainerResources", res, func() error { return s.RuntimeService.UpdateContainerResources(ctx, id, res) })
}

// ReopenContainerLog implements internalapi.RuntimeService.
func (s *scopedRuntime) ReopenContainerLog(ctx context.Context, id string) error {
	return done(s.rec, "ReopenContainerLog", id, func() error { return s.RuntimeService.ReopenContainerLog(ctx, id) })
}

// ExecSync implements internalapi.RuntimeService.
func (s *scopedRuntime) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	_, err = did(s.rec, "ExecSync", fmt.Sprintf("%s, %q, timeout %v", id, cmd, timeout), func() (string, error) {
		stdout, stderr, err = s.RuntimeService.ExecSync(ctx, id, cmd, timeout)
		return fmt.Sprintf("stdout %q, stderr %q", stdout, stderr), err
	})
	return stdout, stderr, err
}

// ListContainerStats implements internalapi.RuntimeService. Statistics are asked for all the
// time, and not recorded.
func (s *scopedRuntime) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	f := &runtimeapi.ContainerStatsFilter{Id: filter.GetId(), PodSandboxId: filter.GetPodSandboxId(), LabelSelector: s.scope.with(filter.GetLabelSelector())}
	list, err := s.RuntimeService.ListContainerStats(ctx, f)
	return mine(s.scope, list, func(x *runtimeapi.ContainerStats) *map[string]string {
		if x.GetAttributes() == nil {
			return nil
		}
		return &x.Attributes.Labels
	}), err
}

// ListPodSandboxStats implements internalapi.RuntimeService.
func (s *scopedRuntime) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	f := &runtimeapi.PodSandboxStatsFilter{Id: filter.GetId(), LabelSelector: s.scope.with(filter.GetLabelSelector())}
	list, err := s.RuntimeService.ListPodSandboxStats(ctx, f)
	return mine(s.scope, list, func(x *runtimeapi.PodSandboxStats) *map[string]string {
		if x.GetAttributes() == nil {
			return nil
		}
		return &x.Attributes.Labels
	}), err
}

// UpdateRuntimeConfig implements internalapi.RuntimeService: a guest leaves the
// runtime's configuration alone.
func (s *scopedRuntime) UpdateRuntimeConfig(context.Context, *runtimeapi.RuntimeConfig) error {
	return nil
}

// scopedImages is the images of the test registry. Others' images are left out,
// so that the kubelet's garbage collection can't see them.
type scopedImages struct {
	internalapi.ImageManagerService
	// prefix: the registry's address and a slash.
	prefix string
	rec    *recorder
}

// ours reports whether an image has no name but the test registry's. An image without any name is
// nobody's, and so not ours.
func ours(prefix string, im *runtimeapi.Image) bool {
	names := append(append([]string(nil), im.GetRepoTags()...), im.GetRepoDigests()...)
	if slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) }) {
		return false
	}
	return len(names) > 0
}

// ListImages implements internalapi.ImageManagerService.
func (s *scopedImages) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	list, err := s.ImageManagerService.ListImages(ctx, filter)
	out := lists.Filter(list, func(im *runtimeapi.Image) bool { return ours(s.prefix, im) })
	return out, err
}

// ImageStatus implements internalapi.ImageManagerService.
func (s *scopedImages) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return did(s.rec, "ImageStatus", image, func() (*runtimeapi.ImageStatusResponse, error) {
		return s.ImageManagerService.ImageStatus(ctx, image, verbose)
	})
}

// PullImage implements internalapi.ImageManagerService.
func (s *scopedImages) PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	return did(s.rec, "PullImage", image, func() (string, error) { return s.ImageManagerService.PullImage(ctx, image, auth, sandbox) })
}

// RemoveImage implements internalapi.ImageManagerService: a run's kubelets
// leave images alone, since other checks may need them.
func (s *scopedImages) RemoveImage(context.Context, *runtimeapi.ImageSpec) error { return nil }
