// Package scale runs large clusters: what `drydock scale` does. It makes the nodes and feeds the
// cluster with pods, from one of
//
//   - a Workload: classes of pods with stated distributions of requests, usage, lifetimes and arrivals; the default is one class of idle web servers;
//   - a Trace: a CSV file of pods, each with its arrival, requests, usage and lifetime;
//   - a Snapshot: the nodes and pods of a real cluster, as kubectl prints them.
//
// A run has three phases: the nodes register and become ready; start-up, in which the pods wanted
// at first are created and start; and the time asked for, in which pods arrive, end and are
// replaced. Phases are bounded in time, and one that doesn't come to its end is told of and left.
//
// Every draw is a hash of the seed, the pod's name and what is drawn, so the same Config gives
// the same run on any number of cores. There is no generator of random numbers whose state the
// order of events would decide.
//
// A hundred thousand nodes and a million pods decide how things are done: pods that ask for the
// same are stamped from one template and share a spec; what is counted is counted change by
// change, never by a look at all pods; and what is kept of each pod is a few bytes or nothing.
//
// A reading order: config.go says what a run is, run.go drives it, counts.go and result.go say
// what came of it. The three sources are feeds (the interface is in run.go): generator.go with
// workload.go, distribution.go and controllers.go; trace_feed.go with trace.go and
// trace_openb.go; snapshot_feed.go with snapshot.go, whose errors with positions are in
// snapshot_errors.go. Package report is the report.
package scale
