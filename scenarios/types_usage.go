package scenarios

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/usage"
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

// Write is what a container writes to a place of its own, beside what its command writes.
type Write struct {
	// Where, inside the container. In a mounted volume it counts for that volume, else for the container's writable layer.
	Path string `json:"path" required:""`
	// How many bytes are there. None unless said.
	Bytes *Usage `json:"bytes,omitempty"`
	// How many files and directories are there. One, while there are bytes, unless said.
	Inodes *Usage `json:"inodes,omitempty"`
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

// UsageChange changes what machines use outside of all pods, from now on; what it leaves out stays as it is.
type UsageChange struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node         Nodes `json:"node,omitempty"`
	MachineUsage `json:",inline"`
}

// Filesystems are a machine's disks.
type Filesystems struct {
	// The file system of the kubelet's directory: volumes, logs, and what is said to be nowhere else. Its capacity is ephemeral-storage's unless said.
	Nodefs *Filesystem `json:"nodefs,omitempty"`
	// A file system of its own for images and, unless containerfs says nodefs, containers' writable layers. There is none unless said: one disk has everything.
	Imagefs *Filesystem `json:"imagefs,omitempty"`
	// Where containers' writable layers are if there is an imagefs. imagefs unless said; nodefs is what upstream calls a split image filesystem.
	Containerfs string `json:"containerfs,omitempty" enum:"imagefs,nodefs"`
}

// Filesystem is a file system's size.
type Filesystem struct {
	// How many bytes it has. 100Gi unless said, or, for nodefs, the node's ephemeral-storage.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// How many inodes it has. One for each 16Ki of its capacity unless said.
	Inodes *resource.Quantity `json:"inodes,omitempty"`
}
