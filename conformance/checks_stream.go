//go:build linux

package conformance

import (
	"bytes"
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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/drydock-sim/drydock/fakecri/actor"
)

// streamChecks are about streams: events, and those of kubectl exec, attach and
// port-forward. All are optional: clusters work without them, people don't.
func streamChecks() []*check {
	return []*check{
		{name: "cri/stream/exec", level: Optional, run: checkExecStream,
			expect: "Exec gives a URL on which a command's output and exit code come, and its input goes."},
		{name: "cri/stream/attach", level: Optional, run: checkAttachStream,
			expect: "Attach gives a URL on which what the container writes comes, and its input goes."},
		{name: "cri/stream/port-forward", level: Optional, run: checkPortForward,
			expect: "PortForward gives a URL on which a port of the sandbox can be reached."},
		{name: "cri/stream/events", level: Optional, run: checkEvents,
			expect: "GetContainerEvents tells of a container's creation, start, end and removal, in that order, also of one that ends by itself."},
		{name: "cri/stream/unknown", level: Optional, run: checkStreamUnknown,
			expect: "Exec, Attach and PortForward for unknown ids fail."},
	}
}

// executor talks to a streaming URL as kubelets have kubectl do. SPDY, as every runtime has it;
// certificates of a streaming server are its own.
func (t *T) executor(u string) remotecommand.Executor {
	parsed, err := url.Parse(u)
	if err != nil || parsed.Host == "" || parsed.Scheme == "" {
		t.Fatalf("the URL is %q, which names no host", u)
	}
	x, err := remotecommand.NewSPDYExecutor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, http.MethodPost, parsed)
	t.must(err, "the stream")
	return x
}

// streamTimeout bounds a stream.
const streamTimeout = 30 * time.Second

// checkExecStream: the URL leads to both streams and the exit code. The exit code comes on the
// error stream, as a status (v4.channel.k8s.io and later).
func checkExecStream(ctx context.Context, t *T) {
	c := t.running(ctx)
	r, err := t.rt.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: c.id, Cmd: []string{actor.Program, "chain", "echo", "to out", "--", "echo", "--stderr", "to err", "--", "exit", "3"}, Stdout: true, Stderr: true})
	t.orSkip(err, "Exec")
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	err = t.executor(r.Url).StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Errorf("a command that exits 3 ends the stream with %v", err)
	}
	if out.String() != "to out\n" || errs.String() != "to err\n" {
		t.Errorf("stdout is %q and stderr %q", out.String(), errs.String())
	}
	r, err = t.rt.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: c.id, Cmd: []string{actor.Program, "cat"}, Stdin: true, Stdout: true, Stderr: true})
	t.must(err, "Exec")
	out.Reset()
	err = t.executor(r.Url).StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("through and back\n"), Stdout: &out, Stderr: &errs})
	t.must(err, "the stream with input")
	if out.String() != "through and back\n" {
		t.Errorf("what went in came back as %q", out.String())
	}
}

// locked is a buffer for two goroutines. One goroutine copies a stream into it
// while the check reads. bytes.Buffer has no lock of its own.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// checkAttachStream: what comes in reaches the process, what it writes comes out,
// and its log goes on. The process repeats its input, so what was sent is seen to have arrived.
func checkAttachStream(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) { c.Stdin = true }, "run", "--stdin", "--log=tick", "--log-every=200ms")
	r, err := t.rt.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: c.id, Stdin: true, Stdout: true, Stderr: true})
	t.orSkip(err, "Attach")
	sctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	in, feed := io.Pipe()
	defer feed.Close()
	var out locked
	x := t.executor(r.Url)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = x.StreamWithContext(sctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Stderr: io.Discard})
	}()
	// The stream must have ended before the check's things are removed.
	defer func() { cancel(); _ = feed.Close(); <-ended }()
	if _, err := io.WriteString(feed, "from outside\n"); err != nil {
		t.Fatalf("the input: %v", err)
	}
	t.eventually(ctx, 20*time.Second, func() string {
		if s := out.String(); !strings.Contains(s, "tick\n") || !strings.Contains(s, "from outside\n") {
			return fmt.Sprintf("what came is %q: it lacks what the container writes, or what was sent", s)
		}
		return ""
	})
}

