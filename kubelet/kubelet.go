// Package kubelet is the node agent: it takes in pods from their sources, keeps
// one worker per pod that brings the pod's containers to what its spec says,
// reports the pods' and the node's status, and cleans up. It mirrors
// upstream's pkg/kubelet (kubelet.go, kubelet_pods.go and others) at v1.36
// and wires up the packages below it, which carry upstream's names.
//
// # Where to start
//
// wiring.go makes the parts, startup.go starts them. sync_loop.go and handlers.go
// take in what the sources, the PLEG and the probes tell; the pods' workers
// (package podworkers) act on it, by sync_pod.go. cleanups.go is housekeeping.
// node.go and node_reporter.go are the node role. Files called kubelet_*.go wire up
// one manager each, and carry upstream's names where it has them.
//
// # How it differs
//
// All of it runs on one loop, so there are no locks and no goroutines. A worker
// is its record and an entry of the work queue; only a sync in progress is a task.
// Periodic passes that would find what the last one found are elided: see elide.go
// and the files elide_*.go for which, and why the outcome is the same.
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
	"net"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/credentialprovider/plugin"
	"github.com/drydock-sim/drydock/kubelet/internal/clustertrustbundle"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/dra"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	"github.com/drydock-sim/drydock/kubelet/internal/nodelease"
	"github.com/drydock-sim/drydock/kubelet/internal/nodeshutdown"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/podcertificate"
	"github.com/drydock-sim/drydock/kubelet/internal/runtimeclass"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	"github.com/drydock-sim/drydock/kubelet/internal/token"
	"github.com/drydock-sim/drydock/kubelet/internal/tracing"
	"github.com/drydock-sim/drydock/kubelet/internal/util/manager"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/csi"
	"github.com/drydock-sim/drydock/kubelet/internal/volumemanager"
	"github.com/drydock-sim/drydock/kubelet/oom"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
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
	clustertrustbundle.Client
	podcertificate.Client
	token.Client
	volumemanager.Claims
	csi.Client
	dra.Client
	dra.SliceClient
	plugin.ServiceAccounts
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

// AddressFinder finds a machine's addresses as they are now: nodestatus.AddressFinder
// says how. Its methods may wait in the task that calls.
type AddressFinder interface {
	ValidateNodeIP(ctx context.Context, ip net.IP) error
	LookupIP(ctx context.Context, host string) []net.IP
	DefaultIP(ctx context.Context, preferred net.IP) (net.IP, error)
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
	// Unsupported lists what a pod asks for that is not there, for the log; nil: nobody
	// wants to know.
	Unsupported func(pod *v1.Pod) []string
	// Network is how probes and lifecycle hooks reach containers; nil: they
	// fail, but for those that run a command.
	Network prober.Network

	// NodeIPs are --node-ip: none, one, or one of each family; one that is unspecified
	// ("::") says only which family the node's address is of.
	NodeIPs []net.IP
	// Addresses finds the machine's addresses; nil: it has Machine's NodeIP for good, and
	// any of NodeIPs.
	Addresses AddressFinder
	// ExternalCloudProvider is --cloud-provider=external: the node is registered with a
	// taint that a cloud controller takes away, and has the addresses that one sets.
	ExternalCloudProvider bool
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
	// NoMetrics has nothing counted for /metrics, which then is refused. Counting costs
	// a hundredth of a simulation of many nodes.
	NoMetrics bool
	// Exit is called when the kubelet cannot go on, as its process would exit
	// with code 1. The owner is expected to kill Group. nil: nobody is told.
	Exit func(err error)
	// Log takes the log lines; nil means that none are made.
	Log func(format string, args ...any)
	// Tracer is told of syncs and garbage collections as spans; nil: nobody is.
	Tracer tracing.Tracer
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
	// DevicePlugins are the machine's device plugins; nil: it has none, and none come.
	DevicePlugins cm.DevicePlugins
	// PluginSockets are those of drivers (CSI, DRA); nil: there are none, and none come.
	PluginSockets pluginmanager.Sockets
	// DRAPlugins are the machine's DRA drivers; nil: they are those that register.
	DRAPlugins cm.DRAPlugins
	// CredentialProviders are the image credential provider plugins, which
	// CredentialPlugins runs; nil: there are none.
	CredentialProviders *plugin.Config
	CredentialPlugins   plugin.Runner
	// PodKeys makes the private keys of pods' certificates; nil: pods get none. It is asked
	// with the gate PodCertificateRequest only.
	PodKeys podcertificate.Keys
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
	Pods() []*kubecontainer.Pod
	Stats() pleg.Stats
	pleg.Relister
}

