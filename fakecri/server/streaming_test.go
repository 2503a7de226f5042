//go:build linux

package server_test

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
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/fakecritest"
)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await waits until the buffer holds what is wanted.
func (b *buffer) await(t testing.TB, want string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(b.String(), want) {
			return
		}
	}
	t.Fatalf("output is %q, want %q in it", b.String(), want)
}

// executors are client-go's ways to a stream.
var executors = map[string]func(string) (remotecommand.Executor, error){
	"spdy": func(u string) (remotecommand.Executor, error) {
		parsed, err := url.Parse(u)
		if err != nil {
			return nil, err
		}
		return remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, parsed)
	},
	"websocket": func(u string) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutorForProtocols(&rest.Config{}, http.MethodGet, u, "v4.channel.k8s.io")
	},
}

// shellPod runs a busybox container and returns the ids.
func (r *rig) shellPod(t testing.TB, name string, change func(*runtimeapi.ContainerConfig)) (sandbox, container string) {
	t.Helper()
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: "busybox:1"},
		Command: []string{"sleep", "3600"},
	}
	if change != nil {
		change(config)
	}
	return r.webPod(t, sandboxConfig(name), config)
}

// webPod pulls the container's image and runs it in a sandbox of its own.
func (r *rig) webPod(t testing.TB, sc *runtimeapi.PodSandboxConfig, config *runtimeapi.ContainerConfig) (sandbox, container string) {
	t.Helper()
	ctx := testContext(t)
	if _, err := r.img.PullImage(ctx, &runtimeapi.PullImageRequest{Image: config.Image}); err != nil {
		t.Fatalf("PullImage: %v", err)
	}
	sr, err := r.rt.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: sc})
	if err != nil {
		t.Fatalf("RunPodSandbox: %v", err)
	}
	return sr.PodSandboxId, r.runContainer(t, sr.PodSandboxId, config)
}

func (r *rig) execURL(t testing.TB, req *runtimeapi.ExecRequest) string {
	t.Helper()
	resp, err := r.rt.Exec(testContext(t), req)
	if err != nil {
		t.Fatalf("Exec: %v", err)
	}
	return resp.Url
}

func (r *rig) attachURL(t testing.TB, req *runtimeapi.AttachRequest) string {
	t.Helper()
	resp, err := r.rt.Attach(testContext(t), req)
	if err != nil {
		t.Fatalf("Attach: %v", err)
	}
	return resp.Url
}

func stream(t testing.TB, how, u string, o remotecommand.StreamOptions) error {
	t.Helper()
	e, err := executors[how](u)
	if err != nil {
		t.Fatal(err)
	}
	return e.StreamWithContext(testContext(t), o)
}

func TestExecStream(t *testing.T) {
	r := newRig(t)
	_, id := r.shellPod(t, "exec", nil)
	cases := []struct {
		name           string
		cmd            []string
		stdin          string
		stdout, stderr string
		code           int
		failure        string
	}{
		{name: "echo", cmd: []string{"echo", "-n", "hello"}, stdout: "hello"},
		{name: "both", cmd: []string{"sh", "-c", "echo out; echo err >&2"}, stdout: "out\n", stderr: "err\n"},
		{name: "code", cmd: []string{"sh", "-c", "echo x; exit 7"}, stdout: "x\n", code: 7},
		{name: "killed", cmd: []string{"sh", "-c", "kill -9 $$"}, code: 137},
		{name: "no such", cmd: []string{"/no/such"}, failure: "no such file or directory"},
		{name: "no tty", cmd: []string{"sh", "-c", "[ -t 0 ] || echo none"}, stdout: "none\n"},
		{name: "long", cmd: []string{"sh", "-c", "dd if=/dev/zero bs=1024 count=2048 2>/dev/null | tr '\\0' x"}, stdout: strings.Repeat("x", 2<<20)},
	}
	for how := range executors {
		for _, c := range cases {
			t.Run(how+"/"+c.name, func(t *testing.T) {
				var out, errOut buffer
				u := r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: c.cmd, Stdout: true, Stderr: true})
				err := stream(t, how, u, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
				var exit utilexec.CodeExitError
				switch {
				case c.failure != "":
					if err == nil || !strings.Contains(err.Error(), c.failure) {
						t.Errorf("error is %v, want %q in it", err, c.failure)
					}
				case c.code != 0:
					if !errors.As(err, &exit) || exit.Code != c.code {
						t.Errorf("error is %v, want exit code %d", err, c.code)
					}
				case err != nil:
					t.Error(err)
				}
				if out.String() != c.stdout || errOut.String() != c.stderr {
					t.Errorf("stdout %.100q, stderr %.100q; want %.100q, %.100q", out.String(), errOut.String(), c.stdout, c.stderr)
				}
			})
		}
	}
}

