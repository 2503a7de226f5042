package scenarios

import (
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	v1 "k8s.io/api/core/v1"
)

// APIVersion and Kind are what a scenario document begins with.
const (
	APIVersion = "drydock.dev/v1alpha1"
	Kind       = "Scenario"
)

// Scenario is a simulated cluster, what happens to it, and what is expected.
type Scenario struct {
	// Always drydock.dev/v1alpha1.
	APIVersion string `json:"apiVersion" required:"" enum:"drydock.dev/v1alpha1"`
	// Always Scenario.
	Kind string `json:"kind" required:"" enum:"Scenario"`
	// What the scenario is called and how it is selected.
	Metadata Metadata `json:"metadata" required:""`
	// The cluster, the timeline and the expectations.
	Spec Spec `json:"spec" required:""`

	// Pos is where the document begins.
	Pos Position `json:"-"`

	doc *yaml.Node // as written, with overrides
}

// Metadata is what the scenario is called and how it is selected.
type Metadata struct {
	// The scenario's name: lower case letters, digits and dashes.
	Name string `json:"name" required:""`
	// Labels to select scenarios by.
	Labels map[string]string `json:"labels,omitempty"`
	// Notes for tools.
	Annotations map[string]string `json:"annotations,omitempty"`
	// What the scenario shows, in a sentence or two.
	Description string `json:"description,omitempty"`
}

// Spec is the cluster, the timeline and the expectations.
type Spec struct {
	// The seed of everything that is drawn: latencies within their ranges, jitter, the order of what is simultaneous. 0 unless said; --seed overrides it.
	Seed uint64 `json:"seed,omitempty"`
	// How long the scenario lasts, in virtual time. 10m unless said.
	Duration time.Duration `json:"duration,omitempty"`
	// The nodes, in groups of equal ones.
	Nodes []NodeGroup `json:"nodes" required:""`
	// How a kubelet that exits by itself comes back: `{after: 10s}` or `never`. `{after: 10s}` unless said.
	KubeletRestart *KubeletRestart `json:"kubeletRestart,omitempty"`
	// How the Kubernetes API behaves.
	API API `json:"api,omitempty"`
	// The control plane: a scheduler and all of kube-controller-manager's controllers unless said.
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// What is known of container images; any other image can be pulled too, in 1s to 3s. busybox, alpine, debian, ubuntu, nginx, httpd, pause and agnhost, by the last part of the image's name, behave as those images do.
	Images []Image `json:"images,omitempty"`
	// What containers do; the first program that matches a container counts. A container without one whose command is a shell script or another command of busybox runs that command; any other runs until it is stopped, exits 0 on SIGTERM, answers on every port that a probe asks it on, and every command that is run in it exits 0.
	Programs []Program `json:"programs,omitempty"`
	// What happens, and when. Actions at the same time happen in the order of the list.
	Timeline []Action `json:"timeline,omitempty"`
	// What must be true, and when.
	Expect []Expectation `json:"expect,omitempty"`
	// Marks the scenario as one that `drydock conformance` runs against a container runtime outside.
	Conformance *Conformance `json:"conformance,omitempty"`
}

