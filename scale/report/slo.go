package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// SLO is a verdict on one of Kubernetes' scalability SLOs. It says what was
// measured even where it gives no verdict, so that a reader sees why. sig-scalability's SLOs hold
// for a cluster that keeps to the thresholds and over a day; a verdict here is on the run.
type SLO struct {
	// Name says what it is about: "Pod startup", "API: mutating calls", ...
	Name string
	// Objective is in words what is wanted.
	Objective string
	// Count is of how many pods or requests P99 is; without any there is no verdict.
	Count uint64
	// P99 is the 99th percentile; of API calls that of the worst of them, which Worst
	// names. Limit is what it must not exceed.
	P99, Limit time.Duration
	Worst      string
	Met        bool
	// Unmodelled says that nothing made API calls take time, so that there is no
	// verdict: there was no model of the server's load, and no fault.
	Unmodelled bool
}

// Verdict is "met", "missed", "no data" or "not modelled". The texts are those of slos.csv.
func (s *SLO) Verdict() string {
	switch {
	case s.Count == 0:
		return "no data"
	case s.Unmodelled:
		return "not modelled"
	case s.Met:
		return "met"
	}
	return "missed"
}

// The limits of the SLOs.
const (
	// Pod startup: 5 s; calls of single objects: 1 s; lists: 30 s, the SLO's bound for those of a
	// whole cluster (api_call_latency.md).
	startupLimit = 5 * time.Second
	callLimit    = time.Second
	listLimit    = 30 * time.Second
)

// slos judges the run by the SLOs that a simulation can say something about. Lists of a namespace
// have 5 s in the SLO; requests here don't tell their scope, so the wider bound stands for all.
func slos(r *Report) []SLO {
	start := SLO{
		Name: "Pod startup", Count: uint64(r.Startup.SLI.Count), P99: r.Startup.SLI.P99, Limit: startupLimit, Worst: "stateless, schedulable pods",
		Objective: "99th percentile of creation to observed running, without image pulls and init containers",
	}
	mutating := SLO{Name: "API: mutating calls", Limit: callLimit, Objective: "99th percentile of each verb and resource, of calls for single objects"}
	single := SLO{Name: "API: reads of one object", Limit: callLimit, Objective: "99th percentile of each resource"}
	lists := SLO{Name: "API: lists", Limit: listLimit, Objective: "99th percentile of each resource"}
	for _, c := range Calls(r.API) {
		switch {
		case isMutating(c.Verb) && c.Verb != "deletecollection": // of single objects
			mutating.take(&c)
		case c.Verb == "get":
			single.take(&c)
		case c.Verb == "list":
			lists.take(&c)
		}
	}
	out := []SLO{start, mutating, single, lists}
	for i := range out {
		s := &out[i]
		// Without a load model and without faults all API latencies are 0, and "met" would mean
		// nothing.
		s.Unmodelled = i > 0 && len(r.API.Levels) == 0 && s.P99 == 0
		s.Met = s.Count > 0 && !s.Unmodelled && s.P99 <= s.Limit
	}
	return out
}

// take has a call count: the SLO is about the worst of them. The SLO is for each resource and
// verb apart, so the worst of them decides.
func (s *SLO) take(c *Call) {
	n := c.Latency.Count
	if n == 0 {
		return
	}
	s.Count += n
	if p := c.Latency.Quantile(0.99); s.Worst == "" || p > s.P99 {
		s.P99, s.Worst = p, c.name()
	}
}

// isMutating reports whether a verb changes something.
func isMutating(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// name is "PATCH pods/status".
func (c *Call) name() string { return strings.ToUpper(c.Verb) + " " + c.Resource }

// Call sums up the requests of one verb and resource of all users. Users are merged: the SLO does
// not tell them apart.
type Call struct {
	Verb, Resource string
	// Total counts the requests, Errors those answered with a code of 400 or more or not at
	// all, Rejected those answered with 429.
	Total, Errors, Rejected uint64
	Latency                 apiserver.Histogram
	// Over counts the requests of each of the statistics' intervals.
	Over []uint64
}

// Calls sums up an API's statistics by verb and resource, the most frequent first. A code of 0 is
// a request without an answer, such as one that a fault swallowed.
func Calls(st *apiserver.Stats) []Call {
	var out []Call
	for i := range st.Requests {
		q := &st.Requests[i]
		n := slices.IndexFunc(out, func(c Call) bool { return c.Verb == q.Verb && c.Resource == q.Resource })
		if n < 0 {
			n = len(out)
			out = append(out, Call{Verb: q.Verb, Resource: q.Resource})
		}
		c := &out[n]
		c.Total += q.Total
		for _, code := range q.Codes {
			if code.Code == 0 || code.Code >= 400 {
				c.Errors += code.Count
			}
			if code.Code == 429 {
				c.Rejected += code.Count
			}
		}
		c.Latency.Merge(&q.Latency)
		if k := len(q.Over) - len(c.Over); k > 0 {
			c.Over = append(c.Over, make([]uint64, k)...)
		}
		for t := range q.Over {
			c.Over[t] += uint64(q.Over[t].Requests)
		}
	}
	// Equal counts stay in the statistics' order, which is fixed.
	slices.SortStableFunc(out, func(a, b Call) int { return cmp.Compare(b.Total, a.Total) })
	return out
}
