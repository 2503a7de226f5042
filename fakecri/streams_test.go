package fakecri

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// urls answers with URLs that nobody serves.
type urls struct{}

func (urls) GetExec(*runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return &runtimeapi.ExecResponse{Url: "http://exec"}, nil
}

func (urls) GetAttach(*runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return &runtimeapi.AttachResponse{Url: "http://attach"}, nil
}

func (urls) GetPortForward(*runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return &runtimeapi.PortForwardResponse{Url: "http://forward"}, nil
}

// peer is a client's end of a stream: what is said on it, and what it takes.
type peer struct {
	says    []byte
	hangsUp bool
	more    loop.Signal
	got     []byte
	slow    bool // takes nothing
	gone    bool
	room    loop.Signal
}

func (p *peer) say(text string) {
	p.says = append(p.says, text...)
	p.more.Notify()
}

func (p *peer) end() {
	p.hangsUp = true
	p.more.Notify()
}

// leave is what a client does that vanishes.
func (p *peer) leave() {
	p.gone = true
	p.room.Notify()
	p.end()
}

func (p *peer) Read(ctx context.Context, b []byte) (int, error) {
	for len(p.says) == 0 {
		if p.hangsUp {
			return 0, io.EOF
		}
		if err := p.more.Wait(ctx); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.says)
	p.says = p.says[n:]
	return n, nil
}

func (p *peer) Write(ctx context.Context, b []byte) (int, error) {
	for p.slow && !p.gone {
		if err := p.room.Wait(ctx); err != nil {
			return 0, err
		}
	}
	if p.gone {
		return 0, linux.EPIPE
	}
	p.got = append(p.got, b...)
	return len(b), nil
}

func (*peer) Close() error       { return nil }
func (p *peer) Dup() kernel.File { return p }

// attach attaches in a task of its own; the event is fired at its end.
func (e *env) attach(id string, s Streams) *loop.Event {
	done := &loop.Event{}
	e.g.Go("attach", func(ctx context.Context) {
		defer done.Fire()
		e.ok(e.c.AttachStream(ctx, id, false, s))
	})
	e.sleep(10 * time.Millisecond)
	return done
}

func streamOptions() Options {
	return Options{Images: []Image{busyboxImage, appImage}, Streaming: urls{}}
}

func attachedConfig(pod string, once, tty bool) *runtimeapi.ContainerConfig {
	cfg := containerConfig(pod, "main", 0)
	cfg.Image = &runtimeapi.ImageSpec{Image: "busybox"}
	cfg.Command = []string{"sh"}
	cfg.Stdin, cfg.StdinOnce, cfg.Tty = true, once, tty
	return cfg
}

func TestAttachStdin(t *testing.T) {
	for _, c := range []struct {
		name      string
		once, tty bool
		alive     bool // after the first client's end
		says      string
		shown     string
	}{
		{"once", true, false, false, "[ -t 0 ] || echo -n hello", "hello"},
		{"more often", false, false, true, "[ -t 0 ] || echo -n hello", "hello"},
		{"once, at a terminal", true, true, true, "[ -t 0 ] && echo -n hello", "[ -t 0 ] && echo -n hello\r\nhello/ # "},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, streamOptions(), func(e *env) {
				id, err := e.startConfig(e.sandbox("web", 0), attachedConfig("web", c.once, c.tty))
				e.ok(err)
				e.sleep(time.Second)
				p := &peer{}
				done := e.attach(id, Streams{Stdin: p, Stdout: p, Stderr: p})
				p.say(c.says + "\n")
				e.sleep(time.Second)
				if string(p.got) != c.shown {
					t.Errorf("got %q, want %q", p.got, c.shown)
				}
				p.end()
				e.ok(done.Wait(e.ctx))
				e.sleep(time.Second)
				if alive := e.status(id).State == runtimeapi.ContainerState_CONTAINER_RUNNING; alive != c.alive {
					t.Errorf("alive is %t after the first client", alive)
				}
				if !c.alive {
					return
				}
				p = &peer{}
				done = e.attach(id, Streams{Stdin: p, Stdout: p})
				p.say("exit 3\n")
				e.ok(done.Wait(e.ctx))
				e.exited(id, 3, "Error")
			})
		})
	}
}

func TestAttachSlowClient(t *testing.T) {
	run(t, streamOptions(), func(e *env) {
		id, err := e.startCommand(e.sandbox("web", 0), "web", "main", "busybox", "sh", "-c", "sleep 1; dd if=/dev/zero bs=65536 count=64; echo done > /done; sleep 1000")
		e.ok(err)
		slow, fast := &peer{slow: true}, &peer{}
		e.attach(id, Streams{Stdout: slow})
		done := e.attach(id, Streams{Stdout: fast})
		e.sleep(10 * time.Second)
		if _, _, err := e.c.ExecSync(e.ctx, id, []string{"cat", "/done"}, 0); err == nil {
			t.Error("a client that takes nothing does not hold the container up")
		}
		slow.leave()
		e.sleep(10 * time.Second)
		if _, _, err := e.c.ExecSync(e.ctx, id, []string{"cat", "/done"}, 0); err != nil {
			t.Errorf("a client that has gone holds the container up: %v", err)
		}
		if len(fast.got) != 64<<16 {
			t.Errorf("the other client got %d bytes", len(fast.got))
		}
		e.ok(e.c.StopContainer(e.ctx, id, 1))
		e.ok(done.Wait(e.ctx))
		if e.rt.out.Attached[e.rt.recs.ContainerFor(id)] != nil {
			t.Error("clients are left")
		}
	})
}

