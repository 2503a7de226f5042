package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/server/clientio"
	"github.com/drydock-sim/drydock/kubelet/real/streamproxy"
	"github.com/drydock-sim/drydock/kubelet/server"
	"github.com/drydock-sim/drydock/sim"
)

// streams are the streams of clients into pods: exec, attach and port-forward. The
// kubelets' answers lead to URLs, a path a node, that a server within the process serves
// (k8s.io/cri-streaming), over connections in memory.
type streams struct {
	c     *Cluster
	lis   *bufconn.Listener
	http  *http.Server
	proxy streamproxy.Streams
	work  sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*nodeStreams
}

// connBuffer is how much of a connection in memory is under way, in bytes.
const connBuffer = 64 << 10

// newStreams returns the streams of a cluster, which end with ctx.
func newStreams(ctx context.Context, c *Cluster) *streams {
	s := &streams{c: c, lis: bufconn.Listen(connBuffer), nodes: map[string]*nodeStreams{}}
	s.proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.lis.DialContext(ctx) }}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	s.work.Go(func() { _ = s.http.Serve(s.lis) })
	context.AfterFunc(ctx, func() { _ = s.http.Close() })
	return s
}

// ServeHTTP serves a URL that was given out.
func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	n := s.nodes[name]
	s.mu.Unlock()
	if n == nil {
		http.NotFound(w, r)
		return
	}
	n.server.ServeHTTP(w, r)
}

// of returns the streams of a node, which its runtime gives out URLs of from then on.
func (s *streams) of(node *sim.Node) (*nodeStreams, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[node.Name()]; n != nil {
		return n, nil
	}
	n := &nodeStreams{s: s, node: node}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: "streams", Path: "/" + node.Name() + "/"}
	var err error
	if n.server, err = streaming.NewServer(config, n); err != nil {
		return nil, fmt.Errorf("streams of node %s: %w", node.Name(), err)
	}
	s.nodes[node.Name()] = n
	return n, nil
}

// nodeStreams are the streams into the pods of one node.
type nodeStreams struct {
	s      *streams
	node   *sim.Node
	server streaming.Server
}

var (
	_ fakecri.StreamingServer = (*nodeStreams)(nil)
	_ streaming.Runtime       = (*nodeStreams)(nil)
)

// GetExec implements fakecri.StreamingServer.
func (n *nodeStreams) GetExec(req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return n.server.GetExec(req)
}

// GetAttach implements fakecri.StreamingServer.
func (n *nodeStreams) GetAttach(req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return n.server.GetAttach(req)
}

// GetPortForward implements fakecri.StreamingServer.
func (n *nodeStreams) GetPortForward(req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return n.server.GetPortForward(req)
}

// post runs fn on the node's loop.
func (n *nodeStreams) post(fn func()) { _ = n.s.c.pacer.On(n.node.Loop(), fn) }

// run runs fn as a task of the node's loop and waits for its end, or has it end with ctx.
func (n *nodeStreams) run(ctx context.Context, fn func(ctx context.Context, c *fakecri.Client) error) error {
	done := make(chan error, 1)
	var end func()
	if err := n.s.c.pacer.On(n.node.Loop(), func() { end = n.node.Stream(fn, func(err error) { done <- err }) }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		n.post(end)
	case <-n.s.c.ended:
		return errStopped
	}
	select {
	case err := <-done:
		return err
	case <-n.s.c.ended:
		return errStopped
	}
}

// errStopped ends streams with the cluster.
var errStopped = errors.New("the cluster has stopped")

// slowClient is how long a client may take nothing of what waits for it.
const slowClient = 30 * time.Second

// Exec implements streaming.Runtime.
func (n *nodeStreams) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	c := n.connect(in, out, errOut, resize)
	defer c.Close()
	var code int32
	err := n.run(ctx, func(ctx context.Context, client *fakecri.Client) (err error) {
		code, err = client.ExecStream(ctx, id, cmd, tty, c.Streams)
		return err
	})
	if err != nil {
		return fmt.Errorf("failed to exec in container: %w", err)
	}
	c.Flush(ctx)
	if code != 0 {
		return &utilexec.CodeExitError{Err: fmt.Errorf("error executing command %v, exit code %d", cmd, code), Code: int(code)}
	}
	return nil
}

// Attach implements streaming.Runtime.
func (n *nodeStreams) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	c := n.connect(in, out, errOut, resize)
	defer c.Close()
	err := n.run(ctx, func(ctx context.Context, client *fakecri.Client) error {
		return client.AttachStream(ctx, id, tty, c.Streams)
	})
	if err != nil {
		return fmt.Errorf("failed to attach to container: %w", err)
	}
	c.Flush(ctx)
	return nil
}

// PortForward implements streaming.Runtime, once for each connection.
func (n *nodeStreams) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	d := &clientio.Duplex{In: clientio.NewInlet(n.post, stream), Out: clientio.NewOutlet(n.post, stream)}
	d.Out.End = func() { _ = stream.Close() }
	d.Out.Patience = slowClient
	n.s.work.Go(d.In.Run)
	n.s.work.Go(d.Out.Run)
	err := n.run(ctx, func(ctx context.Context, c *fakecri.Client) error { return c.PortForwardStream(ctx, id, port, d) })
	d.In.Stop()
	if err != nil {
		d.Out.Abandon()
		return fmt.Errorf("failed to execute portforward: %w", err)
	}
	d.Out.Finish(ctx)
	return nil
}

// connect starts what copies between a client and the loop.
func (n *nodeStreams) connect(in io.Reader, out, errOut io.Writer, resize <-chan remotecommand.TerminalSize) *clientio.Streams {
	return clientio.Connect(n.post, &n.s.work, slowClient, in, out, errOut, resize)
}

// isUpgrade reports whether a request asks for a stream.
func isUpgrade(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// streamTo is where a kubelet's answer leads.
type streamTo struct {
	url *url.URL
	s   server.Stream
}
