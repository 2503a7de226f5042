// Package nodelifecycle finds out which nodes are alive. It mirrors
// upstream's pkg/controller/nodelifecycle: nodes whose kubelet is not heard of
// get conditions Unknown, their pods get Ready=False, conditions become
// NoSchedule taints at once and NoExecute taints at a rate that the state of
// the node's zone decides.
//
// Upstream looks at every node every five seconds. Here a pass runs at those of
// the same instants at which a node has changed or its grace period ends; at all
// others it would have found nothing. A lease's renewal costs a map lookup.
// Files: controller.go is what is known of nodes; monitor.go the passes and what
// they do for a node; tainter.go and zones.go the NoExecute taints, at the rate
// that a zone's state allows; taints.go taints by condition; pods.go the pods of
// a node that is lost.
package nodelifecycle
