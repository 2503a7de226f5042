package scenarios

import "time"

// ControlPlane is which controllers there are, and how fast they may call the API.
type ControlPlane struct {
	// What is left out: kube-scheduler, or controllers by the names that kube-controller-manager's --controllers has, such as node-lifecycle-controller. `*` is everything. Nothing unless said.
	Disable []string `json:"disable,omitempty"`
	// kube-scheduler.
	Scheduler *ControlPlaneComponent `json:"scheduler,omitempty"`
	// kube-controller-manager.
	ControllerManager *ControlPlaneComponent `json:"controllerManager,omitempty"`
}

// ControlPlaneComponent configures kube-scheduler or kube-controller-manager.
type ControlPlaneComponent struct {
	// How fast it may call the API. In the controller manager that counts for each controller, as each has a client of its own.
	ClientConnection *ClientConnection `json:"clientConnection,omitempty"`
}

// ClientConnection bounds how fast a component calls the API, as the field of that name in its configuration does.
type ClientConnection struct {
	// Requests a second in the long run; a negative number is no limit. 50 for the scheduler and 20 for the controller manager unless said.
	QPS float64 `json:"qps,omitempty"`
	// How many requests may go out at once after a while without any. 100 for the scheduler and 30 for the controller manager unless said.
	Burst int `json:"burst,omitempty"`
}

// Scale sets how many replicas a workload has.
type Scale struct {
	// The workload's kind. Deployment unless said.
	Kind string `json:"kind,omitempty" enum:"Deployment,ReplicaSet,StatefulSet"`
	// The workload's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The workload's name.
	Name string `json:"name" required:""`
	// How many replicas it shall have.
	Replicas *int32 `json:"replicas" required:""`
}

// Rollout is one of kubectl's rollout commands.
type Rollout struct {
	// The command. pause and resume are for Deployments only.
	Command string `json:"command" required:"" enum:"restart,undo,pause,resume"`
	// The workload's kind. Deployment unless said.
	Kind string `json:"kind,omitempty" enum:"Deployment,StatefulSet,DaemonSet"`
	// The workload's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The workload's name.
	Name string `json:"name" required:""`
	// The revision that undo goes back to. The one before the current one unless said.
	ToRevision int64 `json:"toRevision,omitempty"`
}

// Evict asks the API to evict a pod, which a PodDisruptionBudget may refuse.
type Evict struct {
	// The pod's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The pod's name, or a pattern with * and ?.
	Name string `json:"name" required:""`
	// How many seconds a pod has to end. The pod's own grace period unless said.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// The API is to refuse it with 429 TooManyRequests; otherwise that is an error.
	Refused bool `json:"refused,omitempty"`
}

// Drain empties nodes as kubectl drain does: it cordons them all, then evicts the pods of one after another, asking again every 5s where a budget refuses.
type Drain struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
	// Also pods that no controller would replace: kubectl's --force.
	Force bool `json:"force,omitempty"`
	// Leave the pods of DaemonSets where they are, rather than refusing to drain: kubectl's --ignore-daemonsets.
	IgnoreDaemonSets bool `json:"ignoreDaemonSets,omitempty"`
	// Also pods with emptyDir volumes: kubectl's --delete-emptydir-data.
	DeleteEmptyDirData bool `json:"deleteEmptyDirData,omitempty"`
	// Delete the pods rather than evicting them, so that no budget counts: kubectl's --disable-eviction.
	DisableEviction bool `json:"disableEviction,omitempty"`
	// How many seconds each pod has to end. The pod's own grace period unless said.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// How long each node may take; then the drain fails. For ever unless said.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// StopComponent stops a component of the control plane.
type StopComponent struct {
	// Which one.
	Component string `json:"component" required:"" enum:"kube-scheduler,kube-controller-manager"`
	// How long it is down. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// StartComponent starts a component of the control plane that was stopped.
type StartComponent struct {
	// Which one.
	Component string `json:"component" required:"" enum:"kube-scheduler,kube-controller-manager"`
}
