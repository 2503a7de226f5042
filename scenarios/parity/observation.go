package parity

import v1 "k8s.io/api/core/v1"

// Observation is what was seen of one run: of a pod case the one pod, of a
// node case all pods and the node. Times are seconds since the case's start. Its JSON is that of
// recordings, so the two are compared as JSON.
type Observation struct {
	PodObservation
	Pods       map[string]*PodObservation `json:"pods,omitempty"`
	Node       []NodeSeen                 `json:"node,omitempty"`
	NodeEvents []*EventSeen               `json:"nodeEvents,omitempty"`
	Leases     []LeaseSeen                `json:"leases,omitempty"`
	Images     []ImageSeen                `json:"images,omitempty"`
}

// PodObservation is what was seen of a pod: each distinct status, each event
// object, each call to the runtime that changes something. They are in the order in which they
// were seen.
type PodObservation struct {
	Status []StatusSeen `json:"status"`
	Events []*EventSeen `json:"events"`
	CRI    []CallSeen   `json:"cri"`
}

// StatusSeen is a status of a pod as a watch shows it, without what differs from
// run to run.
type StatusSeen struct {
	At         float64                  `json:"at"`
	Deleted    bool                     `json:"deleted,omitempty"`
	Phase      string                   `json:"phase,omitempty"`
	Reason     string                   `json:"reason,omitempty"`
	Message    string                   `json:"message,omitempty"`
	QOSClass   string                   `json:"qosClass,omitempty"`
	Conditions map[string]ConditionSeen `json:"conditions,omitempty"`
	Init       map[string]ContainerSeen `json:"initContainers,omitempty"`
	Containers map[string]ContainerSeen `json:"containers,omitempty"`
	Ephemeral  map[string]ContainerSeen `json:"ephemeralContainers,omitempty"`
	HasPodIP   bool                     `json:"hasPodIP"`
	Deleting   *int64                   `json:"deleting,omitempty"`
	UID        string                   `json:"uid,omitempty"`
	Mirror     bool                     `json:"mirror,omitempty"`
	// Claims are status.resourceClaimStatuses, in cases with plugins.
	Claims []v1.PodResourceClaimStatus `json:"resourceClaimStatuses,omitempty"`
}

// ConditionSeen is a condition of a pod.
type ConditionSeen struct {
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ContainerSeen is the status of a container.
type ContainerSeen struct {
	State    string    `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	Signal   int32     `json:"signal,omitempty"`
	Message  string    `json:"message,omitempty"`
	Restarts int32     `json:"restartCount"`
	Ready    bool      `json:"ready"`
	Started  *bool     `json:"started,omitempty"`
	Last     *LastSeen `json:"last,omitempty"`
	// Devices are in cases with plugins.
	Devices []v1.ResourceStatus `json:"allocatedResourcesStatus,omitempty"`
}

// LastSeen is how a container ended the time before.
type LastSeen struct {
	ExitCode int32  `json:"exitCode"`
	Reason   string `json:"reason,omitempty"`
	// Message is in cases with plugins.
	Message string `json:"message,omitempty"`
}

// EventSeen is an event object: when it was first and last sent, and how often. Equal events are
// one object with a count, as the API has them.
type EventSeen struct {
	At      float64 `json:"at"`
	Last    float64 `json:"last"`
	Type    string  `json:"type"`
	Reason  string  `json:"reason"`
	Field   string  `json:"field"`
	Message string  `json:"message"`
	Count   int32   `json:"count"`
}

// CallSeen is a call to the runtime. Took is in seconds, Error a gRPC code.
type CallSeen struct {
	At        float64 `json:"at"`
	Took      float64 `json:"took"`
	Method    string  `json:"method"`
	Container string  `json:"container,omitempty"`
	Attempt   *int    `json:"attempt,omitempty"`
	Timeout   *int    `json:"timeout,omitempty"`
	Image     string  `json:"image,omitempty"`
	Error     string  `json:"error,omitempty"`
	// Config is what plugins and volumes put into CreateContainer, in cases with plugins.
	Config *ConfigSeen `json:"config,omitempty"`
}

// NodeSeen is a distinct set of node conditions: status, reason, message.
type NodeSeen struct {
	At         float64              `json:"at"`
	Conditions map[string][3]string `json:"conditions"`
}

// LeaseSeen is a renewal of the node's lease.
type LeaseSeen struct {
	At float64 `json:"at"`
}

// ImageSeen is the removal of an image.
type ImageSeen struct {
	At    float64 `json:"at"`
	Image string  `json:"image"`
}
