package container

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// Kind tells regular, init and ephemeral containers apart.
type Kind uint8

// The kinds of containers.
const (
	KindRegular Kind = iota
	KindInit
	KindEphemeral
)

// EphemeralAsContainer shows an ephemeral container as an ordinary one.
func EphemeralAsContainer(e *v1.EphemeralContainer) *v1.Container {
	return (*v1.Container)(&e.EphemeralContainerCommon)
}

// Containers goes through a pod's containers of all kinds in the order of
// upstream's VisitContainers: init, regular, ephemeral.
func Containers(spec *v1.PodSpec) iter.Seq[*v1.Container] {
	return func(yield func(*v1.Container) bool) {
		for i := range spec.InitContainers {
			if !yield(&spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(&spec.Containers[i]) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			if !yield(EphemeralAsContainer(&spec.EphemeralContainers[i])) {
				return
			}
		}
	}
}

// FindContainer returns the container of that name among the pod's regular,
// init and ephemeral containers; nil if there is none.
func FindContainer(pod *v1.Pod, name string) (*v1.Container, Kind) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c, KindRegular
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return c, KindInit
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := EphemeralAsContainer(&pod.Spec.EphemeralContainers[i]); c.Name == name {
			return c, KindEphemeral
		}
	}
	return nil, KindRegular
}

// FieldPath is the path of a container in its pod: spec.containers{NAME}, or
// with the index of a container without a name. It is "" for a container that
// is not in the pod.
func FieldPath(pod *v1.Pod, c *v1.Container) string {
	for i := range pod.Spec.Containers {
		if same(&pod.Spec.Containers[i], c) {
			return path("spec.containers", c.Name, i)
		}
	}
	for i := range pod.Spec.InitContainers {
		if same(&pod.Spec.InitContainers[i], c) {
			return path("spec.initContainers", c.Name, i)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if same(EphemeralAsContainer(&pod.Spec.EphemeralContainers[i]), c) {
			return path("spec.ephemeralContainers", c.Name, i)
		}
	}
	return ""
}

func same(a, b *v1.Container) bool { return a.Name == b.Name && (a.Name != "" || a == b) }

func path(list, name string, i int) string {
	if name == "" {
		return list + "[" + strconv.Itoa(i) + "]"
	}
	return list + "{" + name + "}"
}

// PodRef is the reference of a pod in events.
func PodRef(pod *v1.Pod) *v1.ObjectReference {
	return &v1.ObjectReference{
		Kind:            "Pod",
		APIVersion:      "v1",
		Namespace:       pod.Namespace,
		Name:            pod.Name,
		UID:             pod.UID,
		ResourceVersion: pod.ResourceVersion,
	}
}

// ContainerRef is the reference of a container in events: its pod with a
// field path.
func ContainerRef(pod *v1.Pod, c *v1.Container) *v1.ObjectReference {
	ref := PodRef(pod)
	ref.FieldPath = FieldPath(pod, c)
	return ref
}

// RunningPod is the picture of a pod for a kill, from its status: the running
// containers and all sandboxes.
func RunningPod(s *PodStatus) *Pod {
	p := &Pod{ID: s.ID, Name: s.Name, Namespace: s.Namespace}
	for _, c := range s.ContainerStatuses {
		if c.State == StateRunning {
			p.Containers = append(p.Containers, &Container{
				ID: c.ID, Name: c.Name, Image: c.Image, ImageID: c.ImageID, ImageRef: c.ImageRef,
				Hash: c.Hash, PodSandboxID: c.PodSandboxID, CreatedAt: c.CreatedAt.UnixNano(), State: c.State,
			})
		}
	}
	for _, b := range s.SandboxStatuses {
		state := StateExited
		if b.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			state = StateRunning
		}
		p.Sandboxes = append(p.Sandboxes, &Container{ID: b.Id, CreatedAt: b.CreatedAt, State: state})
	}
	return p
}

// ToAPIPod makes a pod object of what the runtime tells: UID, name, namespace
// and the names and images of its containers. It stands in for the pod when
// nobody knows it any more.
func (p *Pod) ToAPIPod() *v1.Pod {
	pod := &v1.Pod{}
	pod.UID, pod.Name, pod.Namespace = p.ID, p.Name, p.Namespace
	for _, c := range p.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c.Name, Image: c.Image})
	}
	return pod
}

// IsEmpty reports whether the runtime has nothing of the pod.
func (p *Pod) IsEmpty() bool { return p == nil || len(p.Containers)+len(p.Sandboxes) == 0 }

// Running returns the pod with what runs of it alone, nil if nothing does.
func (p *Pod) Running() *Pod {
	containers, sandboxes := running(p.Containers), running(p.Sandboxes)
	if len(containers)+len(sandboxes) == 0 {
		return nil
	}
	return &Pod{ID: p.ID, Name: p.Name, Namespace: p.Namespace, Containers: containers, Sandboxes: sandboxes}
}

func running(list []*Container) []*Container {
	return lists.Filter(list, func(c *Container) bool { return c.State == StateRunning })
}

// Runs reports whether something of the pod runs.
func (p *Pod) Runs() bool {
	runs := func(c *Container) bool { return c.State == StateRunning }
	return slices.ContainsFunc(p.Containers, runs) || slices.ContainsFunc(p.Sandboxes, runs)
}

// NewerPod orders the pods of a listing: the newest first, by their oldest
// sandbox or, without one, their oldest container; then by UID.
func NewerPod(a, b *Pod) int {
	return cmp.Or(cmp.Compare(b.createdAt(), a.createdAt()), cmp.Compare(a.ID, b.ID))
}

func (p *Pod) createdAt() int64 {
	if n := len(p.Sandboxes); n > 0 {
		return p.Sandboxes[n-1].CreatedAt
	}
	if n := len(p.Containers); n > 0 {
		return p.Containers[n-1].CreatedAt
	}
	return 0
}
