package records

import (
	"slices"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/images"
	"github.com/drydock-sim/drydock/fakecri/internal/watch"
	"github.com/drydock-sim/drydock/ground/loop"
)

// The labels by which kubelets know their sandboxes and containers.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
)

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

// New returns an empty store; node tells this node's ids from others'.
func New(l *loop.Loop, node string, calls *calls.Daemon) *Store {
	return &Store{l: l, node: node, calls: calls, Gen: 1}
}

// podRecords are the records of one pod.
type podRecords struct {
	Sandboxes  []*Sandbox // those being created included
	Containers []*Container

	oneSandbox   [1]*Sandbox // room for what most pods have
	oneContainer [1]*Container
}

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

// PodFor returns the records of a pod, made with its first sandbox.
func (r *Store) PodFor(uid string) *podRecords {
	p := r.Pods[uid]
	if p == nil {
		if r.Pods == nil {
			r.Pods = map[string]*podRecords{}
		}
		p = &podRecords{}
		p.Sandboxes, p.Containers = p.oneSandbox[:0], p.oneContainer[:0]
		r.Pods[uid] = p
	}
	return p
}

// ListSandbox has listings show a sandbox, whose name was reserved before.
func (r *Store) ListSandbox(s *Sandbox) {
	s.Listed = true
	r.SandboxByID.Add(s)
	r.Sandboxes = append(r.Sandboxes, s)
	if n := len(s.Pod.Sandboxes); s.Pod.Sandboxes[n-1] != s { // listings are in order of creation
		s.Pod.Sandboxes = append(DeleteItem(s.Pod.Sandboxes, s), s)
	}
	r.countLabel(s, s.Metadata.Uid, 1)
	r.SandboxChanged(s)
}

// UnlistSandbox forgets a sandbox; its containers have been forgotten before.
func (r *Store) UnlistSandbox(s *Sandbox) {
	s.Listed = false
	r.SandboxByID.Drop(s)
	r.Sandboxes = DeleteItem(r.Sandboxes, s)
	r.countLabel(s, s.Metadata.Uid, -1)
	r.DropSandbox(s)
	r.SandboxChanged(s)
}

// ListContainer has listings show a container, whose name was reserved before.
func (r *Store) ListContainer(c *Container) {
	c.Listed = true
	r.ContainerGen++
	r.ContainerByID.Add(c)
	r.Containers = append(r.Containers, c)
	c.Sandbox.Pod.Containers = append(c.Sandbox.Pod.Containers, c)
	r.countLabel(c, c.Sandbox.Metadata.Uid, 1)
	r.ContainerChanged(c)
}

// UnlistContainer forgets a container.
func (r *Store) UnlistContainer(c *Container) {
	s := c.Sandbox
	c.Listed = false
	r.ContainerGen++
	r.ContainerByID.Drop(c)
	r.Containers = DeleteItem(r.Containers, c)
	s.Containers = DeleteItem(s.Containers, c)
	s.Pod.Containers = DeleteItem(s.Pod.Containers, c)
	r.countLabel(c, s.Metadata.Uid, -1)
	r.dropPod(s)
	r.ContainerChanged(c)
}

// DropSandbox forgets a sandbox that was never listed.
func (r *Store) DropSandbox(s *Sandbox) {
	s.Pod.Sandboxes = DeleteItem(s.Pod.Sandboxes, s)
	r.dropPod(s)
}

// dropPod forgets the pod of s if nothing of it is left.
func (r *Store) dropPod(s *Sandbox) {
	if len(s.Pod.Sandboxes) == 0 && len(s.Pod.Containers) == 0 {
		delete(r.Pods, s.Metadata.Uid)
	}
}

// SetContainerState makes a change of state visible.
func (r *Store) SetContainerState(c *Container, state runtimeapi.ContainerState) {
	c.State = state
	r.ContainerChanged(c)
}

// countLabel keeps count of what is listed without its pod's uid as its label.
func (r *Store) countLabel(of labelled, uid string, n int) {
	if v, _ := of.label(LabelPodUID); v != uid {
		r.Mislabelled += n
	}
}

// SandboxSubject is what a call about the sandbox is about; of an unknown one,
// nothing.
func (r *Store) SandboxSubject(id string) calls.Subject {
	if s := r.SandboxFor(id); s != nil {
		return s.subject()
	}
	return calls.Subject{Timeout: -1}
}

// ContainerSubject is SandboxSubject of a container.
func (r *Store) ContainerSubject(id string) calls.Subject {
	if c := r.ContainerFor(id); c != nil {
		return c.Subject()
	}
	return calls.Subject{Timeout: -1}
}

// DeleteItem removes the first v from s, in place.
func DeleteItem[T comparable](s []T, v T) []T {
	if i := slices.Index(s, v); i >= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}

// Itoa writes an attempt as names and records have it.
func Itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
