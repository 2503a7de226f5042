package document

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

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

// checkFilesystems checks a machine's disks; at is the group's place.
func (g *NodeGroup) checkFilesystems(at decode.Place) {
	f := g.Filesystems
	if f == nil {
		return
	}
	said := at.Field("capacity").Field("ephemeral-storage").Written()
	at = at.Field("filesystems")
	if f.Nodefs != nil && f.Nodefs.Capacity != nil && said && f.Nodefs.Capacity.Cmp(*g.Capacity.StorageEphemeral()) != 0 {
		at.Field("nodefs").Field("capacity").Errorf("%s is not the capacity's ephemeral-storage, %s: say one of them", f.Nodefs.Capacity.String(), g.Capacity.StorageEphemeral().String())
	}
	if f.Containerfs != "" && f.Imagefs == nil {
		at.Field("containerfs").Errorf("without an imagefs everything is on one disk")
	}
}

// Check wants sizes, which are more than nothing.
func (f *Filesystem) Check(at decode.Place) {
	for _, x := range []struct {
		name string
		q    *resource.Quantity
		in   value.Unit
	}{{"capacity", f.Capacity, value.Bytes()}, {"inodes", f.Inodes, value.Count()}} {
		if x.q == nil {
			continue
		}
		if n, err := x.in.Amount(*x.q); err != nil {
			at.Field(x.name).Errorf("%v", err)
		} else if n == 0 {
			at.Field(x.name).Errorf("must be more than 0")
		}
	}
}

// disks are the group's file systems as the cluster takes them.
func (g *NodeGroup) disks() sim.Filesystems {
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

// size is the file system as the cluster takes it; nil: none of its own.
func (f *Filesystem) size() *sim.Filesystem {
	if f == nil {
		return nil
	}
	return &sim.Filesystem{Capacity: amountOf(f.Capacity), Inodes: amountOf(f.Inodes)}
}
