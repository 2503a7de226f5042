package kernel

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// ViewOptions configure a View. The runtime fills it in from the pod's spec:
// readOnlyRootFilesystem, privileged, and so on.
type ViewOptions struct {
	// Image is the image's tree. What a container writes goes to a layer of
	// its own. Either this or Root is required.
	Image *memfs.Image
	// Layer is what that layer's space comes from; nil means that there is no
	// end of it.
	Layer *memfs.Share
	// Root is a file system of the container's own.
	Root *memfs.FS
	// ReadOnly makes the root read-only.
	ReadOnly bool
	// Privileged makes /sys and the cgroups writable.
	Privileged bool
	// ShmSize is the size of /dev/shm; 0 means 64 MiB.
	ShmSize int64
}

// Namespace is a container's mount namespace. Its methods are the runtime's,
// which sets it up before a process runs; processes have a [View] of it. The list is the mount
// table: order matters, as a later mount hides an earlier one at the same path.
type Namespace struct {
	m    *Machine
	c    *Container // who runs in it
	list []*mount   // oldest first
}

// mount is a line of the mount table. Those that all containers have alike are
// shared until one of them is written to. Thousands of containers have the same /proc, /dev and
// /sys, so those are one value for the machine.
type mount struct {
	path           string // canonical in the container
	source, fstype string
	opts           string // besides ro or rw; "" means relatime
	// ro is of the mount, not of what is mounted: the same files can be writable elsewhere.
	ro bool
	// shared says that others have this mount in their lists: it is copied before it changes.
	shared bool
	// What is mounted: files, or an image whose files come to be with the
	// first write, or what is made up when it is read.
	fs    *memfs.FS
	image *memfs.Image
	synth synthFS
	// bind says that it is a part of another file system; source is its path there.
	bind bool
	// size is a tmpfs's, in bytes; 0 is no limit.
	size  int64
	share *memfs.Share // of the disk, that what is written to image takes from
}

// synthFS is a file system whose files are made up when they are read. Both are called at each
// look, so what they return is of that moment.
type synthFS interface {
	// lookup returns what a clean path ("/" the top) leads to, nil if nothing.
	lookup(v *View, rel string) *synth
	// names lists a directory.
	names(v *View, rel string) []string
}

// View is a container's mount namespace as one process, or root, sees it. It is cheap: each
// process has one, and makes no copy of the table. A View without a process is root's, with no
// umask and all capabilities.
type View struct {
	ns *Namespace
	p  *Process
}

// Namespace returns the mount namespace that the View is of.
func (v *View) Namespace() *Namespace { return v.ns }

// root is the namespace as the runtime sees it.
func (ns *Namespace) root() *View { return &View{ns: ns} }

const (
	// /dev/shm and its options are what containerd mounts for a pod; sharing it is how containers
	// of a pod share memory.
	shmPath    = "/dev/shm"
	shmOptions = "nosuid,nodev,noexec,relatime,size=65536k"
	kernelFS   = "nosuid,nodev,noexec,relatime"
)

// tmpfsOptions are the mount options of a tmpfs of the kubelet's, which keeps
// it off the swap where the kernel can. The kubelet mounts secrets and memory volumes with noswap
// if the kernel is 6.4 or later (pkg/volume/emptydir, KEP-2400).
func (m *Machine) tmpfsOptions(size int64) string {
	out := "relatime"
	if size > 0 {
		out += ",size=" + strconv.FormatInt(size>>10, 10) + "k"
	}
	var major, minor int
	if n, _ := fmt.Sscanf(m.opts.Kernel, "%d.%d", &major, &minor); n == 2 && (major > 6 || major == 6 && minor >= 4) {
		out += ",noswap"
	}
	return out
}

// device is what is mounted, as mount(8) and df(1) name it. Of a bind the source is a path, but
// what mount(8) shows is the device that it is on.
func (m *Machine) device(x *mount) string {
	switch {
	case !x.bind:
		return x.source
	case x.path == shmPath:
		return "shm"
	case x.fstype == "tmpfs":
		return "tmpfs"
	}
	return m.opts.Device
}