// checkPortForward: a connection through the URL reaches a port of the pod. The local port is any
// free one.
func checkPortForward(ctx context.Context, t *T) {
	p := t.pod(ctx, nil)
	t.start(ctx, p, nil, "run", "--http=8080")
	r, err := t.rt.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: p.id, Port: []int32{8080}})
	t.orSkip(err, "PortForward")
	u, err := url.Parse(r.Url)
	if err != nil || u.Host == "" {
		t.Fatalf("the URL is %q, which names no host", r.Url)
	}
	tr, up, err := spdy.RoundTripperFor(&rest.Config{})
	t.must(err, "the stream")
	dialer := spdy.NewDialer(up, &http.Client{Transport: tr}, http.MethodPost, u)
	stop, isReady := make(chan struct{}), make(chan struct{})
	fw, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8080"}, stop, isReady, io.Discard, io.Discard)
	t.must(err, "the forwarding")
	var ferr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ferr = fw.ForwardPorts()
	}()
	defer func() { close(stop); <-ended }()
	select {
	case <-isReady:
	case <-ended:
		t.Fatalf("the stream ended: %v", ferr)
	case <-time.After(streamTimeout):
		t.Fatalf("the stream was not ready after %v", streamTimeout)
	}
	ports, err := fw.GetPorts()
	t.must(err, "the forwarding")
	t.httpOK(ctx, "http://"+net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0].Local))+"/healthz")
}

// checkStreamUnknown: what is not there has no URL. The error may come at the call alone: kubectl
// has no better moment to show it.
func checkStreamUnknown(ctx context.Context, t *T) {
	id := t.unknownID()
	_, err := t.rt.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"x"}, Stdout: true})
	if status.Code(err) == codes.Unimplemented {
		t.Skipf("the runtime does not have Exec (Unimplemented)")
	}
	t.wantError(err, "Exec in an unknown container")
	_, err = t.rt.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: id, Stdout: true})
	t.wantError(err, "Attach to an unknown container")
	_, err = t.rt.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: id})
	t.wantError(err, "PortForward to an unknown sandbox")
}

// checkEvents: evented PLEG wants each change of state as an event, in order
// (KEP-3386). Events of other containers come on the same stream, and are passed over.
func checkEvents(ctx context.Context, t *T) {
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := t.rt.GetContainerEvents(sctx, &runtimeapi.GetEventsRequest{})
	t.orSkip(err, "GetContainerEvents")
	type event struct {
		id   string
		kind runtimeapi.ContainerEventType
	}
	var mu sync.Mutex
	var events []event
	var serr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			e, err := stream.Recv()
			mu.Lock()
			if err != nil {
				serr = err
				mu.Unlock()
				return
			}
			events = append(events, event{e.ContainerId, e.ContainerEventType})
			mu.Unlock()
		}
	}()
	defer func() { cancel(); <-ended }()
	t.sleep(ctx, 300*time.Millisecond) // until it is subscribed
	mu.Lock()
	first := serr
	mu.Unlock()
	t.orSkip(first, "GetContainerEvents")
	p := t.pod(ctx, nil)
	stops, ends := t.start(ctx, p, nil, "run"), t.start(ctx, p, nil, "exit", "3")
	t.exited(ctx, ends.id)
	t.stop(ctx, stops.id, 10)
	t.removeContainer(ctx, stops.id)
	t.removeContainer(ctx, ends.id)
	want := []runtimeapi.ContainerEventType{
		runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT,
	}
	t.eventually(ctx, 15*time.Second, func() string {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range []string{stops.id, ends.id} {
			var got []runtimeapi.ContainerEventType
			for _, e := range events {
				if e.id == id {
					got = append(got, e.kind)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Sprintf("the events of a container are %v, not %v", got, want)
			}
		}
		return ""
	})
}
