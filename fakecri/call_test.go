package fakecri

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// cancels are the ways in which a call ends before its answer.
var cancels = []struct {
	name string
	// call makes the call and ends it after d, as seen from the test's task.
	call func(e *env, d time.Duration, fn func(ctx context.Context, c *Client) error)
}{
	{"deadline", func(e *env, d time.Duration, fn func(ctx context.Context, c *Client) error) {
		ctx, cancel := loop.WithTimeout(e.ctx, d)
		defer cancel()
		e.code(fn(ctx, e.c), codes.DeadlineExceeded)
	}},
	{"the caller dies", func(e *env, d time.Duration, fn func(ctx context.Context, c *Client) error) {
		g := e.l.NewGroup("victim")
		g.Go("call", func(ctx context.Context) {
			err := fn(ctx, e.rt.Client(g))
			e.Errorf("the call returned %v", err)
		})
		e.sleep(d)
		g.Kill()
		e.sleep(0)
	}},
	{"the daemon dies", func(e *env, d time.Duration, fn func(ctx context.Context, c *Client) error) {
		e.l.Root().After(d, func() { e.rt.StopDaemon() })
		e.code(fn(e.ctx, e.c), codes.Unavailable)
		e.code(fn(e.ctx, e.c), codes.Unavailable)
		e.rt.StartDaemon()
	}},
}

func TestCancelledCalls(t *testing.T) {
	for _, how := range cancels {
		t.Run(how.name, func(t *testing.T) {
			opts := Options{Images: []Image{appImage}, Programs: []Program{{Match: Match{Container: "deaf"}, Behaviour: Behaviour{OnTerm: OnTerm{Ignore: true}}}}}
			e := run(t, opts, func(e *env) {
				cancel := func(d time.Duration, fn func(ctx context.Context, c *Client) error) {
					how.call(e, d, fn)
					e.sleep(time.Millisecond) // for the call to roll back
				}
				sandbox := func(ctx context.Context, c *Client) error {
					_, err := c.RunPodSandbox(ctx, podConfig("web", 0), "")
					return err
				}
				cancel(40*time.Millisecond, sandbox)
				if n := len(e.rt.recs.Sandboxes) + len(e.rt.recs.Pods) + len(e.rt.recs.SandboxByID); n != 0 {
					e.Fatal("a cancelled RunPodSandbox left something behind")
				}
				sb := e.sandbox("web", 0)

				create := func(ctx context.Context, c *Client) error {
					_, err := c.CreateContainer(ctx, sb, containerConfig("web", "deaf", 0), nil)
					return err
				}
				cancel(5*time.Millisecond, create)
				if len(e.rt.recs.Containers) != 0 || len(e.rt.recs.SandboxFor(sb).Containers) != 0 {
					e.Fatal("a cancelled CreateContainer left something behind")
				}
				id := e.create(sb, "web", "deaf", 0)

				cancel(20*time.Millisecond, func(ctx context.Context, c *Client) error { return c.StartContainer(ctx, id) })
				if s := e.status(id); s.State != records.StateCreated {
					e.Fatalf("a cancelled StartContainer left it %s", s.State)
				}
				e.ok(e.c.StartContainer(e.ctx, id))

				cancel(2*time.Second, func(ctx context.Context, c *Client) error { return c.StopContainer(ctx, id, 3) })
				e.sleep(time.Minute)
				if s := e.status(id); s.State != records.StateRunning {
					e.Fatal("a cancelled StopContainer killed")
				}

				cancel(100*time.Millisecond, func(ctx context.Context, c *Client) error {
					_, err := c.PullImage(ctx, &runtimeapi.ImageSpec{Image: "other:1"}, nil, nil)
					return err
				})
				e.sleep(time.Minute)
				if e.rt.images.Find("other:1") != nil {
					e.Fatal("a cancelled PullImage pulled")
				}
				if how.name == "the daemon dies" {
					return
				}
				cancel(time.Millisecond, func(ctx context.Context, c *Client) error { return c.RemoveContainer(ctx, id) })
				cancel(time.Millisecond, func(ctx context.Context, c *Client) error {
					return c.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: "app:1"})
				})
				cancel(time.Millisecond, func(ctx context.Context, c *Client) error { return c.RemovePodSandbox(ctx, sb) })
				e.sleep(time.Second)
				if n := len(e.rt.recs.Containers) + len(e.rt.recs.Sandboxes) + len(e.rt.recs.Pods) + len(e.rt.images.Images); n != 0 {
					e.Fatal("a cancelled removal did not complete")
				}
			})
			// Each cancelled call is in the trace, once.
			n := 0
			for _, r := range e.traced(trace.KindCRI, "RunPodSandbox") {
				if field(r, "error") != "" {
					n++
				}
			}
			if want := map[bool]int{true: 2, false: 1}[how.name == "the daemon dies"]; n != want {
				t.Errorf("%d failed RunPodSandbox in the trace, want %d", n, want)
			}
		})
	}
}

