package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/loop"
)

// OnEvent is Runtime.OnEvent.
func (r *viewer) OnEvent(g *loop.Group, fn func(*runtimeapi.ContainerEventResponse)) {
	r.listeners.Add(g, fn)
}

// EventsAllowed is what a call of GetContainerEvents meets before its stream
// begins: the daemon may be down, and faults may touch it.
func (c *Client) EventsAllowed(ctx context.Context) error {
	return c.by.Read(ctx, calls.GetContainerEvents, calls.Subject{Timeout: -1})
}

// ContainerEvents calls connected once the daemon has let the call of GetContainerEvents in, and
// then told with what OnEvent says, each in a step of its own, until the daemon goes down, ctx
// ends or the client's group dies. The error is a gRPC status, never nil.
func (c *Client) ContainerEvents(ctx context.Context, connected func(), told func(*runtimeapi.ContainerEventResponse)) error {
	if err := c.EventsAllowed(ctx); err != nil {
		return err
	}
	life, err := c.by.Streaming()
	if err != nil {
		return err
	}
	l := c.r.view.l
	g := l.NewGroup("container events")
	defer g.Kill()
	// One stream keeps events of one instant in their order, whatever the seed.
	stream := l.NewStream()
	c.r.OnEvent(g, func(ev *runtimeapi.ContainerEventResponse) { g.AfterInStream(stream, 0, func() { told(ev) }) })
	connected()
	return calls.AwaitEvent(ctx, life, &loop.Event{})
}

// event tells the listeners what happened to id, which is s or a container of
// it. Nothing is made while nobody listens.
func (r *viewer) event(kind runtimeapi.ContainerEventType, id string, s *records.Sandbox) {
	if !r.listeners.Any() {
		return
	}
	ev := &runtimeapi.ContainerEventResponse{
		ContainerId:        id,
		ContainerEventType: kind,
		CreatedAt:          r.l.UnixNano(),
		PodSandboxStatus:   r.sandboxStatus(s),
	}
	for _, c := range s.Containers {
		if c.Listed {
			ev.ContainersStatuses = append(ev.ContainersStatuses, r.containerStatus(c))
		}
	}
	r.listeners.Tell(ev)
}
