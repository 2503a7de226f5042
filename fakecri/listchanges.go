package fakecri

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// lister is what a client that lists changes has yet to be told.
type lister struct {
	sandboxes, containers changedPods
}

// changedPods are pods of which a listing shows something else than what was last
// told.
type changedPods struct {
	all  bool // any may be
	pods []*runtimeapi.PodSandboxMetadata
}

// maxChangedPods is from how many on a listing in full costs no more.
const maxChangedPods = 64

func (c *changedPods) note(pod *runtimeapi.PodSandboxMetadata) {
	switch {
	case c.all || c.index(pod.Uid) >= 0:
	case len(c.pods) == maxChangedPods:
		c.all, c.pods = true, nil
	default:
		c.pods = append(c.pods, pod)
	}
}

func (c *changedPods) index(uid string) int {
	return slices.IndexFunc(c.pods, func(p *runtimeapi.PodSandboxMetadata) bool { return p.Uid == uid })
}

// take returns which of the pods asked for are to be told, and takes them as
// told. "" asks for every pod.
func (c *changedPods) take(r *recordStore, uid string) (pods []*runtimeapi.PodSandboxMetadata, all bool) {
	if uid == "" {
		pods, all = c.pods, c.all
		*c = changedPods{}
		return pods, all
	}
	if c.all { // and stays to be told
		md := &runtimeapi.PodSandboxMetadata{Uid: uid}
		if p := r.pods[uid]; p != nil && len(p.sandboxes) > 0 {
			md = p.sandboxes[0].metadata
		}
		return []*runtimeapi.PodSandboxMetadata{md}, false
	}
	if i := c.index(uid); i >= 0 {
		pods = []*runtimeapi.PodSandboxMetadata{c.pods[i]}
		c.pods = slices.Delete(c.pods, i, i+1)
	}
	return pods, false
}

// sandboxChanged is called after each change of what listings show of a sandbox.
func (r *recordStore) sandboxChanged(s *sandbox) {
	for _, l := range r.listers {
		l.sandboxes.note(s.metadata)
	}
	r.changed()
}

// containerChanged is called after each change of what listings show of a
// container.
func (r *recordStore) containerChanged(c *container) {
	for _, l := range r.listers {
		l.containers.note(c.sandbox.metadata)
	}
	r.changed()
}

// ListsChanges tells whether the listings of changes can be used: everything is
// labelled with the UID of its pod.
func (c *Client) ListsChanges() bool { return c.r.recs.mislabelled == 0 }

// ListPodSandboxChanges makes the call ListPodSandbox for a caller that keeps what
// it was told: of one pod, or of all if podUID is "". It returns the pods whose
// sandboxes are not as they were last told, and all the sandboxes that each has,
// in order of creation. all says that no other pod has any. Entries lack the
// labels and annotations that LeanPodSandboxStatus lacks.
func (c *Client) ListPodSandboxChanges(ctx context.Context, podUID string) (pods []*runtimeapi.PodSandboxMetadata, sandboxes [][]*runtimeapi.PodSandbox, all bool, err error) {
	r := c.r
	if err := c.by.read(ctx, mListPodSandbox, r.recs.podSubject(podUID)); err != nil {
		return nil, nil, false, err
	}
	if pods, all = c.listing().sandboxes.take(r.recs, podUID); all {
		for _, s := range r.recs.sandboxes {
			if firstListed(s.pod.sandboxes) == s {
				pods = append(pods, s.metadata)
			}
		}
	}
	if len(pods) == 0 {
		return nil, nil, all, nil
	}
	sandboxes = make([][]*runtimeapi.PodSandbox, len(pods))
	for i, pod := range pods {
		p := r.recs.pods[pod.Uid]
		if p == nil {
			continue
		}
		for _, s := range p.sandboxes {
			if s.listed {
				e := &runtimeapi.PodSandbox{}
				s.leanEntry(e)
				sandboxes[i] = append(sandboxes[i], e)
			}
		}
	}
	return pods, sandboxes, all, nil
}

func firstListed(list []*sandbox) *sandbox {
	for _, s := range list {
		if s.listed {
			return s
		}
	}
	return nil
}

// ListContainersChanges is ListPodSandboxChanges of containers. Entries lack the
// labels that LeanContainerStatus lacks.
func (c *Client) ListContainersChanges(ctx context.Context, podUID string) (pods []*runtimeapi.PodSandboxMetadata, containers [][]*runtimeapi.Container, all bool, err error) {
	r := c.r
	if err := c.by.read(ctx, mListContainers, r.recs.podSubject(podUID)); err != nil {
		return nil, nil, false, err
	}
	if pods, all = c.listing().containers.take(r.recs, podUID); all {
		for _, k := range r.recs.containers {
			if k.sandbox.pod.containers[0] == k {
				pods = append(pods, k.sandbox.metadata)
			}
		}
	}
	if len(pods) == 0 {
		return nil, nil, all, nil
	}
	containers = make([][]*runtimeapi.Container, len(pods))
	for i, pod := range pods {
		p := r.recs.pods[pod.Uid]
		if p == nil {
			continue
		}
		for _, k := range p.containers {
			e := &runtimeapi.Container{}
			k.leanEntry(e)
			containers[i] = append(containers[i], e)
		}
	}
	return pods, containers, all, nil
}

// listing returns what the client has yet to be told: everything, at first.
func (c *Client) listing() *lister {
	if c.lister != nil {
		return c.lister
	}
	c.lister = &lister{changedPods{all: true}, changedPods{all: true}}
	if r := c.r; !c.by.g.Dead() {
		r.recs.listers = append(r.recs.listers, c.lister)
		c.by.g.OnKill(func() {
			r.recs.listers = slices.DeleteFunc(r.recs.listers, func(l *lister) bool { return l == c.lister })
		})
	}
	return c.lister
}
