//go:build linux

package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// maxRequest is the largest request, in bytes, as containerd and the kubelet
// have it. In cri-client it is maxMsgSize.
const maxRequest = 16 << 20

// newGRPC returns a gRPC server with everything but the services.
func (s *Server) newGRPC() *grpc.Server {
	return grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequest),
		// A few workers that stay spare gRPC a goroutine for each call.
		grpc.NumStreamWorkers(8),
		grpc.ForceServerCodecV2(newCodec(&s.lists)),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
		// Stop then returns only after the handlers have, which use the loop.
		grpc.WaitForHandlers(true),
		// Clients may ping as often as they like.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
}

// check is what is wrong with a request. The order matters: a request that could not be decoded
// is empty, and would be refused for that.
func check(req any) error {
	if m, ok := req.(proto.Message); ok {
		if why, bad := malformed(m); bad {
			return status.Errorf(codes.InvalidArgument, "malformed request: %s", oneLine(why))
		}
	}
	if err := validate(req); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
}

// unary is around every call but the streams. The deferred functions run in reverse: a panic
// becomes an error first, which is then recorded.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	s.calls.Add(1)
	s.running.Add(1)
	defer s.running.Add(-1)
	if s.record != nil {
		began := time.Now()
		defer func() { s.record.unary(began, info.FullMethod, req, resp, err) }()
	}
	defer s.recovered(info.FullMethod, &err)
	if err := check(req); err != nil {
		return nil, err
	}
	resp, err = handler(ctx, req)
	if err != nil {
		return nil, toStatus(err)
	}
	return resp, nil
}

// stream is around every stream. The request comes with the first RecvMsg, so that is where it is
// checked.
func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	s.calls.Add(1)
	s.running.Add(1)
	defer s.running.Add(-1)
	w := &watchedStream{ServerStream: ss}
	if s.record != nil {
		began := time.Now()
		defer func() { s.record.stream(began, info.FullMethod, w.req, w.sent, err) }()
	}
	defer s.recovered(info.FullMethod, &err)
	if err := handler(srv, w); err != nil {
		return toStatus(err)
	}
	return nil
}

// watchedStream checks a stream's request and counts its messages.
type watchedStream struct {
	grpc.ServerStream
	req  any
	sent int
}

// RecvMsg keeps the request for the record, and refuses one that can't be acted on.
func (w *watchedStream) RecvMsg(m any) error {
	if err := w.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	w.req = m
	return check(m)
}

// SendMsg counts what was sent.
func (w *watchedStream) SendMsg(m any) error {
	err := w.ServerStream.SendMsg(m)
	if err == nil {
		w.sent++
	}
	return err
}

// recovered makes an error of a panic. A panic in a handler's goroutine would end the process; on
// the loop panicked is called instead.
func (s *Server) recovered(method string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	s.panics.Add(1)
	s.warn("%s panicked: %s", method, oneLine(fmt.Sprint(v)))
	*err = errInside
}

// toStatus makes sure that an error has a code: a context's has its own, others
// are Unknown. A context's error becomes Canceled or DeadlineExceeded.
func toStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.FromContextError(err).Err()
}

// oneLine makes one line of a text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