// The stop signal of a cancelled StopContainer has been sent.
func TestCancelledStopHasSignalled(t *testing.T) {
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: Behaviour{OnTerm: OnTerm{Exit: 4, After: Exactly(5 * time.Second)}}}}}, func(e *env) {
		id := e.start(e.sandbox("web", 0), "web", "main", 0)
		ctx, cancel := loop.WithTimeout(e.ctx, time.Second)
		defer cancel()
		e.code(e.c.StopContainer(ctx, id, 2), codes.DeadlineExceeded)
		e.sleep(5 * time.Second)
		e.exited(id, 4, "Error")
	})
}

// A dead caller's client refuses calls, also those of defers that run while
// its tasks unwind.
func TestDeadCaller(t *testing.T) {
	run(t, Options{}, func(e *env) {
		g := e.l.NewGroup("victim")
		c := e.rt.Client(g)
		g.Kill()
		_, err := c.RunPodSandbox(e.ctx, podConfig("web", 0), "")
		e.code(err, codes.Canceled)
		_, err = c.ListPodSandbox(e.ctx, nil)
		e.code(err, codes.Canceled)
	})
}

func TestContainersOutliveTheDaemon(t *testing.T) {
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: Behaviour{RunFor: Exactly(10 * time.Second), ExitCode: 3}}}}, func(e *env) {
		sb := e.sandbox("web", 0)
		id := e.start(sb, "web", "main", 0)
		started := e.status(id).StartedAt
		e.rt.StopDaemon()
		_, err := e.c.ListContainers(e.ctx, nil)
		e.code(err, codes.Unavailable)
		e.sleep(time.Minute)
		e.rt.StartDaemon()
		e.exited(id, 3, "Error")
		if d := e.status(id).FinishedAt - started; d != int64(10*time.Second) {
			t.Errorf("it ran for %d ns", d)
		}
	})
}

// While a call is under way nothing of it shows, and what it works on can't be
// pulled away unnoticed.
func TestConcurrentCalls(t *testing.T) {
	run(t, Options{Images: []Image{appImage}}, func(e *env) {
		sb := e.sandbox("web", 0)
		id := e.create(sb, "web", "main", 0)
		var wg loop.WaitGroup
		spawn := func(fn func(ctx context.Context)) {
			wg.Add(1)
			e.g.Go("other", func(ctx context.Context) { fn(ctx); wg.Done() })
		}
		wait := func() { e.ok(wg.Wait(e.ctx)) }

		spawn(func(ctx context.Context) { e.ok(e.c.StartContainer(ctx, id)) })
		e.sleep(10 * time.Millisecond)
		e.code(e.c.StartContainer(e.ctx, id), codes.FailedPrecondition)
		e.code(e.c.RemoveContainer(e.ctx, id), codes.Unknown)
		wait()

		spawn(func(ctx context.Context) {
			_, err := e.c.CreateContainer(ctx, sb, containerConfig("web", "late", 0), nil)
			e.code(err, codes.FailedPrecondition)
		})
		e.sleep(time.Millisecond)
		if len(e.rt.recs.ListContainers(nil)) != 1 {
			t.Error("a container is listed before CreateContainer is done")
		}
		spawn(func(ctx context.Context) { e.ok(e.c.RemovePodSandbox(ctx, sb)) })
		e.sleep(time.Millisecond)
		if s := e.status(id); s.State != records.StateExited {
			t.Error("a container of a sandbox that is being stopped is not EXITED")
		}
		e.ok(e.rt.RemoveSandboxOutside("default/web"))
		wait()
		if len(e.rt.recs.Pods) != 0 {
			t.Error("something is left")
		}

		sb = e.sandbox("web", 1)
		id = e.create(sb, "web", "main", 1)
		for range 3 {
			spawn(func(ctx context.Context) {
				if err := e.c.RemoveContainer(ctx, id); err != nil {
					e.code(err, codes.Unknown)
				}
			})
		}
		wait()
		e.ok(e.c.RemoveContainer(e.ctx, id))
		for range 5 {
			spawn(func(ctx context.Context) {
				e.ok(e.c.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: "app:1"}))
				if e.rt.images.Find("app:1") != nil {
					t.Error("the image is there after its removal")
				}
			})
		}
		wait()
	})
}
