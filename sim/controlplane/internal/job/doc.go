// Package job runs pods to completion. It mirrors pkg/controller/job at v1.36:
// counting by finalizers, indexed jobs, both failure limits, the two policies,
// suspension, pod replacement. Gangs (PodGroups) are not built.
//
// A job must count each pod once, though pods may be deleted by anyone at any
// time. So each pod has a finalizer until the status has it: track.go has the
// three steps. Everything else of a sync may be repeated after a failure at any
// point.
//
// job.go is the controller: what is queued when, and what single pods and jobs
// are. sync.go is a sync: look, decide, act. manage.go creates and deletes pods.
// indexes.go has the indexes of indexed jobs and their intervals as statuses
// spell them, policy.go the two policies, backoff.go how long a failure holds up
// the next pod.
package job
