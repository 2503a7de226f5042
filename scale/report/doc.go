// Package report tells what a simulated cluster went through: how long pods took
// to start and in which part of it, whether Kubernetes' scalability SLOs were
// met, phases, restarts, evictions and node conditions over time, what the API
// had to do, and which nodes stand out. It comes as text, as CSV files, and as
// one HTML page with charts that needs no network.
//
// A [Collector] listens to the API's changes and to a few records of the trace.
// It sets no timer and draws nothing, so the run and its hash are what they were.
// What it keeps is 32 bytes per pod that was started, some more while a pod
// starts, and a fixed number of intervals; nothing per event or change.
//
// The SLOs are those of sig-scalability (kubernetes/community
// sig-scalability/slos/{pod_startup_latency,api_call_latency}.md).
//
// Collecting: collector.go, with pods.go (starts), ends.go (evictions), nodes.go,
// over.go (intervals) and startup.go (what is kept of a start). Summing up:
// build.go, slo.go, hot.go, summary.go. Writing: report.go, text.go, tables.go
// and tables_over.go for CSV, page.go for HTML, chart.go, draw.go and charts*.go for
// its pictures.
package report
