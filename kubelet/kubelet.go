// Package kubelet is the node agent: it takes in pods from their sources, keeps
// one worker per pod that brings the pod's containers to what its spec says,
// reports the pods' and the node's status, and cleans up. It mirrors
// upstream's pkg/kubelet (kubelet.go, pod_workers.go, kubelet_pods.go) at v1.36
// and wires up the packages below it, which carry upstream's names.
//
// # How it differs
//
// All of it runs on one loop, so there are no locks and no goroutines. A worker
// is its record ([podState], which decides and does nothing) and an entry of
// the work queue; only a sync in progress is a task. Periodic passes that would
// find what the last one found are elided: see elide.go and the files elide_*.go
// for which, and why the outcome is the same.
//
// # Restart
//
// Of its own a kubelet keeps on disk only which resources it gave to its pods,
// see package allocation. A new one on the same runtime, files and API takes
// everything over: it admits the pods it is told of, reads
// the runtime's picture of them, and starts nothing that runs.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/allocation"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/cpumanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/memorymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/internal/nodelease"
	"github.com/drydock-sim/drydock/kubelet/internal/nodeshutdown"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/runtimeclass"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	"github.com/drydock-sim/drydock/kubelet/internal/token"
	"github.com/drydock-sim/drydock/kubelet/internal/util/manager"
	"github.com/drydock-sim/drydock/kubelet/internal/util/queue"
	"github.com/drydock-sim/drydock/kubelet/internal/volumemanager"
	"github.com/drydock-sim/drydock/kubelet/oom"
	"github.com/drydock-sim/drydock/kubelet/prober"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/kubelet/stats"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// Version is the kubelet version that a node reports.
const Version = "v1.36.3"

// DefaultRootDir is where the kubelet keeps its files (--root-dir).
const DefaultRootDir = "/var/lib/kubelet"

// FS is the node's file system.
type FS = filesystem.FS

// EventRecorder records events.
type EventRecorder interface {
	Event(ref *v1.ObjectReference, eventtype, reason, message string)
}

// Client is all that a kubelet needs of the API. Objects handed out are shared
// and never written to; a call waits in its task.
type Client interface {
	config.PodWatcher
	NodeWatcher
	kubepod.MirrorAPI
	status.PodClient
	nodestatus.Client
	nodelease.Client
	record.Client
	ServiceWatcher
	runtimeclass.Client
	manager.ConfigMapClient
	manager.SecretClient
	token.Client
}

// Machine tells the facts of the machine. What it returns is shared and never
// written to.
type Machine interface {
	// Capacity returns cpu, memory, ephemeral-storage, hugepages-* and extended
	// resources of the machine, the same for good.
	Capacity() v1.ResourceList
	// BootID is new after each boot.
	BootID() string
	MachineID() string
	SystemUUID() string
	KernelVersion() string
	OSImage() string
	// NodeIP is the node's address; "" if it has none.
	NodeIP() string
}

// Options are what a Kubelet is made of.
type Options struct {
	Loop *loop.Loop
	// Group is the kubelet's process: killing it is a crash of the kubelet.
	Group    *loop.Group
	NodeName string
	// Config is used as it is given; see SetDefaults and Validate. It is not
	// written to and may be shared.
	Config *kubeletconfig.KubeletConfiguration
	// Settings are those of Config, Machine's capacity and
	// AllocatableIgnoresEviction; nil: New works them out.
	Settings *Settings
	// RuntimeService and ImageService are the CRI. If RuntimeService also has a
	// Generation method and tells of its changes (see pleg.Notifier), listings that
	// could show nothing new are elided.
	RuntimeService internalapi.RuntimeService
	ImageService   internalapi.ImageManagerService
	// Client is nil in standalone mode.
	Client Client
	FS     FS
	// Mounter mounts volumes in memory; nil: they are on the disk.
	Mounter filesystem.Mounter
	Machine Machine
	// Network is how probes and lifecycle hooks reach containers; nil: they
	// fail, but for those that run a command.
	Network prober.Network

	// NodeLabels are --node-labels.
	NodeLabels map[string]string
	// RootDir is --root-dir; "" means DefaultRootDir.
	RootDir string
	// Defaulter fills in the API's defaults in static pods; nil means none.
	Defaulter func(*v1.Pod)
	// Validator judges static pods as the API would; nil means none.
	Validator func(*v1.Pod) error
	// Fetcher gets the manifests of staticPodURL; nil: they are not got.
	Fetcher config.Fetcher
	// Exit is called when the kubelet cannot go on, as its process would exit
	// with code 1. The owner is expected to kill Group. nil: nobody is told.
	Exit func(err error)
	// Log takes the log lines; nil means that none are made.
	Log func(format string, args ...any)
	// CgroupV1 says that the machine's cgroups are those of v1, of which the
	// kubelet warns.
	CgroupV1 bool
	// Durable has what is kept for the next kubelet on the disk at any time, not
	// only at the end: the process may be killed.
	Durable bool
	// Cgroups are the machine's; nil: there are none, or none that this kubelet
	// may make. If they are no cm.Cgroups, the runtime makes the pods'.
	Cgroups cm.NodeCgroups
	// ContainerLogsDir is where links to the logs of containers are made; "":
	// none are.
	ContainerLogsDir string
	// MachineStats tells what the machine uses; nil: nobody knows, and the node
	// is never under pressure. One that is a stats.Watcher too is asked only
	// when it may be low on something.
	MachineStats stats.Machine
	// OOM tells whom the kernel killed for want of memory; nil: nobody does.
	OOM oom.Source
	// Logind holds up the machine's shutdown; nil: nobody watches for it.
	Logind nodeshutdown.Logind
	// AllocatableIgnoresEviction is --experimental-allocatable-ignore-eviction:
	// what hard eviction thresholds hold back is for pods, too.
	AllocatableIgnoresEviction bool
	// GC says how many dead containers are kept; nil: as many as upstream's
	// flags say unless they are set.
	GC *kuberuntime.GCPolicy
}

