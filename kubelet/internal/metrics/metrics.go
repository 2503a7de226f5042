// Package metrics counts what a kubelet does, and makes of it the families that
// /metrics shows, with upstream's names, labels and buckets (pkg/kubelet/metrics at
// v1.36).
//
// Counting is adding to the fields of one Kubelet, which is the node's; nothing else
// is kept. Families are made when somebody looks (families.go), together with what is
// read off the kubelet's state then (State). Passes that are elided count, as having
// taken no time; see State.
//
// What upstream counts and is not counted here has no family, rather than one of zeros.
package metrics

import (
	"math"
	"slices"
)

// Operation is a kind of call of the runtime.
type Operation uint8

// The operations, in the order of their names.
const (
	CheckpointContainer Operation = iota
	ContainerStats
	ContainerStatus
	CreateContainer
	ExecSync
	ImageStatus
	ListContainers
	ListImages
	ListPodSandbox
	PodSandboxStatus
	PullImage
	RemoveContainer
	RemovePodSandbox
	RunPodSandbox
	StartContainer
	Status
	StopContainer
	StopPodSandbox
	UpdateContainer
	UpdatePodSandbox
	UpdateRuntimeConfig
	Version
	operations
)

func (o Operation) String() string { return operationNames[o] }

var operationNames = [operations]string{
	"checkpoint_container", "container_stats", "container_status", "create_container", "exec_sync", "image_status", "list_containers",
	"list_images", "list_podsandbox", "podsandbox_status", "pull_image", "remove_container", "remove_podsandbox", "run_podsandbox",
	"start_container", "status", "stop_container", "stop_podsandbox", "update_container", "update_podsandbox_resources", "update_runtime_config", "version",
}

// Histogram counts values by bucket. Its zero value has seen none; the counts are made
// at the first value.
type Histogram struct {
	sum float64
	// counts are those of the bounds and, last, of what is beyond; nil: none.
	counts []uint32
}

// Observe counts a value. The bounds are the same at each call.
func (h *Histogram) Observe(v float64, bounds []float64) {
	if h.counts == nil {
		h.counts = make([]uint32, len(bounds)+1)
	}
	i, _ := slices.BinarySearch(bounds, v)
	h.counts[i]++
	h.sum += v
}

// call is what one operation's calls came to.
type call struct {
	took   Histogram
	errors uint32
}

// ContainerType is the label of that name.
type ContainerType string

// The types of containers that are started; a sandbox is one of them.
const (
	Container          ContainerType = "container"
	InitContainer      ContainerType = "init_container"
	EphemeralContainer ContainerType = "ephemeral_container"
	PodSandbox         ContainerType = "pod_sandbox"
)

// failure is why a start failed.
type failure struct {
	of   ContainerType
	code string
}

// Kubelet counts what one kubelet does, from its start on. It is for use on the
// kubelet's loop; a nil one counts nothing.
type Kubelet struct {
	calls [operations]call
	// sandboxes are the durations of RunPodSandbox by the runtime class's handler.
	sandboxes map[string]*Histogram
	started   map[ContainerType]uint64
	failed    map[failure]uint64
	// StartedPods and StartedPodErrors count sandboxes.
	StartedPods, StartedPodErrors uint64

	relist, relistInterval Histogram
	worker                 [3]Histogram // by operation, see workerOperations
	workerStart, podStart  Histogram
	containersPerPod       Histogram
	rejections             map[string]uint64

	Counters
	ensured    map[ensured]uint64
	ended      map[ended]uint64
	statusSync Histogram
	// credentialPlugins are the runs of image credential provider plugins, by name.
	credentialPlugins map[string]*call
	events            *events // nil: the runtime doesn't tell of any
}

// Counters need no label.
type Counters struct {
	// SleepsEnded are lifecycle hooks that slept when the container ended.
	SleepsEnded uint64
	// UserNamespaced are the sandboxes of pods with a user namespace of their own.
	UserNamespaced, UserNamespacedErrors uint64
	// Restarted are pods that came again with the UID of one that ended, by whether they
	// are static; Orphaned are those that only the runtime knew.
	Restarted [2]uint64
	Orphaned  uint64
}

