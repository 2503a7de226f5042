package report

import (
	"slices"
	"time"
)

// Phase is what the charts call the state of a pod: its phase, Pending in two. Order matters:
// code compares with Starting and Succeeded.
type Phase uint8

// The phases, in the order of a pod's life.
const (
	Unscheduled Phase = iota // Pending, without a node
	Starting                 // Pending, bound to a node
	Running
	Succeeded
	Failed
	Unknown
	phases
)

// String is the name in charts and, in snake case, in columns.
func (p Phase) String() string {
	return [...]string{"Unscheduled", "Starting", "Running", "Succeeded", "Failed", "Unknown"}[p]
}

// NodeState is what the charts count nodes by. A node can be in several. The three of condition
// Ready come first and exclude each other.
type NodeState uint8

// The states of nodes.
const (
	Ready          NodeState = iota // condition Ready is True
	NotReady                        // Ready is False
	ReadyUnknown                    // Ready is Unknown, or not there
	MemoryPressure                  // the condition is True, as the next two
	DiskPressure
	PIDPressure
	Unschedulable // spec.unschedulable
	nodeStates
)

// String is the name in charts and columns.
func (s NodeState) String() string {
	return [...]string{"Ready", "NotReady", "Unknown", "MemoryPressure", "DiskPressure", "PIDPressure", "Unschedulable"}[s]
}

// Eviction is the cause by which a pod was made to end before it would have. The names in String
// are part of the CSV files' columns.
type Eviction uint8

// The kinds of evictions: the reasons of the condition DisruptionTarget
// (k8s.io/api/core/v1 PodReason...), those of the kubelet told apart.
const (
	NodePressure        Eviction = iota // the kubelet's eviction manager
	KubeletPreemption                   // by the kubelet, for a critical pod
	NodeShutdown                        // by the kubelet
	SchedulerPreemption                 // PreemptionByScheduler
	TaintManager                        // DeletionByTaintManager
	EvictionAPI                         // EvictionByEvictionAPI
	PodGC                               // DeletionByPodGC
	OtherEviction
	evictions
)

// String is the name in charts and columns.
func (e Eviction) String() string {
	return [...]string{
		"Node pressure", "Kubelet preemption", "Node shutdown", "Scheduler preemption", "Taint", "Eviction API", "Pod GC", "Other",
	}[e]
}

// Counts is how often things happened in some span of time. Counts add up over intervals; Gauges
// don't.
type Counts struct {
	// Created, Scheduled, Started and Deleted count pods; Rejected those that a
	// kubelet did not admit.
	Created, Scheduled, Started, Deleted, Rejected uint64
	// Restarts and OOMKills count containers.
	Restarts, OOMKills uint64
	// Evictions count pods, by Eviction.
	Evictions [evictions]uint64
}

// Evicted sums up Evictions.
func (c *Counts) Evicted() (n uint64) {
	for _, e := range c.Evictions {
		n += e
	}
	return n
}

// add adds another span's counts.
func (c *Counts) add(o *Counts) {
	c.Created += o.Created
	c.Scheduled += o.Scheduled
	c.Started += o.Started
	c.Deleted += o.Deleted
	c.Rejected += o.Rejected
	c.Restarts += o.Restarts
	c.OOMKills += o.OOMKills
	for i := range c.Evictions {
		c.Evictions[i] += o.Evictions[i]
	}
}

// Gauges is how things are at a time. They go up and down with changes, so intervals in which
// nothing happens have the ones before.
type Gauges struct {
	// Pods count the pods by Phase; Terminating those among them that have a
	// deletionTimestamp.
	Pods        [phases]int64
	Terminating int64
	// Nodes count the nodes by NodeState.
	Nodes [nodeStates]int64
}

// Interval is what happened in one interval, and how things were at its end.
type Interval struct {
	Counts
	Gauges
}

// Intervals begin with a second and are doubled when there are too many.
const (
	// 720 is even, as widen wants, and 12 minutes of seconds.
	firstInterval = time.Second
	maxIntervals  = 720
)

// series is the intervals of a run. It never has more than maxIntervals: a run of
// a minute is shown by seconds, one of a week by quarters of an hour, and nobody
// has to know before.
type series struct {
	width time.Duration
	done  []Interval // those before the present one
	now   Interval
}

// at brings the series to a time: counts go to the interval that has it. Gauges
// are carried over into intervals in which nothing happens. It is called before each count with
// the present time. Times never go back.
func (s *series) at(t time.Duration) {
	for t >= s.width*time.Duration(len(s.done)+1) {
		s.done = append(s.done, s.now)
		s.now.Counts = Counts{}
		if len(s.done) == maxIntervals {
			s.widen()
		}
	}
}

// until returns the intervals up to now; the last is cut. What happens just when an
// interval ends is its own if the report ends there, too. The report ends on an interval's end
// more often than not: runs end at whole seconds.
func (s *series) until(now time.Duration) []Interval {
	out := append(slices.Clone(s.done), s.now)
	if n := len(out) - 2; n >= 0 && now%s.width == 0 {
		out[n].Counts.add(&s.now.Counts)
		out[n].Gauges = s.now.Gauges
		out = out[:n+1]
	}
	return out
}

// widen makes each two intervals one. Counts of the two are added; of gauges the
// later one stays. It halves in place.
func (s *series) widen() {
	for i := 0; i < len(s.done); i += 2 {
		both := s.done[i+1]
		both.Counts.add(&s.done[i].Counts)
		s.done[i/2] = both
	}
	s.done = s.done[:len(s.done)/2]
	s.width *= 2
}
