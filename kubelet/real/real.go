//go:build linux

// Package real runs a kubelet on the machine it is started on: the core of
// package kubelet on a loop of the wall clock, with a container runtime behind a
// CRI socket, the machine's files, mounts, cgroups and network. It mirrors
// the assembly in upstream's cmd/kubelet/app/server.go; flags and configuration
// files are kubelet/app's.
//
// The packages below it, one for each of the kubelet's boundaries, can be used
// alone.
package real

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet"
	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/credentialprovider/plugin"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/devicemanager"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/noeffect"
	"github.com/drydock-sim/drydock/kubelet/real/cgroups"
	"github.com/drydock-sim/drydock/kubelet/real/credentialprovider"
	"github.com/drydock-sim/drydock/kubelet/real/cri"
	"github.com/drydock-sim/drydock/kubelet/real/filesystem"
	"github.com/drydock-sim/drydock/kubelet/real/iptables"
	"github.com/drydock-sim/drydock/kubelet/real/kmsg"
	"github.com/drydock-sim/drydock/kubelet/real/logind"
	"github.com/drydock-sim/drydock/kubelet/real/machine"
	"github.com/drydock-sim/drydock/kubelet/real/mount"
	"github.com/drydock-sim/drydock/kubelet/real/network"
	"github.com/drydock-sim/drydock/kubelet/real/plugins"
	"github.com/drydock-sim/drydock/kubelet/real/stats"
)

// DefaultContainerLogsDir is where the links to containers' logs are, as log
// collectors expect them.
const DefaultContainerLogsDir = "/var/log/containers"

// Options are what a kubelet on this machine is made of.
type Options struct {
	// Config is used as it is given: with defaults filled in (kubeletcfg.SetDefaults)
	// and valid. It is not written to.
	Config   *kubeletconfig.KubeletConfiguration
	NodeName string
	// RootDir is --root-dir, an absolute path; "" means kubelet.DefaultRootDir.
	RootDir string
	// NodeLabels are --node-labels.
	NodeLabels map[string]string
	// NodeIPs are --node-ip; none means the address of the interface that has the
	// default route. ExternalCloudProvider is --cloud-provider=external. Both are
	// kubelet.Options'.
	NodeIPs               []net.IP
	ExternalCloudProvider bool
	// RuntimeEndpoint and ImageEndpoint are the CRI sockets; "" means those of
	// Config.
	RuntimeEndpoint, ImageEndpoint string
	// NewClient makes the client of the API, for the loop that Run makes and a group of it which
	// dies with the kubelet; nil: standalone.
	NewClient func(l *loop.Loop, g *loop.Group) (kubelet.Client, error)
	// Defaulter and Validator are kubelet.Options' for static pods.
	Defaulter func(*v1.Pod)
	Validator func(*v1.Pod) error
	// Sources adds sources of pods, such as a manifest URL, before the kubelet
	// starts; nil adds none.
	Sources func(l *loop.Loop, g *loop.Group, o *kubelet.Options) error
	// ContainerLogsDir is where the links to logs are made; "" means
	// DefaultContainerLogsDir.
	ContainerLogsDir string
	// ImageCredentialProviderConfig and ImageCredentialProviderBinDir are
	// --image-credential-provider-config and -bin-dir: a file or a directory, and where
	// the plugins' programs are. Both "": there are none.
	ImageCredentialProviderConfig, ImageCredentialProviderBinDir string
	// TuneKernel has the kernel's settings be as a kubelet wants them, or with
	// protectKernelDefaults checked only. Without it they are left alone.
	TuneKernel bool
	// CgroupV1 is kubelet.Options'.
	CgroupV1 bool
	// GC and AllocatableIgnoresEviction are kubelet.Options'.
	GC                         *kuberuntime.GCPolicy
	AllocatableIgnoresEviction bool
	// Wrap, if set, may put something between the kubelet and its runtime.
	Wrap func(rt internalapi.RuntimeService, im internalapi.ImageManagerService) (internalapi.RuntimeService, internalapi.ImageManagerService)
	// Log takes log lines, from any goroutine; nil: none are made.
	Log func(format string, args ...any)
	// Started is called once the kubelet's loop runs, on a goroutine of its own.
	Started func(h *Handle)

	// watchClock stands in for the function of that name, in tests.
	watchClock func(ctx context.Context, step func())
}

