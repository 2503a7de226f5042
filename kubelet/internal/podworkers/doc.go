// Package podworkers keeps one worker per pod, which brings the pod to what its
// spec says, ends it, and lets go of it. It mirrors upstream's pod workers
// (pkg/kubelet/pod_workers.go).
//
// A worker is a record and, while it syncs, a task. The record ([Workers] keeps
// them by UID) is in state.go: its methods decide what an update, a run's end, or
// housekeeping means for the pod, and do nothing themselves. workers.go acts on
// what they decide: it wakes workers, waits for a picture of the pod that is newer
// than the last run, runs one of the [Syncer]'s methods and enqueues the pod again.
// statics.go orders static pods that share a name, of which one runs at a time.
//
// predicates.go answers what others ask of a pod.
//
// records.go is the only way to change what others decide by, so that a version
// grows with each change of it. elide.go stands around the syncer and the launch
// of runs and leaves out those that would do nothing.
package podworkers