// nodeStatusManager keeps the node's status in the API: package nodestatus.
type nodeStatusManager interface {
	Start(g *loop.Group)
	Sync(ctx context.Context)
	InitialNode(ctx context.Context) *v1.Node
}

// Kubelet is one node's agent: its parts, in the order in which they are made. A
// part has what it needs of those before it; where two need each other, the
// earlier one is given a function that looks for the later one when it is called,
// which is after all are there.
type Kubelet struct {
	base
	knownPods
	node        *nodeView
	volumes     *podVolumes
	usage       *stats.Provider
	volumeStats *stats.Volumes
	eviction    *eviction.Manager
	shutdown    *nodeshutdown.Manager // nil: the machine's shutdown is not held up
	containers  *containerManager
	probes      *prober.Manager
	inputs      *containerInputs
	runtime     *kuberuntime.Manager
	pleg        podLifecycleEventGenerator
	evented     *pleg.Evented // nil: relists alone tell what happens
	syncer      *syncer
	reporter    *nodeReporter
	cleaner     *housekeeping
	gc          *containerGC
	imageGC     *images.GCManager
	loop        *syncLoop
	elided      elision
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
	kl := &Kubelet{base: base{
		settings: settings, opts: opts, l: opts.Loop, g: opts.Group, nodeName: name, cfg: opts.Config, client: opts.Client, fs: opts.FS,
		podsDir: path.Join(opts.RootDir, "pods"), log: opts.Log, nodeRef: nodestatus.NodeRef(name),
	}}
	if !opts.NoMetrics {
		kl.metrics = &metrics.Kubelet{}
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

// Pod returns a pod as its source has it, nil if the kubelet has none of that UID. It
// is shared and not to be written to.
func (kl *Kubelet) Pod(uid types.UID) *v1.Pod {
	if kl.pods == nil {
		return nil // it has not got that far
	}
	pod, _ := kl.pods.GetPodByUID(uid)
	return pod
}

// Healthy is the syncloop health check: an error when the sync loop has not turned
// for max(2 × syncFrequency, 5 min). One that never turned is healthy.
func (kl *Kubelet) Healthy() error {
	if kl.loop == nil {
		return nil
	}
	return kl.loop.healthy()
}

// NodeAddresses are the node's, as the API has them, for a serving certificate: none before the node
// is registered, nor without an API.
func (kl *Kubelet) NodeAddresses() []v1.NodeAddress {
	if kl.node == nil {
		return nil // it has not got that far
	}
	return kl.node.reported()
}

// Cgroups returns the node's cgroups above those of containers, as the pods, the
// machine and the configuration make them now: that of all pods, those of the
// classes, the pods' by UID, at last those reserved. nil while there are none.
// Where nobody makes cgroups, nothing is kept of them: they are computed here.
//
// Upstream writes the classes' values up to a minute, or a pod's creation, later.
func (kl *Kubelet) Cgroups(ctx context.Context) []cm.Cgroup {
	if kl.containers == nil || !kl.node.facts.once {
		return nil
	}
	return kl.containers.tree(ctx)
}

// DeleteUnusedImages removes the images that nothing uses and that are known for
// imageMinimumGCAge, as eviction does.
func (kl *Kubelet) DeleteUnusedImages(ctx context.Context) error {
	return kl.imageGC.DeleteUnusedImages(ctx)
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
	if kl.loop == nil {
		return Stats{} // it has not got that far
	}
	kl.elided.catchUp()
	return Stats{
		Housekeepings: kl.cleaner.passes, RuntimeChecks: kl.reporter.checks,
		Syncs: kl.workers.Runs(), Resyncs: kl.elided.resyncs(),
		Probes: kl.probes.Probes(), Evictions: kl.eviction.Evictions(), PLEG: kl.pleg.Stats(),
	}
}
