// Package binder assigns pods without a node to nodes: the least-requested node
// that fits. It stands where kube-scheduler v1.36 (pkg/scheduler) stands until
// the full scheduler takes its place, and knows of its rules: resources,
// spec.nodeSelector and required node affinity, taints, spec.unschedulable,
// host ports. It does not preempt, spread, or score by anything but use.
//
// It runs on the API server's loop, from a queue ordered by priority and age. A
// pod that fits nowhere gets the condition PodScheduled=False and an event, and
// is tried again when a node or a pod has changed, at most once a second.
//
// Cost: nodes are kept in a heap by their use, with running sums; a pod that
// fits on the least-used node costs O(log nodes). Pods of one template are one
// class: where one of them fits nowhere, the others aren't tried.
package binder
