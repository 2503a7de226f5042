package fakecri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListPodSandbox returns the sandboxes that the filter lets through, in order
// of creation. What it returns is shared and must not be changed.
func (c *Client) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	if err := c.by.read(ctx, mListPodSandbox, c.r.recs.selectorSubject(filter.GetLabelSelector())); err != nil {
		return nil, err
	}
	return c.r.recs.listSandboxes(filter), nil
}

// selectorSubject is the pod that a label selector names.
func (r *recordStore) selectorSubject(selector map[string]string) subject {
	return r.podSubject(selector[labelPodUID])
}

// podSubject is the pod of that UID, if there is one.
func (r *recordStore) podSubject(uid string) subject {
	sub := subject{timeout: -1}
	if uid != "" && r.calls.faulty() {
		if p := r.pods[uid]; p != nil && len(p.sandboxes) > 0 {
			md := p.sandboxes[0].metadata
			sub.namespace, sub.pod = md.Namespace, md.Name
		}
	}
	return sub
}

func (r *recordStore) listSandboxes(f *runtimeapi.PodSandboxFilter) []*runtimeapi.PodSandbox {
	if f.GetId() == "" && f.GetState() == nil && len(f.GetLabelSelector()) == 0 {
		out := make([]*runtimeapi.PodSandbox, len(r.sandboxes))
		entries := make([]runtimeapi.PodSandbox, len(out))
		for i, s := range r.sandboxes {
			out[i] = &entries[i]
			s.listEntry(out[i])
		}
		return out
	}
	var out []*runtimeapi.PodSandbox
	for _, s := range r.sandboxCandidates(f.GetId(), f.GetLabelSelector()) {
		if s.listed &&
			(f.GetState() == nil || s.state == f.State.State) &&
			labelsMatch(s, f.LabelSelector) {
			e := &runtimeapi.PodSandbox{}
			s.listEntry(e)
			out = append(out, e)
		}
	}
	return out
}

// sandboxCandidates narrows down what a filter can match.
func (r *recordStore) sandboxCandidates(id string, selector map[string]string) []*sandbox {
	if id != "" {
		if s := r.sandboxFor(id); s != nil {
			return []*sandbox{s}
		}
		return nil
	}
	if uid, ok := selector[labelPodUID]; ok && r.mislabelled == 0 {
		if p := r.pods[uid]; p != nil {
			return p.sandboxes
		}
		return nil
	}
	return r.sandboxes
}

// listEntry makes what listings show. It is not kept: whoever lists has the
// runtime's generation to know when it is worth while.
func (s *sandbox) listEntry(e *runtimeapi.PodSandbox) {
	s.leanEntry(e)
	if s.own != nil {
		whole := s.whole()
		e.Labels, e.Annotations = whole.Labels, whole.Annotations
	}
}

// leanEntry is listEntry with the labels and annotations of config.
func (s *sandbox) leanEntry(e *runtimeapi.PodSandbox) {
	e.Id = s.id
	e.Metadata = s.metadata
	e.State = s.state
	e.CreatedAt = s.createdAt
	e.Labels = s.config.Labels
	e.Annotations = s.config.Annotations
	e.RuntimeHandler = s.handler
}

// ListContainers returns the containers that the filter lets through, in order
// of creation. What it returns is shared and must not be changed.
func (c *Client) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	if err := c.by.read(ctx, mListContainers, c.r.recs.selectorSubject(filter.GetLabelSelector())); err != nil {
		return nil, err
	}
	return c.r.recs.listContainers(filter), nil
}

func (r *recordStore) listContainers(f *runtimeapi.ContainerFilter) []*runtimeapi.Container {
	if f.GetId() == "" && f.GetState() == nil && f.GetPodSandboxId() == "" && len(f.GetLabelSelector()) == 0 {
		out := make([]*runtimeapi.Container, len(r.containers))
		entries := make([]runtimeapi.Container, len(out))
		for i, c := range r.containers {
			out[i] = &entries[i]
			c.listEntry(out[i])
		}
		return out
	}
	var out []*runtimeapi.Container
	for _, c := range r.containerCandidates(f.GetId(), f.GetPodSandboxId(), f.GetLabelSelector()) {
		if f.GetState() == nil || c.state == f.State.State {
			e := &runtimeapi.Container{}
			c.listEntry(e)
			out = append(out, e)
		}
	}
	return out
}

// containerCandidates returns the containers of that id, sandbox and labels,
// each of which may be empty.
func (r *recordStore) containerCandidates(id, sandboxID string, selector map[string]string) []*container {
	from := r.containers
	var sb *sandbox
	if sandboxID != "" {
		if sb = r.sandboxFor(sandboxID); sb == nil {
			return nil
		}
	}
	if id != "" {
		from = nil
		if c := r.containerFor(id); c != nil {
			from = []*container{c}
		}
	} else if sb != nil {
		from = sb.pod.containers
	} else if uid, ok := selector[labelPodUID]; ok && r.mislabelled == 0 {
		from = nil
		if p := r.pods[uid]; p != nil {
			from = p.containers
		}
	} else if len(selector) == 0 {
		return from
	}
	var out []*container
	for _, c := range from {
		if (sb == nil || c.sandbox == sb) && labelsMatch(c, selector) {
			out = append(out, c)
		}
	}
	return out
}

func (c *container) listEntry(e *runtimeapi.Container) {
	c.leanEntry(e)
	e.Labels = c.labels()
}

// leanEntry is listEntry with the labels of config.
func (c *container) leanEntry(e *runtimeapi.Container) {
	e.Id = c.id
	e.PodSandboxId = c.sandbox.id
	e.Metadata = c.config.Metadata
	e.Image = c.config.Image
	e.ImageRef = c.image.ref
	e.ImageId = c.image.id
	e.State = c.state
	e.CreatedAt = c.createdAt
	e.Labels = c.config.Labels
	e.Annotations = c.config.Annotations
}
