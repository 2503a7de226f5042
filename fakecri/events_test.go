package fakecri

import (
	"fmt"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// What happens to sandboxes and containers is told once each, in its order,
// with the statuses after it.
func TestOnEvent(t *testing.T) {
	run(t, Options{Images: []Image{appImage}, Programs: []Program{{Behaviour: Behaviour{RunFor: Range{Min: time.Second, Max: time.Second}, ExitCode: 2}}}}, func(e *env) {
		var got []string
		listening := e.l.NewGroup("listener")
		e.rt.view.OnEvent(listening, func(ev *runtimeapi.ContainerEventResponse) {
			states := ""
			for _, c := range ev.ContainersStatuses {
				states += " " + c.State.String()[len("CONTAINER_"):]
			}
			what := "container"
			if ev.ContainerId == ev.PodSandboxStatus.Id {
				what = "sandbox"
			}
			got = append(got, fmt.Sprintf("%s %d %s%s", what, ev.ContainerEventType, ev.PodSandboxStatus.State.String()[len("SANDBOX_"):], states))
			if ev.CreatedAt != e.l.UnixNano() {
				t.Errorf("created at %d, now is %d", ev.CreatedAt, e.l.UnixNano())
			}
		})
		sandbox, err := e.c.RunPodSandbox(e.ctx, podConfig("web", 0), "")
		e.ok(err)
		id, err := e.c.CreateContainer(e.ctx, sandbox, containerConfig("web", "c", 0), podConfig("web", 0))
		e.ok(err)
		e.ok(e.c.StartContainer(e.ctx, id))
		e.ok(e.l.Sleep(e.ctx, time.Minute)) // it exits by itself
		e.ok(e.c.StopContainer(e.ctx, id, 5))
		e.ok(e.c.StopPodSandbox(e.ctx, sandbox))
		e.ok(e.c.StopPodSandbox(e.ctx, sandbox))
		e.ok(e.c.RemovePodSandbox(e.ctx, sandbox))
		e.ok(e.c.RemovePodSandbox(e.ctx, sandbox))
		want := []string{
			"sandbox 0 READY", "sandbox 1 READY",
			"container 0 READY CREATED", "container 1 READY RUNNING", "container 2 READY EXITED",
			"sandbox 2 NOTREADY EXITED", "container 3 NOTREADY", "sandbox 3 NOTREADY",
		}
		if !slices.Equal(got, want) {
			t.Errorf("events\n%q, want\n%q", got, want)
		}
		listening.Kill()
		got = nil
		_, err = e.c.RunPodSandbox(e.ctx, podConfig("web", 1), "")
		e.ok(err)
		if len(got) > 0 {
			t.Errorf("after the listener's end: %q", got)
		}
	})
}

// A client of Prompt answers reads in a callback, and says when it can't.
func TestPrompt(t *testing.T) {
	l := loop.New(loop.Options{Seed: 1})
	defer l.Close()
	rt := New(Options{Loop: l, Latency: map[string]Range{"ListImages": {Min: 1, Max: 1}}})
	c := rt.Client(l.Root())
	p := c.Prompt()
	if p.Answers("Status") {
		t.Error("the daemon is down, but Status would be answered")
	}
	rt.StartDaemon()
	for method, want := range map[string]bool{"Status": true, "ListContainers": true, "ListImages": false, "RunPodSandbox": false, "Nothing": false} {
		if got := p.Answers(method); got != want {
			t.Errorf("Answers(%s): %t", method, got)
		}
	}
	if c.Answers("Status") {
		t.Error("a plain client gives way")
	}
	called := false
	l.Root().After(0, func() {
		resp, err := p.Status(l.Root().Background(), false)
		called = err == nil && len(resp.Status.Conditions) == 2
	})
	if err := l.RunUntil(l.Now().Add(time.Second)); err != nil || !called {
		t.Errorf("called %t, %v", called, err)
	}
	remove := rt.calls.AddFault(Fault{Method: "Status", Hang: true})
	if p.Answers("Status") {
		t.Error("a fault touches Status, but it would be answered")
	}
	remove()
	if !p.Answers("Status") {
		t.Error("the fault is gone")
	}
}
