package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// Filesystems are a machine's disks. Its zero value is one that has everything.
type Filesystems struct {
	// Root has the kubelet's directory, logs, and what is nowhere else. Its size is
	// the node's capacity of ephemeral-storage, whatever that says itself.
	Root *Filesystem
	// Image, if any, is a disk of its own for images and writable layers.
	Image *Filesystem
	// Container, if any, leaves the writable layers on Root: a split image file
	// system, which kubelets know of CRI-O only, so its socket is the default
	// then. Its sizes are Root's, whatever it says.
	Container *Filesystem
}

// Filesystem is the size of a disk.
type Filesystem struct {
	// Capacity is in bytes. 0 means 100 GiB, of Root the node's capacity.
	Capacity int64
	// Inodes are how many files there can be. 0 means one for each 16 KiB.
	Inodes int64
}

func (f *Filesystem) size() memfs.Space {
	s := memfs.Space{Bytes: f.Capacity, Inodes: f.Inodes}
	s.Bytes = cmp.Or(s.Bytes, 100<<30)
	if s.Inodes == 0 {
		s.Inodes = max(s.Bytes/bytesPerInode, 1)
	}
	return s
}

// bytesPerInode is mke2fs's inode_ratio.
const bytesPerInode = 16 << 10

func (f *Filesystems) validate() error {
	for i, fs := range [...]*Filesystem{f.Root, f.Image, f.Container} {
		if fs != nil && (fs.Capacity < 0 || fs.Inodes < 0) {
			return fmt.Errorf("filesystems.%s: negative", [...]string{"root", "image", "container"}[i])
		}
	}
	if f.Container != nil && f.Image == nil {
		return fmt.Errorf("filesystems.container: there is no image file system to be split")
	}
	return nil
}

// crioSocket is that by which a kubelet knows CRI-O.
const crioSocket = "unix:///var/run/crio/crio.sock"

// Where CRI-O says that images and writable layers are.
const (
	crioImages     = "/var/lib/containers/storage/overlay-images"
	crioContainers = "/var/lib/containers/storage/overlay-containers"
)

// imageDevice is the device of an image file system of its own.
const imageDevice = "/dev/vdb1"

// machineDisks are the disks of a simulated node.
type machineDisks struct {
	l      *loop.Loop
	root   *memfs.Disk
	image  *memfs.Disk // root, unless there is another
	layers *memfs.Disk // one of these
	// The mount points that the runtime names.
	imagePath, layerPath string
	own                  [4]ownUse
}

// ownUse is what the machine uses itself of one thing.
type ownUse struct {
	share  *memfs.Share
	growth *memfs.Growth
}

// newDisks makes a node's disks and tells its runtime of them.
func newDisks(l *loop.Loop, f Filesystems, capacity v1.ResourceList, rt *fakecri.Options) *machineDisks {
	storage := capacity[v1.ResourceEphemeralStorage]
	root := Filesystem{Capacity: storage.Value()}
	if f.Root != nil {
		root = Filesystem{Capacity: or(f.Root.Capacity, root.Capacity), Inodes: f.Root.Inodes}
	}
	if root.Capacity != storage.Value() {
		capacity[v1.ResourceEphemeralStorage] = *resource.NewQuantity(root.Capacity, resource.BinarySI)
	}
	rt.DiskDevice = cmp.Or(rt.DiskDevice, "/dev/vda1")
	d := &machineDisks{l: l}
	d.root = memfs.NewDisk(memfs.DiskOptions{Loop: l, Device: rt.DiskDevice, Size: root.size()})
	d.image = d.root
	if f.Image != nil {
		d.image = memfs.NewDisk(memfs.DiskOptions{Loop: l, Device: imageDevice, Size: f.Image.size()})
	}
	d.layers = d.image
	if f.Container != nil {
		d.layers = d.root
		rt.ImageFilesystem, rt.ContainerFilesystem = or(rt.ImageFilesystem, crioImages), or(rt.ContainerFilesystem, crioContainers)
	}
	rt.ImageDisk, rt.LayerDisk = d.image.Share(), d.layers.Share()
	d.imagePath = or(rt.ImageFilesystem, fakecri.DefaultImageFilesystem)
	d.layerPath = or(rt.ContainerFilesystem, d.imagePath)
	return d
}

// Disks returns the machine's disks: that of the root file system, and that of
// images if it is another.
func (n *Node) Disks() []*memfs.Disk {
	d := n.machine.disks
	if d.image != d.root {
		return []*memfs.Disk{d.root, d.image}
	}
	return []*memfs.Disk{d.root}
}