// defaultMounts are what runc mounts in every container. The order, the options and the sources
// are those of runc's default specification, which mount(8) in a container prints.
func defaultMounts() []*mount {
	dev := deviceImage()
	shm := emptyImage(fs.ModeSticky | 0o777)
	out := []*mount{
		{path: "/proc", opts: kernelFS, source: "proc", fstype: "proc", synth: procFS{}},
		{path: "/dev", opts: "nosuid,size=65536k,mode=755", source: "tmpfs", fstype: "tmpfs", image: dev, size: 64 << 20},
		{path: "/dev/pts", opts: "nosuid,noexec,relatime,gid=5,mode=620,ptmxmode=666", source: "devpts", fstype: "devpts", image: emptyImage(0o755)},
		{path: "/dev/mqueue", opts: kernelFS, source: "mqueue", fstype: "mqueue", image: shm},
		{path: "/sys", opts: kernelFS, source: "sysfs", fstype: "sysfs", ro: true, synth: sysFS{}},
		{path: "/sys/fs/cgroup", opts: kernelFS, source: "cgroup", fstype: "cgroup", ro: true, synth: cgroupFS{}},
		{path: "/dev/shm", opts: shmOptions, source: "shm", fstype: "tmpfs", image: shm, size: 64 << 20},
	}
	for _, x := range out {
		// All containers of a machine use these values.
		x.shared = true
	}
	return out
}

// emptyImage is an empty directory: what a tmpfs begins as, until somebody
// writes to it. Frozen, it costs nothing until somebody writes, and then only for that container.
func emptyImage(mode fs.FileMode) *memfs.Image {
	f := memfs.New(memfs.Options{Tmpfs: []string{}})
	_ = f.Chmod("/", mode)
	return f.Freeze()
}

// NewView returns a mount namespace with the image at /, and /dev, /dev/shm,
// /proc and /sys as runc mounts them. What it returns is the runtime's View; processes get theirs
// when they start.
func (m *Machine) NewView(opts ViewOptions) *View {
	if m.mounts == nil {
		// Made once for the machine.
		m.mounts = defaultMounts()
	}
	ns := &Namespace{m: m, list: make([]*mount, 0, len(m.mounts)+4)}
	ns.list = append(ns.list, &mount{path: "/", source: "overlay", fstype: "overlay", ro: opts.ReadOnly, fs: opts.Root, image: opts.Image, share: opts.Layer})
	ns.list = append(ns.list, m.mounts...)
	for i, x := range ns.list {
		// Privileged containers may change cgroups and kernel settings, so /sys is writable to
		// them.
		if opts.Privileged && x.shared && x.ro {
			own := *x
			own.ro = false
			ns.list[i] = &own
		}
	}
	if opts.ShmSize > 0 {
		i := len(ns.list) - 1
		shm := *ns.list[i]
		shm.shared, shm.size = false, opts.ShmSize
		ns.list[i] = &shm
	}
	return &View{ns: ns}
}

// Bind mounts a file or directory of the node (symbolic links in hostPath are
// resolved now, on the node) at a path, whose parents are made if there are
// none. A volume's target on the node is fixed at the mount: renaming the directory later changes
// nothing, since Sub refers to the directory and not to its path.
func (ns *Namespace) Bind(containerPath string, hostFS *memfs.FS, hostPath string, ro bool) error {
	sub, err := hostFS.Sub(hostPath)
	if err != nil {
		return err
	}
	x := &mount{path: containerPath, source: hostPath, fstype: "ext4", ro: ro, fs: sub, bind: true}
	// A directory with a limit of its own is a tmpfs that the kubelet mounted.
	if size, _, ok := hostFS.Limit(hostPath); ok {
		x.fstype, x.opts = "tmpfs", ns.m.tmpfsOptions(size)
	}
	return ns.bind(x, sub.Top().Mode().IsDir())
}

// bind mounts what is not the container's own. A volume at /dev/shm replaces the default one,
// which is unmounted rather than hidden.
func (ns *Namespace) bind(x *mount, dir bool) error {
	if x.path == shmPath {
		x.opts = shmOptions
		ns.list = slices.DeleteFunc(ns.list, func(o *mount) bool { return o.path == shmPath })
	}
	return ns.mount(x, dir)
}

// Tmpfs mounts an empty tmpfs; size in bytes, 0 for no limit. Its mode is 1777, as that of a
// tmpfs without options.
func (ns *Namespace) Tmpfs(name string, size int64) error {
	return ns.mount(&mount{path: name, source: "tmpfs", fstype: "tmpfs", image: emptyImage(fs.ModeSticky | 0o777), size: size}, true)
}

// mount adds a mount; dir says that it is a directory. Mount points that the image lacks are made
// in the container's layer, as runc does; they stay there.
func (ns *Namespace) mount(x *mount, dir bool) error {
	root := ns.root()
	parent, base := path.Split(path.Clean("/" + x.path))
	if base != "" {
		ro := ns.list[0].ro
		ns.list[0].ro = false // runc makes mount points before it says read-only
		err := root.MkdirAll(parent, 0o755)
		ns.list[0].ro = ro
		if err != nil {
			return err
		}
	}
	// Links in the path lead where they lead in the container: a mount on a link is a mount on
	// its target.
	at, errno := root.resolve(x.path, true)
	if errno != 0 {
		return pathError("mount", x.path, errno)
	}
	if at.path == "/" {
		return pathError("mount", x.path, linux.EBUSY) // what is a root stays one
	}
	if at.exists() && at.mode().IsDir() != dir {
		return pathError("mount", x.path, linux.ENOTDIR)
	}
	x.path = at.path
	ns.list = append(ns.list, x)
	return nil
}