// podLifecycleEventGenerator tells of what happens to containers: package pleg.
type podLifecycleEventGenerator interface {
	Start(g *loop.Group)
	Events() *loop.Queue[pleg.PodLifecycleEvent]
	Healthy() error
	RequestRelist(uid types.UID)
	RequestReinspect(uid types.UID)
	Stats() pleg.Stats
}

// nodeStatusManager keeps the node's status in the API: package nodestatus.
type nodeStatusManager interface {
	Start(g *loop.Group)
	Sync(ctx context.Context)
	InitialNode(ctx context.Context) *v1.Node
}

// bodies are what runs periodically, or by the sync loop. They are values, so
// that something can stand before them.
type bodies struct {
	// cleanUpPods is one housekeeping pass, see handlePodCleanups.
	cleanUpPods func(ctx context.Context) (acted bool, err error)
	// checkRuntime reports whether the runtime is well.
	checkRuntime func(ctx context.Context) bool
	// collectContainers reports whether nothing is left to collect.
	collectContainers func(ctx context.Context) (settled bool)
	// reconcileCPUs reports whether all containers run on their CPUs.
	reconcileCPUs func(ctx context.Context) (settled bool)
	// listImages reports whether the runtime answered.
	listImages func(ctx context.Context) bool
}

// Kubelet is one node's agent.
type Kubelet struct {
	opts     Options
	l        *loop.Loop
	g        *loop.Group
	nodeName string
	cfg      *kubeletconfig.KubeletConfiguration
	settings *Settings
	client   Client
	fs       FS
	podsDir  string
	log      func(format string, args ...any)

	recorder  *record.Recorder
	node      nodeInformer
	reserved  *cm.Reservations
	gates     features.Gates
	state     *runtimeState
	runtimeUp runtimeUp
	podConfig *config.PodConfig
	pods      *kubepod.Manager
	mirrors   *kubepod.MirrorClient
	podCache  *kubecontainer.Cache
	runtime   *kuberuntime.Manager
	inputs    containerInputs
	probes    *prober.Manager
	// configMaps, secrets and tokens are nil without an API.
	configMaps    *manager.Store[*v1.ConfigMap]
	secrets       *manager.Store[*v1.Secret]
	tokens        *token.Manager
	volumes       *volumemanager.Manager
	pleg          podLifecycleEventGenerator
	statusEnv     status.Env
	statusManager *status.Manager
	nodeStatus    nodeStatusManager
	lease         *nodelease.Manager
	reasons       *reasonCache
	backOff       *kubecontainer.Backoff
	queue         *queue.WorkQueue
	workers       *podWorkers
	deletor       *containerDeletor
	sysctls       *lifecycle.Sysctls
	allocation    *allocation.Manager
	cgroups       *cm.PodCgroups
	// The managers of what containers have for themselves.
	topologyManager *topologymanager.Manager
	cpuManager      *cpumanager.Manager
	memoryManager   *memorymanager.Manager
	// orphanCgroups are the pods whose cgroups are being cleaned up.
	orphanCgroups  map[types.UID]bool
	systemdCgroups bool
	stats          *stats.Provider
	volumeStats    *stats.Volumes
	eviction       *eviction.Manager
	shutdown       *nodeshutdown.Manager // nil: the machine's shutdown is not held up
	rejected       map[types.UID]bool    // pods that were not admitted
	committed      lifecycle.Usage       // see usage; good while counted
	counted        bool
	images         imageList
	imageGC        *images.GCManager

	loop          syncLoop
	removals      removalCounter
	bodies        bodies
	elided        elision
	housekeepings uint64
	runtimeChecks uint64
}

