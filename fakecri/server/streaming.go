//go:build linux

package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/server/clientio"
)

// defaultStreamAddress is where streams are served: on any port, and not for
// other machines, since whoever has a URL needs nothing else.
const defaultStreamAddress = "127.0.0.1:0"

// attachPatience is how long a client that is attached may take nothing of what waits for
// it before it is given up, since the container's writes wait for it.
const attachPatience = 30 * time.Second

// streamServer serves what Exec, Attach and PortForward give URLs for. The
// protocols are k8s.io/cri-streaming's.
//
// The way of a stream: the client asks Exec by gRPC and gets a URL with a token, good once and
// for a minute; it (mostly an API server, on behalf of kubectl) connects to that URL;
// cri-streaming speaks the protocol and calls streamRuntime, which connects the client's streams
// to the loop.
type streamServer struct {
	s *Server
	// lis lets streams be cut, which net/http can't do once a connection is upgraded.
	lis  *watchedListener
	impl streaming.Server
	http *http.Server

	mu     sync.Mutex
	tokens map[string]bool // of URLs not used yet: whether stdin was asked for
	closed bool

	ctx    context.Context // of port-forwards, which have no other
	cancel context.CancelFunc
	work   sync.WaitGroup // streams and what they started
	once   sync.Once
}

// newStreaming opens the port on which streams are served, and serves it. The address is in the
// URLs, so the port is open before any is given out.
func newStreaming(s *Server) (*streamServer, error) {
	addr := cmp.Or(s.opts.StreamAddress, defaultStreamAddress)
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	t := &streamServer{s: s, lis: newWatchedListener(lis), tokens: map[string]bool{}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	config := streaming.DefaultConfig
	config.Addr = lis.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr, Path: "/"}
	if t.impl, err = streaming.NewServer(config, &streamRuntime{t}); err != nil {
		_ = lis.Close()
		return nil, err
	}
	t.http = &http.Server{Handler: t, ConnContext: t.lis.context}
	t.work.Add(1)
	go func() {
		defer t.work.Done()
		_ = t.http.Serve(t.lis)
	}()
	return t, nil
}

// apply makes the runtime use it. The runtime is not there yet.
func (t *streamServer) apply(o *fakecri.Options) { o.Streaming = t }

// Close ends all streams and returns once none of them is at work. A client
// that vanished before it had made its streams keeps a goroutine of the
// streaming library for up to half a minute. It waits for the goroutines of commands, whose tasks
// need the loop.
func (t *streamServer) Close() {
	t.once.Do(func() {
		t.mu.Lock()
		t.closed = true
		t.mu.Unlock()
		_ = t.http.Close()
		t.lis.closeAll()
		t.cancel()
	})
	t.work.Wait()
}

// begin counts one stream, unless the server is closed. Under the lock, so that Close can't begin
// to wait between the look and the count.
func (t *streamServer) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.work.Add(1)
	return true
}

// GetExec implements fakecri.StreamingServer.
func (t *streamServer) GetExec(req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	resp, err := t.impl.GetExec(req)
	if err == nil {
		t.note(resp.Url, req.Stdin)
	}
	return resp, err
}

// GetAttach implements fakecri.StreamingServer.
func (t *streamServer) GetAttach(req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	resp, err := t.impl.GetAttach(req)
	if err == nil {
		t.note(resp.Url, req.Stdin)
	}
	return resp, err
}

// GetPortForward implements fakecri.StreamingServer.
func (t *streamServer) GetPortForward(req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return t.impl.GetPortForward(req)
}

// maxTokens is how many URLs are remembered; the streaming server itself holds
// no more than 1000, for a minute.
const maxTokens = 4096

// note remembers whether a URL's stream has an input: over a websocket that
// can't be told from the stream. Over a websocket there is a stream for stdin in any case.
func (t *streamServer) note(u string, stdin bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// URLs that were never used stay here; dropping all of them only means that stdin is looked
	// for.
	if len(t.tokens) >= maxTokens {
		clear(t.tokens)
	}
	t.tokens[path.Base(u)] = stdin
}

// noStdin marks the context of a stream that was asked for without stdin.
type noStdin struct{}

// ServeHTTP serves a URL that was given out.
func (t *streamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := path.Base(r.URL.Path)
	t.mu.Lock()
	stdin, known := t.tokens[token]
	delete(t.tokens, token)
	t.mu.Unlock()
	if known && !stdin {
		r = r.WithContext(context.WithValue(r.Context(), noStdin{}, true))
	}
	t.impl.ServeHTTP(w, r)
}

