package eviction

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// observation is how much there was of a signal: bytes, inodes or processes.
type observation struct {
	available, capacity int64
	// at is the statistic's time in ns since the Unix epoch; 0: it does not say.
	at int64
}

// observations are what was seen in a pass. A signal whose statistics lack
// something is absent. They are few, and every node keeps its last ones.
type observations []observed

// observed is what was seen of one signal. A list of them is shorter than a
// map, and keeps its order.
type observed struct {
	signal Signal
	observation
}

// of returns what was seen of a signal.
func (o observations) of(s Signal) (observation, bool) {
	for i := range o {
		if o[i].signal == s {
			return o[i].observation, true
		}
	}
	return observation{}, false
}

// add notes a signal, of which the last statistic counts.
func (o *observations) add(s Signal, available, capacity int64, t metav1.Time) {
	entry := observed{s, observation{available, capacity, nanos(t)}}
	for i := range *o {
		if (*o)[i].signal == s {
			(*o)[i] = entry
			return
		}
	}
	*o = append(*o, entry)
}

// nanos is a statistic's time; 0 if it says none.
func nanos(t metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// mostObservations is how many signals there are of a node.
const mostObservations = 9

// observe reads the signals out of a summary (makeSignalObservations).
func observe(s *statsapi.Summary) observations {
	out := make(observations, 0, mostObservations)
	if m := s.Node.Memory; m != nil {
		out.memory(MemoryAvailable, m)
	}
	for i := range s.Node.SystemContainers {
		if c := &s.Node.SystemContainers[i]; c.Name == statsapi.SystemContainerPods && c.Memory != nil {
			out.memory(AllocatableMemoryAvailable, c.Memory)
		}
	}
	out.filesystem(NodeFsAvailable, NodeFsInodesFree, s.Node.Fs)
	if r := s.Node.Runtime; r != nil {
		out.filesystem(ImageFsAvailable, ImageFsInodesFree, r.ImageFs)
		out.filesystem(ContainerFsAvailable, ContainerFsInodesFree, r.ContainerFs)
	}
	if r := s.Node.Rlimit; r != nil && r.MaxPID != nil && r.NumOfRunningProcesses != nil {
		out.add(PIDAvailable, *r.MaxPID-*r.NumOfRunningProcesses, *r.MaxPID, r.Time)
	}
	return out
}

// memory adds what is left of memory. The working set counts as used, so what
// is there in all is the sum.
func (o *observations) memory(s Signal, m *statsapi.MemoryStats) {
	if m.AvailableBytes != nil && m.WorkingSetBytes != nil {
		o.add(s, int64(*m.AvailableBytes), int64(*m.AvailableBytes+*m.WorkingSetBytes), m.Time)
	}
}

// filesystem adds a file system's two signals.
func (o *observations) filesystem(bytes, inodes Signal, fs *statsapi.FsStats) {
	if fs == nil {
		return
	}
	o.pair(bytes, fs.AvailableBytes, fs.CapacityBytes, fs.Time)
	o.pair(inodes, fs.InodesFree, fs.Inodes, fs.Time)
}

// pair adds a signal, if both of its numbers are known: a threshold in percent
// needs the capacity.
func (o *observations) pair(s Signal, available, capacity *uint64, t metav1.Time) {
	if available != nil && capacity != nil {
		o.add(s, int64(*available), int64(*capacity), t)
	}
}

// podStats finds the statistics of a pod; nil: there are none.
type podStats func(pod *v1.Pod) *statsapi.PodStats

// statsOf is a podStats over a summary's pods.
func statsOf(pods []statsapi.PodStats) podStats {
	byUID := make(map[types.UID]*statsapi.PodStats, len(pods))
	for i := range pods {
		byUID[types.UID(pods[i].PodRef.UID)] = &pods[i]
	}
	return func(pod *v1.Pod) *statsapi.PodStats { return byUID[pod.UID] }
}