func TestExecStreamWithoutItsClient(t *testing.T) {
	run(t, streamOptions(), func(e *env) {
		id, err := e.startCommand(e.sandbox("web", 0), "web", "main", "busybox", "sleep", "1000")
		e.ok(err)
		g := e.l.NewGroup("client")
		p := &peer{}
		g.Go("exec", func(ctx context.Context) {
			_, _ = e.c.ExecStream(ctx, id, []string{"sh", "-c", "cat; i=0; while [ $i -lt 5000 ]; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done; echo end > /end"}, false, Streams{Stdin: p, Stdout: p})
		})
		e.sleep(time.Second)
		p.gone = true
		g.Kill()
		e.sleep(time.Minute)
		if out, _, err := e.c.ExecSync(e.ctx, id, []string{"cat", "/end"}, 0); err != nil || string(out) != "end\n" {
			t.Errorf("the command did not go on: %q, %v", out, err)
		}
	})
}

func TestStreamErrors(t *testing.T) {
	run(t, streamOptions(), func(e *env) {
		_, err := e.c.ExecStream(e.ctx, "nobody", []string{"true"}, false, Streams{})
		e.code(err, codes.NotFound)
		e.code(e.c.AttachStream(e.ctx, "nobody", false, Streams{}), codes.NotFound)
		e.code(e.c.PortForwardStream(e.ctx, "nobody", 80, &peer{}), codes.NotFound)
		sb := e.sandbox("web", 0)
		id := e.create(sb, "web", "main", 0)
		// That a request names nothing is for the streaming server to say, before a URL.
		for id, want := range map[string]codes.Code{"nobody": codes.NotFound, sb: codes.OK, "": codes.OK} {
			_, err := e.c.PortForward(e.ctx, &runtimeapi.PortForwardRequest{PodSandboxId: id})
			e.code(err, want)
		}
		for id, want := range map[string]codes.Code{"nobody": codes.NotFound, id: codes.Unknown, "": codes.OK} {
			_, err := e.c.Exec(e.ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"true"}})
			e.code(err, want)
			_, err = e.c.Attach(e.ctx, &runtimeapi.AttachRequest{ContainerId: id})
			e.code(err, want)
		}
		_, err = e.c.ExecStream(e.ctx, id, []string{"true"}, false, Streams{})
		e.code(err, codes.Unknown)
		e.ok(e.c.StartContainer(e.ctx, id))
		p := &peer{}
		done := &loop.Event{}
		e.g.Go("attach", func(ctx context.Context) {
			defer done.Fire()
			e.code(e.c.AttachStream(ctx, id, false, Streams{Stdout: p}), codes.Unavailable)
		})
		e.sleep(time.Second)
		e.rt.StopDaemon()
		e.ok(done.Wait(e.ctx))
		_, err = e.c.ExecStream(e.ctx, id, []string{"true"}, false, Streams{})
		e.code(err, codes.Unavailable)
		e.rt.StartDaemon()
		e.rt.calls.AddFault(Fault{Name: "f", Method: "Exec", Error: &FaultError{Code: "ResourceExhausted"}})
		_, err = e.c.Exec(e.ctx, &runtimeapi.ExecRequest{ContainerId: id, Cmd: []string{"true"}, Stdout: true})
		e.code(err, codes.ResourceExhausted)
	})
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		_, err := e.c.Exec(e.ctx, &runtimeapi.ExecRequest{})
		e.code(err, codes.Unimplemented)
	})
}

func TestPortForwardStream(t *testing.T) {
	opts := streamOptions()
	opts.Images = append(opts.Images, Image{Name: "nginx", Present: true})
	var heard []Listening
	opts.OnListen = func(l Listening) { heard = append(heard, l) }
	run(t, opts, func(e *env) {
		sb := e.sandbox("web", 0)
		id, err := e.startCommand(sb, "web", "main", "nginx")
		e.ok(err)
		e.sleep(time.Second)
		if len(heard) != 1 || heard[0].Port != 80 || !heard[0].Open || !heard[0].Stated || heard[0].Host {
			t.Errorf("heard %+v", heard)
		}
		p := &peer{}
		p.say("GET / HTTP/1.1\r\nHost: web\r\n\r\n")
		e.ok(e.c.PortForwardStream(e.ctx, sb, 80, p))
		if !strings.HasPrefix(string(p.got), "HTTP/1.1 200 OK\r\n") {
			t.Errorf("got %q", p.got)
		}
		err = e.c.PortForwardStream(e.ctx, sb, 81, &peer{})
		if err == nil || !strings.Contains(err.Error(), "failed to connect to localhost:81 inside namespace") || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("a port that nobody listens on: %v", err)
		}
		e.ok(e.c.StopContainer(e.ctx, id, 1))
		if len(heard) != 2 || heard[1].Open {
			t.Errorf("heard %+v", heard)
		}
		e.ok(e.c.StopPodSandbox(e.ctx, sb))
		if err := e.c.PortForwardStream(e.ctx, sb, 80, &peer{}); err == nil || !strings.Contains(err.Error(), "not running") {
			t.Errorf("a sandbox that was stopped: %v", err)
		}
	})
}