func or[T comparable](a, b T) T {
	var none T
	if a != none {
		return a
	}
	return b
}

// setDiskUsage is SetUsage for the disks.
func (n *Node) setDiskUsage(u MachineUsage) {
	d := n.machine.disks
	now := time.Duration(n.l.UnixNano())
	for i, c := range [...]*usage.Curve{u.Disk, u.Inodes, u.ImageDisk, u.ImageInodes} {
		if c == nil {
			continue
		}
		o := &d.own[i]
		if o.growth != nil {
			o.growth.Stop()
			o.share.Clear()
		} else {
			o.share = [...]*memfs.Disk{d.root, d.image}[i/2].Share()
		}
		users := [2]usage.User{}
		users[i%2] = usage.User{Curve: c, Start: now, Key: n.l.Uint64("machine usage", n.name, uint64(i))}
		o.growth = o.share.Grow(users[0], users[1])
	}
}

// Filesystem implements stats.Machine.
func (m machineStats) Filesystem(_ context.Context, path string) (*stats.Filesystem, error) {
	n := m.n
	d := n.machine.disks
	disk := d.root
	switch path {
	case d.imagePath:
		disk = d.image
	case d.layerPath:
		disk = d.layers
	default:
		if _, err := n.fs.Stat(path); err != nil {
			return nil, fmt.Errorf("could not get device for dir %q: %w", path, err)
		}
		if size, used, ok := n.fs.Limit(path); ok {
			return n.tmpfs(path, size, used), nil
		}
	}
	return d.stats(disk), nil
}

// stats is what statfs says of a disk.
func (d *machineDisks) stats(disk *memfs.Disk) *stats.Filesystem {
	size, used, free := disk.Size(), disk.Used(), disk.Free()
	return newFilesystem(d.l, disk.Device(), size, used, free)
}

// tmpfs is what statfs says of one; without a size it is half of the memory's.
func (n *Node) tmpfs(path string, size, used int64) *stats.Filesystem {
	if size == 0 {
		size = n.machine.capacity.Memory().Value() / 2
	}
	_, inodes := n.fs.Usage(path)
	all := memfs.Space{Bytes: size, Inodes: size / bytesPerInode}
	taken := memfs.Space{Bytes: used, Inodes: inodes}
	return newFilesystem(n.l, "tmpfs", all, taken, memfs.Space{Bytes: max(size-used, 0), Inodes: max(all.Inodes-inodes, 0)})
}

func newFilesystem(l *loop.Loop, device string, size, used, free memfs.Space) *stats.Filesystem {
	b := &struct {
		stats.Filesystem
		v [6]uint64
	}{v: [6]uint64{uint64(free.Bytes), uint64(size.Bytes), uint64(used.Bytes), uint64(free.Inodes), uint64(size.Inodes), uint64(used.Inodes)}}
	b.Device = device
	b.FsStats = statsapi.FsStats{
		Time:           metav1.NewTime(l.Now()),
		AvailableBytes: &b.v[0], CapacityBytes: &b.v[1], UsedBytes: &b.v[2],
		InodesFree: &b.v[3], Inodes: &b.v[4], InodesUsed: &b.v[5],
	}
	return &b.Filesystem
}

// floors are the parts of a floor that are of the root disk and of the images',
// if that is another.
func (d *machineDisks) floors(floor stats.Floor) (root, image memfs.Space) {
	add := func(disk *memfs.Disk, bytes, inodes int64) {
		s := &root
		if disk != d.root {
			s = &image
		}
		s.Bytes, s.Inodes = max(s.Bytes, bytes), max(s.Inodes, inodes)
	}
	add(d.root, floor.RootBytes, floor.RootInodes)
	add(d.image, floor.ImageBytes, floor.ImageInodes)
	add(d.layers, floor.ContainerBytes, floor.ContainerInodes)
	return root, image
}

// disksBelow reports whether less is free than a floor says.
func (n *Node) disksBelow(floor stats.Floor) bool {
	d := n.machine.disks
	root, image := d.floors(floor)
	return d.root.Below(root) || d.image != d.root && d.image.Below(image)
}

// watchDisks has changed called when that becomes so, maybe once for each disk,
// and forgets an earlier one; nil only forgets.
func (n *Node) watchDisks(floor stats.Floor, changed func()) {
	d := n.machine.disks
	root, image := d.floors(floor)
	d.root.Watch(root, changed)
	if d.image != d.root {
		d.image.Watch(image, changed)
	}
}
