package pleg

import (
	"context"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
)

// What upstream fixes of an Evented (pkg/kubelet/kubelet.go and pleg/evented.go at v1.36).
const (
	// EventedRelistPeriod and EventedRelistThreshold are the generic PLEG's beside events.
	EventedRelistPeriod    = 300 * time.Second
	EventedRelistThreshold = 10 * time.Minute

	maxStreamErrors   = 5
	cacheUpdatePeriod = 5 * time.Second
)

// EventService streams what happens to the runtime's containers.
type EventService interface {
	// ContainerEvents calls connected when the stream (CRI: GetContainerEvents) is there,
	// and then told with each event, until it ends, and returns why; it doesn't end well.
	// It is called from a task; what it calls runs on that task's loop and must not wait.
	ContainerEvents(ctx context.Context, connected func(), told func(*runtimeapi.ContainerEventResponse)) error
}

// Relister is the generic PLEG beside an Evented: a Generic or an Elided.
type Relister interface {
	Relist(ctx context.Context) error
	Update(period, threshold time.Duration)
	LastRelist() time.Time
}

// EventedOptions are what an Evented is made of.
type EventedOptions struct {
	Service EventService
	// Generate makes a pod's status of an event.
	Generate func(*runtimeapi.ContainerEventResponse) *kubecontainer.PodStatus
	// Generic is who shares the queue and the cache (Options.Shared), and Relister returns the
	// same, or what is around it, once everything is made.
	Generic  *Generic
	Relister func() Relister
	// Metrics counts streams; nil: nobody does.
	Metrics *metrics.Kubelet
}

// Evented is the PLEG that the runtime tells what happens. It stands beside a Generic, which
// finds what it misses, and to which it leaves everything once the stream has failed often.
type Evented struct {
	o       EventedOptions
	updates *loop.Periodic

	// deltas are by how many more containers there are in a state since the relist at
	// that time, as far as events tell.
	deltas [kubecontainer.StateExited + 1]int
	since  time.Time
	seen   time.Time
}

// NewEvented returns an Evented that is not started.
func NewEvented(o EventedOptions) *Evented {
	return &Evented{o: o}
}

// Start has the runtime tell of its containers until the group dies. The Generic must have been
// started.
func (e *Evented) Start(g *loop.Group) {
	e.o.Generic.told = true
	// Who waits for a status that no event brings goes on after this period. The first time
	// comes when the first relist has been made: before that nothing is known.
	e.updates = g.Every("evented-pleg-cache", cacheUpdatePeriod, 0, func() { e.o.Generic.o.Cache.UpdateTime(e.now()) })
	g.Go("evented-pleg", e.watch)
}

// watch follows one stream after the other.
func (e *Evented) watch(ctx context.Context) {
	for range maxStreamErrors {
		err := e.o.Service.ContainerEvents(ctx, e.o.Metrics.EventsConnected, e.told)
		if ctx.Err() != nil {
			return
		}
		e.o.Metrics.EventsFailed()
		e.log("Evented PLEG: Failed to get container events, retrying: %v", err)
		if e.o.Relister().Relist(ctx) != nil {
			return
		}
	}
	e.log("Fall back to Generic PLEG relisting since Evented PLEG is not working")
	e.updates.Stop()
	e.o.Generic.told = false
	e.o.Relister().Update(DefaultRelistPeriod, DefaultRelistThreshold)
}

// Healthy returns an error while the sync loop doesn't take events.
func (e *Evented) Healthy() error {
	if n := e.o.Generic.events.Len(); n >= eventCapacity {
		return fmt.Errorf("EventedPLEG: pleg event channel capacity is full with %v events", n)
	}
	e.seen = e.now()
	return nil
}

// Seen is when Healthy last said that all was well; zero: it never did.
func (e *Evented) Seen() time.Time { return e.seen }

// told takes an event: the pod's status goes into the cache, unless something newer is there,
// and the sync loop learns of it.
func (e *Evented) told(ev *runtimeapi.ContainerEventResponse) {
	if ev.GetPodSandboxStatus().GetMetadata() == nil {
		// A container of a sandbox that was removed meanwhile; that had an event of its own.
		e.log("Evented PLEG: received an event of container %s without its pod sandbox", ev.GetContainerId())
		return
	}
	p := e.o.Generic
	status := e.o.Generate(ev)
	p.keepIPs(status)
	e.count(status)
	e.o.Metrics.EventTold(e.now().UnixNano() - ev.GetCreatedAt())
	uid, id := status.ID, ev.GetContainerId()
	kind := ev.GetContainerEventType()
	if kind == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
		if ev.GetPodSandboxStatus().GetId() == id {
			p.o.Cache.Delete(uid)
		}
	} else if !p.o.Cache.SetIfNewer(uid, status, nil, time.Unix(0, ev.GetCreatedAt())) {
		return
	}
	for _, t := range eventTypes(kind) {
		p.send(PodLifecycleEvent{ID: uid, Type: t, Data: id})
	}
}

// eventTypes are what the sync loop is told of an event of the runtime's: of a container that
// was created nothing, since only the cache goes by it.
func eventTypes(kind runtimeapi.ContainerEventType) []EventType {
	switch kind {
	case runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT:
		return []EventType{ContainerStarted}
	case runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT:
		return []EventType{ContainerDied}
	case runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT:
		return []EventType{ContainerDied, ContainerRemoved}
	}
	return nil
}

// count notes how many containers of a pod are in which state.
func (e *Evented) count(status *kubecontainer.PodStatus) {
	e.forgetDeltas()
	if was, err := e.o.Generic.o.Cache.Get(status.ID); err == nil {
		for _, c := range was.ContainerStatuses {
			e.deltas[c.State]--
		}
	}
	for _, c := range status.ContainerStatuses {
		e.deltas[c.State]++
	}
}

// forgetDeltas begins anew when a relist has counted everything.
func (e *Evented) forgetDeltas() {
	if last := e.o.Relister().LastRelist(); !last.Equal(e.since) {
		e.since = last
		clear(e.deltas[:])
	}
}

// AddContainers corrects numbers of containers by state that a relist has found.
func (e *Evented) AddContainers(by map[string]int) {
	e.forgetDeltas()
	for state, n := range e.deltas {
		if n != 0 {
			by[kubecontainer.State(state).String()] += n
		}
	}
}

func (e *Evented) now() time.Time { return e.o.Generic.o.Loop.Now() }

func (e *Evented) log(format string, args ...any) { e.o.Generic.o.Log(format, args...) }
