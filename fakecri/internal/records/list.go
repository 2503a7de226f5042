package records

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/ground/lists"
)

// SelectorSubject is the pod that a label selector names.
func (r *Store) SelectorSubject(selector map[string]string) calls.Subject {
	return r.PodSubject(selector[LabelPodUID])
}

// PodSubject is the pod of that UID, if there is one.
func (r *Store) PodSubject(uid string) calls.Subject {
	sub := calls.Subject{Timeout: -1}
	if uid != "" && r.calls.Faulty() {
		if p := r.Pods[uid]; p != nil && len(p.Sandboxes) > 0 {
			md := p.Sandboxes[0].Metadata
			sub.Namespace, sub.Pod = md.Namespace, md.Name
		}
	}
	return sub
}

// ListSandboxes makes a listing. One in full is two pieces of memory, whatever its
// length.
func (r *Store) ListSandboxes(f *runtimeapi.PodSandboxFilter) []*runtimeapi.PodSandbox {
	if f.GetId() == "" && f.GetState() == nil && len(f.GetLabelSelector()) == 0 {
		out := make([]*runtimeapi.PodSandbox, len(r.Sandboxes))
		entries := make([]runtimeapi.PodSandbox, len(out))
		for i, s := range r.Sandboxes {
			out[i] = &entries[i]
			s.listEntry(out[i])
		}
		return out
	}
	var out []*runtimeapi.PodSandbox
	for _, s := range r.SandboxCandidates(f.GetId(), f.GetLabelSelector()) {
		if s.Listed &&
			(f.GetState() == nil || s.State == f.State.State) &&
			LabelsMatch(s, f.LabelSelector) {
			e := &runtimeapi.PodSandbox{}
			s.listEntry(e)
			out = append(out, e)
		}
	}
	return out
}

// SandboxCandidates narrows down what a filter can match.
func (r *Store) SandboxCandidates(id string, selector map[string]string) []*Sandbox {
	if id != "" {
		if s := r.SandboxFor(id); s != nil {
			return []*Sandbox{s}
		}
		return nil
	}
	if uid, ok := selector[LabelPodUID]; ok && r.Mislabelled == 0 {
		if p := r.Pods[uid]; p != nil {
			return p.Sandboxes
		}
		return nil
	}
	return r.Sandboxes
}

// listEntry makes what listings show. It is not kept: whoever lists has the
// runtime's generation to know when it is worth while.
func (s *Sandbox) listEntry(e *runtimeapi.PodSandbox) {
	s.LeanEntry(e)
	if s.Own != nil {
		whole := s.Whole()
		e.Labels, e.Annotations = whole.Labels, whole.Annotations
	}
}

// LeanEntry is listEntry with the labels and annotations of config.
func (s *Sandbox) LeanEntry(e *runtimeapi.PodSandbox) {
	e.Id = s.ID
	e.Metadata = s.Metadata
	e.State = s.State
	e.CreatedAt = s.CreatedAt
	e.Labels = s.Config.Labels
	e.Annotations = s.Config.Annotations
	e.RuntimeHandler = s.Handler
}

// ListContainers makes a listing, as ListSandboxes does.
func (r *Store) ListContainers(f *runtimeapi.ContainerFilter) []*runtimeapi.Container {
	if f.GetId() == "" && f.GetState() == nil && f.GetPodSandboxId() == "" && len(f.GetLabelSelector()) == 0 {
		out := make([]*runtimeapi.Container, len(r.Containers))
		entries := make([]runtimeapi.Container, len(out))
		for i, c := range r.Containers {
			out[i] = &entries[i]
			c.listEntry(out[i])
		}
		return out
	}
	var out []*runtimeapi.Container
	for _, c := range r.ContainerCandidates(f.GetId(), f.GetPodSandboxId(), f.GetLabelSelector()) {
		if f.GetState() == nil || c.State == f.State.State {
			e := &runtimeapi.Container{}
			c.listEntry(e)
			out = append(out, e)
		}
	}
	return out
}

// ContainerCandidates returns the containers of that id, sandbox and labels,
// each of which may be empty.
func (r *Store) ContainerCandidates(id, sandboxID string, selector map[string]string) []*Container {
	from := r.Containers
	var sb *Sandbox
	if sandboxID != "" {
		if sb = r.SandboxFor(sandboxID); sb == nil {
			return nil
		}
	}
	if id != "" {
		from = nil
		if c := r.ContainerFor(id); c != nil {
			from = []*Container{c}
		}
	} else if sb != nil {
		from = sb.Pod.Containers
	} else if uid, ok := selector[LabelPodUID]; ok && r.Mislabelled == 0 {
		from = nil
		if p := r.Pods[uid]; p != nil {
			from = p.Containers
		}
	} else if len(selector) == 0 {
		return from
	}
	return lists.Filter(from, func(c *Container) bool {
		return (sb == nil || c.Sandbox == sb) && LabelsMatch(c, selector)
	})
}

// listEntry makes what listings show.
func (c *Container) listEntry(e *runtimeapi.Container) {
	c.LeanEntry(e)
	e.Labels = c.Labels()
}

// LeanEntry is listEntry with the labels of config.
func (c *Container) LeanEntry(e *runtimeapi.Container) {
	e.Id = c.ID
	e.PodSandboxId = c.Sandbox.ID
	e.Metadata = c.Config.Metadata
	e.Image = c.Config.Image
	e.ImageRef = c.Image.Ref
	e.ImageId = c.Image.ID
	e.State = c.State
	e.CreatedAt = c.CreatedAt
	e.Labels = c.Config.Labels
	e.Annotations = c.Config.Annotations
}
