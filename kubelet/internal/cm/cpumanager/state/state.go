// Package state keeps which CPUs belong to which containers, and its
// checkpoint. It mirrors upstream's pkg/kubelet/cm/cpumanager/state.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/cpuset"

	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager"
	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checksum"
)

// File is the name of the checkpoint in the kubelet's root directory.
const File = "cpu_manager_state"

// CPUManagerCheckpoint is the content of the file; the type's name counts in the
// checksum.
type CPUManagerCheckpoint struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries,omitempty"`
	Checksum      checksum.Checksum            `json:"checksum"`
}

// State is which CPUs belong to which containers.
type State struct {
	files   checkpointmanager.FS
	file    string
	policy  string
	shared  cpuset.CPUSet
	entries map[types.UID]map[string]cpuset.CPUSet
}

// New takes over what the checkpoint in a directory says, or begins one. nil
// files: there is none. The error is upstream's.
func New(files checkpointmanager.FS, dir, policy string) (*State, error) {
	s := &State{files: files, file: path.Join(dir, File), policy: policy, entries: map[types.UID]map[string]cpuset.CPUSet{}}
	if files == nil {
		return s, nil
	}
	c := CPUManagerCheckpoint{Entries: map[string]map[string]string{}} // one that is nil has another checksum
	err := checkpointmanager.Read(files, s.file, &c, &c.Checksum)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, s.Store()
	case err == nil:
		err = s.restore(&c)
	}
	if err != nil {
		return nil, fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the CPU manager checkpoint file %q before restarting Kubelet", err, s.file)
	}
	return s, nil
}

func (s *State) restore(c *CPUManagerCheckpoint) error {
	if c.PolicyName != s.policy {
		return fmt.Errorf("configured policy %q differs from state checkpoint policy %q", s.policy, c.PolicyName)
	}
	var err error
	if s.shared, err = cpuset.Parse(c.DefaultCPUSet); err != nil {
		return fmt.Errorf("could not parse default cpu set %q: %w", c.DefaultCPUSet, err)
	}
	for _, pod := range sets.List(sets.KeySet(c.Entries)) {
		for _, name := range sets.List(sets.KeySet(c.Entries[pod])) {
			text := c.Entries[pod][name]
			set, err := cpuset.Parse(text)
			if err != nil {
				return fmt.Errorf("could not parse cpuset %q for container %q in pod %q: %w", text, name, pod, err)
			}
			s.put(types.UID(pod), name, set)
		}
	}
	return nil
}

// Store writes the checkpoint. Who changes the state calls it.
func (s *State) Store() error {
	if s.files == nil {
		return nil
	}
	c := CPUManagerCheckpoint{PolicyName: s.policy, DefaultCPUSet: s.shared.String(), Entries: make(map[string]map[string]string, len(s.entries))}
	for pod, list := range s.entries { //drydock:unordered fills a map
		out := make(map[string]string, len(list))
		for name, set := range list { //drydock:unordered fills a map
			out[name] = set.String()
		}
		c.Entries[string(pod)] = out
	}
	return checkpointmanager.Write(s.files, s.file, &c, &c.Checksum)
}

// Default is the set of the containers that have none of their own.
func (s *State) Default() cpuset.CPUSet { return s.shared }

// SetDefault changes it.
func (s *State) SetDefault(set cpuset.CPUSet) { s.shared = set }

// Get returns a container's own set.
func (s *State) Get(pod types.UID, container string) (set cpuset.CPUSet, ok bool) {
	set, ok = s.entries[pod][container]
	return set, ok
}

// GetOrDefault returns the set that a container runs in.
func (s *State) GetOrDefault(pod types.UID, container string) cpuset.CPUSet {
	if set, ok := s.Get(pod, container); ok {
		return set
	}
	return s.shared
}

// Set gives a container a set of its own.
func (s *State) Set(pod types.UID, container string, set cpuset.CPUSet) { s.put(pod, container, set) }

func (s *State) put(pod types.UID, container string, set cpuset.CPUSet) {
	if s.entries[pod] == nil {
		s.entries[pod] = map[string]cpuset.CPUSet{}
	}
	s.entries[pod][container] = set
}

// Delete drops a container's set.
func (s *State) Delete(pod types.UID, container string) {
	delete(s.entries[pod], container)
	if len(s.entries[pod]) == 0 {
		delete(s.entries, pod)
	}
}

// Containers are those of a pod that have a set of their own, by name.
func (s *State) Containers(pod types.UID) []string { return sets.List(sets.KeySet(s.entries[pod])) }

// Pods are those with containers that have a set of their own, by UID.
func (s *State) Pods() []types.UID { return sets.List(sets.KeySet(s.entries)) }

// Len returns the number of pods that Pods returns.
func (s *State) Len() int { return len(s.entries) }
