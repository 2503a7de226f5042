package sim

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
)

// Machine is the hardware and operating system of a simulated node.
type Machine struct {
	l        *loop.Loop
	node     string
	capacity v1.ResourceList
	ip       string
	boots    uint64
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
	m := &Machine{l: l, node: node, capacity: DefaultCapacity()}
	for name, q := range capacity { //drydock:unordered each key is set once
		m.capacity[name] = q
	}
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
func (m *Machine) reboot() { m.boots++ }
