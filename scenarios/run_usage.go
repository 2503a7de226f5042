package scenarios

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/sim"
)

// curve is what the usage comes to; nil: none.
func (u *Usage) curve() *usage.Curve {
	if u == nil {
		return nil
	}
	return u.Curve
}

// machine is what a machine uses as the cluster takes it.
func (m *MachineUsage) machine() sim.MachineUsage {
	if m == nil {
		return sim.MachineUsage{}
	}
	return sim.MachineUsage{
		Memory: m.Memory.curve(), CPU: m.CPU.curve(), PIDs: m.PIDs.curve(),
		Disk: m.Nodefs.curve(), Inodes: m.NodefsInodes.curve(), ImageDisk: m.Imagefs.curve(), ImageInodes: m.ImagefsInodes.curve(),
	}
}

// simFilesystems are the group's disks as the cluster takes them.
func simFilesystems(g *NodeGroup) sim.Filesystems {
	f := g.Filesystems
	if f == nil {
		return sim.Filesystems{}
	}
	out := sim.Filesystems{Root: f.Nodefs.size(), Image: f.Imagefs.size()}
	if out.Root != nil && out.Root.Capacity == 0 {
		out.Root.Capacity = g.Capacity.StorageEphemeral().Value()
	}
	if f.Containerfs == containerfsNodefs {
		out.Container = &sim.Filesystem{}
	}
	return out
}

// amountOf is 0 for what is not said.
func amountOf(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}

// containerfsNodefs has writable layers on the nodefs.
const containerfsNodefs = "nodefs"

func (f *Filesystem) size() *sim.Filesystem {
	if f == nil {
		return nil
	}
	return &sim.Filesystem{Capacity: amountOf(f.Capacity), Inodes: amountOf(f.Inodes)}
}
