// Package container holds what the kubelet's parts say to each other about
// pods and containers in the runtime: the runtime's picture of a pod, its
// inspected status, results of a sync. It mirrors upstream's
// pkg/kubelet/container.
package container

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// ContainerID is a container's ID with the runtime that gave it.
type ContainerID struct {
	// Type is the runtime's name, from CRI Version ("containerd").
	Type string
	// ID is the CRI's container or sandbox ID.
	ID string
}

// String returns "type://id", the form of the API; "" for the zero ID.
func (c ContainerID) String() string {
	if c.ID == "" {
		return ""
	}
	return c.Type + "://" + c.ID
}

// State is a container's state as the runtime tells it.
type State uint8

// The states of a container. A sandbox counts as running (READY) or exited.
const (
	StateUnknown State = iota
	StateCreated
	StateRunning
	StateExited
)

func (s State) String() string {
	return [...]string{"unknown", "created", "running", "exited"}[s]
}

// Container is one entry of a runtime listing: a container or a sandbox.
type Container struct {
	ID           string // CRI ID
	Name         string // container name; "" for a sandbox
	Image        string // image as the runtime shows it
	ImageID      string
	ImageRef     string
	Hash         string // hash annotation, as text
	PodSandboxID string
	CreatedAt    int64 // ns since the Unix epoch
	State        State
}

// Pod is the runtime's picture of a pod, from listings only.
type Pod struct {
	ID         types.UID
	Name       string
	Namespace  string
	Containers []*Container // newest first
	Sandboxes  []*Container // newest first
}

// Status is the inspected status of one container.
type Status struct {
	ID           string
	Name         string
	State        State
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time
	ExitCode     int32
	Image        string // the runtime's image.image
	ImageID      string
	ImageRef     string
	Hash         string
	PodSandboxID string
	RestartCount int32
	// Reason is the runtime's: Completed, Error, OOMKilled, ...
	Reason  string
	Message string
	// Resources are what the runtime reports; nil if it says nothing, or if
	// nobody asked for it.
	Resources *Resources
	// User is whom the first process runs as; nil if the runtime doesn't say.
	// Containers share it.
	User *v1.ContainerUser
}

// Resources are a container's resources as a runtime reports them; 0 means
// that there is none.
type Resources struct {
	MilliCPURequest, MilliCPULimit, MemoryLimit int64
}

// PodStatus is the inspected status of a pod in the runtime. One that is in
// the cache is shared and never written to.
type PodStatus struct {
	ID        types.UID
	Name      string
	Namespace string
	// IPs are those of the newest sandbox if that is READY (or, in the cache,
	// the last known ones).
	IPs []string
	// ContainerStatuses are sorted newest creation first.
	ContainerStatuses []*Status
	// SandboxStatuses are sorted newest first: attempt, creation time, ID.
	SandboxStatuses []*runtimeapi.PodSandboxStatus
}

// FindContainerStatusByName returns the newest status of that name, or nil.
func (s *PodStatus) FindContainerStatusByName(name string) *Status {
	for _, c := range s.ContainerStatuses {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ActiveContainerStatuses returns the statuses in the newest sandbox, if that
// is READY.
func (s *PodStatus) ActiveContainerStatuses() []*Status {
	if len(s.SandboxStatuses) == 0 || s.SandboxStatuses[0].State != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil
	}
	return lists.Filter(s.ContainerStatuses, func(c *Status) bool {
		return c.PodSandboxID == s.SandboxStatuses[0].Id
	})
}

// RunningContainerStatuses returns the statuses of running containers.
func (s *PodStatus) RunningContainerStatuses() []*Status {
	return lists.Filter(s.ContainerStatuses, func(c *Status) bool { return c.State == StateRunning })
}

// PodDesc is "name_namespace(uid)", the form of many messages.
func PodDesc(pod *v1.Pod) string {
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}
