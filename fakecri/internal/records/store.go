package records

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/watch"
	"github.com/drydock-sim/drydock/ground/loop"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (r *Store) ContainerSubject(id string) calls.Subject {
	if c := r.ContainerFor(id); c != nil {
		return c.Subject()
	}
	return calls.Subject{Timeout: -1}
}

// SetContainerState makes a change of state visible.
func (r *Store) SetContainerState(c *Container, state runtimeapi.ContainerState) {
	c.State = state
	r.ContainerChanged(c)
}

func Itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// This file is what happens behind the kubelet's back. Pods are named
// "namespace/name"; with several sandboxes or runs the newest is meant. These
// acts need no daemon and take no time.

// ErrNothingThere is in the chain of the errors about a sandbox or container
// that the runtime doesn't have, or that doesn't run where it would have to.
var ErrNothingThere = errors.New("nothing there")

// nothing is an error that reads as what and is an [ErrNothingThere].
type nothing struct{ what string }

func (n *nothing) Error() string { return n.what }

func (n *nothing) Is(target error) bool { return target == ErrNothingThere }

// FindSandbox returns the newest sandbox of a pod.
func (r *Store) FindSandbox(pod string) (*Sandbox, error) {
	for i := len(r.Sandboxes) - 1; i >= 0; i-- {
		md := r.Sandboxes[i].Metadata
		if md.Namespace+"/"+md.Name == pod {
			return r.Sandboxes[i], nil
		}
	}
	return nil, &nothing{fmt.Sprintf("node %s has no sandbox of pod %s", r.node, pod)}
}

// FindContainer returns the newest container of a name; with alive the newest
// that runs.
func (r *Store) FindContainer(pod, name string, alive bool) (*Container, error) {
	for i := len(r.Containers) - 1; i >= 0; i-- {
		c := r.Containers[i]
		md := c.Sandbox.Metadata
		if c.Config.Metadata.Name == name && (!alive || c.Alive()) && md.Namespace+"/"+md.Name == pod {
			return c, nil
		}
	}
	what := "container"
	if alive {
		what = "running container"
	}
	return nil, &nothing{fmt.Sprintf("node %s has no %s %q of pod %s", r.node, what, name, pod)}
}

// Store is what the runtime knows of: its sandboxes and containers, who
// is told of their changes, and the ids that they get.
type Store struct {
	l     *loop.Loop
	node  string
	calls *calls.Daemon

	Gen uint64
	// ContainerGen grows when a container's record comes or goes.
	ContainerGen uint64
	ids          uint64

	SandboxByID   byID[*Sandbox]
	ContainerByID byID[*Container]
	Pods          map[string]*podRecords // by the uid of the sandboxes' metadata
	// Sandboxes and containers are what listings show, in order of creation.
	Sandboxes  []*Sandbox
	Containers []*Container
	// Mislabelled counts what is listed without its pod's uid as its label;
	// unless 0, the index by pod is of no use to that filter.
	Mislabelled int

	Watchers watch.Watchers[uint64] // of gen
	Listers  []*Lister
}

func New(l *loop.Loop, node string, calls *calls.Daemon) *Store {
	return &Store{l: l, node: node, calls: calls, Pods: map[string]*podRecords{}, Gen: 1}
}

// podRecords are the records of one pod.
type podRecords struct {
	Sandboxes  []*Sandbox // those being created included
	Containers []*Container

	oneSandbox   [1]*Sandbox // room for what most pods have
	oneContainer [1]*Container
}

func NewPodRecords() *podRecords {
	p := &podRecords{}
	p.Sandboxes, p.Containers = p.oneSandbox[:0], p.oneContainer[:0]
	return p
}

// The labels by which kubelets know their sandboxes and containers.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
)

// NewID returns a new id of 64 hex digits; none comes twice.
func (r *Store) NewID(kind string) string {
	r.ids++
	return images.Hash(kind, r.node, r.l.Seed(), r.ids)
}

// Changed is called after each change of what a call could answer.
func (r *Store) Changed() {
	r.Gen++
	r.Watchers.Tell(r.Gen)
}

// DropSandbox forgets a sandbox that was never listed.
func (r *Store) DropSandbox(s *Sandbox) {
	s.Pod.Sandboxes = DeleteItem(s.Pod.Sandboxes, s)
	r.DropPod(s)
}

// DropPod forgets the pod of s if nothing of it is left.
func (r *Store) DropPod(s *Sandbox) {
	if len(s.Pod.Sandboxes) == 0 && len(s.Pod.Containers) == 0 {
		delete(r.Pods, s.Metadata.Uid)
	}
}

func (r *Store) SandboxSubject(id string) calls.Subject {
	if s := r.SandboxFor(id); s != nil {
		return s.subject()
	}
	return calls.Subject{Timeout: -1}
}

// CountLabel keeps count of what is listed without its pod's uid as its label.
func (r *Store) CountLabel(of labelled, uid string, n int) {
	if v, _ := of.label(LabelPodUID); v != uid {
		r.Mislabelled += n
	}
}

// DeleteItem removes the first v from s, in place.
func DeleteItem[T comparable](s []T, v T) []T {
	if i := slices.Index(s, v); i >= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}