// NodeGroup is a number of equal nodes.
type NodeGroup struct {
	// The nodes' name. With a count, the nodes are called name-0, name-1 and so on; without one there is one node, called just so.
	Name string `json:"name" required:""`
	// How many nodes there are.
	Count *int `json:"count,omitempty"`
	// Labels that the kubelets register their nodes with.
	Labels map[string]string `json:"labels,omitempty"`
	// Taints that the kubelets register their nodes with.
	Taints []v1.Taint `json:"taints,omitempty"`
	// What a machine has: cpu, memory, pods, ephemeral-storage, hugepages. Unless said: cpu 4, memory 16Gi, ephemeral-storage 100Gi, and pods as the kubelet's maxPods says.
	Capacity v1.ResourceList `json:"capacity,omitempty"`
	// Where the machine's CPUs and memory are, for the CPU, memory and topology managers. Unless said, every CPU is a core of one socket and one NUMA node.
	Topology *Topology `json:"topology,omitempty"`
	// The kubelets' KubeletConfiguration (kubelet.config.k8s.io/v1beta1), as in a real cluster; what is not said has upstream's default.
	Kubelet *kubeletconfig.KubeletConfiguration `json:"kubelet,omitempty"`
	// The machine's disks. One with everything on it, of the capacity's ephemeral-storage, unless said.
	Filesystems *Filesystems `json:"filesystems,omitempty"`
	// Swap space. None unless said; a kubelet starts on a machine that has some only with failSwapOn: false.
	Swap *resource.Quantity `json:"swap,omitempty"`
	// How many process numbers the kernel gives out: its pid_max. 4194304 unless said.
	PIDMax *int `json:"pidMax,omitempty"`
	// How many threads the kernel lets there be: its threads-max. As many as fit an eighth of the memory unless said; the smaller of both counts.
	ThreadsMax *int `json:"threadsMax,omitempty"`
	// For how long logind has a shutdown held up: its InhibitDelayMaxSec. 5s unless said; a kubelet whose configuration needs more raises it.
	InhibitDelay time.Duration `json:"inhibitDelay,omitempty"`
	// What the machine uses outside of all pods: the system, daemons, other people's files.
	Usage *MachineUsage `json:"usage,omitempty"`
	// The container runtime.
	Runtime Runtime `json:"runtime,omitempty"`
	// Manifests of static pods that are there from the start: file name to manifest.
	StaticPods StaticPods `json:"staticPods,omitempty"`
}

// Runtime is how the container runtime of a node behaves.
type Runtime struct {
	// The runtime's name, the prefix of container IDs. containerd unless said.
	Name string `json:"name,omitempty"`
	// The runtime's version. 2.4.2 unless said.
	Version string `json:"version,omitempty"`
	// How it makes cgroups, which the kubelet follows. cgroupfs unless said.
	CgroupDriver string `json:"cgroupDriver,omitempty" enum:"cgroupfs,systemd"`
	// How long CRI calls take, by method: a time (`2s`) or a range from which each call draws (`2s..4s`). Methods that are not named take what they take on an idle machine.
	Latency map[string]Range `json:"latency,omitempty" keys:"cri"`
	// Pulls of images that the scenario does not list fail.
	OnlyListedImages bool `json:"onlyListedImages,omitempty"`
}

// KubeletRestart is how a kubelet that exits by itself comes back.
type KubeletRestart struct {
	// How long after its exit it is started again.
	After time.Duration `json:"after,omitempty"`
	// It is not started again. Written as `kubeletRestart: never`.
	Never bool `json:"-"`
}

// API is how the Kubernetes API behaves.
type API struct {
	// What requests cost the API server. Unless said, each is answered at once.
	Load *APILoad `json:"load,omitempty"`
	// The admission plugin EventRateLimit, which refuses events with code 429. Off unless said.
	EventRateLimit *EventRateLimit `json:"eventRateLimit,omitempty"`
	// How long a message takes one way, between a node and the API: a time or a range. 5ms unless said; less than 1ms is refused.
	Latency *Range `json:"latency,omitempty"`
	// Faults that are there from the start.
	Faults []APIFault `json:"faults,omitempty"`
}

// Image is what is known of a container image.
type Image struct {
	// The image, as pods name it: `app:1`, `quay.io/a/b:2`. With * or ? in it, every image whose name matches is one of its own, with what is said here.
	Name string `json:"name" required:""`
	// Other names of the same image.
	Aliases []string `json:"aliases,omitempty"`
	// Its size. 50M unless said.
	Size *resource.Quantity `json:"size,omitempty"`
	// How many bytes it takes on disk once it is unpacked. Its size unless said.
	Unpacked *resource.Quantity `json:"unpacked,omitempty"`
	// How many files and directories that is. One unless said.
	Inodes *resource.Quantity `json:"inodes,omitempty"`
	// How pulling it goes.
	Pull Pull `json:"pull,omitempty"`
	// What its pulls must be authorised with. Unless said, nothing.
	Auth *ImageAuth `json:"auth,omitempty"`
	// It is on the nodes from the start.
	Present bool `json:"present,omitempty"`
	// The kubelet's garbage collection leaves it alone.
	Pinned bool `json:"pinned,omitempty"`
	// The commands that it has: names, or absolute paths. What busybox has, and sh, is run; others run until they are stopped; whatever else is asked for is not found. Unless said, what a well-known image has, or else every command of busybox.
	Commands []string `json:"commands,omitempty"`
	// What a container runs that has no command.
	Entrypoint []string `json:"entrypoint,omitempty"`
	// The arguments to the entrypoint of a container that has neither command nor args.
	Cmd []string `json:"cmd,omitempty"`
	// Whom its containers run as: a number, or a name that is in its /etc/passwd, or either of both with a group, `1000:1000`. root unless said.
	User string `json:"user,omitempty"`
	// The environment of its containers.
	Env map[string]string `json:"env,omitempty"`
	// Where its containers' processes start. / unless said.
	WorkingDir string `json:"workingDir,omitempty"`
	// The signal that stops its containers. SIGTERM unless said.
	StopSignal Signal `json:"stopSignal,omitempty"`
}

