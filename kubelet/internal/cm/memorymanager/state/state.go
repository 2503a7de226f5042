// Package state keeps what memory of which NUMA nodes belongs to which
// containers, and its checkpoint. It mirrors upstream's
// pkg/kubelet/cm/memorymanager/state; the names of its types count in the
// checksum.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checksum"
)

// File is the name of the checkpoint in the kubelet's root directory.
const File = "memory_manager_state"

// MemoryTable is one type of memory of a NUMA node, in bytes.
type MemoryTable struct {
	TotalMemSize   uint64 `json:"total"`
	SystemReserved uint64 `json:"systemReserved"`
	Allocatable    uint64 `json:"allocatable"`
	Reserved       uint64 `json:"reserved"` // by containers
	Free           uint64 `json:"free"`
}

// NUMANodeState is a NUMA node.
type NUMANodeState struct {
	// NumberOfAssignments counts blocks that are on the node.
	NumberOfAssignments int                              `json:"numberOfAssignments"`
	MemoryMap           map[v1.ResourceName]*MemoryTable `json:"memoryMap"`
	// Cells are the nodes that blocks are spread over which are on this one; it
	// alone if there are none.
	Cells []int `json:"cells"`
}

// NUMANodeMap are the NUMA nodes by ID.
type NUMANodeMap map[int]*NUMANodeState

// Block is memory of one type that a container has.
type Block struct {
	NUMAAffinity []int           `json:"numaAffinity"`
	Type         v1.ResourceName `json:"type"`
	Size         uint64          `json:"size"` // bytes
}

// ContainerMemoryAssignments are the blocks by pod UID and container.
type ContainerMemoryAssignments map[string]map[string][]Block

// MemoryManagerCheckpoint is the content of the file.
type MemoryManagerCheckpoint struct {
	PolicyName   string                     `json:"policyName"`
	MachineState NUMANodeMap                `json:"machineState"`
	Entries      ContainerMemoryAssignments `json:"entries,omitempty"`
	Checksum     checksum.Checksum          `json:"checksum"`
}

// State is what memory belongs to which containers. Who writes to its maps calls
// Store.
type State struct {
	Machine NUMANodeMap
	Entries ContainerMemoryAssignments
	files   checkpointmanager.FS
	file    string
	policy  string
}

// New takes over what the checkpoint in a directory says, or begins one. nil
// files: there is none. The error is upstream's.
func New(files checkpointmanager.FS, dir, policy string) (*State, error) {
	s := &State{Machine: NUMANodeMap{}, Entries: ContainerMemoryAssignments{}, files: files, file: path.Join(dir, File), policy: policy}
	if files == nil {
		return s, nil
	}
	c := MemoryManagerCheckpoint{MachineState: NUMANodeMap{}, Entries: ContainerMemoryAssignments{}}
	err := checkpointmanager.Read(files, s.file, &c, &c.Checksum)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, s.Store()
	case err == nil && c.PolicyName != policy:
		err = fmt.Errorf("configured policy %q differs from state checkpoint policy %q", policy, c.PolicyName)
	}
	if err != nil {
		return nil, fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the memory manager checkpoint file %q before restarting Kubelet", err, s.file)
	}
	s.Machine, s.Entries = c.MachineState, c.Entries
	return s, nil
}

// Store writes the checkpoint.
func (s *State) Store() error {
	if s.files == nil {
		return nil
	}
	c := MemoryManagerCheckpoint{PolicyName: s.policy, MachineState: s.Machine, Entries: s.Entries}
	return checkpointmanager.Write(s.files, s.file, &c, &c.Checksum)
}

// Blocks are those of a container; nil: it has none.
func (s *State) Blocks(pod, container string) []Block { return s.Entries[pod][container] }

// Set gives a container its blocks.
func (s *State) Set(pod, container string, blocks []Block) {
	if s.Entries[pod] == nil {
		s.Entries[pod] = map[string][]Block{}
	}
	s.Entries[pod][container] = blocks
}

// Delete drops a container's blocks.
func (s *State) Delete(pod, container string) {
	delete(s.Entries[pod], container)
	if len(s.Entries[pod]) == 0 {
		delete(s.Entries, pod)
	}
}

// Nodes are the IDs of the NUMA nodes, ascending.
func (m NUMANodeMap) Nodes() []int {
	out := make([]int, 0, len(m))
	for id := range m { //drydock:unordered sorted below
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
