package eviction

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal is what a threshold is on: an amount that is left of something
// (pkg/kubelet/eviction/api/types.go).
type Signal string

// The signals, in the order in which they are listed and acted on.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	ContainerFsAvailable       Signal = "containerfs.available"
	ContainerFsInodesFree      Signal = "containerfs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// What evictions for local storage are counted under.
const (
	EmptyDirFsLimit         Signal = "emptydirfs.limit"
	EphemeralPodFsLimit     Signal = "ephemeralpodfs.limit"
	EphemeralContainerLimit Signal = "ephemeralcontainerfs.limit"
)

// Resources that are none of the API's; they show in messages.
const (
	resourceInodes v1.ResourceName = "inodes"
	resourcePids   v1.ResourceName = "pids"
)

// signalFacts is what a signal is about.
type signalFacts struct {
	signal    Signal
	resource  v1.ResourceName
	condition v1.NodeConditionType
	format    resource.Format
}

// signals are all that thresholds can name.
var signals = [...]signalFacts{
	{MemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure, resource.BinarySI},
	{AllocatableMemoryAvailable, v1.ResourceMemory, v1.NodeMemoryPressure, resource.BinarySI},
	{NodeFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure, resource.BinarySI},
	{NodeFsInodesFree, resourceInodes, v1.NodeDiskPressure, resource.DecimalSI},
	{ImageFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure, resource.BinarySI},
	{ImageFsInodesFree, resourceInodes, v1.NodeDiskPressure, resource.DecimalSI},
	{ContainerFsAvailable, v1.ResourceEphemeralStorage, v1.NodeDiskPressure, resource.BinarySI},
	{ContainerFsInodesFree, resourceInodes, v1.NodeDiskPressure, resource.DecimalSI},
	{PIDAvailable, resourcePids, v1.NodePIDPressure, resource.DecimalSI},
}

// order is a signal's place in signals; that of an unknown one is behind.
func (s Signal) order() int {
	for i := range signals {
		if signals[i].signal == s {
			return i
		}
	}
	return len(signals)
}

// facts returns what is known of a signal; nil of an unknown one.
func (s Signal) facts() *signalFacts {
	if i := s.order(); i < len(signals) {
		return &signals[i]
	}
	return nil
}
