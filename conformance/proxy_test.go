//go:build linux

package conformance

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// misbehaviour is what a runtime does wrong: it gets a call and what forwards it.
type misbehaviour func(c *proxied) (proto.Message, error)

// proxied is a call on its way to the runtime.
type proxied struct {
	method string
	req    proto.Message
	rt     runtimeapi.RuntimeServiceClient
	ctx    context.Context
	next   func(context.Context) (proto.Message, error)
	empty  func() proto.Message // an answer
}

func (c *proxied) forward() (proto.Message, error) { return c.next(c.ctx) }

// proxy is a runtime behind another socket that misbehaves; it returns the
// socket.
func proxy(t *testing.T, endpoint string, wrong misbehaviour) string {
	t.Helper()
	cc, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "proxy")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cri.sock")
	lis, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessageBytes), grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
		return forward(cc, ss, wrong)
	}))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(lis)
	}()
	t.Cleanup(func() {
		srv.Stop()
		<-served
		_ = cc.Close()
		_ = os.RemoveAll(dir)
	})
	return "unix://" + path
}

func forward(cc *grpc.ClientConn, ss grpc.ServerStream, wrong misbehaviour) error {
	full, _ := grpc.MethodFromServerStream(ss)
	name := strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return status.Errorf(codes.Unimplemented, "no method %s", full)
	}
	m := d.(protoreflect.MethodDescriptor)
	fresh := func(d protoreflect.MessageDescriptor) proto.Message {
		t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
		if err != nil {
			panic(err)
		}
		return t.New().Interface()
	}
	req := fresh(m.Input())
	if err := ss.RecvMsg(req); err != nil {
		return err
	}
	ctx := metadata.NewOutgoingContext(ss.Context(), nil)
	if m.IsStreamingServer() {
		return forwardStream(ctx, cc, ss, full, req, func() proto.Message { return fresh(m.Output()) })
	}
	c := &proxied{method: methodName(full), req: req, ctx: ctx, rt: runtimeapi.NewRuntimeServiceClient(cc), empty: func() proto.Message { return fresh(m.Output()) }}
	c.next = func(ctx context.Context) (proto.Message, error) {
		resp := fresh(m.Output())
		return resp, cc.Invoke(ctx, full, req, resp, grpc.MaxCallRecvMsgSize(maxMessageBytes))
	}
	resp, err := wrong(c)
	if err != nil {
		return err
	}
	return ss.SendMsg(resp)
}

func forwardStream(ctx context.Context, cc *grpc.ClientConn, ss grpc.ServerStream, full string, req proto.Message, fresh func() proto.Message) error {
	up, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, full)
	if err != nil {
		return err
	}
	if err := up.SendMsg(req); err != nil {
		return err
	}
	if err := up.CloseSend(); err != nil {
		return err
	}
	for {
		m := fresh()
		if err := up.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := ss.SendMsg(m); err != nil {
			return err
		}
	}
}

// answers changes what a method answers.
func answers[R proto.Message](method string, edit func(R)) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		resp, err := c.forward()
		if r, ok := resp.(R); ok && err == nil && c.method == method {
			edit(r)
		}
		return resp, err
	}
}

// asks changes what a method is asked.
func asks[R proto.Message](method string, edit func(R)) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		if r, ok := c.req.(R); ok && c.method == method {
			edit(r)
		}
		return c.forward()
	}
}

// ignores has a method do nothing and succeed.
func ignores(method string) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		if c.method == method {
			return c.empty(), nil
		}
		return c.forward()
	}
}

// fails has a method fail.
func fails(method string, code codes.Code) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		if c.method == method {
			return nil, status.Error(code, "it misbehaves")
		}
		return c.forward()
	}
}

// swallows has a method never fail; edit makes the answer in place of an error.
func swallows[R proto.Message](method string, edit func(R)) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		resp, err := c.forward()
		if err != nil && c.method == method {
			out := c.empty()
			if edit != nil {
				edit(out.(R))
			}
			return out, nil
		}
		return resp, err
	}
}

// otherCode has a method fail with another code, and a text that says nothing.
func otherCode(method string, from, to codes.Code) misbehaviour {
	return func(c *proxied) (proto.Message, error) {
		resp, err := c.forward()
		if c.method == method && (status.Code(err) == from || from == codes.OK && err != nil) {
			return nil, status.Error(to, "something is wrong")
		}
		return resp, err
	}
}

// once has a method fail for what was already done: not idempotent.
func once(method string, id func(proto.Message) string) misbehaviour {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(c *proxied) (proto.Message, error) {
		if c.method == method {
			mu.Lock()
			was := seen[id(c.req)]
			seen[id(c.req)] = true
			mu.Unlock()
			if was {
				return nil, status.Error(codes.FailedPrecondition, "it is gone")
			}
		}
		return c.forward()
	}
}

// status edits containers' and sandboxes' statuses.
func containerStatus(edit func(*runtimeapi.ContainerStatus)) misbehaviour {
	return answers("ContainerStatus", func(r *runtimeapi.ContainerStatusResponse) { edit(r.Status) })
}

func sandboxStatus(edit func(*runtimeapi.PodSandboxStatus)) misbehaviour {
	return answers("PodSandboxStatus", func(r *runtimeapi.PodSandboxStatusResponse) { edit(r.Status) })
}

// exits changes the exit codes of ended containers.
func exits(code func(int32) int32) misbehaviour {
	return containerStatus(func(s *runtimeapi.ContainerStatus) {
		if s.State == exited {
			s.ExitCode = code(s.ExitCode)
		}
	})
}

// containerConfig and sandboxConfig change what is asked for.
func containerConfig(edit func(*runtimeapi.ContainerConfig)) misbehaviour {
	return asks("CreateContainer", func(r *runtimeapi.CreateContainerRequest) { edit(r.Config) })
}

func sandboxConfig(edit func(*runtimeapi.PodSandboxConfig)) misbehaviour {
	return asks("RunPodSandbox", func(r *runtimeapi.RunPodSandboxRequest) { edit(r.Config) })
}

// stopsWith changes the timeouts of stops.
func stopsWith(seconds int64) misbehaviour {
	return asks("StopContainer", func(r *runtimeapi.StopContainerRequest) { r.Timeout = seconds })
}

// execs changes what commands answer; without calling, they are not even run.
func execs(edit func(*runtimeapi.ExecSyncResponse)) misbehaviour { return answers("ExecSync", edit) }
