//go:build linux

// Package cri is a container runtime behind a CRI socket, for a kubelet on a
// loop: k8s.io/cri-client's services, each call of which runs on a goroutine
// while the task that makes it waits.
//
// A call ends with the caller's context: its deadline (with the gRPC code
// DeadlineExceeded), its cancellation and the death of its group cancel the
// request on the wire.
package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"
	"k8s.io/cri-client/pkg/util"
	"k8s.io/klog/v2"

	"github.com/drydock-sim/drydock/ground/loop"
)

// DefaultTimeout is that of calls without a deadline (runtimeRequestTimeout). It is upstream's
// default of the same field.
const DefaultTimeout = 2 * time.Minute

// New connects to the runtime and image services at an endpoint ("unix:///path",
// or a path) and asks for the runtime's version and its image file system, as
// upstream does, within timeout; 0 means DefaultTimeout. It is called on a
// goroutine or before the loop runs, the services' methods in tasks of l. closeAll
// drops the connections. Its methods are called in tasks of l only; New itself blocks.
func New(ctx context.Context, l *loop.Loop, endpoint string, timeout time.Duration) (rt internalapi.RuntimeService, im internalapi.ImageManagerService, closeAll func() error, err error) {
	return NewWithImages(ctx, l, endpoint, endpoint, timeout, nil)
}

// NewWithImages is New with the image service at an endpoint of its own; "" means
// the runtime's. The connection is made lazily by gRPC, so a runtime that comes later would do,
// but upstream refuses to start without one. With a provider of tracers each call is a span, a child
// of that of its context; nil: none is.
func NewWithImages(ctx context.Context, l *loop.Loop, endpoint, imageEndpoint string, timeout time.Duration, spans trace.TracerProvider) (internalapi.RuntimeService, internalapi.ImageManagerService, func() error, error) {
	if endpoint == "" {
		return nil, nil, nil, errors.New("the container runtime endpoint is empty: it is --container-runtime-endpoint, or containerRuntimeEndpoint of the configuration file")
	}
	imageEndpoint = cmp.Or(imageEndpoint, endpoint)
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx = withoutLogs(ctx)
	if err := answering(ctx, withScheme(endpoint), withScheme(imageEndpoint), timeout); err != nil {
		return nil, nil, nil, err
	}
	// They answer. A caller that gives up from here on must not make the
	// constructors fail, since then they leave their connections behind.
	ctx = context.WithoutCancel(ctx)
	r, err := cri.NewRemoteRuntimeService(ctx, withScheme(endpoint), timeout, spans, false)
	if err != nil {
		return nil, nil, nil, err
	}
	i, err := cri.NewRemoteImageService(ctx, withScheme(imageEndpoint), timeout, spans, false)
	if err != nil {
		return nil, nil, nil, errors.Join(err, r.Close(ctx))
	}
	closeAll := func() error { return errors.Join(r.Close(ctx), i.Close(ctx)) }
	return &runtimeService{l: l, c: r}, &imageService{l: l, c: i}, closeAll, nil
}

// answering asks both services what cri-client's constructors ask, with their
// errors, over connections of its own: theirs, when nobody answers, are left
// behind and tried again for ever. Both are asked one after the other, within one timeout.
func answering(ctx context.Context, endpoint, imageEndpoint string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, s := range []struct {
		name, endpoint string
		ask            func(*grpc.ClientConn) error
	}{
		{"runtime", endpoint, func(conn *grpc.ClientConn) error {
			_, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{})
			return err
		}},
		{"image", imageEndpoint, func(conn *grpc.ClientConn) error {
			_, err := runtimeapi.NewImageServiceClient(conn).ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
			return err
		}},
	} {
		addr, dial, err := util.GetAddressAndDialer(s.endpoint)
		if err != nil {
			return err
		}
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithContextDialer(dial),
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
		if err != nil {
			return err
		}
		err = s.ask(conn)
		_ = conn.Close()
		if err != nil {
			return fmt.Errorf("validate service connection: validate CRI v1 %s API for endpoint %q: %w", s.name, s.endpoint, err)
		}
	}
	return nil
}

// withScheme makes a URL of a path. Upstream takes a bare path with a warning that it is
// deprecated.
func withScheme(endpoint string) string {
	if strings.HasPrefix(endpoint, "/") {
		return "unix://" + endpoint
	}
	return endpoint
}

// withoutLogs keeps cri-client from logging: who calls it does.
func withoutLogs(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// call makes one call of a task. The panic is for mistakes in this program: a call on another
// goroutine would read the loop's state while it runs.
func call[T any](ctx context.Context, l *loop.Loop, fn func(ctx context.Context) (T, error)) (T, error) {
	if loop.From(ctx) != l {
		panic("cri: a call outside a task of the services' loop")
	}
	// What leaves the loop leaves the context's values behind, but the span that the call is part of.
	span := trace.SpanFromContext(ctx)
	v, err := loop.Await(ctx, func(ctx context.Context) (T, error) { return fn(withoutLogs(trace.ContextWithSpan(ctx, span))) })
	return v, statusError(err)
}

// do is call without a result.
func do(ctx context.Context, l *loop.Loop, fn func(ctx context.Context) error) error {
	_, err := call(ctx, l, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return err
}

// statusError is the error of a call that the caller's context ended: that of
// gRPC, whoever noticed first. The kubelet's core looks at gRPC codes and must not see a
// difference between a deadline that the client noticed and one that the server did.
func statusError(err error) error {
	switch err { //nolint:errorlint // the loop's own, unwrapped
	case context.DeadlineExceeded:
		return grpcstatus.Error(codes.DeadlineExceeded, err.Error())
	case context.Canceled:
		return grpcstatus.Error(codes.Canceled, err.Error())
	}
	return err
}

// execError is the error of ExecSync: cri-client says in a type of its own that
// a command was too late, the kubelet's core goes by the code. Probes go by it: a timeout is a
// failure of the probe, another error may be unknown.
func execError(err error) error {
	if errors.Is(err, cri.ErrCommandTimedOut) {
		return grpcstatus.Error(codes.DeadlineExceeded, fmt.Sprint(err))
	}
	return err
}
