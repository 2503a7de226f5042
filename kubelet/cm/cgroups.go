package cm

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeCgroups are the cgroups of a machine that hold what pods, the system and
// the node's daemons may use (upstream node_container_manager_linux.go). The
// methods are for tasks, and may wait.
//
// One that is no [Cgroups] makes nothing below them: the runtime does, and the
// values there follow from the pods (see [Tree]).
type NodeCgroups interface {
	// SetRoot makes the cgroup of all pods, or changes it.
	SetRoot(ctx context.Context, v NodeCgroup) error
	// SetReserved changes a cgroup that is there already; an error if it is not.
	SetReserved(ctx context.Context, name string, v NodeCgroup) error
}

// Cgroups are also those of pods, above those of containers, which the runtime
// makes: one for each class below Guaranteed, and one for each pod (upstream's
// podContainerManager and qosContainerManager).
type Cgroups interface {
	NodeCgroups
	// SetClass makes the cgroup of a class, or changes it.
	SetClass(ctx context.Context, class v1.PodQOSClass, v ClassCgroup) error
	// ClassMemory is what the pods of a class use, in bytes.
	ClassMemory(ctx context.Context, class v1.PodQOSClass) (int64, error)
	// SetPod makes a pod's cgroup, or changes it.
	SetPod(ctx context.Context, class v1.PodQOSClass, uid types.UID, v PodCgroup) error
	// PodExists reports whether a pod has a cgroup.
	PodExists(class v1.PodQOSClass, uid types.UID) bool
	// Pods are the pods that have a cgroup, of all classes, by UID.
	Pods() []types.UID
	// ShrinkPod leaves a pod that is gone as little CPU as can be.
	ShrinkPod(ctx context.Context, uid types.UID) error
	// RemovePod kills what is left in a pod's cgroup and removes it; one that is
	// not there is no error.
	RemovePod(ctx context.Context, uid types.UID) error
}

// NodeCgroup are the values of a cgroup that holds a part of the node; nil
// leaves a value as it is.
type NodeCgroup struct {
	CPUShares   *int64
	MemoryLimit *int64 // bytes
	Pids        *int64
	// Hugepages are limits in bytes, by the size of the pages in bytes.
	Hugepages map[int64]int64
	// AllCPUs writes all of the machine's CPUs to cpuset.cpus.
	AllCPUs bool
	// MemoryMin is memory.min of cgroup v2 in bytes.
	MemoryMin *int64
}

// ClassCgroup are the values of the cgroup of a class; nil leaves a value as it
// is. Huge pages are not limited there.
type ClassCgroup struct {
	CPUShares   int64
	MemoryLimit *int64 // bytes
	// MemoryMin and MemoryLow are those of cgroup v2, in bytes.
	MemoryMin, MemoryLow *int64
}

// Swap is what a machine has of it.
type Swap struct {
	// Capacity in bytes; 0: it has none.
	Capacity int64
	// Controller says that cgroups can limit it, CgroupV1 that they do so as v1
	// does: together with memory.
	Controller, CgroupV1 bool
	// Noswap says that a tmpfs can be kept out of it (mount option noswap).
	Noswap bool
}
