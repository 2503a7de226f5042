package records

import (
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Lister is what a client that lists changes has yet to be told.
type Lister struct {
	Sandboxes, Containers ChangedPods
}

// ChangedPods are pods of which a listing shows something else than what was last
// told.
type ChangedPods struct {
	All  bool // any may be
	pods []*runtimeapi.PodSandboxMetadata
}

// MaxChangedPods is from how many on a listing in full costs no more.
const MaxChangedPods = 64

// note says that a pod may show otherwise. Beyond maxChangedPods it is any pod.
func (c *ChangedPods) note(pod *runtimeapi.PodSandboxMetadata) {
	switch {
	case c.All || c.index(pod.Uid) >= 0:
	case len(c.pods) == MaxChangedPods:
		c.All, c.pods = true, nil
	default:
		c.pods = append(c.pods, pod)
	}
}

// index is a pod's place in the list, -1 for none.
func (c *ChangedPods) index(uid string) int {
	return slices.IndexFunc(c.pods, func(p *runtimeapi.PodSandboxMetadata) bool { return p.Uid == uid })
}

// Take returns which of the pods asked for are to be told, and takes them as
// told. "" asks for every pod.
func (c *ChangedPods) Take(r *Store, uid string) (pods []*runtimeapi.PodSandboxMetadata, all bool) {
	if uid == "" {
		pods, all = c.pods, c.All
		*c = ChangedPods{}
		return pods, all
	}
	if c.All { // and stays to be told
		md := &runtimeapi.PodSandboxMetadata{Uid: uid}
		if p := r.Pods[uid]; p != nil && len(p.Sandboxes) > 0 {
			md = p.Sandboxes[0].Metadata
		}
		return []*runtimeapi.PodSandboxMetadata{md}, false
	}
	if i := c.index(uid); i >= 0 {
		pods = []*runtimeapi.PodSandboxMetadata{c.pods[i]}
		c.pods = slices.Delete(c.pods, i, i+1)
	}
	return pods, false
}

// SandboxChanged is called after each change of what listings show of a sandbox.
func (r *Store) SandboxChanged(s *Sandbox) {
	for _, l := range r.Listers {
		l.Sandboxes.note(s.Metadata)
	}
	r.Changed()
}

// ContainerChanged is called after each change of what listings show of a
// container.
func (r *Store) ContainerChanged(c *Container) {
	for _, l := range r.Listers {
		l.Containers.note(c.Sandbox.Metadata)
	}
	r.Changed()
}

// FirstListed is the sandbox that stands for its pod in a list of pods.
func FirstListed(list []*Sandbox) *Sandbox {
	for _, s := range list {
		if s.Listed {
			return s
		}
	}
	return nil
}

// NewLister returns what a client has yet to be told that was told nothing: of
// every pod.
func NewLister() *Lister {
	return &Lister{Sandboxes: ChangedPods{All: true}, Containers: ChangedPods{All: true}}
}