// Mount is a line of Mounts.
type Mount struct {
	// Path is where, Type what: overlay, tmpfs, proc, sysfs, cgroup, ext4 (a
	// bind of a node's path), devpts, mqueue.
	Path, Type, Source string
	// Options are the options besides ro or rw, joined by commas.
	Options  string
	ReadOnly bool
}

// Mounts lists the mounts, oldest first.
func (ns *Namespace) Mounts() []Mount {
	out := make([]Mount, len(ns.list))
	for i, x := range ns.list {
		opts := cmp.Or(x.opts, "relatime")
		out[i] = Mount{x.path, x.fstype, ns.m.device(x), opts, x.ro}
	}
	return out
}

// LayerUsage tells what the namespace's own layer holds: bytes on disk and
// inodes that the container wrote beside its mounts. The kubelet reports it as rootfs usage and
// evicts by it. A layer that nobody wrote to is nothing.
func (ns *Namespace) LayerUsage() (bytes, inodes int64) {
	root := ns.list[0]
	if root.fs == nil {
		return 0, 0
	}
	used := root.fs.Used()
	return used.Bytes, used.Inodes
}

// at returns the index of what is mounted at a canonical path, or -1. From the youngest, since
// that one is on top.
func (ns *Namespace) at(p string) int {
	for i := len(ns.list) - 1; i >= 0; i-- {
		if ns.list[i].path == p {
			return i
		}
	}
	return -1
}

// inside reports whether something is mounted at or below a path. It is asked before a directory
// is removed or moved at once.
func (ns *Namespace) inside(p string) bool {
	return slices.ContainsFunc(ns.list, func(x *mount) bool { return below(x.path, p) })
}

// below reports whether a clean path is dir or below it. Both paths are clean; a name that only
// begins alike does not count, which the slash makes sure of.
func below(p, dir string) bool {
	return dir == "/" || strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// files returns the file system of a mount for writing to it. It is the copy on write of a
// container: an image's tree is shared until here. nil is for what has no files to write, such as
// /proc.
func (ns *Namespace) files(i int) *memfs.FS {
	x := ns.list[i]
	if x.fs != nil {
		return x.fs
	}
	if x.image == nil {
		return nil
	}
	if x.shared {
		own := *x
		own.shared = false
		x = &own
		ns.list[i] = x
	}
	// The image's nodes stay shared; only what is changed gets nodes of its own.
	x.fs = memfs.NewFrom(memfs.Options{Loop: ns.m.l, Share: x.share}, x.image)
	if x.fstype == "tmpfs" {
		x.fs.LimitAll(x.size)
	}
	return x.fs
}

// top returns the directory (or file) that is mounted. Made-up mounts have no node: their place
// is made by lookup("/").
func (x *mount) top() memfs.Node {
	switch {
	case x.fs != nil:
		return x.fs.Top()
	case x.image != nil:
		return x.image.Top()
	}
	return memfs.Node{}
}

// rel is a canonical path in the container as the mount's file system has it. A file that is
// mounted is "/" in its file system as well.
func (x *mount) rel(p string) string {
	if x.path == "/" {
		return p
	}
	if p == x.path {
		return "/"
	}
	return p[len(x.path):]
}

// pointsIn lists the names of mount points right below a directory.
func (ns *Namespace) pointsIn(dir string) []string {
	var out []string
	for _, x := range ns.list {
		if x.path != "/" && path.Dir(x.path) == dir {
			out = append(out, path.Base(x.path))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// deviceImage is what runc puts into /dev. The names of the links are those that runc makes;
// /dev/core leads to what does not exist here.
func deviceImage() *memfs.Image {
	f := memfs.New(memfs.Options{Tmpfs: []string{}})
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		_ = f.Mknod("/"+name, fs.ModeDevice|fs.ModeCharDevice|0o666, name)
	}
	for _, l := range [][2]string{{"/proc/self/fd", "/fd"}, {"/proc/self/fd/0", "/stdin"}, {"/proc/self/fd/1", "/stdout"}, {"/proc/self/fd/2", "/stderr"}, {"pts/ptmx", "/ptmx"}, {"/proc/kcore", "/core"}} {
		_ = f.Symlink(l[0], l[1])
	}
	return f.Freeze()
}