// New returns a Kubelet that does nothing until Start. It refuses what upstream
// refuses before it makes any call.
func New(opts Options) (*Kubelet, error) {
	if opts.Loop == nil || opts.Group == nil || opts.Config == nil || opts.RuntimeService == nil ||
		opts.ImageService == nil || opts.FS == nil || opts.Machine == nil {
		return nil, errors.New("kubelet: Loop, Group, Config, RuntimeService, ImageService, FS and Machine are needed")
	}
	name := strings.ToLower(strings.TrimSpace(opts.NodeName))
	if name == "" {
		return nil, errors.New("empty hostname is invalid")
	}
	settings := opts.Settings
	if settings == nil {
		var err error
		if settings, err = NewSettings(opts.Config, opts.Machine.Capacity(), opts.AllocatableIgnoresEviction); err != nil {
			return nil, err
		}
	}
	if gc := opts.GC; gc != nil && gc.MinAge < 0 {
		return nil, fmt.Errorf("invalid minimum garbage collection age: %v", gc.MinAge)
	}
	if opts.RootDir == "" {
		opts.RootDir = DefaultRootDir
	}
	kl := &Kubelet{
		settings: settings, gates: settings.gates, reserved: settings.reserved, sysctls: settings.sysctls,
		opts: opts, l: opts.Loop, g: opts.Group, nodeName: name, cfg: opts.Config, client: opts.Client, fs: opts.FS,
		podsDir: path.Join(opts.RootDir, "pods"), log: opts.Log,
	}
	kl.bodies = bodies{
		cleanUpPods: kl.handlePodCleanups, checkRuntime: kl.checkRuntime, collectContainers: kl.collectContainers, reconcileCPUs: kl.reconcileCPUs,
		listImages: kl.listImages,
	}
	return kl, nil
}

// Start starts the kubelet as tasks and timers of its group.
func (kl *Kubelet) Start() {
	kl.g.Go("kubelet", func(ctx context.Context) {
		if err := kl.run(ctx); err != nil {
			kl.exit(err)
		}
	})
}

func (kl *Kubelet) exit(err error) {
	kl.logf("Failed to run kubelet: %v", err)
	if kl.opts.Exit != nil {
		kl.opts.Exit(err)
	}
}

// logf makes a log line, if anybody takes them.
func (kl *Kubelet) logf(format string, args ...any) {
	if kl.log != nil {
		kl.log(format, args...)
	}
}

// Pods returns the pods with the statuses that the kubelet knows, by namespace
// and name. They are shared and not to be written to.
func (kl *Kubelet) Pods() []*v1.Pod {
	if kl.pods == nil {
		return nil // it has not got that far
	}
	out := slices.Clone(kl.pods.GetPods())
	for i, pod := range out {
		if s, ok := kl.statusManager.GetPodStatus(pod.UID); ok {
			known := *pod
			known.Status = *s
			out[i] = &known
		}
	}
	return out
}

// Stats counts what a kubelet has done.
type Stats struct {
	// Housekeepings counts the passes that were run, not those left out.
	Housekeepings uint64
	// RuntimeChecks counts CRI Status calls.
	RuntimeChecks uint64
	// Syncs counts runs of the workers; Resyncs those of them that had nothing
	// to do and were left out.
	Syncs, Resyncs uint64
	// Probes counts the probes that were run.
	Probes uint64
	// Evictions counts evicted pods by the signal (metric kubelet_evictions);
	// nil: there were none.
	Evictions map[eviction.Signal]uint64
	PLEG      pleg.Stats
}

// Stats returns the counts since Start.
func (kl *Kubelet) Stats() Stats {
	kl.catchUp()
	s := Stats{Housekeepings: kl.housekeepings, RuntimeChecks: kl.runtimeChecks}
	if kl.workers != nil {
		s.Syncs, s.Resyncs = kl.workers.runs, kl.elidedResyncs()
	}
	if kl.probes != nil {
		s.Probes = kl.probes.Probes()
	}
	if kl.eviction != nil {
		s.Evictions = kl.eviction.Evictions()
	}
	if kl.pleg != nil {
		s.PLEG = kl.pleg.Stats()
	}
	return s
}
