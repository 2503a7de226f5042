package kuberuntime

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// ChangeLister is a runtime that can tell which pods a listing shows otherwise
// than the listing before, so that one costs what has changed.
type ChangeLister interface {
	// ListsChanges reports whether the methods below can be used now.
	ListsChanges() bool
	// ListPodSandboxChanges is ListPodSandbox in all but its answer, without a
	// filter or, unless podUID is "", with the selector of that pod. It returns the
	// pods whose sandboxes are not as they were last told, each with all of its
	// sandboxes; all says that no other pod has any. Entries need no labels.
	ListPodSandboxChanges(ctx context.Context, podUID string) (pods []*runtimeapi.PodSandboxMetadata, sandboxes [][]*runtimeapi.PodSandbox, all bool, err error)
	// ListContainersChanges is the same of ListContainers.
	ListContainersChanges(ctx context.Context, podUID string) (pods []*runtimeapi.PodSandboxMetadata, containers [][]*runtimeapi.Container, all bool, err error)
}

// pictures are the runtime's pods as a ChangeLister has told of them. Whoever
// lists brings them up to date for all.
type pictures struct {
	pods []*kubecontainer.Pod // by UID
	// lent says that pods was handed out, so that the next change needs another.
	lent bool
	// own are pods of the list that nobody was handed, and may be written to.
	own []*kubecontainer.Pod
	// open are the listings that have made the first of their two calls; spare is
	// one that was finished.
	open  []*openListing
	spare *openListing
}

// openListing is one whose sandboxes were listed, but not its containers.
type openListing struct {
	// before are the pictures as its first call left them; nil while their
	// sandboxes are as they were.
	before []*kubecontainer.Pod
	kept   bool
}

// lend hands out the list, which is not written to any more.
func (p *pictures) lend() []*kubecontainer.Pod {
	p.lent, p.own = true, nil
	return p.pods
}

// begin opens a listing.
func (p *pictures) begin() *openListing {
	o := p.spare
	if p.spare = nil; o == nil {
		o = &openListing{}
	}
	p.open = append(p.open, o)
	return o
}

// close ends a listing that has made its calls, or failed to.
func (p *pictures) close(o *openListing) {
	p.open = slices.DeleteFunc(p.open, func(other *openListing) bool { return other == o })
}

// done takes a listing back that nobody needs any more.
func (p *pictures) done(o *openListing) {
	*o = openListing{}
	p.spare = o
}

// finishedPod is finished for one pod; nil if there is nothing of it.
func (p *pictures) finishedPod(o *openListing, id types.UID) *kubecontainer.Pod {
	defer p.done(o)
	pod := findPod(p.pods, id)
	if pod != nil {
		p.own = slices.DeleteFunc(p.own, func(o *kubecontainer.Pod) bool { return o == pod })
	}
	if o.kept {
		before := findPod(o.before, id)
		if before == nil && pod == nil {
			return nil
		}
		pod = joined(before, pod)
	}
	if pod.IsEmpty() {
		return nil
	}
	return pod
}

func findPod(pods []*kubecontainer.Pod, id types.UID) *kubecontainer.Pod {
	if i, ok := slices.BinarySearchFunc(pods, id, compareUID); ok {
		return pods[i]
	}
	return nil
}

func compareUID(p *kubecontainer.Pod, id types.UID) int { return cmp.Compare(p.ID, id) }

// change has set replace the containers or sandboxes of a pod; a pod with
// neither is dropped.
func (p *pictures) change(md *runtimeapi.PodSandboxMetadata, set func(*kubecontainer.Pod)) {
	i, known := slices.BinarySearchFunc(p.pods, uid(md.Uid), compareUID)
	pod := &kubecontainer.Pod{ID: uid(md.Uid), Name: md.Name, Namespace: md.Namespace}
	if known {
		pod = p.pods[i]
	}
	mine := known && slices.Contains(p.own, pod)
	if known && !mine {
		pod = new(*pod)
	}
	set(pod)
	if pod.IsEmpty() && !known {
		return
	}
	if p.lent {
		p.pods, p.lent = slices.Clone(p.pods), false
	}
	switch {
	case pod.IsEmpty():
		p.pods = slices.Delete(p.pods, i, i+1)
		return
	case known:
		p.pods[i] = pod
	default:
		p.pods = slices.Insert(p.pods, i, pod)
	}
	if !mine {
		p.own = append(p.own, pod)
	}
}

// keepOpen keeps what listings have seen who are between their calls: for
// sandboxes change.
func (p *pictures) keepOpen() {
	for _, o := range p.open {
		if !o.kept {
			o.before, o.kept = p.lend(), true
		}
	}
}

