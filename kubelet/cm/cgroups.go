package cm

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cgroups are the cgroups of a machine above those of containers, which the
// runtime makes: kubepods, one for each class below Guaranteed in it, and one
// for each pod (upstream's podContainerManager, qosContainerManager and node
// container manager). The methods are for tasks, and may wait.
type Cgroups interface {
	// SetRoot makes the cgroup of all pods, or changes it.
	SetRoot(ctx context.Context, v RootCgroup) error
	// SetClass makes the cgroup of a class, or changes it: milliCPU is what its
	// pods ask for together.
	SetClass(ctx context.Context, class v1.PodQOSClass, milliCPU int64) error
	// SetPod makes a pod's cgroup, or changes it.
	SetPod(ctx context.Context, class v1.PodQOSClass, uid types.UID, v PodCgroup) error
	// PodExists tells whether a pod has a cgroup.
	PodExists(class v1.PodQOSClass, uid types.UID) bool
	// Pods are the pods that have a cgroup, of all classes, by UID.
	Pods() []types.UID
	// ShrinkPod leaves a pod that is gone as little CPU as can be.
	ShrinkPod(ctx context.Context, uid types.UID) error
	// RemovePod kills what is left in a pod's cgroup and removes it; one that is
	// not there is no error.
	RemovePod(ctx context.Context, uid types.UID) error
}

// RootCgroup are the values of the cgroup of all pods; 0 means: not limited.
type RootCgroup struct {
	MilliCPU    int64
	MemoryLimit int64 // bytes
	Pids        int64
}
