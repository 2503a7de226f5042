package plugins

import (
	"context"
	"errors"
	"path"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/drydock-sim/drydock/ground/loop"
)

// stream is a call that is answered by a stream of messages: one message to the server, any
// number from it. The server's side is a task of the host, the client's is whoever asks.
type stream struct {
	s      *Server
	name   string
	ctx    context.Context // the client's
	own    context.Context // the server's
	cancel context.CancelFunc
	req    proto.Message
	sent   *loop.Queue[streamed]
	ended  bool
}

// streamed is a message, or a stream's end.
type streamed struct {
	m   proto.Message
	err error
}

// NewStream implements grpc.ClientConnInterface.
func (c conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, name string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	if c.s.closed {
		return nil, errClosed
	}
	m, ok := c.s.streams[name]
	if !ok || m.ClientStreams {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %s", path.Base(name))
	}
	st := &stream{s: c.s, name: m.StreamName, ctx: ctx, sent: loop.NewQueue[streamed](0)}
	c.s.live = append(c.s.live, st)
	c.s.h.g.Go("stream "+m.StreamName, func(ctx context.Context) {
		st.own, st.cancel = loop.WithCancel(ctx)
		h := c.s.h
		h.tell(Call{At: h.l.Now(), Plugin: c.s.plugin, Method: st.name})
		err := h.rule(ctx, c.s.plugin, st.name, st.req)
		if err == nil && !st.ended {
			err = m.Handler(m.impl, serverSide{st})
		}
		if err == nil {
			err = errClosed // these streams have no other end
		}
		st.end(err)
		h.tell(Call{At: h.l.Now(), Plugin: c.s.plugin, Method: st.name + " ends"})
	})
	return clientSide{st}, nil
}

// end ends the stream on both sides.
func (st *stream) end(err error) {
	if st.ended {
		return
	}
	st.ended = true
	if st.cancel != nil {
		st.cancel()
	}
	st.sent.TryPut(streamed{err: err})
	st.s.live = slices.DeleteFunc(st.s.live, func(o *stream) bool { return o == st })
}

// clientSide implements grpc.ClientStream.
type clientSide struct{ st *stream }

func (c clientSide) Header() (metadata.MD, error) { return nil, nil } //nolint:nilnil // there is none
func (c clientSide) Trailer() metadata.MD         { return nil }
func (c clientSide) CloseSend() error             { return nil }
func (c clientSide) Context() context.Context     { return c.st.ctx }

// SendMsg implements grpc.ClientStream.
func (c clientSide) SendMsg(m any) error {
	c.st.req = proto.Clone(m.(proto.Message))
	return nil
}

// RecvMsg implements grpc.ClientStream.
func (c clientSide) RecvMsg(m any) error {
	got, err := c.st.sent.Get(c.st.ctx)
	if err != nil {
		err = status.FromContextError(err).Err()
		c.st.end(err)
		return err
	}
	if got.err != nil {
		return got.err
	}
	proto.Merge(m.(proto.Message), got.m)
	return nil
}

// serverSide implements grpc.ServerStream.
type serverSide struct{ st *stream }

func (s serverSide) SetHeader(metadata.MD) error  { return nil }
func (s serverSide) SendHeader(metadata.MD) error { return nil }
func (s serverSide) SetTrailer(metadata.MD)       {}
func (s serverSide) Context() context.Context     { return s.st.own }

// SendMsg implements grpc.ServerStream. Messages are copied, as on a wire.
func (s serverSide) SendMsg(m any) error {
	if s.st.ended {
		return errClosed
	}
	msg := proto.Clone(m.(proto.Message))
	h := s.st.s.h
	h.tell(Call{At: h.l.Now(), Plugin: s.st.s.plugin, Method: s.st.name + " sends", Req: msg})
	s.st.sent.TryPut(streamed{m: msg})
	return nil
}

// RecvMsg implements grpc.ServerStream: the one message of the client.
func (s serverSide) RecvMsg(m any) error {
	if s.st.req == nil {
		return errors.New("the client has sent nothing")
	}
	proto.Merge(m.(proto.Message), s.st.req)
	return nil
}
