package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	eventCreated = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT
	eventStarted = runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT
	eventStopped = runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT
	eventDeleted = runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
)

// OnEvent is Runtime.OnEvent.
func (r *viewer) OnEvent(g *loop.Group, fn func(*runtimeapi.ContainerEventResponse)) {
	r.listeners.add(g, fn)
}

// EventsAllowed is what a call of GetContainerEvents meets before its stream
// begins: the daemon may be down, and faults may touch it.
func (c *Client) EventsAllowed(ctx context.Context) error {
	return c.by.read(ctx, mGetContainerEvents, subject{timeout: -1})
}

// event tells the listeners what happened to id, which is s or a container of
// it. Nothing is made while nobody listens.
func (r *viewer) event(kind runtimeapi.ContainerEventType, id string, s *sandbox) {
	if !r.listeners.any() {
		return
	}
	ev := &runtimeapi.ContainerEventResponse{
		ContainerId:        id,
		ContainerEventType: kind,
		CreatedAt:          r.l.UnixNano(),
		PodSandboxStatus:   r.sandboxStatus(s),
	}
	for _, c := range s.containers {
		if c.listed {
			ev.ContainersStatuses = append(ev.ContainersStatuses, r.containerStatus(c))
		}
	}
	r.listeners.tell(ev)
}
