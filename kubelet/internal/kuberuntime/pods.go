package kuberuntime

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// GetPods lists the runtime's pods, those with the newest sandbox or container
// first, also what is not running. Containers without a sandbox still make a
// pod. What it returns is shared, but for the slice.
func (m *Manager) GetPods(ctx context.Context) ([]*kubecontainer.Pod, error) {
	pods, err := m.ListPods(ctx, true)
	if err != nil {
		return nil, err
	}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, kubecontainer.NewerPod)
	return pods, nil
}

// ListPods is GetPods by UID. The slice is shared, and the same until a pod has
// changed; so is each pod, if the runtime is a ChangeLister. all reports whether also
// what is not running is asked for; it may be among what is returned in any case.
func (m *Manager) ListPods(ctx context.Context, all bool) ([]*kubecontainer.Pod, error) {
	if m.listsChanges() {
		o, err := m.update(ctx, "")
		if err != nil {
			return nil, err
		}
		if m.listsChanges() {
			return m.pictures.finished(o), nil
		}
	}
	var (
		sandboxes  *runtimeapi.PodSandboxFilter
		containers *runtimeapi.ContainerFilter
	)
	if !all {
		sandboxes = &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}}
		containers = &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	}
	return m.list(ctx, sandboxes, containers)
}

// listsChanges reports whether the runtime lists changes now: one behind a
// socket never does.
func (m *Manager) listsChanges() bool { return m.rt.changes != nil && m.rt.changes.ListsChanges() }

// GetPod lists one pod; nil if the runtime has nothing of it. It is shared.
func (m *Manager) GetPod(ctx context.Context, podUID types.UID) (*kubecontainer.Pod, error) {
	if m.listsChanges() {
		o, err := m.update(ctx, podUID)
		if err != nil {
			return nil, err
		}
		if m.listsChanges() {
			return m.pictures.finishedPod(o, podUID), nil
		}
	}
	selector := map[string]string{labelPodUID: string(podUID)}
	pods, err := m.list(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: selector}, &runtimeapi.ContainerFilter{LabelSelector: selector})
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	return pods[0], nil
}

// list makes pictures of what the runtime lists now, by UID.
func (m *Manager) list(ctx context.Context, sf *runtimeapi.PodSandboxFilter, cf *runtimeapi.ContainerFilter) ([]*kubecontainer.Pod, error) {
	sandboxes, err := m.rt.ListPodSandbox(ctx, sf)
	if err != nil {
		return nil, err
	}
	containers, err := m.rt.ListContainers(ctx, cf)
	if err != nil {
		return nil, err
	}
	byUID := make(map[types.UID]*kubecontainer.Pod, len(sandboxes))
	pods := make([]*kubecontainer.Pod, 0, len(sandboxes))
	// Whoever keeps the pods of a listing keeps all of them: they, and what is
	// in them, are made in one piece each.
	room := newListing(len(sandboxes), len(containers))
	pod := func(id types.UID, name, namespace string) *kubecontainer.Pod {
		p := byUID[id]
		if p == nil {
			p = room.pod()
			*p = kubecontainer.Pod{ID: id, Name: name, Namespace: namespace}
			byUID[id] = p
			pods = append(pods, p)
		}
		return p
	}
	// The listing is shared: the order is that of a copy.
	sandboxes = slices.Clone(sandboxes)
	slices.SortStableFunc(sandboxes, newerSandbox)
	for _, s := range sandboxes {
		if s.GetMetadata() == nil {
			continue
		}
		p := pod(uid(s.Metadata.Uid), s.Metadata.Name, s.Metadata.Namespace)
		p.Sandboxes = room.add(p.Sandboxes, listedSandbox(s))
	}
	for _, c := range containers {
		lc, ok := listedContainer(c)
		if !ok {
			continue
		}
		p := pod(uid(c.Labels[labelPodUID]), c.Labels[labelPodName], c.Labels[labelPodNamespace])
		p.Containers = room.add(p.Containers, lc)
	}
	for _, p := range pods {
		if len(p.Containers) > 1 {
			slices.SortFunc(p.Containers, newerListed)
		}
	}
	slices.SortFunc(pods, func(a, b *kubecontainer.Pod) int { return cmp.Compare(a.ID, b.ID) })
	return pods, nil
}

// listing is room for what one listing shows. Pods beyond it, of containers
// without a sandbox, are made one by one.
type listing struct {
	pods []kubecontainer.Pod
	all  []kubecontainer.Container
	refs []*kubecontainer.Container
}

