package scenarios

import (
	"time"

	"github.com/drydock-sim/drydock/scenarios/expect"
)

// Action is something that happens at a time. Besides `at` it has exactly one other field.
type Action struct {
	// When, after the scenario's start.
	At time.Duration `json:"at" required:""`

	// Creates objects in the API, or updates what is there, as kubectl apply does.
	Apply *Apply `json:"apply,omitempty"`
	// Creates many pods that are alike, with the names name-0, name-1 and so on.
	Template *Template `json:"template,omitempty"`
	// Patches an object in the API.
	Patch *Patch `json:"patch,omitempty"`
	// Deletes an object from the API.
	Delete *Delete `json:"delete,omitempty"`
	// Sets how many replicas a workload has, as kubectl scale does.
	Scale *Scale `json:"scale,omitempty"`
	// Restarts, undoes, pauses or resumes a workload's rollout, as kubectl rollout does.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Asks the API to evict a pod, which a PodDisruptionBudget may refuse.
	Evict *Evict `json:"evict,omitempty"`
	// Empties nodes, as kubectl drain does.
	Drain *Drain `json:"drain,omitempty"`
	// Marks nodes as unschedulable, as kubectl cordon does.
	Cordon *OnNodes `json:"cordon,omitempty"`
	// Marks nodes as schedulable again, as kubectl uncordon does.
	Uncordon *OnNodes `json:"uncordon,omitempty"`
	// Makes the runtime or the API fail, or cuts a node or a component of the control plane off.
	Fault *Fault `json:"fault,omitempty"`
	// Stops a component of the control plane: what it knew is lost.
	StopComponent *StopComponent `json:"stopComponent,omitempty"`
	// Starts a component of the control plane that was stopped.
	StartComponent *StartComponent `json:"startComponent,omitempty"`
	// Cuts a machine's power: all its processes die, its disk stays, its tmpfs goes. When the power is back the machine boots.
	PowerCut *PowerCut `json:"powerCut,omitempty"`
	// Reboots a machine: all its processes die, and it comes back with a new boot ID.
	Reboot *Reboot `json:"reboot,omitempty"`
	// Shuts a machine down in good order: systemd-logind tells of it, a kubelet with shutdownGracePeriod ends its pods while it holds the shutdown up, and then the machine turns off.
	Shutdown *Shutdown `json:"shutdown,omitempty"`
	// Calls a shutdown off that is still held up.
	CancelShutdown *OnNodes `json:"cancelShutdown,omitempty"`
	// Turns a machine on that is off.
	Boot *OnNodes `json:"boot,omitempty"`
	// Kills a kubelet and starts it again; containers live on.
	RestartKubelet *RestartKubelet `json:"restartKubelet,omitempty"`
	// Kills a kubelet; containers live on.
	StopKubelet *OnNodes `json:"stopKubelet,omitempty"`
	// Starts a kubelet that was stopped.
	StartKubelet *OnNodes `json:"startKubelet,omitempty"`
	// Stops the container runtime's daemon; containers live on.
	StopRuntime *OnNodes `json:"stopRuntime,omitempty"`
	// Starts the container runtime's daemon again.
	StartRuntime *OnNodes `json:"startRuntime,omitempty"`
	// Changes what machines use outside of all pods.
	Usage *UsageChange `json:"usage,omitempty"`
	// Stops a container behind the kubelet's back, with SIGTERM.
	StopContainer *OnContainer `json:"stopContainer,omitempty"`
	// Kills a container behind the kubelet's back, with SIGKILL.
	KillContainer *OnContainer `json:"killContainer,omitempty"`
	// Removes a container behind the kubelet's back, as if it had never been there.
	RemoveContainer *OnContainer `json:"removeContainer,omitempty"`
	// Stops a pod's sandbox behind the kubelet's back.
	StopSandbox *OnSandbox `json:"stopSandbox,omitempty"`
	// Kills a pod's sandbox process behind the kubelet's back: its containers die with it.
	KillSandbox *OnSandbox `json:"killSandbox,omitempty"`
	// Writes a static pod's manifest into a node's manifest directory.
	WriteStaticPod *WriteStaticPod `json:"writeStaticPod,omitempty"`
	// Removes a static pod's manifest from a node's manifest directory.
	RemoveStaticPod *RemoveStaticPod `json:"removeStaticPod,omitempty"`

	// Pos is where the action is written.
	Pos Position `json:"-"`
}

// Apply creates objects in the API, or updates what is there. It has exactly one of its fields.
type Apply struct {
	// A file of manifests, relative to the scenario's file.
	File string `json:"file,omitempty"`
	// Several such files, in their order.
	Files []string `json:"files,omitempty"`
	// An object, or a list of them, written in place.
	Manifest *Manifest `json:"manifest,omitempty"`

	// Objects is what is applied, in its order, wherever it is written.
	// Namespaced objects that name no namespace are in default. They are
	// shared and must not be changed.
	Objects []Object `json:"-"`
}

