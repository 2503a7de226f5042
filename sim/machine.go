package sim

import (
	"context"
	"fmt"
	"io/fs"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
	"github.com/drydock-sim/drydock/sim/plugins"
)

// Machine is the hardware and operating system of a simulated node.
type Machine struct {
	l        *loop.Loop
	node     string
	capacity v1.ResourceList
	ip       string
	boots    uint64
	booted   int64 // when it booted last, in ns
	// noAppArmor says that the kernel was built without AppArmor.
	noAppArmor bool
	topology   *cm.Topology // nil: nothing is said of it
	disks      *machineDisks
	swap       int64 // bytes
}

// DefaultCapacity is what a node has unless it is told otherwise.
func DefaultCapacity() v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("4"),
		v1.ResourceMemory:           resource.MustParse("16Gi"),
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
}

func newMachine(l *loop.Loop, node string, index int, capacity v1.ResourceList) *Machine {
	m := &Machine{l: l, node: node, capacity: DefaultCapacity(), booted: l.UnixNano()}
	maps.Copy(m.capacity, capacity)
	n := index + 1
	m.ip = fmt.Sprintf("172.%d.%d.%d", 16+n>>16, n>>8&255, n&255)
	return m
}

// Capacity returns what the machine has: cpu, memory, ephemeral-storage,
// hugepages and extended resources.
func (m *Machine) Capacity() v1.ResourceList { return m.capacity }

// BootID is new after each boot.
func (m *Machine) BootID() string { return m.uuid("boot", m.boots) }

// MachineID stays the same for good.
func (m *Machine) MachineID() string {
	h := loop.Hash(m.l.Seed(), []string{"machine", m.node})
	return fmt.Sprintf("%016x%016x", h, loop.Hash(h, nil))
}

// SystemUUID stays the same for good.
func (m *Machine) SystemUUID() string { return m.uuid("system", 0) }

// KernelVersion is that of the machines that the recordings were made on.
func (m *Machine) KernelVersion() string { return "6.1.0" }

// OSImage is the operating system's name.
func (m *Machine) OSImage() string { return "Drydock (simulated)" }

// NodeIP is the address of the node.
func (m *Machine) NodeIP() string { return m.ip }

// AppArmorEnabled reports whether the kernel can enforce AppArmor profiles.
func (m *Machine) AppArmorEnabled() bool { return !m.noAppArmor }

// Swap is what the machine has of it. Nothing is ever swapped out: what a
// container may swap is only told to the runtime.
func (m *Machine) Swap() cm.Swap { return cm.Swap{Capacity: m.swap, Controller: true, Noswap: true} }

func (m *Machine) uuid(what string, n uint64) string {
	a := loop.Hash(m.l.Seed(), []string{what, m.node}, n)
	b := loop.Hash(a, nil)
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff)
}

// reboot gives the machine a new boot ID.
func (m *Machine) reboot() {
	m.boots++
	m.booted = m.l.UnixNano()
}

// mounter mounts the kubelet's volumes in the node's files.
type mounter struct {
	fs      *memfs.FS
	plugins *plugins.Host // has what servers of NFS export; nil: there are none
}

var _ filesystem.RemoteMounter = mounter{}

// tmpfsMode is the mode of a new tmpfs.
const tmpfsMode = fs.ModeSticky | 0o777

// MountTmpfs implements filesystem.Mounter.
func (m mounter) MountTmpfs(path string, size int64) error {
	if err := m.fs.MountTmpfsSize(path, size); err != nil {
		return err
	}
	return m.fs.Chmod(path, tmpfsMode)
}

// Unmount implements filesystem.Mounter.
func (m mounter) Unmount(path string) error { return m.fs.Unmount(path) }

// IsMountPoint implements filesystem.Mounter.
func (m mounter) IsMountPoint(path string) bool { return m.fs.Mounted(path) }

// MountRemote implements filesystem.RemoteMounter.
func (m mounter) MountRemote(ctx context.Context, source, target, fstype string, options []string) error {
	if m.plugins == nil {
		return plugins.NoServer(source, target, fstype, options)
	}
	return m.plugins.MountRemote(ctx, source, target, fstype, options)
}

// UnmountRemote implements filesystem.RemoteMounter.
func (m mounter) UnmountRemote(ctx context.Context, target string) error {
	if m.plugins == nil {
		return m.fs.Unmount(target)
	}
	return m.plugins.UnmountRemote(ctx, target)
}

// IsRemoteMountPoint implements filesystem.RemoteMounter.
func (m mounter) IsRemoteMountPoint(path string) bool { return m.fs.Mounted(path) }

// cgroups are a simulated machine's: what its kubelets have set. The cgroups of
// classes and of pods are not kept, since they follow from the pods (see
// [Node.Cgroups]); limits of memory and processes are the runtime's to enforce.
type cgroups struct {
	// memory takes the memory limit of all pods in bytes, pids that of their
	// processes; 0 is none.
	memory, pids func(limit int64)
}

var _ cm.NodeCgroups = cgroups{}

// SetRoot implements cm.NodeCgroups.
func (c cgroups) SetRoot(_ context.Context, v cm.NodeCgroup) error {
	if c.memory != nil && v.MemoryLimit != nil {
		c.memory(*v.MemoryLimit)
	}
	if c.pids != nil && v.Pids != nil {
		c.pids(*v.Pids)
	}
	return nil
}

// SetReserved implements cm.NodeCgroups. A machine has whatever cgroup its
// configuration names; nothing that runs in one is simulated but the machine's
// own use, which has no limit.
func (c cgroups) SetReserved(context.Context, string, cm.NodeCgroup) error { return nil }

// Cgroups returns the node's cgroups above those of containers with their
// values, see [kubelet.Kubelet.Cgroups]; nil while no kubelet runs.
func (n *Node) Cgroups() []cm.Cgroup {
	if n.kubelet == nil {
		return nil
	}
	return n.kubelet.Cgroups(context.Background())
}