func newListing(sandboxes, containers int) listing {
	n := sandboxes + containers
	return listing{make([]kubecontainer.Pod, sandboxes), make([]kubecontainer.Container, n), make([]*kubecontainer.Container, n)}
}

func (l *listing) pod() *kubecontainer.Pod {
	if len(l.pods) == 0 {
		return &kubecontainer.Pod{}
	}
	p := &l.pods[0]
	l.pods = l.pods[1:]
	return p
}

// add appends to a list; each but the first of a list moves it.
func (l *listing) add(list []*kubecontainer.Container, c kubecontainer.Container) []*kubecontainer.Container {
	p := &l.all[0]
	l.all = l.all[1:]
	*p = c
	if list == nil {
		list = l.refs[:0:1]
		l.refs = l.refs[1:]
	}
	return append(list, p)
}

// newerSandbox orders by attempt, then creation, newest first, then ID.
func newerSandbox(a, b *runtimeapi.PodSandbox) int {
	var attempts int
	if a.Metadata != nil && b.Metadata != nil {
		attempts = cmp.Compare(b.Metadata.Attempt, a.Metadata.Attempt)
	}
	return cmp.Or(attempts, cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.Id, b.Id))
}

func newerListed(a, b *kubecontainer.Container) int {
	return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// GetPodStatus inspects the sandboxes and containers of a listed pod. What is
// gone meanwhile is left out.
func (m *Manager) GetPodStatus(ctx context.Context, pod *kubecontainer.Pod) (*kubecontainer.PodStatus, error) {
	status := &kubecontainer.PodStatus{ID: pod.ID, Name: pod.Name, Namespace: pod.Namespace}
	if n := len(pod.Sandboxes); n > 0 {
		status.SandboxStatuses = make([]*runtimeapi.PodSandboxStatus, 0, n)
	}
	for i, s := range pod.Sandboxes {
		box, err := m.rt.PodSandboxStatus(ctx, s.ID)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if box == nil {
			return nil, errors.New("pod sandbox status is nil")
		}
		status.SandboxStatuses = append(status.SandboxStatuses, box)
		if i == 0 && box.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			status.IPs = sandboxIPs(box)
		}
	}
	if n := len(pod.Containers); n > 0 {
		status.ContainerStatuses = make([]*kubecontainer.Status, 0, n)
	}
	for _, c := range pod.Containers {
		seen, err := m.rt.inspect(ctx, c.ID)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if seen == nil {
			return nil, errors.New("container status is nil")
		}
		status.ContainerStatuses = append(status.ContainerStatuses, m.containerStatus(pod.ID, c.PodSandboxID, seen))
	}
	slices.SortFunc(status.ContainerStatuses, newerStatus)
	return status, nil
}

// containerStatus is what is kept of what the runtime says of a container of a pod.
func (m *Manager) containerStatus(uid types.UID, sandboxID string, seen *runtimeapi.ContainerStatus) *kubecontainer.Status {
	s := inspectedContainer(seen)
	s.PodSandboxID = sandboxID
	s.User = m.shared.user(seen.GetUser())
	if s.State == kubecontainer.StateRunning && m.reportsResources(uid) {
		s.Resources = m.resources.Reported(seen.GetResources().GetLinux())
	}
	if s.State == kubecontainer.StateExited {
		m.messages.add(s, seen)
	}
	return s
}

func newerStatus(a, b *kubecontainer.Status) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// GeneratePodStatus makes a pod's status of an event of the runtime's, which names the
// sandbox and all of its containers; those of older sandboxes are not in it.
func (m *Manager) GeneratePodStatus(ev *runtimeapi.ContainerEventResponse) *kubecontainer.PodStatus {
	box := ev.GetPodSandboxStatus()
	meta := box.GetMetadata()
	uid := types.UID(meta.GetUid())
	status := &kubecontainer.PodStatus{
		ID: uid, Name: meta.GetName(), Namespace: meta.GetNamespace(), IPs: sandboxIPs(box),
		SandboxStatuses: []*runtimeapi.PodSandboxStatus{box},
	}
	for _, seen := range ev.GetContainersStatuses() {
		status.ContainerStatuses = append(status.ContainerStatuses, m.containerStatus(uid, box.GetId(), seen))
	}
	slices.SortFunc(status.ContainerStatuses, newerStatus)
	return status
}

// isNotFound reports whether a CRI call failed because its object is gone. For
// what is to be removed or stopped that is as good as success.
func isNotFound(err error) bool {
	return err != nil && grpcstatus.Code(err) == codes.NotFound
}