// workerOperations are the labels of a worker's runs.
var workerOperations = [3]string{"create", "sync", "update"}

// Runs of a worker that Worker takes.
const (
	Create = iota
	Sync
	Update
)

// Call counts a call of the runtime that took so many ns.
func (k *Kubelet) Call(o Operation, took int64, err error) {
	if k == nil {
		return
	}
	c := &k.calls[o]
	c.took.Observe(float64(took)/1e9, runtimeBuckets)
	if err != nil {
		c.errors++
	}
}

// Sandbox counts a sandbox that was to be made, with its handler, in ns; userns: with a
// user namespace of its own.
func (k *Kubelet) Sandbox(handler string, took int64, userns bool, err error) {
	if k == nil {
		return
	}
	h := k.sandboxes[handler]
	if h == nil {
		h = &Histogram{}
		if k.sandboxes == nil {
			k.sandboxes = map[string]*Histogram{}
		}
		k.sandboxes[handler] = h
	}
	h.Observe(float64(took)/1e9, defaultBuckets)
	k.StartedPods++
	if userns {
		k.UserNamespaced++
		if err != nil {
			k.UserNamespacedErrors++
		}
	}
	k.Started(PodSandbox)
	if err != nil {
		k.StartedPodErrors++
		k.StartFailed(PodSandbox, errCreateSandbox)
	}
}

// errCreateSandbox is upstream's ErrCreatePodSandbox.
const errCreateSandbox = "CreatePodSandboxError"

// Started counts a start that was tried.
func (k *Kubelet) Started(t ContainerType) {
	if k == nil {
		return
	}
	if k.started == nil {
		k.started = map[ContainerType]uint64{}
	}
	k.started[t]++
}

// StartFailed counts one that failed, with the reason that the status shows.
func (k *Kubelet) StartFailed(t ContainerType, code string) {
	if k == nil {
		return
	}
	if k.failed == nil {
		k.failed = map[failure]uint64{}
	}
	k.failed[failure{t, code}]++
}

// Relist counts a relist that was made, and how long after the one before, in ns;
// below 0: there was none.
func (k *Kubelet) Relist(took, since int64) {
	if k == nil {
		return
	}
	k.relist.Observe(float64(took)/1e9, defaultBuckets)
	if since >= 0 {
		k.relistInterval.Observe(float64(since)/1e9, defaultBuckets)
	}
}

// Worker counts a sync of a pod: one of Create, Sync, Update.
func (k *Kubelet) Worker(operation int, took int64) {
	if k != nil {
		k.worker[operation].Observe(float64(took)/1e9, defaultBuckets)
	}
}

// PodCreated counts a pod's first sync, so many ns after the kubelet saw it.
func (k *Kubelet) PodCreated(containers int, after int64) {
	if k == nil {
		return
	}
	k.workerStart.Observe(float64(after)/1e9, defaultBuckets)
	k.containersPerPod.Observe(float64(containers), containersBuckets)
}

// PodRuns counts a pod that began to run, so many ns after the kubelet saw it.
func (k *Kubelet) PodRuns(after int64) {
	if k != nil {
		k.podStart.Observe(float64(after)/1e9, startupBuckets)
	}
}

// Rejected counts a pod that was not admitted.
func (k *Kubelet) Rejected(reason string) {
	if k == nil {
		return
	}
	if k.rejections == nil {
		k.rejections = map[string]uint64{}
	}
	k.rejections[reason]++
}

// The bounds of histograms.
var (
	defaultBuckets    = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	runtimeBuckets    = exponential(.005, 2.5, 14)
	containersBuckets = exponential(1, 2, 5)
	startupBuckets    = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
)

// exponential are n bounds, each factor times the one before.
func exponential(start, factor float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = start * math.Pow(factor, float64(i))
	}
	return out
}
