package kuberuntime

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// containerUpdate is a change of a running container's resources.
type containerUpdate struct {
	c        *v1.Container
	id       string
	desired  numbers
	actuated numbers
}

// numbers are the resources that a resize can change: cpu in millicores, memory
// in bytes; 0 means none.
type numbers struct {
	milliLimit, milliRequest, memoryLimit, memoryRequest int64
}

// numbersOf reads resources; a missing limit is the pod's.
func numbersOf(r, pod *v1.ResourceRequirements) numbers {
	limit := func(name v1.ResourceName) *resource.Quantity {
		q, ok := r.Limits[name]
		if !ok && pod != nil {
			q = pod.Limits[name]
		}
		return &q
	}
	return numbers{
		milliLimit: limit(v1.ResourceCPU).MilliValue(), milliRequest: r.Requests.Cpu().MilliValue(),
		memoryLimit: limit(v1.ResourceMemory).Value(), memoryRequest: r.Requests.Memory().Value(),
	}
}

// resizes are what a sync does to resources while containers run.
type resizes struct {
	// CPU and Memory are in the order of their updates: what shrinks first.
	CPU, Memory []containerUpdate
	// Restarts says that a container restarts for its new resources, Pod that
	// the pod-level resources are not the actuated ones.
	Restarts, Pod bool
}

func (r *resizes) none() bool {
	return r == nil || len(r.CPU) == 0 && len(r.Memory) == 0 && !r.Restarts && !r.Pod
}

// resize decides what other resources mean for a running container; false means
// that it has to restart, which is noted but for its start (upstream
// computePodResizeAction).
func (a *podActions) resize(in *actionsInput, c *v1.Container, s *kubecontainer.Status) (keep bool) {
	if in.resources == nil {
		return true
	}
	was, ok := in.resources.Actuated.Containers[c.Name]
	if !ok {
		was = c.Resources
	}
	u := containerUpdate{
		c: c, id: s.ID,
		desired:  numbersOf(&c.Resources, in.pod.Spec.Resources),
		actuated: numbersOf(&was, in.resources.Actuated.Pod),
	}
	d, h := &u.desired, &u.actuated
	if *d == *h {
		return true
	}
	if a.resizes == nil {
		a.resizes = &resizes{}
	}
	cpu := d.milliLimit != h.milliLimit || d.milliRequest != h.milliRequest
	memory := d.memoryLimit != h.memoryLimit || d.memoryRequest != h.memoryRequest
	if cpu && restartsFor(c, v1.ResourceCPU) || memory && restartsFor(c, v1.ResourceMemory) {
		a.kill(s, "Container "+c.Name+" resize requires restart", reasonNone)
		a.resizes.Restarts = true
		return false
	}
	if memory {
		a.resizes.Memory = queueUpdate(a.resizes.Memory, u, d.memoryLimit, h.memoryLimit, d.memoryRequest, h.memoryRequest)
	}
	if cpu {
		a.resizes.CPU = queueUpdate(a.resizes.CPU, u, d.milliLimit, h.milliLimit, d.milliRequest, h.milliRequest)
	}
	return true
}

// queueUpdate puts what shrinks before all, what grows after all. The limit
// tells which it is, or the request if the limit stays.
func queueUpdate(list []containerUpdate, u containerUpdate, limit, hadLimit, request, hadRequest int64) []containerUpdate {
	shrinks := limit < hadLimit
	if limit == hadLimit {
		shrinks = request < hadRequest
	}
	if shrinks {
		return slices.Insert(list, 0, u)
	}
	return append(list, u)
}

func restartsFor(c *v1.Container, name v1.ResourceName) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == name {
			return p.RestartPolicy == v1.RestartContainer
		}
	}
	return false
}

// resizePod notes other pod-level resources than the actuated ones.
func (a *podActions) resizePod(in *actionsInput) {
	if in.resources == nil {
		return
	}
	var none v1.ResourceRequirements
	want, had := in.pod.Spec.Resources, in.resources.Actuated.Pod
	if want == nil {
		want = &none
	}
	if had == nil {
		had = &none
	}
	if numbersOf(want, nil) == numbersOf(had, nil) {
		return
	}
	if a.resizes == nil {
		a.resizes = &resizes{}
	}
	a.resizes.Pod = true
}

// ResizeInProgress tells whether a running container, or the pod, has not been
// given yet what was allocated to it. pod is the allocated one.
func ResizeInProgress(pod *v1.Pod, e *state.Entry, status *kubecontainer.PodStatus) bool {
	if e == nil {
		return false
	}
	for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			s := status.FindContainerStatusByName(list[i].Name)
			if s == nil || s.State != kubecontainer.StateRunning {
				continue
			}
			if was, ok := e.Actuated.Containers[list[i].Name]; ok && numbersOf(&was, nil) != numbersOf(&list[i].Resources, nil) {
				return true
			}
		}
	}
	return !state.PodEqual(e.Actuated.Pod, pod.Spec.Resources)
}