func TestExecStdin(t *testing.T) {
	r := newRig(t)
	_, id := r.shellPod(t, "stdin", nil)
	text := strings.Repeat("all that was said\n", 20_000)
	var out buffer
	u := r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"cat"}, Stdin: true, Stdout: true})
	if err := stream(t, "spdy", u, remotecommand.StreamOptions{Stdin: strings.NewReader(text), Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if out.String() != text {
		t.Errorf("cat returned %d bytes of %d", len(out.String()), len(text))
	}
	// The command ends though the input does not.
	for how := range executors {
		in, w := io.Pipe()
		out = buffer{}
		u = r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"head", "-n", "1"}, Stdin: true, Stdout: true})
		go func() { _, _ = io.WriteString(w, "first\nsecond\n") }()
		if err := stream(t, how, u, remotecommand.StreamOptions{Stdin: in, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		_ = in.Close()
		if out.String() != "first\n" {
			t.Errorf("%s: head returned %q", how, out.String())
		}
	}
}

// sizes is a terminal of one size.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	v, ok := <-s
	if !ok {
		return nil
	}
	return &v
}

func TestExecTTY(t *testing.T) {
	r := newRig(t)
	_, id := r.shellPod(t, "tty", nil)
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			in, w := io.Pipe()
			defer func() { _ = in.Close() }()
			size := make(sizes, 1)
			size <- remotecommand.TerminalSize{Width: 100, Height: 40}
			defer close(size)
			var out buffer
			u := r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"sh"}, Stdin: true, Stdout: true, Tty: true})
			done := make(chan error, 1)
			e, err := executors[how](u)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				done <- e.StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: true, TerminalSizeQueue: size})
			}()
			out.await(t, "/ # ")
			_, _ = io.WriteString(w, "[ -t 1 ] && echo ter''minal\r")
			out.await(t, "ter''minal\r\nterminal\r\n/ # ")
			_, _ = io.WriteString(w, "sleep 1000\r")
			out.await(t, "sleep 1000\r\n")
			time.Sleep(20 * time.Millisecond)
			_, _ = io.WriteString(w, "\x03")
			_, _ = io.WriteString(w, "sleep 1000 & echo $?\r")
			out.await(t, "\r\n0\r\n/ # ")
			time.Sleep(20 * time.Millisecond)
			_, _ = io.WriteString(w, "\x03")
			_, _ = io.WriteString(w, "kill $! && echo alive\r")
			out.await(t, "\r\nalive\r\n")
			_, _ = io.WriteString(w, "echo aft\x7fter; exit 3\r")
			var exit utilexec.CodeExitError
			if err := <-done; !errors.As(err, &exit) || exit.Code != 3 {
				t.Errorf("error is %v, want exit code 3; output %q", err, out.String())
			}
			if !strings.Contains(out.String(), "\r\nafter\r\n") {
				t.Errorf("output is %q", out.String())
			}
		})
	}
	// A command that is done at once, with the input open.
	in, w := io.Pipe()
	defer func() { _ = w.Close() }()
	var out, errOut buffer
	u := r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"echo", "-n", "hello"}, Stdin: true, Stdout: true, Tty: true})
	if err := stream(t, "spdy", u, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Stderr: &errOut, Tty: true}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "hello" || errOut.String() != "" {
		t.Errorf("stdout %q, stderr %q", out.String(), errOut.String())
	}
}

