package expect

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
)

// State is the cluster as expectations see it. Its objects are shared and
// immutable; its lists have a stable order. It is asked within the step of a change, and must
// show that change already.
type State interface {
	Pods() []*v1.Pod
	// Pod returns nil for a pod that is not there.
	Pod(namespace, name string) *v1.Pod
	Nodes() []*v1.Node
	// Node returns nil for a node that is not there.
	Node(name string) *v1.Node
	Events() []*v1.Event
	Leases() []*coordinationv1.Lease
	// Objects returns the objects of one of the kinds that have no method of
	// their own, as a slice of pointers of the Kind's type.
	Objects(k Kind) any
	// Object returns one of them, or a lease; nil if it is not there.
	Object(k Kind, namespace, name string) any
	// CRICalls returns the calls made so far, in their order. It is asked for
	// only if NeedsCRICalls said so.
	CRICalls() []*CRICall
	// Start is the virtual time at which the run began.
	Start() time.Time
}

// CRICall is one call of the container runtime that is over. JSON names are the fields' names in
// expressions.
type CRICall struct {
	Node      string `json:"node"`
	Method    string `json:"method"`
	Pod       string `json:"pod"`       // namespace/name, or ""
	Container string `json:"container"` // or ""
	Image     string `json:"image"`     // or ""
	Attempt   int    `json:"attempt"`
	Error     string `json:"error"` // the gRPC code, or ""
	// CpusetCpus and CpusetMems are the lists of CPUs and NUMA nodes that a
	// container is given, such as "0,2-3"; "" where the call says nothing of them.
	CpusetCpus string        `json:"cpusetCpus"`
	CpusetMems string        `json:"cpusetMems"`
	PodCIDR    string        `json:"podCIDR"` // the range that UpdateRuntimeConfig hands over, or ""
	At         time.Duration `json:"at"`      // since the start of the run
}

// Kind says what sort of object a Change is of. The values are words of messages as well.
type Kind string

// The kinds of objects that change.
const (
	KindPod   Kind = "pod"   // *v1.Pod
	KindNode  Kind = "node"  // *v1.Node
	KindEvent Kind = "event" // *v1.Event
	KindLease Kind = "lease" // *coordinationv1.Lease
)

// Transition is one change of a pod's status, as the API saw it.
type Transition struct {
	Time     time.Duration `json:"time"` // since the start of the run
	Phase    string        `json:"phase"`
	Reason   string        `json:"reason"`
	Ready    bool          `json:"ready"`
	Restarts int           `json:"restarts"` // of all its containers
	Deleting bool          `json:"deleting"` // it has a deletion timestamp
	Gone     bool          `json:"gone"`     // it was removed from the API
	UID      string        `json:"uid"`
}

// ContainerTransition is one change of a container's state, as the API saw it.
type ContainerTransition struct {
	Time        time.Duration `json:"time"`  // since the start of the run
	State       string        `json:"state"` // waiting, running or terminated
	Reason      string        `json:"reason"`
	Message     string        `json:"message"`
	ExitCode    int           `json:"exitCode"`
	Signal      int           `json:"signal"`
	Ready       bool          `json:"ready"`
	Restarts    int           `json:"restarts"`
	ContainerID string        `json:"containerID"`
}

// NodeTransition is one change of a node's condition, as the API saw it.
type NodeTransition struct {
	Time   time.Duration `json:"time"` // since the start of the run
	Type   string        `json:"type"`
	Status string        `json:"status"`
	Reason string        `json:"reason"`
}

// Form is the time form of an expectation. See docs/scenarios.md for what they mean to an author.
type Form string

// The time forms.
const (
	At     Form = "at"     // true at T
	By     Form = "by"     // becomes true at T at the latest
	Always Form = "always" // true from From until Until
	Never  Form = "never"  // false from From until Until
	For    Form = "for"    // true for a span, which is over at By at the latest
)

// End, as a time, is the end of the run.
const End time.Duration = -1

// Source is what an expectation says. The loader has checked that times fit the form.
type Source struct {
	Form Form
	// Expr is the expression, in CEL; its type must be bool.
	Expr string
	// T is when At looks and when By and For must be over: a time since the
	// start, or End.
	T time.Duration
	// Span is how long For must hold.
	Span time.Duration
	// From is when By, Always, Never and For begin to look; Until bounds Always
	// and Never, and may be End.
	From, Until time.Duration
	// Name and Description are the author's words; both may be empty.
	Name, Description string
}
