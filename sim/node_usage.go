package sim

import (
	"context"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Usage is what a machine uses now.
type Usage struct {
	// Memory is the working set of everything, PodsMemory that of pods; bytes.
	Memory, MemoryAvailable, PodsMemory int64
	MilliCPU                            int64
	// PIDs are processes, of pods and others.
	PIDs, PIDsAvailable int64
	// Imagefs and Containerfs are Nodefs where there is one disk only.
	Nodefs, Imagefs, Containerfs statsapi.FsStats
}

// Usage tells what the machine uses, as its kubelet would be told; nil on a
// host.
func (n *Node) Usage() *Usage {
	if n.rt == nil {
		return nil
	}
	m := machineStats{n: n}
	u := m.usage()
	out := &Usage{
		Memory: u.Memory, MemoryAvailable: max(m.memoryCapacity()-u.Memory, 0), PodsMemory: u.PodsMemory, MilliCPU: u.MilliCPU,
		PIDs: u.PIDs, PIDsAvailable: max(u.MaxPIDs-u.PIDs, 0),
	}
	d := n.machine.disks
	for _, x := range []struct {
		path string
		fs   *statsapi.FsStats
	}{{"/", &out.Nodefs}, {d.imagePath, &out.Imagefs}, {d.layerPath, &out.Containerfs}} {
		if fs, err := m.Filesystem(context.Background(), x.path); err == nil {
			*x.fs = fs.FsStats
		}
	}
	return out
}