func TestStreamRequests(t *testing.T) {
	r := newRig(t)
	sandbox, id := r.shellPod(t, "requests", nil)
	ctx := testContext(t)
	sh := []string{"sh"}
	for _, c := range []struct {
		name string
		req  *runtimeapi.ExecRequest
		code codes.Code
		text string
	}{
		{"no id", &runtimeapi.ExecRequest{Cmd: sh, Stdout: true}, codes.InvalidArgument, "missing required container_id"},
		{"unknown", &runtimeapi.ExecRequest{ContainerId: "nobody", Cmd: sh, Stdout: true}, codes.NotFound, "not found"},
		{"tty and stderr", &runtimeapi.ExecRequest{ContainerId: id, Cmd: sh, Stdout: true, Stderr: true, Tty: true}, codes.InvalidArgument, "tty and stderr cannot both be true"},
		{"no stream", &runtimeapi.ExecRequest{ContainerId: id, Cmd: sh}, codes.InvalidArgument, "one of stdin, stdout, or stderr must be set"},
	} {
		_, err := r.rt.Exec(ctx, c.req)
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("Exec, %s: %v, want %s with %q", c.name, err, c.code, c.text)
		}
	}
	_, err := r.rt.Attach(ctx, &runtimeapi.AttachRequest{Stdout: true})
	wantCode(t, "Attach without an id", err, codes.InvalidArgument)
	_, err = r.rt.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: "nobody", Stdout: true})
	wantCode(t, "Attach to an unknown container", err, codes.NotFound)
	_, err = r.rt.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: id})
	wantCode(t, "Attach without a stream", err, codes.InvalidArgument)
	_, err = r.rt.PortForward(ctx, &runtimeapi.PortForwardRequest{})
	wantCode(t, "PortForward without an id", err, codes.InvalidArgument)
	_, err = r.rt.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: "nobody"})
	wantCode(t, "PortForward to an unknown sandbox", err, codes.NotFound)

	// A URL works once.
	u := r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"true"}, Stdout: true})
	if err := stream(t, "spdy", u, remotecommand.StreamOptions{Stdout: io.Discard}); err != nil {
		t.Error(err)
	}
	if err := stream(t, "spdy", u, remotecommand.StreamOptions{Stdout: io.Discard}); err == nil {
		t.Error("a URL worked twice")
	}
	if _, err := r.rt.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
		t.Fatal(err)
	}
	_, err = r.rt.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: sh, Stdout: true})
	if err == nil || !strings.Contains(err.Error(), "CONTAINER_EXITED") {
		t.Errorf("Exec in a container that has ended: %v", err)
	}
}

func TestAttachShell(t *testing.T) {
	r := newRig(t)
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			_, id := r.shellPod(t, "shell-"+how, func(c *runtimeapi.ContainerConfig) {
				c.Command, c.Stdin, c.StdinOnce = []string{"/bin/sh"}, true, true
			})
			in, w := io.Pipe()
			var out, errOut buffer
			done := make(chan error, 1)
			e, err := executors[how](r.attachURL(t, &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: true}))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				done <- e.StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdin: in, Stdout: &out, Stderr: &errOut})
			}()
			_, _ = io.WriteString(w, "echo -n hello\n")
			out.await(t, "hello")
			time.Sleep(50 * time.Millisecond)
			if out.String() != "hello" || errOut.String() != "" {
				t.Errorf("stdout %q, stderr %q; want exactly hello", out.String(), errOut.String())
			}
			if how == "websocket" { // v4 can't tell the end of the input
				_, _ = io.WriteString(w, "exit\n")
			}
			_ = w.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			r.awaitExit(t, id)
		})
	}
}

// awaitExit waits until a container has ended.
func (r *rig) awaitExit(t testing.TB, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		resp, err := r.rt.ContainerStatus(testContext(t), &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			t.Fatal(err)
		}
		if resp.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED {
			return resp.Status
		}
	}
	t.Fatal("the container runs on")
	return nil
}

func TestAttachOutput(t *testing.T) {
	r := newRig(t)
	_, id := r.shellPod(t, "output", func(c *runtimeapi.ContainerConfig) {
		c.Command = []string{"sh", "-c", "i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); sleep 0.05; done"}
	})
	var outs [4]buffer
	ctx, cancel := context.WithCancel(testContext(t))
	var all sync.WaitGroup
	for i := range outs {
		how := []string{"spdy", "websocket"}[i%2]
		e, err := executors[how](r.attachURL(t, &runtimeapi.AttachRequest{ContainerId: id, Stdout: true, Stderr: true}))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			_ = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &outs[i], Stderr: io.Discard})
		})
	}
	for i := range outs {
		outs[i].await(t, "line ")
	}
	cancel() // they go away in mid-stream
	all.Wait()
	var out buffer
	done := make(chan error, 1)
	e, err := executors["spdy"](r.attachURL(t, &runtimeapi.AttachRequest{ContainerId: id, Stdout: true}))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- e.StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: &out})
	}()
	out.await(t, "line ")
	if strings.Contains(out.String(), "line 0\n") {
		t.Error("who attaches late gets what was written before")
	}
	if _, err := r.rt.StopContainer(testContext(t), &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the stream's end with the container: %v", err)
	}
}

func TestAttachSeesStatedLogs(t *testing.T) {
	r := newRig(t, chatty)
	sandbox := r.runSandbox(t, "chatty")
	id := r.runContainer(t, sandbox, containerConfig("c"))
	var out buffer
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	e, err := executors["spdy"](r.attachURL(t, &runtimeapi.AttachRequest{ContainerId: id, Stdout: true}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out})
	}()
	out.await(t, "still here\nstill here\n")
	cancel()
	<-done
}

