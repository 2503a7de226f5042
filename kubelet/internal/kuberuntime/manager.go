package kuberuntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/cm"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/actions"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/security"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
	"github.com/drydock-sim/drydock/kubelet/internal/network/dns"
	httpprobe "github.com/drydock-sim/drydock/kubelet/internal/probe/http"
)

// RuntimeService is what the manager needs of the CRI's runtime service; each
// method is that of k8s.io/cri-api/pkg/apis.RuntimeService.
type RuntimeService interface {
	Version(ctx context.Context, apiVersion string) (*runtimeapi.VersionResponse, error)
	Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error)
	RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, runtimeHandler string) (string, error)
	StopPodSandbox(ctx context.Context, podSandboxID string) error
	RemovePodSandbox(ctx context.Context, podSandboxID string) error
	PodSandboxStatus(ctx context.Context, podSandboxID string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error)
	ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	CreateContainer(ctx context.Context, podSandboxID string, config *runtimeapi.ContainerConfig, sandboxConfig *runtimeapi.PodSandboxConfig) (string, error)
	StartContainer(ctx context.Context, containerID string) error
	StopContainer(ctx context.Context, containerID string, timeout int64) error
	RemoveContainer(ctx context.Context, containerID string) error
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	ContainerStatus(ctx context.Context, containerID string, verbose bool) (*runtimeapi.ContainerStatusResponse, error)
	ExecSync(ctx context.Context, containerID string, cmd []string, timeout time.Duration) (stdout, stderr []byte, err error)
	UpdateRuntimeConfig(ctx context.Context, runtimeConfig *runtimeapi.RuntimeConfig) error
}

// ImageService is what the manager needs of the CRI's image service.
type ImageService interface {
	images.ImageService
	ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error)
}

// PodStates tells what the pod workers know of a pod. All methods take the
// pod's UID.
type PodStates interface {
	// IsPodTerminationRequested: somebody wants the pod to end.
	IsPodTerminationRequested(uid types.UID) bool
	// ShouldPodContentBeRemoved: evicted, or deleted and terminated, or
	// unknown once all sources are synced.
	ShouldPodContentBeRemoved(uid types.UID) bool
	// ShouldPodRuntimeBeRemoved: terminated, or unknown once synced.
	ShouldPodRuntimeBeRemoved(uid types.UID) bool
}

// RuntimeHelper gives what a container's config needs of the rest of the
// kubelet (upstream kubecontainer.RuntimeHelper).
type RuntimeHelper interface {
	// GenerateRunContainerOptions makes a container's environment and mounts.
	// podIPs are the pod's addresses; files reports whether it gets a hosts file
	// and a place for its termination message. An error is the message of
	// CreateContainerConfigError.
	GenerateRunContainerOptions(ctx context.Context, pod *v1.Pod, c *v1.Container, podIPs []string, files bool) (*kubecontainer.RunContainerOptions, error)
	// GetOrCreateUserNamespaceMappings returns the user namespace of a pod that
	// does not share its host's.
	GetOrCreateUserNamespaceMappings(pod *v1.Pod, runtimeHandler string) (*runtimeapi.UserNamespace, error)
}

// Annotator makes a pod's annotations as runtimes see them, of its own, which it
// does not write to.
type Annotator interface {
	Annotate(annotations map[string]string) map[string]string
}

// RuntimeClasses finds the runtime handlers of RuntimeClasses.
type RuntimeClasses interface {
	// LookupRuntimeHandler returns the handler of a class, "" without a name.
	LookupRuntimeHandler(ctx context.Context, name *string) (string, error)
}

// FileSystem is what the manager needs of the node's files: log directories,
// termination messages, the node's resolv.conf.
type FileSystem interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
	ReadDir(name string) ([]fs.DirEntry, error)
	MkdirAll(path string, perm fs.FileMode) error
	Remove(name string) error
	RemoveAll(path string) error
}

// The defaults of Options.
const (
	DefaultRequestTimeout = 2 * time.Minute
	DefaultPodLogsDir     = "/var/log/pods"
)

