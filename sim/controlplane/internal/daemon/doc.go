// Package daemon keeps one pod of each DaemonSet on every node that it may run
// on. It mirrors pkg/controller/daemon at v1.36. The default scheduler binds the
// pods: each has a node affinity of its own.
//
// Whether a set runs on a node is kept until the node's labels or taints or the
// set change, so a sync of an unchanged cluster costs a lookup per node. Where
// upstream ranges over a map of nodes, nodes come in the order of their creation.
//
// daemon.go is the controller: what is queued when, and a sync from end to end.
// step.go is what a sync does: revisions, pods on nodes, rolling updates, the
// status. nodes.go decides which nodes are a set's, and has the back-off of pods
// that fail.
package daemon
