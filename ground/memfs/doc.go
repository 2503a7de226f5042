// Package memfs is the file system of one simulated node, in memory: static pod manifests, pod
// directories, logs, checkpoints. It belongs to the node's loop, so it takes no locks, and its
// calls take no virtual time.
//
// It exists because a node's files are part of what is simulated: a full disk evicts pods, a
// rotated log is renamed, a checkpoint survives a restart and a tmpfs does not. Real files would
// be slow, would need a clock of their own, and would outlive the run; and a hundred thousand
// pods would be a million of them. So the aim is to be like Linux in what can be seen, and small
// in what it takes: a node of 64 bytes, shared names, zeros that are not kept, images that are
// shared until written to.
//
// Calls, errors and messages are those of package os on Linux for a process of root: a
// *fs.PathError (or *os.LinkError for Rename and Symlink) around a syscall.Errno, which errors.Is
// matches with fs.ErrNotExist and the like. Modes are kept, not enforced, and there is no umask;
// names may have any length; a directory's size is 0. Paths are absolute, separated by slashes,
// and cleaned as path.Clean does, so ".." is taken by its letters.
//
// A node outlives its processes. What is on disk stays through a power cut; what is below a tmpfs
// ([FS.MountTmpfs]) does not.
//
// Trees can be shared: [FS.Freeze] makes an [Image], from which other file systems start
// ([NewFrom]) and own only what they change. [FS.Sub] is a part, as a bind mount shows it, and
// [Node] is for who walks a tree by himself. Long runs of zeros are not kept, though they count
// in [FS.Usage].
//
// A [Disk] is the space that file systems take ([Options.Share]), with totals kept by change; on
// a full one writing gives ENOSPC. A [Growth] takes what a curve says without anybody's writing
// it. What is on a tmpfs takes nothing of a disk.
//
// An empty directory takes 64 bytes and its name; well-known names are shared.
//
// Three types stand on each other: a volume (volume.go) is what all parts of a file system share,
// and speaks of nodes; a part (place.go) turns paths into places; FS (memfs.go, files.go,
// links.go, handle.go, owner.go, mount.go, watch.go) has the calls. cow.go is about images,
// sparse.go about contents, disk.go, growth.go and usage.go about space.
//
// Each call that changes something goes the same way, and in this order: walk finds the place,
// noSpace refuses before anything is touched, mine copies what is still an image's, then the
// change is made, resized books what it takes, and changed tells the watches.
package memfs