// ImageAuth is what an image's registry lets in.
type ImageAuth struct {
	// The user's name.
	Username string `json:"username" required:""`
	// The password.
	Password string `json:"password" required:""`
}

// Pull is how pulling an image goes.
type Pull struct {
	// How long a pull takes: a time or a range. 1s..3s unless said.
	Takes *Range `json:"takes,omitempty"`
	// Pulls fail.
	Fails *PullFailure `json:"fails,omitempty"`
}

// PullFailure is how pulls of an image fail.
type PullFailure struct {
	// The error's text. Unless said, what containerd says of an image that the registry does not have.
	Message string `json:"message,omitempty"`
	// The error's gRPC code. Unknown unless said.
	Code string `json:"code,omitempty" enum:"Canceled,Unknown,InvalidArgument,DeadlineExceeded,NotFound,AlreadyExists,PermissionDenied,ResourceExhausted,FailedPrecondition,Aborted,OutOfRange,Unimplemented,Internal,Unavailable,DataLoss,Unauthenticated"`
	// How many pulls fail before the first that works; all of them unless said. Each node counts for itself.
	Times int `json:"times,omitempty"`
}

// Program is what the containers that it matches do.
type Program struct {
	// Which containers do it. What is left out matches everything.
	Match Match `json:"match" required:""`
	// What each run of the container does.
	Behaviour `json:",inline"`
	// What each run does, in its order, instead of what is said beside `attempts`; the last goes for all later runs.
	Attempts []Behaviour `json:"attempts,omitempty"`
}

// Match selects containers. All fields are patterns, in which * stands for any text and ? for one character.
type Match struct {
	// The pod's name.
	Pod string `json:"pod,omitempty"`
	// The pod's namespace.
	Namespace string `json:"namespace,omitempty"`
	// The container's name.
	Container string `json:"container,omitempty"`
	// The image, as the pod names it.
	Image string `json:"image,omitempty"`
}

// Behaviour is what one run of a container does.
type Behaviour struct {
	// How long it runs until it exits by itself: a time or a range. For ever unless said.
	RunFor *Range `json:"runFor,omitempty"`
	// The exit code that it then exits with, 0 to 255.
	Exit int32 `json:"exit,omitempty"`
	// The exit code of each run, in their order; the last goes for all later runs.
	Exits []int32 `json:"exits,omitempty"`
	// The signal that it then dies of, instead of exiting: SIGKILL, SIGSEGV, 9, ...
	Signal Signal `json:"signal,omitempty"`
	// It then dies as killed for want of memory: exit code 137, reason OOMKilled.
	OOMKilled bool `json:"oomKilled,omitempty"`
	// Starting it fails with this message.
	StartError string `json:"startError,omitempty"`
	// What it does on SIGTERM, or on what else its stop signal is. It exits 0 at once unless said.
	OnTerm OnTerm `json:"onTerm,omitempty"`
	// How much memory it uses. 1Mi unless said.
	Memory *Usage `json:"memory,omitempty"`
	// How much CPU it uses, in cores. None unless said.
	CPU *Usage `json:"cpu,omitempty"`
	// How many processes it has, its first included. One unless said.
	Processes *Usage `json:"processes,omitempty"`
	// What it writes into its files.
	Writes []Write `json:"writes,omitempty"`
	// How large its log is beside the lines of `logs`: bytes that nobody reads. It only grows.
	LogBytes *Usage `json:"logBytes,omitempty"`
	// The lines that it writes: texts, written at its start, or lines with their times.
	Logs []LogLine `json:"logs,omitempty"`
	// The ports that it listens on: numbers, or ports with what they answer. Unless said it answers on every port that it is asked on; `[]` says that it listens nowhere.
	Ports []Port `json:"ports,omitempty"`
	// How commands end that are run in it, by probes and hooks: the first that matches counts. Others exit 0.
	Exec []ExecRule `json:"exec,omitempty"`
	// What it leaves as its termination message when it ends, unless it is killed.
	TerminationMessage string `json:"terminationMessage,omitempty"`
}

