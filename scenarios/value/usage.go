package value

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/sim"
)

// Usage is how much is used of something over time: an amount, or one of value, ramp, lines, steps, periodic and file. `repeat` and `noise` go with each of them. Times are since the start of whatever uses it: the container's, the node's, or the action's.
type Usage struct {
	// Always this much; the same as writing just the amount.
	Value *resource.Quantity `json:"value,omitempty"`
	// From one amount to another.
	Ramp *Ramp `json:"ramp,omitempty"`
	// Straight lines between points, level before the first and after the last.
	Lines []UsagePoint `json:"lines,omitempty"`
	// Each amount holds until the next one's time; the first holds from the start.
	Steps []UsagePoint `json:"steps,omitempty"`
	// Up and down, for ever.
	Periodic *Periodic `json:"periodic,omitempty"`
	// A CSV file of times and amounts with straight lines between its points, relative to the scenario's file. A line is `time,amount`: seconds or a duration, and a quantity; two points at one time are a step. Empty lines, what follows a #, and a first line of titles are skipped.
	File string `json:"file,omitempty"`
	// How long until it starts from the beginning again. Never unless said; not with value and periodic.
	Repeat time.Duration `json:"repeat,omitempty"`
	// An amount drawn from the seed that is added or taken off. None unless said.
	Noise *Noise `json:"noise,omitempty"`

	// Curve is what it comes to, in bytes, millicores, or whatever is counted.
	Curve *usage.Curve `json:"-"`
}

// Ramp goes evenly from one amount to another, and stays there.
type Ramp struct {
	// The amount at the start.
	From resource.Quantity `json:"from" required:""`
	// The amount at the end.
	To resource.Quantity `json:"to" required:""`
	// How long it takes.
	Over time.Duration `json:"over" required:""`
}

// UsagePoint is an amount at a time.
type UsagePoint struct {
	// When, after the start.
	At time.Duration `json:"at,omitempty"`
	// The amount.
	Value resource.Quantity `json:"value" required:""`
}

// Periodic goes up and down between two amounts.
type Periodic struct {
	// The least amount.
	Low resource.Quantity `json:"low" required:""`
	// The greatest amount.
	High resource.Quantity `json:"high" required:""`
	// How long once up and down takes.
	Period time.Duration `json:"period" required:""`
	// How it goes: evenly, at a jump (low for half the period, then high), or as a sine. triangle unless said.
	Shape string `json:"shape,omitempty" enum:"triangle,square,sine"`
	// How far into the period it starts; a period begins at the least amount.
	Phase time.Duration `json:"phase,omitempty"`
}

// Noise is a random amount that is added or taken off; what comes of it is never below 0. Each container's is its own.
type Noise struct {
	// The most that it is, either way.
	Amplitude resource.Quantity `json:"amplitude" required:""`
	// How long one draw lasts. 10s unless said.
	Every time.Duration `json:"every,omitempty"`
}

// MachineUsage is what a machine uses outside of all pods.
type MachineUsage struct {
	// Memory, working set. None unless said.
	Memory *Usage `json:"memory,omitempty"`
	// CPU, in cores. None unless said.
	CPU *Usage `json:"cpu,omitempty"`
	// Process numbers. None unless said.
	PIDs *Usage `json:"pids,omitempty"`
	// Bytes on the file system of the kubelet's directory.
	Nodefs *Usage `json:"nodefs,omitempty"`
	// Inodes on the file system of the kubelet's directory.
	NodefsInodes *Usage `json:"nodefsInodes,omitempty"`
	// Bytes on the file system of images, if that is one of its own.
	Imagefs *Usage `json:"imagefs,omitempty"`
	// Inodes on the file system of images, if that is one of its own.
	ImagefsInodes *Usage `json:"imagefsInodes,omitempty"`
}

// Shorthand has a usage be written as just its amount.
func (u *Usage) Shorthand() any { return &u.Value }

// Amount is the usage's curve; nil: none.
func (u *Usage) Amount() *usage.Curve {
	if u == nil {
		return nil
	}
	return u.Curve
}

// Check checks what a machine uses; imagefs says whether it has a file system of
// its own for images.
func (m *MachineUsage) Check(at decode.Place, imagefs bool) {
	m.Memory.Check(at.Field("memory"), Bytes())
	m.CPU.Check(at.Field("cpu"), Cores())
	m.PIDs.Check(at.Field("pids"), Count())
	m.Nodefs.Check(at.Field("nodefs"), Bytes())
	m.NodefsInodes.Check(at.Field("nodefsInodes"), Count())
	m.Imagefs.Check(at.Field("imagefs"), Bytes())
	m.ImagefsInodes.Check(at.Field("imagefsInodes"), Count())
	for _, f := range []struct {
		name string
		set  bool
	}{{"imagefs", m.Imagefs != nil}, {"imagefsInodes", m.ImagefsInodes != nil}} {
		if f.set && !imagefs {
			at.Field(f.name).Errorf("the node has no file system of its own for images: see its filesystems.imagefs")
		}
	}
}

// Machine is the usage as the cluster takes it.
func (m *MachineUsage) Machine() sim.MachineUsage {
	if m == nil {
		return sim.MachineUsage{}
	}
	return sim.MachineUsage{
		Memory: m.Memory.Amount(), CPU: m.CPU.Amount(), PIDs: m.PIDs.Amount(),
		Disk: m.Nodefs.Amount(), Inodes: m.NodefsInodes.Amount(), ImageDisk: m.Imagefs.Amount(), ImageInodes: m.ImagefsInodes.Amount(),
	}
}
