// Package checkpoint is the form of the device manager's checkpoint. Its name and those
// of its types count in the checksum, as upstream's do
// (pkg/kubelet/cm/devicemanager/checkpoint).
package checkpoint

import "github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checksum"

// DevicesPerNUMA are devices by the NUMA nodes that they are near; -1 has those near
// none.
type DevicesPerNUMA map[int64][]string

// PodDevicesEntry is what a container was given of one resource.
type PodDevicesEntry struct {
	PodUID        string
	ContainerName string
	ResourceName  string
	DeviceIDs     DevicesPerNUMA
	// AllocResp is a pluginapi.ContainerAllocateResponse as protobuf.
	AllocResp []byte
}

type checkpointData struct {
	PodDeviceEntries []PodDevicesEntry
	// RegisteredDevices are the healthy ones by resource.
	RegisteredDevices map[string][]string
}

// Data is the content of the file.
type Data struct {
	Data     checkpointData
	Checksum checksum.Checksum
}

// Sum is the checksum that the data should have.
func (d *Data) Sum() checksum.Checksum { return checksum.New(d.Data) }
