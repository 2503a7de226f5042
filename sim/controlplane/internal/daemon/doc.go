// Package daemon keeps one pod of each DaemonSet on every node that it may run
// on. It mirrors pkg/controller/daemon at v1.36. The default scheduler binds
// the pods: each has a node affinity of its own.
//
// Whether a set runs on a node is kept until the node's labels or taints or the
// set change. Where upstream ranges over a map of nodes, nodes come in the order
// of their creation.
package daemon
