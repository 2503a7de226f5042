// Package stats says what pods and the node use. It mirrors upstream's
// pkg/kubelet/stats (the provider that asks the CRI, and cAdvisor for the rest)
// and pkg/kubelet/server/stats (volumes, the summary) at v1.36.
package stats

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Machine is what the kubelet asks of the machine for what upstream has
// cAdvisor, procfs and statfs. Its methods may wait, and what they return is the
// caller's.
type Machine interface {
	// Memory is the root cgroup's: AvailableBytes is what the machine has less
	// the working set.
	Memory(ctx context.Context) (*statsapi.MemoryStats, error)
	// CPU is the root cgroup's.
	CPU(ctx context.Context) (*statsapi.CPUStats, error)
	// Swap of the machine; none is 0 of 0 bytes.
	Swap(ctx context.Context) (*statsapi.SwapStats, error)
	// IO is the root cgroup's.
	IO(ctx context.Context) (*statsapi.IOStats, error)
	// Network are the machine's interfaces; nil if nobody counts there.
	Network(ctx context.Context) (*statsapi.NetworkStats, error)
	// Cgroup is the usage of a cgroup by its path ("/kubepods", or with the
	// systemd driver "/kubepods.slice"); nil if there is none, or if nobody
	// counts there.
	Cgroup(ctx context.Context, path string) (*Cgroup, error)
	// Created is when a cgroup was made; "/" is the root, there since the boot. Zero
	// if there is none.
	Created(ctx context.Context, path string) (metav1.Time, error)
	// Filesystem is that on which a path is; an error if the path is not there.
	Filesystem(ctx context.Context, path string) (*Filesystem, error)
	// PIDs are how many processes there can be and are; nil if nobody knows.
	PIDs(ctx context.Context) (*statsapi.RlimitStats, error)
}

// Cgroup is what the processes below a cgroup use. What is nil is not known.
type Cgroup struct {
	CPU    *statsapi.CPUStats
	Memory *statsapi.MemoryStats
	Swap   *statsapi.SwapStats
	IO     *statsapi.IOStats
	// Processes counts them.
	Processes *uint64
}

// Filesystem is a file system of the node.
type Filesystem struct {
	// Device tells file systems apart.
	Device string
	statsapi.FsStats
}

// Watcher is a Machine that can tell beforehand that nothing will run low, as a
// simulated one can: then nobody has to look.
type Watcher interface {
	// Watch has changed called once, when there may from now on be less of
	// something than floor says, and forgets any earlier Watch. It returns
	// false, and calls nothing, if there may already. changed must not wait.
	Watch(floor Floor, changed func()) bool
}

// Floor are the amounts available below which somebody wants to know: bytes,
// inodes, processes. 0 means that nobody does.
type Floor struct {
	Memory, PodsMemory              int64
	RootBytes, RootInodes           int64
	ImageBytes, ImageInodes         int64
	ContainerBytes, ContainerInodes int64
	PIDs                            int64
}
