package actions

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/kubelet/internal/allocation/state"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// Update is a change of a running container's resources (KEP-1287).
type Update struct {
	Container *v1.Container
	ID        string
	Desired   Numbers
	Actuated  Numbers
}

// Numbers are the resources that a resize can change: CPU in millicores, memory
// in bytes; 0 means none.
type Numbers struct {
	MilliLimit, MilliRequest, MemoryLimit, MemoryRequest int64
}

// numbersOf reads resources; a missing limit is the pod's.
// Only values matter: 1 and 1000m are no resize.
func numbersOf(r, pod *v1.ResourceRequirements) Numbers {
	limit := func(name v1.ResourceName) *resource.Quantity {
		q, ok := r.Limits[name]
		if !ok && pod != nil {
			q = pod.Limits[name]
		}
		return &q
	}
	return Numbers{
		MilliLimit: limit(v1.ResourceCPU).MilliValue(), MilliRequest: r.Requests.Cpu().MilliValue(),
		MemoryLimit: limit(v1.ResourceMemory).Value(), MemoryRequest: r.Requests.Memory().Value(),
	}
}

// Resizes are what a sync does to resources while containers run.
type Resizes struct {
	// CPU and Memory are in the order of their updates: what shrinks first.
	CPU, Memory []Update
	// Restarts says that a container restarts for its new resources, Pod that
	// the pod-level resources are not the actuated ones.
	Restarts, Pod bool
}

// None reports whether nothing is resized; a nil r is none.
func (r *Resizes) None() bool {
	return r == nil || len(r.CPU) == 0 && len(r.Memory) == 0 && !r.Restarts && !r.Pod
}

// resize decides what other resources mean for a running container; false means
// that it has to restart, which is noted but for its start (upstream
// computePodResizeAction).
// One container's restart leaves the others' resizes in place.
func (a *Actions) resize(in *Input, c *v1.Container, s *kubecontainer.Status) (keep bool) {
	if in.Resources == nil {
		return true
	}
	was, ok := in.Resources.Actuated.Containers[c.Name]
	if !ok {
		was = c.Resources
	}
	u := Update{
		Container: c, ID: s.ID,
		Desired:  numbersOf(&c.Resources, in.Pod.Spec.Resources),
		Actuated: numbersOf(&was, in.Resources.Actuated.Pod),
	}
	d, h := &u.Desired, &u.Actuated
	if *d == *h {
		return true
	}
	if a.Resizes == nil {
		a.Resizes = &Resizes{}
	}
	cpu := d.MilliLimit != h.MilliLimit || d.MilliRequest != h.MilliRequest
	memory := d.MemoryLimit != h.MemoryLimit || d.MemoryRequest != h.MemoryRequest
	if cpu && restartsFor(c, v1.ResourceCPU) || memory && restartsFor(c, v1.ResourceMemory) {
		a.kill(s, "Container "+c.Name+" resize requires restart", ReasonNone)
		a.Resizes.Restarts = true
		return false
	}
	if memory {
		a.Resizes.Memory = queueUpdate(a.Resizes.Memory, u, d.MemoryLimit, h.MemoryLimit, d.MemoryRequest, h.MemoryRequest)
	}
	if cpu {
		a.Resizes.CPU = queueUpdate(a.Resizes.CPU, u, d.MilliLimit, h.MilliLimit, d.MilliRequest, h.MilliRequest)
	}
	return true
}

// queueUpdate puts what shrinks before all, what grows after all: what one
// container gives back is there when another takes it. The limit decides which
// it is, or the request if the limit stays.
func queueUpdate(list []Update, u Update, limit, hadLimit, request, hadRequest int64) []Update {
	shrinks := limit < hadLimit
	if limit == hadLimit {
		shrinks = request < hadRequest
	}
	if shrinks {
		return slices.Insert(list, 0, u)
	}
	return append(list, u)
}

// restartsFor reports whether a container restarts for other amounts of a
// resource; without a policy it doesn't.
func restartsFor(c *v1.Container, name v1.ResourceName) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == name {
			return p.RestartPolicy == v1.RestartContainer
		}
	}
	return false
}

// resizePod notes other pod-level resources than the actuated ones.
func (a *Actions) resizePod(in *Input) {
	if in.Resources == nil {
		return
	}
	var none v1.ResourceRequirements
	want, had := in.Pod.Spec.Resources, in.Resources.Actuated.Pod
	if want == nil {
		want = &none
	}
	if had == nil {
		had = &none
	}
	if numbersOf(want, nil) == numbersOf(had, nil) {
		return
	}
	if a.Resizes == nil {
		a.Resizes = &Resizes{}
	}
	a.Resizes.Pod = true
}

// ResizeInProgress reports whether a running container, or the pod, has not been
// given yet what was allocated to it. pod is the allocated one.
// It decides the condition PodResizeInProgress; containers that don't run are
// given their resources when they start.
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
