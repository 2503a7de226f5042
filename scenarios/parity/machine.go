package parity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/sim"
)

// What the recorded machine used itself and how fast it was, where a case says
// nothing else.
const (
	// memoryAvailable and diskAvailable are as the cases have them that say: all
	// were recorded on the same machine.
	memoryAvailable Amount = "23350Mi"
	diskAvailable   Amount = "71417Mi"
	// maxPIDs is the kernel's threads-max for that memory.
	maxPIDs = 192844
	// uncounted is what was more available by the kubelet's statistics than a
	// case says, which has it of /proc/meminfo: that counts the kernel's own
	// memory as in use. It is what both evictions for want of memory imply.
	uncounted = 170 << 20
	// settling is what kubelet, runtime and kernel took from the kubelet's start
	// on: in node-memory-eviction the pods had used what they do for a pass that
	// found enough available, and 10 s later 1 MiB was missing.
	settling     = 12 << 20
	settlingOver = 40 * time.Second
	// listing is what each of a relist's two calls took, measuring what a pass of
	// the eviction manager did to get the statistics. The next of either begins a
	// second, or ten, after the end of one, so both drift. In node cases relists
	// go from right before a pass to right behind it within 75 s; in pod cases,
	// more than 10 minutes after the kubelet's start, passes were 1.1 s later than
	// without, and 0.2 s behind a relist.
	listing   = 1500 * time.Microsecond
	measuring = 15 * time.Millisecond
	// layersAt is when containerd measured writable layers, each 10 s: it was
	// chance. In node-disk-eviction it did in the 5 s before a pass.
	layersAt = 8500 * time.Millisecond
)

// housekeeping is when cAdvisor looks at pods' cgroups, see [sim.Sampling]. When
// it looks for the second time is drawn by the real one, of 10 to 20 s, for each
// pod, and decides who goes first when several use too much. Here it is the same
// for all pods and seeds: what node-memory-eviction leaves open, where a pod
// that was made 14.8 s before a pass had been looked at, and one made 14.2 s
// before it, which used more, had not.
var housekeeping = sim.Sampling{
	First: fakecri.Range{Min: 14500 * time.Millisecond, Max: 14500 * time.Millisecond},
	Then:  fakecri.Range{Min: 10 * time.Second, Max: 20 * time.Second},
}

// Amount is a quantity, as a JSON string or number. Recordings have both forms.
type Amount string

// UnmarshalJSON implements json.Unmarshaler.
func (a *Amount) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(a))
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*a = Amount(n)
	return nil
}

// Machine is what the recorded machine had free, by signals of eviction; "" is
// what it usually had. There was one disk, for images, too. The JSON names are those of signals,
// with what they were before the pods.
type Machine struct {
	MemoryAvailable   Amount `json:"memory.availableBeforePods,omitempty"`
	NodefsAvailable   Amount `json:"nodefs.availableBeforePods,omitempty"`
	NodefsInodesFree  Amount `json:"nodefs.inodesFreeBeforePods,omitempty"`
	ImagefsAvailable  Amount `json:"imagefs.availableBeforePods,omitempty"`
	ImagefsInodesFree Amount `json:"imagefs.inodesFreeBeforePods,omitempty"`
	PIDAvailable      Amount `json:"pid.availableBeforePods,omitempty"`
}

// use has the machine use so much that what the case says is available. What it
// says of inodes and processes may be more than a machine of this size has by
// default: then it has more.
func (m *Machine) use(o *sim.NodeOptions) error {
	memory, err := quantity("memory.availableBeforePods", m.MemoryAvailable, memoryAvailable)
	if err != nil {
		return err
	}
	memory = max(o.Capacity.Memory().Value()-memory-uncounted, 0)
	if o.Usage.Memory, err = usage.Steps(settle(memory)); err != nil {
		return fmt.Errorf("machine: memory: %w", err)
	}
	disk, err := quantity("nodefs.availableBeforePods", m.NodefsAvailable, diskAvailable)
	// There was one disk, so the signal of images says as much.
	if err == nil && m.NodefsAvailable == "" {
		disk, err = quantity("imagefs.availableBeforePods", m.ImagefsAvailable, diskAvailable)
	}
	if err != nil {
		return err
	}
	capacity := o.Capacity.StorageEphemeral().Value()
	o.Usage.Disk = usage.Constant(max(capacity-disk, 0))
	inodes, err := quantity("nodefs.inodesFreeBeforePods", m.NodefsInodesFree, "0")
	if err == nil && m.NodefsInodesFree == "" {
		inodes, err = quantity("imagefs.inodesFreeBeforePods", m.ImagefsInodesFree, "0")
	}
	if err != nil {
		return err
	}
	if inodes > 0 {
		// A file system of this kind has an inode for every 16 KiB by default.
		there := max(capacity/(16<<10), inodes)
		o.Filesystems.Root = &sim.Filesystem{Inodes: there}
		o.Usage.Inodes = usage.Constant(there - inodes)
	}
	pids, err := quantity("pid.availableBeforePods", m.PIDAvailable, "0")
	if err != nil {
		return err
	}
	if pids > 0 {
		o.PIDMax, o.ThreadsMax = max(maxPIDs, pids), max(maxPIDs, pids)
		o.Usage.PIDs = usage.Constant(o.PIDMax - pids)
	}
	return nil
}

// settle grows from used to settling more, MiB by MiB: memory is in pages. It goes on for
// settlingOver after the start.
func settle(used int64) []usage.Point {
	// One step is 1 MiB.
	const steps = settling >> 20
	points := make([]usage.Point, 0, steps+1)
	for i := int64(0); i <= steps; i++ {
		points = append(points, usage.Point{At: time.Duration(i) * settlingOver / steps, Value: used + i<<20})
	}
	return points
}

// quantity reads an amount, or what is there if none is given.
func quantity(field string, a, usually Amount) (int64, error) {
	a = cmp.Or(a, usually)
	q, err := resource.ParseQuantity(string(a))
	if err != nil {
		return 0, fmt.Errorf("machine: %s: %q is no quantity", field, a)
	}
	return q.Value(), nil
}
