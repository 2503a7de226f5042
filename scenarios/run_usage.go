package scenarios

import (
	"github.com/drydock-sim/drydock/sim"
	"github.com/drydock-sim/drydock/sim/usage"
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

// containerfsNodefs has writable layers on the nodefs.
const containerfsNodefs = "nodefs"

func (f *Filesystem) size() *sim.Filesystem {
	if f == nil {
		return nil
	}
	out := &sim.Filesystem{}
	if f.Capacity != nil {
		out.Capacity = f.Capacity.Value()
	}
	if f.Inodes != nil {
		out.Inodes = f.Inodes.Value()
	}
	return out
}
