package fakecri

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

// ListsChanges reports whether the listings of changes can be used: everything is
// labelled with the UID of its pod.
func (c *Client) ListsChanges() bool { return c.r.recs.Mislabelled == 0 }

// ListPodSandboxChanges makes the call ListPodSandbox for a caller that keeps what
// it was told: of one pod, or of all if podUID is "". It returns the pods whose
// sandboxes are not as they were last told, and all the sandboxes that each has,
// in order of creation. all says that no other pod has any. Entries lack the
// labels and annotations that LeanPodSandboxStatus lacks.
func (c *Client) ListPodSandboxChanges(ctx context.Context, podUID string) (pods []*runtimeapi.PodSandboxMetadata, sandboxes [][]*runtimeapi.PodSandbox, all bool, err error) {
	r := c.r
	if err := c.by.Read(ctx, calls.ListPodSandbox, r.recs.PodSubject(podUID)); err != nil {
		return nil, nil, false, err
	}
	if pods, all = c.listing().Sandboxes.Take(r.recs, podUID); all {
		for _, s := range r.recs.Sandboxes {
			if records.FirstListed(s.Pod.Sandboxes) == s {
				pods = append(pods, s.Metadata)
			}
		}
	}
	if len(pods) == 0 {
		return nil, nil, all, nil
	}
	sandboxes = make([][]*runtimeapi.PodSandbox, len(pods))
	for i, pod := range pods {
		p := r.recs.Pods[pod.Uid]
		if p == nil {
			continue
		}
		for _, s := range p.Sandboxes {
			if s.Listed {
				e := &runtimeapi.PodSandbox{}
				s.LeanEntry(e)
				sandboxes[i] = append(sandboxes[i], e)
			}
		}
	}
	return pods, sandboxes, all, nil
}

// ListContainersChanges is ListPodSandboxChanges of containers. Entries lack the
// labels that LeanContainerStatus lacks.
func (c *Client) ListContainersChanges(ctx context.Context, podUID string) (pods []*runtimeapi.PodSandboxMetadata, containers [][]*runtimeapi.Container, all bool, err error) {
	r := c.r
	if err := c.by.Read(ctx, calls.ListContainers, r.recs.PodSubject(podUID)); err != nil {
		return nil, nil, false, err
	}
	if pods, all = c.listing().Containers.Take(r.recs, podUID); all {
		for _, k := range r.recs.Containers {
			if k.Sandbox.Pod.Containers[0] == k {
				pods = append(pods, k.Sandbox.Metadata)
			}
		}
	}
	if len(pods) == 0 {
		return nil, nil, all, nil
	}
	containers = make([][]*runtimeapi.Container, len(pods))
	for i, pod := range pods {
		p := r.recs.Pods[pod.Uid]
		if p == nil {
			continue
		}
		for _, k := range p.Containers {
			e := &runtimeapi.Container{}
			k.LeanEntry(e)
			containers[i] = append(containers[i], e)
		}
	}
	return pods, containers, all, nil
}

// listing returns what the client has yet to be told: everything, at first.
func (c *Client) listing() *records.Lister {
	if c.lister != nil {
		return c.lister
	}
	c.lister = records.NewLister()
	if r := c.r; !c.by.Group.Dead() {
		r.recs.Listers = append(r.recs.Listers, c.lister)
		c.by.Group.OnKill(func() {
			r.recs.Listers = slices.DeleteFunc(r.recs.Listers, func(l *records.Lister) bool { return l == c.lister })
		})
	}
	return c.lister
}
