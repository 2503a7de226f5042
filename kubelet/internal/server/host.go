package server

import (
	"context"
	"net/url"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// Handle is a running kubelet: real.Handle.
type Handle interface {
	// Run runs fn as a task of the kubelet's loop and waits for its end.
	Run(ctx context.Context, fn func(ctx context.Context, k *kubelet.Kubelet) error) error
	SyncLoopHealthy() error
}

// host is a kubelet's Host for any goroutine: each method is a task of its loop.
type host struct{ h Handle }

var _ server.Host = host{}

// ask is one question to the kubelet's own Host.
func ask[T any](ctx context.Context, h Handle, fn func(ctx context.Context, k kubelet.Host) (T, error)) (T, error) {
	var out T
	err := h.Run(ctx, func(ctx context.Context, k *kubelet.Kubelet) (err error) {
		out, err = fn(ctx, k.Host())
		return err
	})
	if err != nil {
		var zero T // the task may still be about to write what nobody waits for
		return zero, err
	}
	return out, nil
}

func (r host) Pods(ctx context.Context) ([]*v1.Pod, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) ([]*v1.Pod, error) { return k.Pods(ctx) })
}

func (r host) RunningPods(ctx context.Context) ([]*v1.Pod, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) ([]*v1.Pod, error) { return k.RunningPods(ctx) })
}

func (r host) Pod(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) (*v1.Pod, error) { return k.Pod(ctx, namespace, name) })
}

func (r host) Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) (*statsapi.Summary, error) {
		return k.Summary(ctx, onlyCPUAndMemory)
	})
}

func (r host) Log(ctx context.Context, pod *v1.Pod, container string, previous bool) (server.Log, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) (server.Log, error) {
		return k.Log(ctx, pod, container, previous)
	})
}

func (r host) Run(ctx context.Context, t server.Target, command []string) ([]byte, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) ([]byte, error) { return k.Run(ctx, t, command) })
}

func (r host) Exec(ctx context.Context, t server.Target, req *runtimeapi.ExecRequest) (*url.URL, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) (*url.URL, error) { return k.Exec(ctx, t, req) })
}

func (r host) Attach(ctx context.Context, t server.Target, req *runtimeapi.AttachRequest) (*url.URL, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) (*url.URL, error) { return k.Attach(ctx, t, req) })
}

func (r host) PortForward(ctx context.Context, t server.Target, req *runtimeapi.PortForwardRequest) (*url.URL, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) (*url.URL, error) { return k.PortForward(ctx, t, req) })
}

func (r host) Checkpoint(ctx context.Context, t server.Target, timeout int64) (string, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) (string, error) { return k.Checkpoint(ctx, t, timeout) })
}

func (r host) Metrics(ctx context.Context, of server.MetricsPath) ([]*dto.MetricFamily, error) {
	return ask(ctx, r.h, func(ctx context.Context, k kubelet.Host) ([]*dto.MetricFamily, error) { return k.Metrics(ctx, of) })
}
