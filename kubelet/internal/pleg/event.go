package pleg

import (
	"k8s.io/apimachinery/pkg/types"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// EventType says what happened to a pod.
type EventType string

// The types of events. What upstream calls ContainerChanged is never sent.
const (
	ContainerStarted EventType = "ContainerStarted"
	ContainerDied    EventType = "ContainerDied"
	ContainerRemoved EventType = "ContainerRemoved"
	// PodSync says that a pod was inspected again without a change of state.
	PodSync EventType = "PodSync"

	containerChanged EventType = "ContainerChanged"
)

// PodLifecycleEvent is a change of one container or sandbox of a pod.
type PodLifecycleEvent struct {
	// ID is the pod's UID.
	ID   types.UID
	Type EventType
	// Data is the CRI ID of the container or sandbox; "" for PodSync.
	Data string
}

// plegState is a container's state as the PLEG tells states apart.
type plegState uint8

const (
	nonExistent plegState = iota
	running
	exited
	unknown
)

func convertState(s kubecontainer.State) plegState {
	switch s {
	case kubecontainer.StateRunning:
		return running
	case kubecontainer.StateExited:
		return exited
	}
	return unknown // created and unknown
}

// appendTransition appends the events of one container's change of state.
func appendTransition(events []PodLifecycleEvent, uid types.UID, id string, was, is plegState) []PodLifecycleEvent {
	if was == is {
		return events
	}
	add := func(t EventType) { events = append(events, PodLifecycleEvent{ID: uid, Type: t, Data: id}) }
	switch is {
	case running:
		add(ContainerStarted)
	case exited:
		add(ContainerDied)
	case unknown:
		add(containerChanged)
	case nonExistent:
		if was != exited {
			add(ContainerDied)
		}
		add(ContainerRemoved)
	}
	return events
}

// computeEvents compares two pictures of a pod, either of which may be nil:
// the containers and then the sandboxes of the old one and then of the new
// one, each ID once.
func computeEvents(uid types.UID, was, is *kubecontainer.Pod) []PodLifecycleEvent {
	var events []PodLifecycleEvent
	for _, c := range containersOf(was) {
		events = appendTransition(events, uid, c.ID, convertState(c.State), stateIn(containersOf(is), c.ID))
	}
	for _, c := range sandboxesOf(was) {
		events = appendTransition(events, uid, c.ID, convertState(c.State), stateIn(sandboxesOf(is), c.ID))
	}
	for _, c := range containersOf(is) {
		if stateIn(containersOf(was), c.ID) == nonExistent {
			events = appendTransition(events, uid, c.ID, nonExistent, convertState(c.State))
		}
	}
	for _, c := range sandboxesOf(is) {
		if stateIn(sandboxesOf(was), c.ID) == nonExistent {
			events = appendTransition(events, uid, c.ID, nonExistent, convertState(c.State))
		}
	}
	return events
}

func containersOf(p *kubecontainer.Pod) []*kubecontainer.Container {
	if p == nil {
		return nil
	}
	return p.Containers
}

func sandboxesOf(p *kubecontainer.Pod) []*kubecontainer.Container {
	if p == nil {
		return nil
	}
	return p.Sandboxes
}

func stateIn(list []*kubecontainer.Container, id string) plegState {
	for _, c := range list {
		if c.ID == id {
			return convertState(c.State)
		}
	}
	return nonExistent
}
