//go:build linux

package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxMessageBytes bounds messages, as cri-client does.
const maxMessageBytes = 16 << 20

// clients are the socket's services; calls are recorded where their context says.
// The two services may be one socket. They are shared by all checks; each call's context says
// which check it is of.
type clients struct {
	rt    runtimeapi.RuntimeServiceClient
	im    runtimeapi.ImageServiceClient
	conns []*grpc.ClientConn
}

// close ends the connections and with them whatever is under way.
func (c *clients) close() {
	for _, cc := range c.conns {
		_ = cc.Close()
	}
}

// dial makes clients for two sockets, which may be one. Nothing is connected yet:
// version finds out whether somebody is there. gRPC connects with the first call.
func dial(runtime, image string) (*clients, error) {
	one := func(target string) (*grpc.ClientConn, error) {
		return grpc.NewClient("unix://"+strings.TrimPrefix(target, "unix://"),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
			grpc.WithChainUnaryInterceptor(recordUnary), grpc.WithChainStreamInterceptor(recordStream))
	}
	c := &clients{}
	cc, err := one(runtime)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", runtime, err)
	}
	c.conns = append(c.conns, cc)
	c.rt = runtimeapi.NewRuntimeServiceClient(cc)
	if image != runtime {
		if cc, err = one(image); err != nil {
			c.close()
			return nil, fmt.Errorf("%s: %w", image, err)
		}
		c.conns = append(c.conns, cc)
	}
	c.im = runtimeapi.NewImageServiceClient(cc)
	return c, nil
}

// unreachable says why there was no answer, without what gRPC puts around it.
// Users look for the path of a socket or the reason of the kernel, not for a gRPC
// state.
func unreachable(err error) string {
	st, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	if _, why, ok := strings.Cut(st.Message(), "Error while dialing: "); ok {
		return strings.TrimSuffix(why, `"`)
	}
	if st.Code() == codes.DeadlineExceeded {
		return fmt.Sprintf("nothing came within %v", connectTimeout)
	}
	return describe(err)
}

// connectTimeout is how long the runtime has to answer the first call.
const connectTimeout = 10 * time.Second

// version asks who is there. It waits for a runtime that is just starting, as
// kubelets do. WaitForReady makes gRPC try again until the deadline.
func (c *clients) version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.rt.Version(ctx, &runtimeapi.VersionRequest{Version: "0.1.0"}, grpc.WaitForReady(true))
}