// Template creates many pods that are alike. It has exactly one of replicas and perNode.
type Template struct {
	// How many there are.
	Replicas *int `json:"replicas,omitempty"`
	// How many there are for each node; their spec.nodeName is set, so that nobody needs to bind them. They are numbered through, node after node.
	PerNode *int `json:"perNode,omitempty"`
	// Only for these nodes, with perNode. All nodes unless said.
	Node Nodes `json:"node,omitempty"`
	// How long each pod lives: a time or a range from which each draws. Then it is deleted, and once it is gone another takes its place, with the next number. For ever unless said.
	Lifetime *Range `json:"lifetime,omitempty"`
	// When that ends, after the scenario's start: pods that are there then stay. The scenario's end unless said.
	Until time.Duration `json:"until,omitempty"`
	// The pod. Its name gets -0, -1 and so on behind it.
	Manifest Manifest `json:"manifest" required:""`
}

// Patch patches an object in the API.
type Patch struct {
	// The object's kind.
	Kind string `json:"kind" required:"" enum:"Pod,Node,ConfigMap,Secret,Namespace,Service,PriorityClass,RuntimeClass,Lease,Event,Deployment,ReplicaSet,StatefulSet,DaemonSet,ControllerRevision,Job,CronJob,PodDisruptionBudget,HorizontalPodAutoscaler,EndpointSlice"`
	// The object's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The object's name.
	Name string `json:"name" required:""`
	// How the patch is meant. strategic unless said.
	Type string `json:"type,omitempty" enum:"strategic,merge,json"`
	// The patch: a part of the object, or, for type json, a list of operations.
	Patch JSON `json:"patch" required:""`
	// The subresource that is patched.
	Subresource string `json:"subresource,omitempty" enum:"status,resize,ephemeralcontainers"`
}

// Delete deletes an object from the API.
type Delete struct {
	// The object's kind. Pod unless said.
	Kind string `json:"kind,omitempty" enum:"Pod,Node,ConfigMap,Secret,Namespace,Service,PriorityClass,RuntimeClass,Lease,Event,Deployment,ReplicaSet,StatefulSet,DaemonSet,ControllerRevision,Job,CronJob,PodDisruptionBudget,HorizontalPodAutoscaler,EndpointSlice"`
	// The object's namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// The object's name, or a pattern with * and ?.
	Name string `json:"name" required:""`
	// How many seconds a pod has to end; 0 removes it at once. The pod's own grace period unless said.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// What becomes of the objects that it owns: kubectl's --cascade. They are deleted after it (background), before it (foreground), or left without an owner (orphan). background unless said.
	Cascade string `json:"cascade,omitempty" enum:"background,foreground,orphan"`
}

// Fault makes the runtime or the API fail, or cuts a node or a component of the control plane off. It has exactly one of cri, api and partition.
type Fault struct {
	// The nodes that it hits: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only, and for api, where it means everybody.
	Node Nodes `json:"node,omitempty"`
	// The component of the control plane that it hits instead of nodes, for api and partition: kube-scheduler, kube-controller-manager, or one controller, such as job-controller.
	Component string `json:"component,omitempty"`
	// Calls of the container runtime are slow, hang or fail.
	CRI *CRIFault `json:"cri,omitempty"`
	// Requests to the API are slow or fail.
	API *APIFault `json:"api,omitempty"`
	// The node, or the component, and the API do not reach each other.
	Partition *Partition `json:"partition,omitempty"`
}

// CRIFault makes calls of the container runtime slow, hang or fail. It has at least one of error, latency and hang.
type CRIFault struct {
	// The CRI method, or a pattern such as `List*`. All methods unless said.
	Method string `json:"method,omitempty"`
	// The pod that calls must be about: namespace/name, or a name in the namespace default, with * and ?. Any call unless said.
	Pod string `json:"pod,omitempty"`
	// The container that calls must be about, with * and ?. Any unless said.
	Container string `json:"container,omitempty"`
	// The image that calls must be about, with * and ?. Any unless said.
	Image string `json:"image,omitempty"`
	// The error that calls fail with: a gRPC code, or a code and a message.
	Error *CRIError `json:"error,omitempty"`
	// How much longer calls take: a time or a range.
	Latency *Range `json:"latency,omitempty"`
	// Calls do not return until the fault is over or the caller gives up.
	Hang bool `json:"hang,omitempty"`
	// How long the fault lasts. To the end unless said.
	For time.Duration `json:"for,omitempty"`
	// The first call that it hits, counted from 1.
	Nth int `json:"nth,omitempty"`
	// How many calls it hits from there on. All unless said.
	Count int `json:"count,omitempty"`
}

// CRIError is what a call of the container runtime fails with.
type CRIError struct {
	// The gRPC code. Unknown unless said.
	Code string `json:"code,omitempty" enum:"Canceled,Unknown,InvalidArgument,DeadlineExceeded,NotFound,AlreadyExists,PermissionDenied,ResourceExhausted,FailedPrecondition,Aborted,OutOfRange,Unimplemented,Internal,Unavailable,DataLoss,Unauthenticated"`
	// The error's text.
	Message string `json:"message,omitempty"`
}