func TestVanishingClients(t *testing.T) {
	r := newRig(t)
	_, id := r.shellPod(t, "vanish", nil)
	for i := range 24 {
		how := []string{"spdy", "websocket"}[i%2]
		script := []string{"while true; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "cat", "sleep 5", "sh"}[i%4]
		tty := i%3 == 0
		e, err := executors[how](r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"sh", "-c", "echo ready; " + script}, Stdin: true, Stdout: true, Tty: tty}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		in, w := io.Pipe()
		var out buffer
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: &out, Tty: tty})
		}()
		out.await(t, "ready")
		cancel()
		<-done
		_ = w.Close()
		_ = in.Close()
	}
	// Clients that go before they have made a stream, or even asked.
	for i := range 5 {
		u, err := url.Parse(r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"cat"}, Stdin: true, Stdout: true}))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		request := "POST " + u.Path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n"
		_, _ = io.WriteString(conn, request[:len(request)*i/4])
		if i == 4 {
			_, _ = conn.Read(make([]byte, 16))
		}
		_ = conn.Close()
	}
	// The server still answers, and Close finds nothing left (goleak).
	var out buffer
	u := r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"echo", "ok"}, Stdout: true})
	if err := stream(t, "spdy", u, remotecommand.StreamOptions{Stdout: &out}); err != nil || out.String() != "ok\n" {
		t.Errorf("after clients that vanished: %q, %v", out.String(), err)
	}
}

// TestStopWithOpenStreams: what clients hold open does not hold Close up.
func TestStopWithOpenStreams(t *testing.T) {
	r := newRig(t)
	sandbox, id := r.shellPod(t, "open", func(c *runtimeapi.ContainerConfig) {
		c.Command, c.Stdin = []string{"sh", "-c", "nc -l -p 7000 -e cat; sleep 1000"}, true
	})
	var all sync.WaitGroup
	for i := range 6 {
		how := []string{"spdy", "websocket"}[i%2]
		e, err := executors[how](r.execURL(t, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"sh", "-c", "echo ready; cat"}, Stdin: true, Stdout: true}))
		if i >= 4 {
			e, err = executors[how](r.attachURL(t, &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true}))
		}
		if err != nil {
			t.Fatal(err)
		}
		in, w := io.Pipe()
		var out buffer
		all.Go(func() {
			_ = e.StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdin: in, Stdout: &out})
			_ = in.Close()
			_ = w.Close()
		})
		if i < 4 {
			out.await(t, "ready")
		}
	}
	conn, err := net.Dial("tcp", r.forwarded(t, sandbox, 7000))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "echo\n")
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	r.Close()
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("Close took %s", took)
	}
	all.Wait()
}

// TestAttachWithoutInput: over a websocket too, who has no input stays.
func TestAttachWithoutInput(t *testing.T) {
	r := newRig(t)
	_, id := r.shellPod(t, "silent", func(c *runtimeapi.ContainerConfig) {
		c.Command, c.Stdin = []string{"sh", "-c", "read x; echo got $x; sleep 1000"}, true
	})
	for how := range executors {
		t.Run(how, func(t *testing.T) {
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			e, err := executors[how](r.attachURL(t, &runtimeapi.AttachRequest{ContainerId: id, Stdout: true}))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard}) }()
			select {
			case err := <-done:
				t.Errorf("the stream ended: %v", err)
			case <-time.After(100 * time.Millisecond):
				cancel()
				<-done
			}
		})
	}
}

func TestConcurrentExecStreams(t *testing.T) {
	r := newRig(t)
	_, id := r.shellPod(t, "many", nil)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			how := []string{"spdy", "websocket"}[i%2]
			want := fmt.Sprintf("number %d\n", i)
			resp, err := r.rt.Exec(testContext(t), &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"sh", "-c", "sleep 0.1; echo number " + fmt.Sprint(i)}, Stdout: true})
			if err != nil {
				t.Error(err)
				return
			}
			e, err := executors[how](resp.Url)
			if err != nil {
				t.Error(err)
				return
			}
			var out buffer
			if err := e.StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: &out}); err != nil || out.String() != want {
				t.Errorf("exec %d: %q, %v", i, out.String(), err)
			}
		})
	}
	all.Wait()
}

// chatty is a stated program that writes.
var chatty = fakecritest.WithRuntime(func(o *fakecri.Options) {
	o.Images = append(o.Images, fakecri.Image{Name: "app:1", Present: true})
	o.Programs = append(o.Programs, fakecri.Program{Match: fakecri.Match{Image: "app:1"}, Behaviour: fakecri.Behaviour{
		Logs: []fakecri.LogLine{{Text: "still here", Every: 20 * time.Millisecond}},
	}})
})
