package lifecycle

import (
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// requests are what a pod asks of a node, as numbers.
type requests struct {
	milliCPU, memory, storage int64
	scalars                   []scalar // by name
}

// scalar is an extended resource, or huge pages of a size.
type scalar struct {
	name  v1.ResourceName
	value int64
}

// none reports whether nothing is requested, as most pods do.
func (r *requests) none() bool {
	return r.milliCPU == 0 && r.memory == 0 && r.storage == 0 && len(r.scalars) == 0
}

// scalar is the amount of a resource of that name.
func (r *requests) scalar(name v1.ResourceName) int64 {
	for _, s := range r.scalars {
		if s.name == name {
			return s.value
		}
	}
	return 0
}

// addScalar adds to a resource, which keeps the list in order.
func (r *requests) addScalar(name v1.ResourceName, value int64) { *r.at(name) += value }

// at is the place of a scalar, which is 0 if there was none.
func (r *requests) at(name v1.ResourceName) *int64 {
	i, ok := slices.BinarySearchFunc(r.scalars, name, func(s scalar, n v1.ResourceName) int { return strings.Compare(string(s.name), string(n)) })
	if !ok {
		r.scalars = slices.Insert(r.scalars, i, scalar{name: name})
	}
	return &r.scalars[i].value
}

// add adds another pod's or container's requests.
func (r *requests) add(o requests) {
	r.milliCPU += o.milliCPU
	r.memory += o.memory
	r.storage += o.storage
	for _, s := range o.scalars {
		r.addScalar(s.name, s.value)
	}
}

// addList adds a list: CPU in millicores, the others in whole units. The number
// of pods is counted, not requested.
func (r *requests) addList(l v1.ResourceList) {
	for name, q := range l { //drydock:unordered sums by name
		switch name {
		case v1.ResourceCPU:
			r.milliCPU += q.MilliValue()
		case v1.ResourceMemory:
			r.memory += q.Value()
		case v1.ResourceEphemeralStorage:
			r.storage += q.Value()
		case v1.ResourcePods:
		default:
			if q.Sign() != 0 {
				r.addScalar(name, q.Value())
			}
		}
	}
}

// usedBy is podRequests of a pod that is on the node already: a container that
// is being resized counts with the most of what it is to get, was allocated and
// has, as far as the pod's status tells.
func usedBy(pod *v1.Pod) requests {
	if !resizes(pod) {
		return podRequests(pod)
	}
	var r requests
	r.addList(resource.PodRequests(pod, resource.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
	return r
}

// sumUsed is the sum of usedBy. Replicas share their containers, and with them
// what they request.
func sumUsed(pods []*v1.Pod) requests {
	var (
		used, each requests
		of         *v1.Pod // each is of this pod and its like
	)
	for _, pod := range pods {
		switch {
		case !plain(pod) || resizes(pod):
			used.add(usedBy(pod))
			continue
		case of == nil || !sameContainers(of, pod):
			of, each = pod, podRequests(pod)
		}
		used.add(each)
	}
	return used
}

// Usage is what pods that are on a node take of it. The zero Usage is that of none.
type Usage struct {
	pods     int
	requests requests
}

// Add adds what a pod takes. A sum stays the greatest number where it has no other:
// pods that have ended, as those that were refused before the kubelet restarted, may
// request anything.
func (u *Usage) Add(pod *v1.Pod) {
	u.pods++
	r := usedBy(pod)
	addAtMost(&u.requests.milliCPU, r.milliCPU)
	addAtMost(&u.requests.memory, r.memory)
	addAtMost(&u.requests.storage, r.storage)
	for _, s := range r.scalars {
		addAtMost(u.requests.at(s.name), s.value)
	}
}

// addAtMost adds without an overflow; less than 0 is a sum that had one.
func addAtMost(sum *int64, v int64) {
	if v < 0 || *sum > math.MaxInt64-v {
		*sum = math.MaxInt64
		return
	}
	*sum += v
}

// SameRequests reports whether a pod's next version takes what the old one did,
// for all that can be seen without a look at the quantities.
func SameRequests(old, pod *v1.Pod) bool {
	a, b := old.Spec.InitContainers, pod.Spec.InitContainers
	return sameContainers(old, pod) && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) &&
		old.Spec.Resources == pod.Spec.Resources && !resizes(old) && !resizes(pod)
}

// plain reports whether a pod requests what its regular containers do.
func plain(pod *v1.Pod) bool {
	return len(pod.Spec.InitContainers) == 0 && pod.Spec.Overhead == nil && pod.Spec.Resources == nil
}

// sameContainers reports whether two pods' containers are the same memory.
func sameContainers(a, b *v1.Pod) bool {
	x, y := a.Spec.Containers, b.Spec.Containers
	return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
}

// resizes reports whether the status of one of the containers that count in the
// long run, or of the pod, has other requests than the spec. Where the kubelet
// has found that they are the same, they are the same memory.
func resizes(pod *v1.Pod) bool {
	differ := func(c *v1.Container, list []v1.ContainerStatus) bool {
		for i := range list {
			s := &list[i]
			if s.Name == c.Name {
				return s.Resources != nil && s.Resources != &c.Resources &&
					(!sameList(s.Resources.Requests, c.Resources.Requests) || !sameList(s.AllocatedResources, c.Resources.Requests))
			}
		}
		return false
	}
	for i := range pod.Spec.Containers {
		if differ(&pod.Spec.Containers[i], pod.Status.ContainerStatuses) {
			return true
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; kubecontainer.IsRestartableInit(c) && differ(c, pod.Status.InitContainerStatuses) {
			return true
		}
	}
	if pod.Spec.Resources == nil || pod.Status.Resources == nil {
		return false
	}
	return !sameList(pod.Status.Resources.Requests, pod.Spec.Resources.Requests)
}

// sameList compares quantities by value.
func sameList(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a { //drydock:unordered compares sets
		if y, ok := b[name]; !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

// podRequests aggregates what a pod's spec requests.
func podRequests(pod *v1.Pod) requests {
	var r requests
	if plain(pod) {
		for i := range pod.Spec.Containers {
			r.addList(pod.Spec.Containers[i].Resources.Requests)
		}
		return r
	}
	r.addList(resource.PodRequests(pod, resource.PodResourcesOptions{}))
	return r
}
