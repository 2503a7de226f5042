package cm

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cgroup is a cgroup above those of containers with its values: what the kubelet
// sets, or, where it sets none, what it would.
type Cgroup struct {
	// Path is that within a hierarchy.
	Path string
	// Class is that of the pods in it; "" for the cgroups of all pods, of the
	// system and of the node's daemons.
	Class v1.PodQOSClass
	// Pod is its UID, for a pod's cgroup.
	Pod types.UID
	// CPUShares are cpu.shares of v1.
	CPUShares int64
	// CPUQuota in µs of CPUPeriod, also in µs; -1 is no quota.
	CPUQuota, CPUPeriod int64
	// MemoryLimit in bytes and Pids; -1 is no limit.
	MemoryLimit, Pids int64
	// Hugepages are limits in bytes by the size of the pages in bytes.
	Hugepages map[int64]int64
	// MemoryMin and MemoryLow are those of cgroup v2, in bytes.
	MemoryMin, MemoryLow int64
}

// CPUWeight is cpu.weight of cgroup v2.
func (c *Cgroup) CPUWeight() uint64 { return CPUSharesToCPUWeight(c.CPUShares) }

// Tree puts the cgroups of a node together.
type Tree struct {
	Names Names
	// CFSPeriod in µs and PodPids are those of all pods.
	CFSPeriod, PodPids int64
	// NoCPUQuota is cpuCFSQuota: false.
	NoCPUQuota bool
	list       []Cgroup
}

func (t *Tree) add(path string) *Cgroup {
	t.list = append(t.list, Cgroup{Path: path, CPUShares: MinShares, CPUQuota: -1, CPUPeriod: t.CFSPeriod, MemoryLimit: -1, Pids: -1})
	return &t.list[len(t.list)-1]
}

// Node adds a cgroup that holds a part of the node.
func (t *Tree) Node(path string, v NodeCgroup) {
	c := t.add(path)
	set(&c.CPUShares, v.CPUShares)
	set(&c.MemoryLimit, v.MemoryLimit)
	set(&c.Pids, v.Pids)
	set(&c.MemoryMin, v.MemoryMin)
	c.Hugepages = v.Hugepages
}

// AddClass adds the cgroup of a class.
func (t *Tree) AddClass(class v1.PodQOSClass, v ClassCgroup) {
	c := t.add(t.Names.Class(class))
	c.Class, c.CPUShares = class, v.CPUShares
	set(&c.MemoryLimit, v.MemoryLimit)
	set(&c.MemoryMin, v.MemoryMin)
	set(&c.MemoryLow, v.MemoryLow)
}

// AddPod adds a pod's cgroup.
func (t *Tree) AddPod(class v1.PodQOSClass, uid types.UID, v PodCgroup) {
	c := t.add(t.Names.Pod(class, uid))
	c.Class, c.Pod = class, uid
	c.CPUShares = MilliCPUToShares(v.MilliCPU)
	if v.MilliCPULimit > 0 && !t.NoCPUQuota {
		c.CPUQuota = max(v.MilliCPULimit*t.CFSPeriod/1000, minQuota)
	}
	if v.MemoryLimit > 0 {
		c.MemoryLimit = v.MemoryLimit
	}
	if t.PodPids > 0 {
		c.Pids = t.PodPids
	}
	c.Hugepages, c.MemoryMin, c.MemoryLow = v.Hugepages, v.MemoryMin, v.MemoryLow
}

// List returns the cgroups in the order in which they were added.
func (t *Tree) List() []Cgroup { return t.list }

func set(to, from *int64) {
	if from != nil {
		*to = *from
	}
}