// Options are what a Manager is made of.
type Options struct {
	Loop *loop.Loop
	// Group is the kubelet's: the manager's tasks die with it.
	Group          *loop.Group
	RuntimeService RuntimeService
	ImageService   ImageService
	// Changes is RuntimeService, if that lists changes; nil: it lists everything
	// each time.
	Changes ChangeLister
	// Lean is RuntimeService, if that is one; nil: messages are whole.
	Lean LeanRuntime
	// Recorder takes events; nil drops them.
	Recorder images.EventRecorder
	// Metrics counts calls and starts; nil: nobody does.
	Metrics *metrics.Kubelet
	// PodStates is asked during syncs and garbage collection. nil means that
	// no pod is terminating and nothing may be removed.
	PodStates PodStates
	// Probes is nil while nothing probes: every running container counts as
	// started and alive.
	Probes actions.ProbeResults
	// Network carries the requests of lifecycle hooks; nil: they fail.
	Network httpprobe.Transport
	// FS is optional; nil means that log directories are left alone, and that
	// there are no termination messages.
	FS FileSystem
	// Helper is optional; nil means that containers get neither an environment
	// nor mounts.
	Helper RuntimeHelper
	// UsesFiles tells of a container that is to be created in a sandbox whether
	// it could ever look at its hosts file or write a termination message;
	// config has its name, attempt, image and command. nil: all could. It keeps
	// containers small that run nothing real.
	UsesFiles func(sandboxID string, config *runtimeapi.ContainerConfig) bool
	// RuntimeClasses is nil without an API: every pod has the default handler.
	RuntimeClasses RuntimeClasses
	// NodeRef is the node as the object of events; nil drops those.
	NodeRef *v1.ObjectReference
	// Allocation knows which resources containers were given; nil: those of
	// their spec.
	Allocation Allocation
	// Affinity says on which CPUs and NUMA nodes containers run; nil: on any.
	Affinity Affinity
	// Cgroups are the pods' cgroups; nil: a resize only tells the runtime.
	Cgroups *cm.PodCgroups
	// Reinspect has a pod inspected again although no listing shows a change.
	Reinspect func(uid types.UID)
	// PrepareDynamicResources has a pod's claims prepared before its sandbox is made; nil:
	// pods have none.
	PrepareDynamicResources func(ctx context.Context, pod *v1.Pod) error
	// SandboxReady is called when a new sandbox is ready; it must not wait.
	SandboxReady func(pod *v1.Pod)
	// Annotator tells how to make the annotations of a pod that the runtime is
	// told of; nil, or a nil result: they are the pod's own.
	Annotator func(uid types.UID) Annotator
	// Log takes the kubelet's log lines; nil means none.
	Log func(format string, args ...any)

	// RequestTimeout is runtimeRequestTimeout; 0 means 2 min, below 0 none.
	RequestTimeout time.Duration
	// PodLogsDir is where containers log to; "" means /var/log/pods.
	PodLogsDir string
	// ContainerLogsDir is where links to the logs are made; "": none are.
	ContainerLogsDir string
	// RootDir is the kubelet's; "" means /var/lib/kubelet.
	RootDir string
	// Images says how images are pulled. Its Loop, ImageService and Recorder
	// are set by New.
	Images images.Options
	// Node is what configs are made of.
	Node NodeConfig
}

// NodeConfig are the facts and settings of the node that shape CRI configs.
type NodeConfig struct {
	// DNS makes the pods' DNS settings.
	DNS dns.Configurer
	// ResolvConf is the path of the node's resolv.conf; "" means none.
	ResolvConf string
	// CgroupsPerQOS, CgroupRoot and SystemdCgroups shape the cgroup parent.
	CgroupsPerQOS  bool
	CgroupRoot     string
	SystemdCgroups bool
	// StopSignals is the feature gate ContainerStopSignals.
	StopSignals bool
	// SeccompDefault is the setting of that name.
	SeccompDefault bool
	// Resources decide the resources of pods and containers.
	Resources resources.Options
}

// Manager drives one node's runtime.
// It is for use on one loop. What it keeps beside its options is no state of
// pods, but for pictures: a kubelet that restarts reads everything back from
// the runtime.
type Manager struct {
	o         Options
	rt        *remote
	images    *images.Manager
	hooks     lifecycle.HandlerRunner
	hasher    kubecontainer.Hasher
	shared    shared
	resources *resources.Node
	security  security.Node
	// pictures stay empty without a ChangeLister.
	pictures pictures
	logs     containerLogs
	messages terminationMessages
	dns      podDNSSettings

	version     *runtimeapi.VersionResponse
	versionAt   time.Time
	runtimeName string
}

