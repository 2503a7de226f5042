package kernel

import (
	"cmp"

	"github.com/drydock-sim/drydock/fakecri/kernel/hostfs"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// Options configure a Machine.
type Options struct {
	// Loop is the node's loop. Required.
	Loop *loop.Loop
	// FS are the node's files. Required.
	FS *memfs.FS
	// Host, if any, are the files of the machine that the program runs on; its
	// /proc is what containers in the machine's namespaces see.
	Host hostfs.FS
	// Hostname is the node's, HostIP its address.
	Hostname, HostIP string
	// Memory is what the machine has, in bytes, CPUs how many cores. They show
	// in /proc only.
	Memory int64
	CPUs   int
	// MemoryUsed, if any, is what is used of Memory, for /proc/meminfo. Without
	// it that is what processes have taken.
	MemoryUsed func() int64
	// Grown, if any, is called when processes take more memory or become more.
	// It must not wait, and not end one.
	Grown func()
	// Disk is what Statfs says of the size, in bytes, of a disk without end (see
	// memfs.Disk). 0 means 100 GiB.
	Disk int64
	// Device is the disk's. Empty means /dev/vda1.
	Device string
	// BootTime is the time since the Unix epoch, in nanoseconds, at which
	// /proc/uptime is 0. 0 means when the machine was made.
	BootTime int64
	// CgroupV2 says which files /sys/fs/cgroup has.
	CgroupV2 bool
	// Kernel is the version that uname shows. Empty means 6.1.0.
	Kernel string
	// Remote, if any, answers for addresses that no sandbox of the node has.
	Remote func(ip string, port int) (Handler, bool)
	// Far, if any, is what lies beyond the machine.
	Far Far
	// OnListen, if any, is told of each port that is opened and closed. It
	// must not wait, and not open or close one.
	OnListen func(n *NetNS, port int, open bool)
}

// Machine is the kernel of one node.
type Machine struct {
	opts Options
	l    *loop.Loop
	// draws counts what /dev/urandom has given, so that each draw has a name of its own.
	draws uint64
	// pids is the node's own pid namespace and host its network namespace, which every process
	// and every container without one of their own is in.
	pids   PIDNamespace
	host   *NetNS
	nets   []*NetNS
	mounts []*mount // that every View has; see defaultMounts
	// fifos are the named pipes that are open: a FIFO's buffer belongs to the file, not to a
	// descriptor.
	fifos []*fifo
	// Paths are followed one at a time, and never wait, so one room does for all.
	walked []place // room for a walk along a path
	ports  int     // the last ephemeral port, counted

	memory    int64 // of all containers
	processes int   // that run
	cpu       cpuTime
}

// New returns a machine without processes.
func New(opts Options) *Machine {
	m := &Machine{opts: opts, l: opts.Loop}
	if m.opts.BootTime == 0 {
		m.opts.BootTime = m.l.UnixNano()
	}
	m.opts.Device = cmp.Or(m.opts.Device, "/dev/vda1")
	m.opts.Kernel = cmp.Or(m.opts.Kernel, "6.1.0")
	// A machine needs at least one, since /proc shows ranges of them.
	m.opts.CPUs = cmp.Or(m.opts.CPUs, 2)
	m.opts.Disk = cmp.Or(m.opts.Disk, 100<<30)
	// The node's namespace counts from firstHostPID, see PIDNamespace.add.
	m.pids.m = m
	m.host = &NetNS{m: m, ip: opts.HostIP}
	return m
}

// Loop returns the node's loop.
func (m *Machine) Loop() *loop.Loop { return m.l }

// FS returns the node's files.
func (m *Machine) FS() *memfs.FS { return m.opts.FS }

// Options returns what the machine was made with, with its defaults.
func (m *Machine) Options() *Options { return &m.opts }