// Port is a port that a container listens on: a number, or one with what it answers. One that says neither http nor grpc answers 200 to every request and SERVING to every health check.
type Port struct {
	// The number.
	Port int `json:"port" required:""`
	// When it begins to listen, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// When it stops listening, after the container's start. Never unless said.
	Until time.Duration `json:"until,omitempty"`
	// How long an answer takes: a time or a range. No time unless said.
	Latency *Range `json:"latency,omitempty"`
	// What it answers to HTTP requests: the first that matches counts, and there is 404 for what none matches.
	HTTP []HTTPAnswer `json:"http,omitempty"`
	// What it answers to gRPC health checks: the first that matches counts, and a service that none matches is unknown.
	GRPC []GRPCAnswer `json:"grpc,omitempty"`
}

// HTTPAnswer is the answer to the HTTP requests that it matches.
type HTTPAnswer struct {
	// The path, a pattern in which * stands for any text and ? for one character. Every path unless said.
	Path string `json:"path,omitempty"`
	// The status code. 200 unless said.
	Status int `json:"status,omitempty"`
	// The body.
	Body string `json:"body,omitempty"`
	// From when on it is the answer, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// Until when it is the answer, after the container's start. For ever unless said.
	Until time.Duration `json:"until,omitempty"`
}

// GRPCAnswer is the answer to the gRPC health checks that it matches.
type GRPCAnswer struct {
	// The service, a pattern in which * stands for any text and ? for one character. Every service unless said.
	Service string `json:"service,omitempty"`
	// The status. SERVING unless said.
	Status string `json:"status,omitempty" enum:"SERVING,NOT_SERVING,UNKNOWN,SERVICE_UNKNOWN"`
	// From when on it is the answer, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// Until when it is the answer, after the container's start. For ever unless said.
	Until time.Duration `json:"until,omitempty"`
}

// ExecRule is how the commands end that it matches.
type ExecRule struct {
	// The command's words, joined by blanks: a pattern in which * stands for any text and ? for one character. Every command unless said.
	Command string `json:"command,omitempty"`
	// The exit code, 0 to 255.
	Exit int32 `json:"exit,omitempty"`
	// What it writes.
	Output string `json:"output,omitempty"`
	// How long it runs: a time or a range. No time unless said.
	Takes *Range `json:"takes,omitempty"`
	// From when on it counts, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// Until when it counts, after the container's start. For ever unless said.
	Until time.Duration `json:"until,omitempty"`
}

// OnTerm is what a container does on its stop signal.
type OnTerm struct {
	// The exit code that it exits with, 0 to 255.
	Exit int32 `json:"exit,omitempty"`
	// How long that takes: a time or a range. At once unless said.
	After *Range `json:"after,omitempty"`
	// It takes no notice.
	Ignore bool `json:"ignore,omitempty"`
	// It dies of the signal, as a process without a handler does: exit code 143 for SIGTERM.
	Unhandled bool `json:"unhandled,omitempty"`
}

// LogLine is a line that a container writes.
type LogLine struct {
	// The text, without newline.
	Line string `json:"line" required:""`
	// When it is written, after the container's start.
	After time.Duration `json:"after,omitempty"`
	// How long until it is written again. Once only unless said.
	Every time.Duration `json:"every,omitempty"`
	// How often it is written. Without end unless said.
	Count int `json:"count,omitempty"`
	// Where to. stdout unless said.
	Stream string `json:"stream,omitempty" enum:"stdout,stderr"`
}
