// Package statefulset keeps the pods of StatefulSets, each with an ordinal of its
// own. It answers to pkg/controller/statefulset at v1.36, without volume claims,
// which the API refuses. spec.updateStrategy.rollingUpdate.maxUnavailable counts
// when it is set, as with the gate MaxUnavailableStatefulSet; unset, one pod at a
// time is replaced.
package statefulset
