package scenarios

import (
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "k8s.io/api/core/v1"
)

// Topology is where a machine's CPUs and memory are. CPUs are numbered as Linux numbers them: first one thread of each core, socket by socket, then the next.
type Topology struct {
	// How many sockets there are. One unless said.
	Sockets int `json:"sockets,omitempty"`
	// How many cores a socket has. One unless said.
	CoresPerSocket int `json:"coresPerSocket,omitempty"`
	// How many logical CPUs a core has. One unless said.
	ThreadsPerCore int `json:"threadsPerCore,omitempty"`
	// How many NUMA nodes the machine has. As many as `numa` lists or, unless said, as there are sockets.
	NUMANodes int `json:"numaNodes,omitempty"`
	// How many last-level caches the machine has, each with as many cores. One for each NUMA node unless said.
	UncoreCaches int `json:"uncoreCaches,omitempty"`
	// The NUMA nodes' memory. The capacity in equal shares unless said.
	NUMA []NUMANode `json:"numa,omitempty"`
}

// NUMANode is a NUMA node's memory.
type NUMANode struct {
	// How much memory it has, with what is set aside for huge pages.
	Memory *resource.Quantity `json:"memory,omitempty"`
	// What is set aside for huge pages, by their resource: `hugepages-2Mi: 1Gi`.
	HugePages v1.ResourceList `json:"hugepages,omitempty"`
	// How far it is to each NUMA node, as the firmware tells: 10 to itself. 10 and 20 unless said.
	Distances []int `json:"distances,omitempty"`
}
