package container

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// RunContainerOptions is what a container is created with beside what its spec
// says by itself (upstream pkg/kubelet/container/runtime.go). What it holds may
// be shared by many containers and is never written to.
type RunContainerOptions struct {
	// Envs is what devices need, then the environment, sorted by name.
	Envs []*runtimeapi.KeyValue
	// Mounts are those of devices, the volume mounts in the spec's order, then /etc/hosts.
	Mounts []*runtimeapi.Mount
	// Devices, CDIDevices and Annotations are those of plugins' devices.
	Devices     []*runtimeapi.Device
	CDIDevices  []*runtimeapi.CDIDevice
	Annotations map[string]string
	// PodContainerDir is where the termination message's file is to be made;
	// "" means that the container has none.
	PodContainerDir string
}

// VolumeInfo is a volume that is mounted for a pod.
type VolumeInfo struct {
	// Path is where the volume is on the node.
	Path string
	// ReadOnly tells that the volume itself can't be written to, whatever its
	// mounts say (a configMap, a secret, a downward API volume).
	ReadOnly bool
	// Block: it is a block device, to which Path is a link.
	Block bool
	// Image is set for an image volume, which has no Path: the runtime mounts
	// it.
	Image *runtimeapi.ImageSpec
}

// VolumeMap has the volumes of a pod by their names in the pod's spec.
type VolumeMap map[string]VolumeInfo
