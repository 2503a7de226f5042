// Package statefulset keeps the pods of StatefulSets, each with an ordinal of its
// own. It mirrors pkg/controller/statefulset at v1.36, with the gate
// MaxUnavailableStatefulSet off, as at v1.36: pods are replaced one at a time, also
// under podManagementPolicy Parallel.
//
// statefulset.go is the controller, a sync from end to end, and revisions;
// update.go is what upstream's stateful_set_control.go does with the pods and the
// status; claims.go are the pods' claims of volumes.
package statefulset