func (o *Options) log(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

// errClockStep ends a loop whose clock is not the machine's any more.
var errClockStep = errors.New("the clock was set")

// Run runs a kubelet until ctx ends, which is no error, or it can't go on.
// Containers keep running either way, and the next kubelet takes them over.
//
// When somebody sets the machine's clock the kubelet starts over, as by a
// restart of its process: times that the runtime tells would no longer fit those
// of the loop, whose clock only runs forward.
func Run(ctx context.Context, o Options) error {
	if o.Config == nil {
		return errors.New("kubelet: there is no configuration")
	}
	o.RootDir = cmp.Or(o.RootDir, kubelet.DefaultRootDir)
	if clean := filepath.Clean(o.RootDir); clean != o.RootDir || !filepath.IsAbs(clean) {
		return fmt.Errorf("rootDirectory not in canonical form: expected %s, was %s", clean, o.RootDir)
	}
	o.ContainerLogsDir = cmp.Or(o.ContainerLogsDir, DefaultContainerLogsDir)
	o.RuntimeEndpoint = cmp.Or(o.RuntimeEndpoint, o.Config.ContainerRuntimeEndpoint)
	o.ImageEndpoint = cmp.Or(o.ImageEndpoint, o.Config.ImageServiceEndpoint)
	prepareProcess(&o)
	if o.TuneKernel {
		if err := tuneKernel("/proc/sys", o.Config.ProtectKernelDefaults, o.log); err != nil {
			return err
		}
	}
	h := &Handle{}
	for {
		err := runOnce(ctx, &o, h)
		if !errors.Is(err, errClockStep) || ctx.Err() != nil {
			return err
		}
		o.log("The machine's clock was set: the kubelet starts over")
	}
}

// runOnce runs a kubelet on one loop.
func runOnce(ctx context.Context, o *Options, h *Handle) error {
	m, err := machine.New(o.RootDir)
	if err != nil {
		return err
	}
	if len(o.NodeIPs) > 0 {
		m = m.WithNodeIP(o.NodeIPs[0])
	}
	l := loop.NewReal(loop.Options{Name: o.NodeName, Elision: loop.NoElide})
	defer l.Close()
	timeout := o.Config.RuntimeRequestTimeout.Duration
	spans, flush, err := newTracer(o.Config, o.NodeName)
	if err != nil {
		return err
	}
	defer flush()
	rt, im, closeCRI, err := cri.NewWithImages(ctx, l, o.RuntimeEndpoint, o.ImageEndpoint, timeout, providerOf(spans))
	if err != nil {
		return err
	}
	defer func() { _ = closeCRI() }()
	if o.Wrap != nil {
		rt, im = o.Wrap(rt, im)
	}
	providers, err := o.credentialProviders()
	if err != nil {
		return err
	}
	if err := prepareDirs(o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := l.NewGroup("kubelet")
	var exit error
	ko := kubelet.Options{
		Loop: l, Group: g, NodeName: o.NodeName, Config: o.Config, RuntimeService: rt, ImageService: im,
		FS: filesystem.New(l), Mounter: mount.New(), Machine: m, Network: network.New(l), Cgroups: newCgroups(o),
		NodeIPs: o.NodeIPs, Addresses: machine.Addresses{}, ExternalCloudProvider: o.ExternalCloudProvider,
		NodeLabels: o.NodeLabels, RootDir: o.RootDir, ContainerLogsDir: o.ContainerLogsDir,
		Defaulter: o.Defaulter, Validator: o.Validator, Durable: true, Log: o.Log,
		CgroupV1: o.CgroupV1, GC: o.GC, AllocatableIgnoresEviction: o.AllocatableIgnoresEviction,
		CredentialProviders: providers, CredentialPlugins: credentialprovider.Runner{BinDir: o.ImageCredentialProviderBinDir},
		OOM: kmsg.New(l, g, o.log), Unsupported: noeffect.Unsupported, PodKeys: podKeys{},
		Exit: func(err error) { exit = err; cancel(err) },
	}
	if spans != nil {
		ko.Tracer = spans
	}
	devices := plugins.NewDevicePlugins(g, filepath.Join(o.RootDir, devicemanager.Dir), o.log)
	defer devices.Close()
	ko.DevicePlugins, ko.PluginSockets = devices, plugins.NewSockets(g, o.log)
	bus := logind.New(l, g, logind.Options{})
	defer func() { _ = bus.Close() }()
	ko.Logind = bus
	if ms, err := stats.New(l); err == nil {
		ko.MachineStats = ms
	} else {
		o.log("What the machine uses is not known, so the node is never under pressure: %v", err)
	}
	if o.NewClient != nil {
		if ko.Client, err = o.NewClient(l, g); err != nil {
			return err
		}
	}
	if o.Sources != nil {
		if err := o.Sources(l, g, &ko); err != nil {
			return err
		}
	}
	k, err := kubelet.New(ko)
	if err != nil {
		return err
	}
	k.Start()
	defer keepIPTables(ctx, o)()
	resources, err := plugins.ServePodResources(g, o.RootDir, k.PodResources, o.log)
	if err != nil {
		return err
	}
	defer resources.Close()
	watch := watchClock
	if o.watchClock != nil {
		watch = o.watchClock
	}
	go watch(ctx, func() { cancel(errClockStep) })
	if h.set(l, g, k) && o.Started != nil {
		go o.Started(h)
	}
	defer h.set(nil, nil, nil)
	err = l.RunReal(ctx)
	g.Kill() // writes what is kept; a closed loop would not
	switch {
	case err != nil:
		return err
	case exit != nil:
		return exit
	case errors.Is(context.Cause(ctx), errClockStep):
		return errClockStep
	}
	return nil
}

// keepIPTables keeps the chains of iptables until the function that it returns is
// called. The chains stay, as upstream's.
func keepIPTables(ctx context.Context, o *Options) (stop func()) {
	if !ptr.Deref(o.Config.MakeIPTablesUtilChains, true) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { iptables.Keep(ctx, o.log) })
	return func() {
		cancel()
		keeper.Wait()
	}
}

// credentialProviders are the plugins that give credentials for images; nil: there are
// none. Upstream ends with that error in its log.
func (o *Options) credentialProviders() (*plugin.Config, error) {
	if o.ImageCredentialProviderConfig == "" && o.ImageCredentialProviderBinDir == "" {
		return nil, nil
	}
	c, err := credentialprovider.Load(o.ImageCredentialProviderConfig, o.ImageCredentialProviderBinDir, o.Config.FeatureGates)
	if err != nil {
		return nil, fmt.Errorf("failed to register CRI auth plugins: %w", err)
	}
	return c, nil
}

// newCgroups returns the pods' cgroups, or nil where the kubelet may not make
// any: the runtime makes them then, without limits of their own.
func newCgroups(o *Options) cm.NodeCgroups {
	cfg := o.Config
	if !ptr.Deref(cfg.CgroupsPerQOS, true) {
		return nil
	}
	co := cgroups.Options{Root: cfg.CgroupRoot, NoCPUQuota: !ptr.Deref(cfg.CPUCFSQuota, true), PodPids: ptr.Deref(cfg.PodPidsLimit, -1)}
	if cfg.CPUCFSQuotaPeriod != nil {
		co.CFSPeriod = cfg.CPUCFSQuotaPeriod.Duration
	}
	c, err := cgroups.New(co)
	if err != nil {
		o.log("The cgroups of pods are left to the runtime: %v", err)
		return nil
	}
	return c
}

// prepareDirs makes the directories that upstream makes beside those of the
// core.
func prepareDirs(o *Options) error {
	for _, d := range [...]struct {
		path string
		mode os.FileMode
	}{
		{o.RootDir, 0o750},
		{filepath.Join(o.RootDir, "pods"), 0o750},
		{filepath.Join(o.RootDir, "plugins"), 0o750},
		{filepath.Join(o.RootDir, "plugins_registry"), 0o750},
		{filepath.Join(o.RootDir, "pod-resources"), 0o750},
		{filepath.Join(o.RootDir, "checkpoints"), 0o700},
	} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return fmt.Errorf("failed to initialize internal modules: %w", err)
		}
	}
	if err := mount.New().MakeRShared(o.RootDir); err != nil {
		o.log("Mounts of containers won't be seen on the host: %v", err)
	}
	return nil
}

const (
	clockPeriod = time.Second
	// clockStep is by how much the clock must differ for the kubelet to start
	// over. What NTP slews is less.
	clockStep = 2 * time.Second
)

// watchClock calls step, once, when somebody has set the clock.
func watchClock(ctx context.Context, step func()) {
	base := time.Now()
	t := time.NewTicker(clockPeriod)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := time.Now()
		if stepped(now.Round(0).Sub(base.Round(0)), now.Sub(base)) {
			step()
			return
		}
	}
}

// stepped reports whether the clock was set between two readings: it went by
// another time than ran by the monotonic one.
func stepped(went, ran time.Duration) bool {
	d := went - ran
	return d > clockStep || d < -clockStep
}
