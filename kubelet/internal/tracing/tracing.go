// Package tracing has what a kubelet does be spans of a tracing system, which is told of them by a
// Tracer: OpenTelemetry on machines, none in simulations.
package tracing

import (
	"context"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/podworkers"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// Tracer is told of what a kubelet does as spans: upstream's tracer of pkg/kubelet. Calls of the
// runtime that are made with a span's context are its children.
type Tracer interface {
	// Start begins a span that is a child of the context's. The pod is nil for what is no pod's,
	// update how a sync came about, "" for what is none. Its end takes the error.
	Start(ctx context.Context, name string, pod *v1.Pod, update string) (context.Context, func(error))
}

// Syncer has what workers do with their pods be spans.
func Syncer(s podworkers.Syncer, t Tracer) podworkers.Syncer { return traced{s, t} }

type traced struct {
	podworkers.Syncer
	tracer Tracer
}

func (t traced) SyncPod(ctx context.Context, why kubetypes.SyncPodType, pod, mirror *v1.Pod, runtime *kubecontainer.PodStatus) (podworkers.SyncResult, error) {
	ctx, end := t.tracer.Start(ctx, "syncPod", pod, why.String())
	r, err := t.Syncer.SyncPod(ctx, why, pod, mirror, runtime)
	end(err)
	return r, err
}

func (t traced) SyncTerminatingPod(ctx context.Context, pod *v1.Pod, runtime *kubecontainer.PodStatus, grace *int64, statusFn podworkers.PodStatusFunc) error {
	ctx, end := t.tracer.Start(ctx, "syncTerminatingPod", pod, "")
	err := t.Syncer.SyncTerminatingPod(ctx, pod, runtime, grace, statusFn)
	end(err)
	return err
}

func (t traced) SyncTerminatedPod(ctx context.Context, pod *v1.Pod, runtime *kubecontainer.PodStatus) error {
	ctx, end := t.tracer.Start(ctx, "syncTerminatedPod", pod, "")
	err := t.Syncer.SyncTerminatedPod(ctx, pod, runtime)
	end(nil) // upstream does not tell of its error
	return err
}

// Span has fn be a span that is no pod's; t may be nil.
func Span(ctx context.Context, t Tracer, name string, fn func(ctx context.Context)) {
	if t == nil {
		fn(ctx)
		return
	}
	ctx, end := t.Start(ctx, name, nil, "")
	fn(ctx)
	end(nil)
}
