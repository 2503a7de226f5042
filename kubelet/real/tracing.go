//go:build linux

package real

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/tracing"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// flushTimeout is how long a kubelet that ends waits for the last spans to leave.
const flushTimeout = time.Second

// newTracer makes what spans go to by the configuration's tracing, OTLP over gRPC; nil if it has
// none. The core's spans are those of upstream's pkg/kubelet, with their names and attributes, and
// gRPC's those of CRI calls. flush sends what is left.
func newTracer(cfg *kubeletconfig.KubeletConfiguration, node string) (_ *tracer, flush func(), err error) {
	if cfg.Tracing == nil {
		return nil, func() {}, nil
	}
	p, err := tracing.NewProvider(context.Background(), cfg.Tracing, nil, []resource.Option{
		resource.WithAttributes(attribute.String("service.name", "kubelet"), attribute.String("host.name", node)),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("could not configure tracer provider: %w", err)
	}
	flush = func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		_ = p.Shutdown(ctx) // nobody may be there to take them
	}
	return &tracer{p, p.Tracer("k8s.io/kubernetes/pkg/kubelet")}, flush, nil
}

// tracer is the Tracer of kubelet/internal/tracing. Starting and ending a span blocks nobody: spans are sent in batches on
// a goroutine of the library's.
type tracer struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
}

// providerOf is the tracer's provider, nil without one.
func providerOf(t *tracer) trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// Start implements kubelet.Tracer.
func (t *tracer) Start(ctx context.Context, name string, pod *v1.Pod, update string) (context.Context, func(error)) {
	var attributes []attribute.KeyValue
	if pod != nil {
		attributes = append(attributes, attribute.String("k8s.pod.uid", string(pod.UID)), attribute.String("k8s.pod", pod.Namespace+"/"+pod.Name),
			attribute.String("k8s.pod.name", pod.Name), attribute.String("k8s.namespace.name", pod.Namespace))
	}
	if update != "" {
		attributes = append(attributes, attribute.String("k8s.pod.update_type", update))
	}
	ctx, s := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			s.RecordError(err)
			s.SetStatus(codes.Error, err.Error())
		}
		s.End()
	}
}
