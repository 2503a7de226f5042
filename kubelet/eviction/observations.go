package eviction

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// observation is how much there was of a signal: bytes, inodes or processes.
type observation struct {
	available, capacity int64
	// time is the statistic's; zero: it does not say.
	time time.Time
}

// observations are what was seen in a pass. A signal whose statistics lack
// something is absent.
type observations map[Signal]observation

// observe reads the signals out of a summary (makeSignalObservations).
func observe(s *statsapi.Summary) observations {
	out := observations{}
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
		out[PIDAvailable] = observation{*r.MaxPID - *r.NumOfRunningProcesses, *r.MaxPID, r.Time.Time}
	}
	return out
}

func (o observations) memory(s Signal, m *statsapi.MemoryStats) {
	if m.AvailableBytes != nil && m.WorkingSetBytes != nil {
		o[s] = observation{int64(*m.AvailableBytes), int64(*m.AvailableBytes + *m.WorkingSetBytes), m.Time.Time}
	}
}

func (o observations) filesystem(bytes, inodes Signal, fs *statsapi.FsStats) {
	if fs == nil {
		return
	}
	o.pair(bytes, fs.AvailableBytes, fs.CapacityBytes, fs.Time)
	o.pair(inodes, fs.InodesFree, fs.Inodes, fs.Time)
}

func (o observations) pair(s Signal, available, capacity *uint64, t metav1.Time) {
	if available != nil && capacity != nil {
		o[s] = observation{int64(*available), int64(*capacity), t.Time}
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