// New returns a Manager; it makes no call yet.
func New(o Options) (*Manager, error) {
	if o.Loop == nil || o.Group == nil || o.RuntimeService == nil || o.ImageService == nil {
		return nil, errors.New("kuberuntime: Loop, Group, RuntimeService and ImageService are needed")
	}
	o.RequestTimeout = cmp.Or(o.RequestTimeout, DefaultRequestTimeout)
	o.PodLogsDir = cmp.Or(o.PodLogsDir, DefaultPodLogsDir)
	o.RootDir = cmp.Or(o.RootDir, "/var/lib/kubelet")
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	m := &Manager{o: o, resources: resources.New(o.Node.Resources), security: security.Node{SeccompDefault: o.Node.SeccompDefault, SeccompDir: o.RootDir + "/seccomp"}}
	m.logs = containerLogs{fs: o.FS, podsDir: o.PodLogsDir, linksDir: o.ContainerLogsDir, log: o.Log}
	m.messages = terminationMessages{fs: o.FS, loop: o.Loop, log: o.Log}
	m.dns = podDNSSettings{fs: o.FS, resolvConf: o.Node.ResolvConf, configurer: &m.o.Node.DNS}
	m.rt = &remote{rt: o.RuntimeService, changes: o.Changes, lean: o.Lean, im: o.ImageService, timeout: o.RequestTimeout, l: o.Loop, metrics: o.Metrics}
	m.shared.noResources = m.resources.Of(nil, nil)
	io := o.Images
	io.NoAnnotations = o.Lean != nil
	io.Metrics = o.Metrics
	io.Loop, io.ImageService, io.Recorder = o.Loop, m.rt, o.Recorder
	m.images = images.New(io)
	m.hooks = lifecycle.HandlerRunner{Loop: o.Loop, Commands: m, HTTP: o.Network, Pods: hookPods{m}, Recorder: o.Recorder, Metrics: o.Metrics}
	return m, nil
}

// versionTTL is how long a version that was read is good for.
const versionTTL = time.Minute

// kubeRuntimeAPIVersion is the only version of the runtime API that there is.
const kubeRuntimeAPIVersion = "0.1.0"

// Connect asks the runtime for its version and refuses one that speaks another
// API than 0.1.0.
func (m *Manager) Connect(ctx context.Context) error {
	v, err := m.rt.Version(ctx, kubeRuntimeAPIVersion)
	if err != nil {
		return fmt.Errorf("get remote runtime typed version failed: %w", err)
	}
	if v.Version != kubeRuntimeAPIVersion {
		return fmt.Errorf("runtime api version is not supported: %q", v.Version)
	}
	m.keepVersion(v)
	return nil
}

// keepVersion notes an answer to Version, and when it came.
func (m *Manager) keepVersion(v *runtimeapi.VersionResponse) {
	m.version, m.versionAt, m.runtimeName = v, m.o.Loop.Now(), v.RuntimeName
}

// Version returns the runtime's name and versions, at most a minute old.
// Upstream caches it as long (pkg/kubelet/util/cache).
func (m *Manager) Version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	if m.version != nil && m.o.Loop.Since(m.versionAt) < versionTTL {
		return m.version, nil
	}
	v, err := m.rt.Version(ctx, kubeRuntimeAPIVersion)
	if err != nil {
		return nil, err
	}
	m.keepVersion(v)
	return v, nil
}

// RuntimeName is the runtime's name ("containerd"), "" before Connect.
func (m *Manager) RuntimeName() string { return m.runtimeName }

// RuntimeVersion is the last version read, nil before Connect.
func (m *Manager) RuntimeVersion() *runtimeapi.VersionResponse { return m.version }

// Status asks the runtime for its conditions, handlers and features.
func (m *Manager) Status(ctx context.Context) (*runtimeapi.StatusResponse, error) {
	resp, err := m.rt.Status(ctx, false)
	if err != nil {
		return nil, err
	}
	if resp.GetStatus() == nil {
		return nil, errors.New("runtime status is nil")
	}
	return resp, nil
}

// UpdatePodCIDR hands the addresses of the node's pods to the runtime: ranges,
// separated by commas.
func (m *Manager) UpdatePodCIDR(ctx context.Context, cidr string) error {
	return m.rt.UpdateRuntimeConfig(ctx, &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: cidr}})
}

// ListImages lists the images on the machine.
func (m *Manager) ListImages(ctx context.Context) ([]*runtimeapi.Image, error) {
	return m.rt.ListImages(ctx, nil)
}

// HashContainer is the hash by which a changed container is known.
func (m *Manager) HashContainer(c *v1.Container) string { return m.hasher.Hash(c) }

// event records an event, if somebody takes them.
func (m *Manager) event(ref *v1.ObjectReference, eventtype, reason, message string) {
	if m.o.Recorder != nil {
		m.o.Recorder.Event(ref, eventtype, reason, message)
	}
}

// terminationRequested reports whether the pod's worker has been told to end
// it.
func (m *Manager) terminationRequested(uid types.UID) bool {
	return m.o.PodStates != nil && m.o.PodStates.IsPodTerminationRequested(uid)
}
