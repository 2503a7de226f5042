package plugins

import (
	"context"
	"path"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// Server serves gRPC services on a socket of the node, until it is closed. Rules and who
// watches know its calls by the plugin's name and by the methods' last names.
type Server struct {
	h              *Host
	socket, plugin string
	methods        map[string]method // by full name
	streams        map[string]serverStream
	live           []*stream // those that clients are on
	closed         bool
}

// method is one of a service, and what implements it.
type method struct {
	grpc.MethodDesc
	impl any
}

// serverStream is a method that answers with a stream, and what implements it.
type serverStream struct {
	grpc.StreamDesc
	impl any
}

// Listen has a plugin serve on a socket from now on, in place of who did.
func (h *Host) Listen(socket, plugin string, register func(s *Server)) *Server {
	s := &Server{h: h, socket: socket, plugin: plugin, methods: map[string]method{}, streams: map[string]serverStream{}}
	register(s)
	h.unlisten(socket)
	h.servers = append(h.servers, s)
	if h.watch != nil && within(socket, h.watch.dir) {
		h.watch.appeared(socket)
	}
	return s
}

// Close removes the socket. Whoever is connected to it gets no answer any more.
func (s *Server) Close() {
	if s.closed {
		return
	}
	s.h.unlisten(s.socket)
	if w := s.h.watch; w != nil && within(s.socket, w.dir) {
		w.gone(s.socket)
	}
}

// unlisten closes the server that is on a socket.
func (h *Host) unlisten(socket string) {
	h.servers = slices.DeleteFunc(h.servers, func(s *Server) bool {
		if s.socket == socket {
			s.closed = true
			for _, st := range s.live {
				st.end(errClosed)
			}
		}
		return s.socket == socket
	})
}

// errClosed is what a call finds whose server has gone.
var errClosed = status.Error(codes.Unavailable, "error reading from server: EOF")

// RegisterService implements grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	for _, m := range desc.Methods {
		s.methods["/"+desc.ServiceName+"/"+m.MethodName] = method{m, impl}
	}
	for _, m := range desc.Streams {
		s.streams["/"+desc.ServiceName+"/"+m.StreamName] = serverStream{m, impl}
	}
}

// watcher is the kubelet that watches for sockets.
type watcher struct {
	dir            string
	appeared, gone func(socket string)
}

func within(socket, dir string) bool { return strings.HasPrefix(socket, dir+"/") }

// Watch implements pluginmanager.Sockets.
func (h *Host) Watch(dir string, appeared, gone func(socket string)) error {
	h.watch = &watcher{path.Clean(dir), appeared, gone}
	for _, s := range h.servers {
		if within(s.socket, h.watch.dir) {
			appeared(s.socket)
		}
	}
	return nil
}

// sockets implements pluginmanager.Sockets.
type sockets struct{ *Host }

// Sockets are the node's, for its kubelet.
func (h *Host) Sockets() pluginmanager.Sockets { return sockets{h} }

// Dial implements pluginmanager.Sockets.
func (h sockets) Dial(_ context.Context, socket string) (pluginmanager.Conn, error) {
	for _, s := range h.servers {
		if s.socket == socket {
			return conn{s}, nil
		}
	}
	return nil, status.Error(codes.Unavailable, "connection error: no such socket")
}

// conn is a connection to a server.
type conn struct{ s *Server }

// Invoke implements grpc.ClientConnInterface. Messages are copied, as on a wire.
func (c conn) Invoke(ctx context.Context, name string, args, reply any, _ ...grpc.CallOption) error {
	if c.s.closed {
		return errClosed
	}
	m, ok := c.s.methods[name]
	if !ok {
		return status.Errorf(codes.Unimplemented, "unknown method %s", path.Base(name))
	}
	receive := func(to any) error { proto.Merge(to.(proto.Message), args.(proto.Message)); return nil }
	resp, err := m.Handler(m.impl, ctx, receive, func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return call(c.s.h, ctx, c.s.plugin, m.MethodName, req.(proto.Message), func() (proto.Message, error) {
			resp, err := handle(ctx, req)
			if err != nil {
				return nil, err
			}
			return resp.(proto.Message), nil
		})
	})
	if err != nil {
		return status.Convert(err).Err()
	}
	proto.Merge(reply.(proto.Message), resp.(proto.Message))
	return nil
}

// Close implements pluginmanager.Conn.
func (c conn) Close() error { return nil }
