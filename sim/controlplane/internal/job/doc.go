// Package job runs pods to completion. It mirrors pkg/controller/job at v1.36:
// counting by finalizers, indexed jobs, both failure limits, the two policies,
// suspension, pod replacement. Gangs (PodGroups) are not built.
package job