// streamRuntime is what the streaming server runs. Its methods return when the stream is over:
// their error is what the client is told.
type streamRuntime struct{ t *streamServer }

// Exec implements streaming.Runtime.
func (x *streamRuntime) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	if !x.t.begin() {
		return errStopping
	}
	defer x.t.work.Done()
	s := x.t.s
	c := x.t.connect(ctx, in, out, errOut, resize, 0)
	defer c.Close()
	code, err := onLoop(ctx, s, "Exec", func(ctx context.Context, client *fakecri.Client) (int32, error) {
		return client.ExecStream(ctx, id, cmd, tty, c.Streams)
	})
	if err != nil {
		return fmt.Errorf("failed to exec in container: %w", err)
	}
	// Only then the exit code: it ends the client's connection.
	c.Flush(ctx)
	if code != 0 {
		// remotecommand turns this into the exit code that kubectl exec exits with.
		return &utilexec.CodeExitError{Err: fmt.Errorf("error executing command %v, exit code %d", cmd, code), Code: int(code)}
	}
	return nil
}

// Attach implements streaming.Runtime. It ends when the container does, or the client goes.
func (x *streamRuntime) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	if !x.t.begin() {
		return errStopping
	}
	defer x.t.work.Done()
	c := x.t.connect(ctx, in, out, errOut, resize, attachPatience)
	defer c.Close()
	_, err := onLoop(ctx, x.t.s, "Attach", func(ctx context.Context, client *fakecri.Client) (struct{}, error) {
		return struct{}{}, client.AttachStream(ctx, id, tty, c.Streams)
	})
	if err != nil {
		return fmt.Errorf("failed to attach to container: %w", err)
	}
	c.Flush(ctx)
	return nil
}

// PortForward implements streaming.Runtime. It is called once for each connection that is
// forwarded, so a port may have several at a time.
func (x *streamRuntime) PortForward(_ context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	if !x.t.begin() {
		return errStopping
	}
	defer x.t.work.Done()
	// The library gives it no context that ends, so the server's counts.
	s, ctx := x.t.s, x.t.ctx
	type target struct {
		ip     string
		stated bool
	}
	to, err := onLoop(ctx, s, "PortForward", func(context.Context, *fakecri.Client) (target, error) {
		ip, stated, err := s.rt.ForwardTarget(id, port)
		return target{ip, stated}, err
	})
	if err != nil {
		return fmt.Errorf("failed to execute portforward: %w", err)
	}
	var conn net.Conn = &streamConn{ReadWriteCloser: stream}
	// As on the bridge: a stated program's client may speak TLS or gRPC.
	if to.stated {
		var served bool
		if conn, served, err = s.bridge.sniff(conn, to.ip, int(port)); served || err != nil {
			return err
		}
	}
	err = s.relay(ctx, &x.t.work, conn, func(ctx context.Context, c *fakecri.Client, f *clientio.Duplex) error {
		return c.PortForwardStream(ctx, id, port, f)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("failed to execute portforward: %w", err)
	}
	return nil
}

// connect starts what copies between a client and the loop.
func (t *streamServer) connect(ctx context.Context, in io.Reader, out, errOut io.WriteCloser, resize <-chan remotecommand.TerminalSize, patience time.Duration) *clientio.Streams {
	if ctx.Value(noStdin{}) != nil {
		in = nil
	}
	return clientio.Connect(t.s.loop.Post, &t.work, patience, in, out, errOut, resize)
}

// relay runs fn on the loop with a connection, which the caller closes
// afterwards. Its goroutines count in work. Its order of ends: fn returns when the pod's side is
// done; what waits for the client is written unless there was an error.
func (s *Server) relay(ctx context.Context, work *sync.WaitGroup, conn io.ReadWriter, fn func(context.Context, *fakecri.Client, *clientio.Duplex) error) error {
	d := &clientio.Duplex{In: clientio.NewInlet(s.loop.Post, conn), Out: clientio.NewOutlet(s.loop.Post, conn)}
	if w, ok := conn.(interface{ CloseWrite() error }); ok {
		d.Out.End = func() { _ = w.CloseWrite() }
	}
	work.Go(d.In.Run)
	work.Go(d.Out.Run)
	_, err := onLoop(ctx, s, "PortForward", func(ctx context.Context, c *fakecri.Client) (struct{}, error) {
		return struct{}{}, fn(ctx, c, d)
	})
	d.In.Stop()
	if err != nil {
		d.Out.Abandon()
		return err
	}
	d.Out.Finish(ctx)
	return nil
}