// finished returns what a listing shows: the sandboxes of its first call, the
// containers of its second, which was made now.
func (p *pictures) finished(o *openListing) []*kubecontainer.Pod {
	defer p.done(o)
	if !o.kept {
		return p.lend()
	}
	var out []*kubecontainer.Pod
	for was, is := o.before, p.lend(); len(was)+len(is) > 0; {
		var sandboxes, containers *kubecontainer.Pod
		if len(is) == 0 || len(was) > 0 && was[0].ID <= is[0].ID {
			sandboxes = was[0]
		}
		if len(was) == 0 || len(is) > 0 && is[0].ID <= was[0].ID {
			containers = is[0]
		}
		if sandboxes != nil {
			was = was[1:]
		}
		if containers != nil {
			is = is[1:]
		}
		if pod := joined(sandboxes, containers); !pod.IsEmpty() {
			out = append(out, pod)
		}
	}
	return out
}

// joined is a pod with the sandboxes of one picture and the containers of another;
// either may be nil.
func joined(sandboxes, containers *kubecontainer.Pod) *kubecontainer.Pod {
	var pod kubecontainer.Pod
	if sandboxes != nil {
		pod = *sandboxes
		pod.Containers = nil
	}
	if containers != nil {
		if slices.Equal(pod.Sandboxes, containers.Sandboxes) {
			return containers
		}
		list := pod.Sandboxes
		pod = *containers
		pod.Sandboxes = list
	}
	return &pod
}

// setSandboxes replaces the sandboxes of pods by what a listing shows, which it
// sorts.
func (p *pictures) setSandboxes(c *changedPods[*runtimeapi.PodSandbox]) {
	if len(c.pods) > 0 || c.all {
		p.keepOpen()
	}
	if c.all {
		p.retain(c.pods, func(pod *kubecontainer.Pod) { pod.Sandboxes = nil })
	}
	for i, md := range c.pods {
		slices.SortStableFunc(c.lists[i], newerSandbox)
		var list []*kubecontainer.Container
		for _, s := range c.lists[i] {
			list = addListed(list, listedSandbox(s))
		}
		p.change(md, func(pod *kubecontainer.Pod) { pod.Sandboxes = list })
	}
}

// setContainers is setSandboxes of containers.
func (p *pictures) setContainers(c *changedPods[*runtimeapi.Container]) {
	if c.all {
		p.retain(c.pods, func(pod *kubecontainer.Pod) { pod.Containers = nil })
	}
	for i, md := range c.pods {
		var list []*kubecontainer.Container
		for _, l := range c.lists[i] {
			if lc, ok := listedContainer(l); ok {
				list = addListed(list, lc)
			}
		}
		slices.SortFunc(list, newerListed)
		p.change(md, func(pod *kubecontainer.Pod) { pod.Containers = list })
	}
}

// retain has drop empty the pictures of all but the pods.
func (p *pictures) retain(pods []*runtimeapi.PodSandboxMetadata, drop func(*kubecontainer.Pod)) {
	have := make(map[types.UID]bool, len(pods))
	for _, md := range pods {
		have[uid(md.Uid)] = true
	}
	for _, pod := range slices.Clone(p.pods) {
		if !have[pod.ID] {
			p.change(&runtimeapi.PodSandboxMetadata{Uid: string(pod.ID), Name: pod.Name, Namespace: pod.Namespace}, drop)
		}
	}
}

// addListed appends to a list. Most have one entry, which lies beside it.
func addListed(list []*kubecontainer.Container, c kubecontainer.Container) []*kubecontainer.Container {
	if list != nil {
		return append(list, &c)
	}
	one := &struct {
		c    kubecontainer.Container
		list [1]*kubecontainer.Container
	}{c: c}
	one.list[0] = &one.c
	return one.list[:]
}

// update makes the calls of a listing, of one pod or, if podUID is "", of all,
// and brings the pictures up to date.
func (m *Manager) update(ctx context.Context, podUID types.UID) (*openListing, error) {
	p := &m.pictures
	sandboxes, err := m.rt.ListPodSandboxChanges(ctx, string(podUID))
	if err != nil {
		return nil, err
	}
	p.setSandboxes(&sandboxes)
	o := p.begin()
	defer p.close(o)
	containers, err := m.rt.ListContainersChanges(ctx, string(podUID))
	if err != nil {
		return nil, err
	}
	p.setContainers(&containers)
	return o, nil
}

// listContainerChanges lists all containers by what has changed; told: the
// pictures, which are shared, show them. If not, the runtime can't tell changes.
func (m *Manager) listContainerChanges(ctx context.Context) (pods []*kubecontainer.Pod, told bool, err error) {
	if !m.listsChanges() {
		return nil, false, nil
	}
	containers, err := m.rt.ListContainersChanges(ctx, "")
	if err != nil {
		return nil, false, err
	}
	m.pictures.setContainers(&containers)
	return m.pictures.lend(), m.listsChanges(), nil
}

// listSandboxChanges is listContainerChanges of sandboxes.
func (m *Manager) listSandboxChanges(ctx context.Context) (pods []*kubecontainer.Pod, told bool, err error) {
	if !m.listsChanges() {
		return nil, false, nil
	}
	sandboxes, err := m.rt.ListPodSandboxChanges(ctx, "")
	if err != nil {
		return nil, false, err
	}
	m.pictures.setSandboxes(&sandboxes)
	return m.pictures.lend(), m.listsChanges(), nil
}
