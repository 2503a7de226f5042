package report

import (
	"slices"
	"time"
)

// Startup tells how long pods took to start. Percentiles are of what was kept, which is
// everything up to Options.MaxPods starts. The three unexported fields are what charts and
// starts.csv are made of.
type Startup struct {
	// Pods counts the pods that started; Sampled those that the percentiles are of.
	Pods, Sampled int
	// Total is from a pod's creation until a watcher has seen it run. SLI is the same
	// without image pulls and init containers, of the pods that the SLO is about:
	// stateless ones that could be scheduled as they came.
	Total, SLI Percentiles
	// Parts are the parts of Total.
	Parts [parts]Percentiles
	// Over has the percentiles of SLI of the pods created in each of some equal spans
	// of Width.
	Width time.Duration
	Over  []Percentiles

	// Waiting counts the pods that were on their way at the end.
	Waiting int

	starts       []start
	totals, slis []time.Duration // sorted
}

// Percentiles sum up some durations. With a Count of 0 all are 0 and nothing should be shown.
type Percentiles struct {
	Count                    int
	Mean, P50, P90, P99, Max time.Duration
}

// percentilesOf sorts the durations. A percentile is the least duration that such
// a share does not exceed. It is the nearest-rank method: every percentile is a
// duration that occurred. It sorts in place. Interpolation, which spreadsheets use, would show a
// latency that no pod had.
func percentilesOf(d []time.Duration) (p Percentiles) {
	p.Count = len(d)
	if p.Count == 0 {
		return p
	}
	slices.Sort(d)
	var sum time.Duration
	for _, x := range d {
		sum += x
	}
	// The smallest index i with i+1 >= q% of len(d), in whole numbers.
	rank := func(q int) time.Duration { return d[max((len(d)*q+99)/100-1, 0)] }
	p.Mean, p.P50, p.P90, p.P99, p.Max = sum/time.Duration(len(d)), rank(50), rank(90), rank(99), d[len(d)-1]
	return p
}

// Node tells of one node. Counters go over the whole run, Pods is at its end.
type Node struct {
	Name string
	// Pods counts the pods bound to it at the end of the report's time that have not ended.
	Pods int
	// Started, Evicted and Rejected count pods, Restarts and OOMKills containers.
	Started, Evicted, Rejected, Restarts, OOMKills uint64
	// Outages counts how often it was no longer Ready, NotReady is for how long in all.
	Outages  uint64
	NotReady time.Duration
	// StartupP99 is of Startup.Total on this node; 0 when no pod started.
	StartupP99 time.Duration
}

// Report tells what happened so far. The collector can go on. It copies what it takes, so the two
// share nothing.
func (k *Collector) Report() *Report {
	now := k.c.Now()
	k.over.at(now)
	r := &Report{
		Title: k.opts.Title, Facts: slices.Clone(k.opts.Facts), For: now,
		Interval: k.over.width, Over: k.over.until(now),
		// Stats makes a copy as well.
		API:      k.c.API().Stats(),
		Kubelets: k.c.KubeletSeries(),
	}
	for i := range r.Over {
		r.Totals.add(&r.Over[i].Counts)
	}
	r.Startup = k.startup(now)
	r.Nodes = k.nodesAt(now, r.Startup.starts)
	r.Devices = k.devicesAt(now)
	r.SLOs = slos(r)
	return r
}

// startup sums up the starts, those whose records may still come included. Starts wait for
// records of the trace, which come once a virtual second; those that were seen running are
// counted all the same, with what is known.
func (k *Collector) startup(now time.Duration) Startup {
	s := Startup{Pods: k.starts.seen, starts: slices.Clone(k.starts.list), Waiting: len(k.pending)}
	for _, key := range k.running {
		if x := k.pending[key]; x != nil && x.seen > 0 {
			s.starts = append(s.starts, x.start())
			s.Pods++
			s.Waiting--
		}
	}
	s.Sampled = len(s.starts)
	var d []time.Duration
	of := func(fn func(*start) (time.Duration, bool)) Percentiles {
		d = make([]time.Duration, 0, len(s.starts))
		for i := range s.starts {
			if v, ok := fn(&s.starts[i]); ok {
				d = append(d, v)
			}
		}
		return percentilesOf(d)
	}
	for p := range parts {
		s.Parts[p] = of(func(x *start) (time.Duration, bool) {
			// A pod without records has no parts but scheduling, and its whole time would distort
			// Containers.
			return time.Duration(x.parts[p]) * tick, x.node&untold == 0 || p == Scheduling
		})
	}
	s.Total = of(func(x *start) (time.Duration, bool) { return x.total(), true })
	s.totals = d
	s.SLI = of(func(x *start) (time.Duration, bool) { return x.sli(), x.counts() })
	s.slis = d
	s.overTime(now)
	return s
}

// startupSpans is how many spans Startup.Over has at most. So many points a chart of that width
// can tell apart.
const startupSpans = 60

// overTime makes the percentiles by time of creation, over at most startupSpans
// spans. Spans are by creation, not by start: a pod created in a bad moment shows there, even if
// it started minutes later.
func (s *Startup) overTime(now time.Duration) {
	s.Width = max((now / startupSpans).Round(time.Second), time.Second)
	spans := make([][]time.Duration, int(now/s.Width)+1)
	for i := range s.starts {
		x := &s.starts[i]
		if x.counts() {
			n := min(int(x.at()/s.Width), len(spans)-1)
			spans[n] = append(spans[n], x.sli())
		}
	}
	for _, d := range spans {
		s.Over = append(s.Over, percentilesOf(d))
	}
}

// nodesAt is what is told of each node, outages that go on at now included. The nodes are in the
// order in which the collector met them, which start.node refers to.
func (k *Collector) nodesAt(now time.Duration, starts []start) []Node {
	took := make([][]time.Duration, len(k.nodes))
	for i := range starts {
		n := starts[i].on()
		took[n] = append(took[n], starts[i].total())
	}
	out := make([]Node, len(k.nodes))
	for i := range k.nodes {
		x := &k.nodes[i]
		n := Node{
			Name: x.name, Started: x.started, Evicted: x.evicted, Rejected: x.rejected, Restarts: x.restarts, OOMKills: x.oomKills,
			Outages: x.outages, NotReady: x.down, StartupP99: percentilesOf(took[i]).P99,
		}
		if x.notReady {
			n.NotReady += now - x.since
		}
		for _, p := range k.c.Store().PodsOnNode(x.name) {
			if phaseOf(p) < Succeeded {
				n.Pods++
			}
		}
		out[i] = n
	}
	return out
}
