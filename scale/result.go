package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Result is what a run came to. Virtual times are since the start; wall times are
// 0 without a clock. It is complete also when the run failed or was stopped, as far as it got.
type Result struct {
	Seed uint64
	// Interrupted tells that the run was stopped before its end.
	Interrupted bool
	// Settled tells that no wanted pod was pending when start-up ended.
	Settled bool
	Nodes   int
	// Ready counts the nodes that are ready at the end; Wanted the pods wanted at
	// first; Created the pods that were created, Deleted those that are gone, in
	// all; Started those that left Pending, rejected ones left out; Ended those that
	// succeeded or failed.
	Ready, Wanted, Created  int
	Started, Ended, Deleted uint64
	Restarts                uint64
	// Pods are those at the end.
	Pods Pods
	// Virtual is how long the run was; NodesReadyAt when start-up began,
	// StartedAt when it ended (0: it did not), StartedPods what started meanwhile.
	Virtual, NodesReadyAt, StartedAt time.Duration
	StartedPods                      uint64
	Wall                             Wall
	// Requests are the API's, Leases, PodWrites, NodeWrites and Events its
	// writes.
	Requests, Leases, PodWrites, NodeWrites, Events uint64
	Syncs, Resyncs, Probes                          uint64
	Steps, Records                                  uint64
	// Hash is that of the whole trace.
	Hash uint64
	// Refused counts pods that the API refused; Errors has the first.
	Refused  int
	Errors   []string
	Warnings []string
	// Pending says why pods are pending at the end, with how many, the most frequent reason first.
	Pending []string

	// steadyFrom differs from StartedAt only when start-up did not end.
	steadyFrom time.Duration
}

// Wall is where the wall clock's time went. It depends on the machine and is no part of the hash.
type Wall struct {
	// Setup is making the nodes, Startup from the first virtual second until all
	// wanted pods run, Steady the rest.
	Setup, Startup, Steady time.Duration
}

// Total is the sum.
func (w Wall) Total() time.Duration { return w.Setup + w.Startup + w.Steady }

// finish reads what the run came to. It is called also when the run failed. Counters are read
// from the cluster once; the collectors go on until then.
func (r *driver) finish(ctx context.Context) {
	c, res := r.cluster, r.result
	r.phase = PhaseDone
	// The last lap belongs to start-up if that never ended.
	if left := r.lap(); r.result.StartedAt == 0 {
		res.Wall.Startup += left
	}
	res.Interrupted = ctx.Err() != nil
	res.Virtual = c.Now()
	res.Pending = r.pendingReasons()
	res.Ready, res.Pods = r.counts.ready, r.counts.pods
	res.Started, res.Ended, res.Deleted, res.Restarts = r.counts.started, r.counts.ended, r.counts.deleted, r.counts.restarts
	res.Requests = c.API().Requests()
	res.Leases, res.PodWrites, res.NodeWrites, res.Events = c.Writes()
	res.Syncs, res.Resyncs = c.Syncs()
	res.Probes = c.Probes()
	res.Steps, res.Records, res.Hash = c.Steps(), c.RecordCount(), c.Hash()
}

// StartsPerSecond is how many pods started by wall second of start-up; 0:
// unknown.
func (r *Result) StartsPerSecond() float64 {
	return per(float64(r.StartedPods), r.Wall.Startup)
}

// NodeSecondsPerSecond is nodes times virtual seconds by wall seconds: of the
// whole run, and of its steady phase. 0: unknown.
func (r *Result) NodeSecondsPerSecond() (all, steady float64) {
	all = per(float64(r.Nodes)*r.Virtual.Seconds(), r.Wall.Total())
	if r.StartedAt > 0 {
		steady = per(float64(r.Nodes)*(r.Virtual-r.steadyFrom).Seconds(), r.Wall.Steady)
	}
	return all, steady
}

// per is a rate per second; 0 where no time has passed.
func per(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}

// MarshalJSON writes times as seconds and the hash as 16 hexadecimal digits. The fields' names
// are what scripts read; docs/scale.md has them. The hash is text, since JSON numbers lose digits
// beyond 53 bits.
func (r *Result) MarshalJSON() ([]byte, error) {
	all, steady := r.NodeSecondsPerSecond()
	type wall struct {
		SetupSeconds   float64 `json:"setupSeconds"`
		StartupSeconds float64 `json:"startupSeconds"`
		SteadySeconds  float64 `json:"steadySeconds"`
	}
	return json.Marshal(struct {
		Seed                       uint64   `json:"seed"`
		Interrupted                bool     `json:"interrupted"`
		Settled                    bool     `json:"settled"`
		Nodes                      int      `json:"nodes"`
		ReadyNodes                 int      `json:"readyNodes"`
		PodsWanted                 int      `json:"podsWanted"`
		PodsCreated                int      `json:"podsCreated"`
		PodsStarted                uint64   `json:"podsStarted"`
		PodsEnded                  uint64   `json:"podsEnded"`
		PodsDeleted                uint64   `json:"podsDeleted"`
		PodsRefused                int      `json:"podsRefused"`
		Restarts                   uint64   `json:"restarts"`
		Pods                       Pods     `json:"pods"`
		VirtualSeconds             float64  `json:"virtualSeconds"`
		NodesReadyAtSeconds        float64  `json:"nodesReadyAtSeconds"`
		StartedAtSeconds           float64  `json:"startedAtSeconds"`
		APIRequests                uint64   `json:"apiRequests"`
		LeasesRenewed              uint64   `json:"leasesRenewed"`
		PodWrites                  uint64   `json:"podWrites"`
		NodeWrites                 uint64   `json:"nodeWrites"`
		Events                     uint64   `json:"events"`
		Syncs                      uint64   `json:"syncs"`
		Resyncs                    uint64   `json:"resyncs"`
		ProbesRun                  uint64   `json:"probesRun"`
		Steps                      uint64   `json:"steps"`
		Records                    uint64   `json:"records"`
		Hash                       string   `json:"hash"`
		Wall                       wall     `json:"wall"`
		StartsPerSecond            float64  `json:"startsPerSecond"`
		NodeSecondsPerSecond       float64  `json:"nodeSecondsPerSecond"`
		SteadyNodeSecondsPerSecond float64  `json:"steadyNodeSecondsPerSecond"`
		Errors                     []string `json:"errors,omitempty"`
		Warnings                   []string `json:"warnings,omitempty"`
		Pending                    []string `json:"pending,omitempty"`
	}{
		r.Seed, r.Interrupted, r.Settled, r.Nodes, r.Ready, r.Wanted, r.Created, r.Started, r.Ended, r.Deleted, r.Refused, r.Restarts, r.Pods,
		r.Virtual.Seconds(), r.NodesReadyAt.Seconds(), r.StartedAt.Seconds(), r.Requests, r.Leases, r.PodWrites, r.NodeWrites, r.Events,
		r.Syncs, r.Resyncs, r.Probes, r.Steps, r.Records, fmt.Sprintf("%016x", r.Hash),
		wall{r.Wall.Setup.Seconds(), r.Wall.Startup.Seconds(), r.Wall.Steady.Seconds()},
		r.StartsPerSecond(), all, steady, r.Errors, r.Warnings, r.Pending,
	})
}
