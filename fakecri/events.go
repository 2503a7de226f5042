package fakecri

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

// listener is told of containers' events while its group lives.
type listener struct {
	g  *loop.Group
	fn func(*runtimeapi.ContainerEventResponse)
}

const (
	eventCreated = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT
	eventStarted = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
	eventStopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	eventDeleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
)

// OnEvent has fn called, on the loop, with what GetContainerEvents streams, until
// g dies: when a sandbox or container was created, started, has stopped, was
// deleted, in the order in which that happened to it. Sandboxes have their own
// id as the container's; each is started as it is created. fn must not wait and
// must not change the event, which has the status of the sandbox and of all its
// containers after what happened.
func (r *Runtime) OnEvent(g *loop.Group, fn func(*runtimeapi.ContainerEventResponse)) {
	if g.Dead() {
		return
	}
	r.listeners = append(r.listeners, listener{g, fn})
	g.OnKill(func() {
		r.listeners = slices.DeleteFunc(slices.Clone(r.listeners), func(l listener) bool { return l.g == g })
	})
}

// EventsAllowed is what a call of GetContainerEvents meets before its stream
// begins: the daemon may be down, and faults may touch it.
func (c *Client) EventsAllowed(ctx context.Context) error {
	return c.read(ctx, mGetContainerEvents, subject{timeout: -1})
}

// event tells the listeners what happened to id, which is s or a container of
// it. Nothing is made while nobody listens.
func (r *Runtime) event(kind runtimeapi.ContainerEventType, id string, s *sandbox) {
	if len(r.listeners) == 0 {
		return
	}
	ev := &runtimeapi.ContainerEventResponse{
		ContainerId:        id,
		ContainerEventType: kind,
		CreatedAt:          r.l.UnixNano(),
		PodSandboxStatus:   s.currentStatus(r),
	}
	for _, c := range s.containers {
		if c.listed {
			ev.ContainersStatuses = append(ev.ContainersStatuses, c.status(r))
		}
	}
	for _, l := range r.listeners {
		l.fn(ev)
	}
}
