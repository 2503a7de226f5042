// Package scale runs large clusters: what `drydock scale` does. It makes the
// nodes and feeds the cluster with pods, from one of
//
//   - a Workload: classes of pods with stated distributions of requests, usage,
//     lifetimes and arrivals; the default is one class of idle web servers;
//   - a Trace: a CSV file of pods, each with its arrival, requests, usage and
//     lifetime;
//   - a Snapshot: the nodes and pods of a real cluster, as kubectl prints them.
//
// A run has three phases: the nodes register and become ready; start-up, in which
// the pods wanted at first are created and start; and the time asked for, in
// which pods arrive, end and are replaced.
//
// Every draw is a hash of the seed, the pod's name and what is drawn, so the same
// Config gives the same run on any number of cores.
//
// config.go says what a run is, run.go drives it, counts.go and result.go say
// what came of it. The three sources are feeds: generator.go with workload.go,
// distribution.go and controllers.go; trace_feed.go with trace.go and
// trace_openb.go; snapshot_feed.go with snapshot.go. Package report is the
// report.
package scale
