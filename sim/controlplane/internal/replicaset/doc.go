// Package replicaset keeps as many pods of each ReplicaSet as it asks for. It
// mirrors pkg/controller/replicaset at v1.36 (StatusTerminatingReplicas on).
//
// There are no expectations: a sync that has created or deleted pods finds them
// so in the next one. The counts in a status are kept pod by pod, so a sync that
// only writes a status looks at no pod unless minReadySeconds is set.
//
// replicaset.go is the controller and its sync; rank.go says which pods go first;
// replicationcontroller.go has ReplicationControllers kept by the same code.
package replicaset