// APIFault makes requests to the API slow or fail. It has at least one of error, latency and refuse.
type APIFault struct {
	// The verb of the requests. Any unless said.
	Verb string `json:"verb,omitempty" enum:"get,list,watch,create,update,patch,delete"`
	// The resource of the requests: `pods`, `pods/status`, `leases`. `pods` means its subresources too. Any unless said.
	Resource string `json:"resource,omitempty"`
	// The namespace of the requests. Any unless said.
	Namespace string `json:"namespace,omitempty"`
	// The name of the object that requests are about. Any unless said.
	Name string `json:"name,omitempty"`
	// The error that requests fail with: an HTTP code, or a code, a reason and a message.
	Error *APIError `json:"error,omitempty"`
	// How much longer requests take.
	Latency time.Duration `json:"latency,omitempty"`
	// Connections are refused, as by a server that is down.
	Refuse bool `json:"refuse,omitempty"`
	// How likely a request is hit, over 0 and up to 1. All are hit unless said.
	Probability float64 `json:"probability,omitempty"`
	// How long the fault lasts. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// APIError is what a request to the API fails with.
type APIError struct {
	// The HTTP code, 400 to 599.
	Code int32 `json:"code" required:""`
	// The reason, such as TooManyRequests. Unless said, what belongs to the code.
	Reason string `json:"reason,omitempty"`
	// The error's text.
	Message string `json:"message,omitempty"`
}

// Partition cuts nodes, or a component of the control plane, off from the API.
type Partition struct {
	// How long. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// OnNodes names nodes.
type OnNodes struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
}

// PowerCut cuts a machine's power.
type PowerCut struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
	// How long the power is off. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// Reboot reboots a machine.
type Reboot struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
	// How long it takes until the kubelet starts. 30s unless said.
	Down time.Duration `json:"down,omitempty"`
	// The time over which that is spread evenly, one node after another, in their order. All at once unless said.
	Over time.Duration `json:"over,omitempty"`
}

// RestartKubelet kills a kubelet and starts it again.
type RestartKubelet struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
	// How long it is down. It starts again at once unless said.
	Down time.Duration `json:"down,omitempty"`
	// The time over which that is spread evenly, one node after another, in their order. All at once unless said.
	Over time.Duration `json:"over,omitempty"`
}

// OnContainer names a container.
type OnContainer struct {
	// The node. Wherever the pod is, unless said.
	Node Nodes `json:"node,omitempty"`
	// The pod: namespace/name, or a name in the namespace default.
	Pod string `json:"pod" required:""`
	// The container's name.
	Container string `json:"container" required:""`
}

// OnSandbox names a pod's sandbox.
type OnSandbox struct {
	// The node. Wherever the pod is, unless said.
	Node Nodes `json:"node,omitempty"`
	// The pod: namespace/name, or a name in the namespace default.
	Pod string `json:"pod" required:""`
}

// WriteStaticPod writes a static pod's manifest.
type WriteStaticPod struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
	// The file's name in the manifest directory.
	File string `json:"file" required:""`
	// The pod; or a text, which is written as it is, also if it is no good manifest.
	Manifest Manifest `json:"manifest" required:""`
}

// RemoveStaticPod removes a static pod's manifest.
type RemoveStaticPod struct {
	// The nodes: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only.
	Node Nodes `json:"node,omitempty"`
	// The file's name in the manifest directory.
	File string `json:"file" required:""`
}

// Expectation is something that must be true. It has one of `at`, `by`, `always`, `never` and `for`; `by` and `for` may go together.
type Expectation struct {
	// A name for reports.
	Name string `json:"name,omitempty"`
	// Why it is expected.
	Description string `json:"description,omitempty"`
	// `that` must be true at this time, or at the `end`.
	At *Time `json:"at,omitempty"`
	// `that` must become true at this time at the latest, or by the `end`; it may be true from the start, unless `from` says from when to look. Beside `for`: when the span must be over.
	By *Time `json:"by,omitempty"`
	// This must be true all the time, after every change of what it reads.
	Always string `json:"always,omitempty" cel:""`
	// This must never be true.
	Never string `json:"never,omitempty" cel:""`
	// `that` must be true for this long without a break, some time.
	For *time.Duration `json:"for,omitempty"`
	// The expression of `at`, `by` and `for`, in CEL.
	That string `json:"that,omitempty" cel:""`
	// From when `by`, `always`, `never` and `for` look. The start unless said.
	From time.Duration `json:"from,omitempty"`
	// Until when `always` and `never` look. The end unless said.
	Until *Time `json:"until,omitempty"`

	// Compiled is the expectation, compiled; it may be used by many runs.
	Compiled *expect.Expectation `json:"-"`
	// Pos is where the expectation is written.
	Pos Position `json:"-"`
}
