package fakecri

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// recorded keeps what was traced.
type recorded []*trace.Record

func (r *recorded) Wants(trace.Kind, string, []trace.Field) bool { return true }
func (r *recorded) Take(x *trace.Record)                         { *r = append(*r, x) }

// env is one node with a runtime and a caller.
type env struct {
	testing.TB
	l     *loop.Loop
	rt    *Runtime
	c     *Client
	g     *loop.Group
	trace recorded
	ctx   context.Context
}

// run runs body as a task of a caller of a runtime whose daemon is up, and
// lets an hour pass.
func run(t testing.TB, opts Options, body func(e *env)) *env {
	t.Helper()
	e := &env{TB: t}
	e.l = loop.New(loop.Options{Name: "node", Seed: 1})
	defer e.l.Close()
	opts.Loop = e.l
	opts.Recorder = trace.NewRecorder(e.l, "node", &e.trace)
	e.rt = New(opts)
	e.rt.StartDaemon()
	e.g = e.l.NewGroup("caller")
	e.c = e.rt.Client(e.g)
	done := false
	e.g.Go("body", func(ctx context.Context) {
		e.ctx = ctx
		body(e)
		done = true
	})
	if err := e.l.RunUntil(e.l.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Fatal("the body did not end within an hour")
	}
	return e
}

// Fatalf fails the test from within a task, where the testing package's own
// must not be used: it would end the goroutine, and the loop with it.
func (e *env) Fatalf(format string, args ...any) {
	e.Helper()
	panic(fmt.Sprintf(format, args...))
}

// Fatal is Fatalf for a text.
func (e *env) Fatal(args ...any) { e.Fatalf("%s", fmt.Sprint(args...)) }

func podConfig(name string, attempt uint32) *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name, Attempt: attempt},
		Labels:       map[string]string{records.LabelPodUID: "uid-" + name, "app": name},
		Annotations:  map[string]string{"a": "b"},
		LogDirectory: "/var/log/pods/" + name,
		Linux:        &runtimeapi.LinuxPodSandboxConfig{},
	}
}

func containerConfig(pod, name string, attempt uint32) *runtimeapi.ContainerConfig {
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
		Image:       &runtimeapi.ImageSpec{Image: "app:1", UserSpecifiedImage: "app:1"},
		Labels:      map[string]string{records.LabelPodUID: "uid-" + pod, "c": name},
		Annotations: map[string]string{"x": "y"},
		LogPath:     fmt.Sprintf("%s/%d.log", name, attempt),
	}
}

var appImage = Image{Name: "app:1", Present: true}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("at %s: %v", e.l.Now().Format(time.RFC3339Nano), err)
	}
}

func (e *env) code(err error, want codes.Code) {
	e.Helper()
	if got := status.Code(err); got != want {
		e.Fatalf("at %s: code %s (%v), want %s", e.l.Now().Format(time.RFC3339Nano), got, err, want)
	}
}

func (e *env) sleep(d time.Duration) {
	if err := e.l.Sleep(e.ctx, d); err != nil {
		e.Fatal(err)
	}
}

// sandbox runs a sandbox.
func (e *env) sandbox(pod string, attempt uint32) string {
	e.Helper()
	id, err := e.c.RunPodSandbox(e.ctx, podConfig(pod, attempt), "")
	e.ok(err)
	return id
}

// create creates a container.
func (e *env) create(sandbox, pod, name string, attempt uint32) string {
	e.Helper()
	id, err := e.c.CreateContainer(e.ctx, sandbox, containerConfig(pod, name, attempt), podConfig(pod, 0))
	e.ok(err)
	return id
}

// start creates and starts a container.
func (e *env) start(sandbox, pod, name string, attempt uint32) string {
	e.Helper()
	id := e.create(sandbox, pod, name, attempt)
	e.ok(e.c.StartContainer(e.ctx, id))
	return id
}

func (e *env) status(id string) *runtimeapi.ContainerStatus {
	e.Helper()
	resp, err := e.c.ContainerStatus(e.ctx, id, false)
	e.ok(err)
	return resp.Status
}

func (e *env) exited(id string, code int32, reason string) {
	e.Helper()
	st := e.status(id)
	if st.State != records.StateExited || st.ExitCode != code || st.Reason != reason {
		e.Fatalf("container is %s with code %d and reason %q, want exited with %d and %q", st.State, st.ExitCode, st.Reason, code, reason)
	}
	if st.FinishedAt < st.StartedAt || st.StartedAt < st.CreatedAt {
		e.Fatalf("times out of order: %d %d %d", st.CreatedAt, st.StartedAt, st.FinishedAt)
	}
}

// took runs fn and returns how long it took.
func (e *env) took(fn func()) time.Duration {
	start := e.l.Now()
	fn()
	return e.l.Since(start)
}

func (e *env) within(d, lo, hi time.Duration) {
	e.Helper()
	if d < lo || d > hi {
		e.Fatalf("took %s, want %s to %s", d, lo, hi)
	}
}

func (e *env) traced(kind trace.Kind, verb string) (out []*trace.Record) {
	for _, r := range e.trace {
		if r.Kind == kind && (verb == "" || r.Verb == verb) {
			out = append(out, r)
		}
	}
	return out
}

func field(r *trace.Record, key string) string {
	for _, f := range r.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}
