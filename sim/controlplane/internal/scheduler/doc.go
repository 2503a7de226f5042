// Package scheduler assigns pods to nodes as kube-scheduler v1.36 (pkg/scheduler)
// does: the queue, the filters and scores of upstream's plugins, preemption,
// binding, and the events and conditions that tell of it. Its profiles, with which
// plugins are on, what their scores weigh and their arguments, come from a
// configuration (schedulerconfig; profile.go).
//
// One pod is scheduled at a time, in the order of the queue; what it wants of the
// API (bindings, conditions, evictions) goes out behind it, through the
// component's rate limits. Where upstream draws lots (between nodes of equal
// score, the offset of preemption) the seed decides.
//
// Not here, because Drydock has nothing for them to act on: gang scheduling and
// extenders. Of dynamic resources there is what v1.36 does by default
// (dynamicresources.go, extendedresources.go, bindingconditions.go). The order in
// which upstream's 16 workers finish is that of one worker. Opportunistic batching (KEP-5598), which
// spares upstream work for pods of which one fits on a node, is left out: such
// pods are scheduled in full.
//
// # Files
//
// A change of the API comes in at scheduler.go, which keeps what the others read:
// the queue of pods without a node (queue.go, and events.go for what wakes them),
// the table of nodes (node.go, amount.go), the counts of pods by labels and
// topology (tally.go), what resized pods count with (resize.go), and the classes of
// pods (class.go). A cycle (cycle.go)
// takes the next pod, filters (filter.go, affinity.go, spread.go) and scores
// (score.go, allocation.go) nodes, and places the pod or tries preemption (preempt.go). bind.go
// and record.go send what came of it.
//
// # Cost
//
// Pods that share their template's spec are one class. A class remembers for each
// node whether the filters that look at the node alone pass and what its scores
// are; a node counts its changes, so placing a pod costs a look at the nodes that
// upstream samples (500 of 5,000) and the recomputing of one. Topology spread and
// inter-pod affinity count pods per node and per topology value as pods come and
// go (tally); only constraints that leave nodes out go over all of them, with
// what the class remembers of each. Why a class fits nowhere is remembered until
// something changes, so the next pod of it costs a lookup.
//
// Invariant: what a class, a tally or a node's entry remembers is a function of
// versions (nodeInfo.gen, nodeInfo.static, nodeTable.imageGen,
// Scheduler.version). random_test.go compares it with a scheduler that remembers
// nothing.
package scheduler
