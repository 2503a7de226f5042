package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/oom"
	"github.com/drydock-sim/drydock/kubelet/pluginmanager"
)

// Periods of start-up and of what runs beside the sync loop.
const (
	runtimeConfigTries  = 3
	runtimeConfigPause  = 2 * time.Second
	runtimeUpPeriod     = 5 * time.Second
	containerGCPeriod   = time.Minute
	imageListPeriod     = 30 * time.Second
	mirrorPollPeriod    = 100 * time.Millisecond
	buildTime           = 80 * time.Millisecond
	csiFirstPause       = 30 * time.Millisecond
	csiPauseFactor      = 8
	csiTries            = 6
	csiPoll             = time.Second
	defaultCPUPeriod    = 100 * time.Millisecond
	kubeletRuntimeAPI   = "0.1.0"
	cgroupDriverSystemd = "systemd"
)

// run is the kubelet's main task: it connects, makes its parts, starts everything in
// upstream's order and then is the sync loop.
func (kl *Kubelet) run(ctx context.Context) error {
	kl.logf("Kubelet version kubeletVersion=%s", Version)
	driver, err := kl.connect(ctx)
	if err != nil {
		return err
	}
	if driver == cgroupDriverSystemd {
		kl.useSystemd(ctx)
	}
	if err := kl.assemble(ctx); err != nil {
		return err
	}
	kl.node.waitForNode(ctx)
	kl.nodeEvent(v1.EventTypeNormal, events.StartingKubelet, "Starting kubelet.")
	if kl.opts.CgroupV1 {
		kl.logf("Warning: cgroup check: " + cgroupV1Deprecated)
		kl.nodeEvent(v1.EventTypeWarning, events.CgroupV1, cgroupV1Deprecated)
	}
	kl.checkResolvConf()
	kl.elided.begin(kl)
	kl.g.Until("container-gc", containerGCPeriod, 0, func(ctx context.Context) { kl.gc.pass(ctx) }).Elide(loop.Skip(kl.elided.containerGC.Settled))
	kl.imageGC = newImageGC(&kl.base, kl.runtime, kl.inputs.pulls)
	kl.startImageGC(ctx, kl.imageGC)
	if kl.client != nil {
		kl.node.state.setStorageError(errors.New("CSINode is not yet initialized"))
	} else {
		kl.logf("No API server defined - no node status update will be sent")
	}
	if err := kl.makeDirs(); err != nil {
		return err
	}
	if err := kl.watchOOM(); err != nil {
		return err
	}
	kl.startImageDetection(kl.imageGC)
	kl.g.Until("image-list", imageListPeriod, 0, func(ctx context.Context) { kl.reporter.list(ctx) }).Elide(loop.Skip(kl.elided.sameImages))
	kl.volumes.Start()
	kl.reporter.start(kl.syncer.reconcileMirrors)
	checks := kl.g.Until("update-runtime-up", runtimeUpPeriod, 0, kl.reporter.updateRuntimeUp)
	kl.statusManager.Start(kl.g)
	kl.allocation.Run()
	kl.pleg.Start(kl.g)
	if kl.evented != nil {
		kl.evented.Start(kl.g)
	}
	kl.loop = kl.newSyncLoop()
	kl.elided.loops(checks)
	kl.loop.run(ctx)
	return nil
}

// makeDirs makes the kubelet's directories. Only those that pods need are worth an
// error.
func (kl *Kubelet) makeDirs() error {
	for _, d := range [...]string{kl.opts.RootDir, kl.podsDir, kl.cfg.PodLogsDir} {
		if err := kl.fs.MkdirAll(d, 0o750); err != nil {
			kl.nodeEvent(v1.EventTypeWarning, events.KubeletSetupFailed, err.Error())
			return fmt.Errorf("failed to initialize internal modules: %w", err)
		}
	}
	if dir := kl.opts.ContainerLogsDir; dir != "" {
		if err := kl.fs.MkdirAll(dir, 0o755); err != nil {
			kl.logf("Failed to create directory %q: %v", dir, err)
		}
	}
	return nil
}

const cgroupV1Deprecated = "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. " +
	"Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"

// connect checks that the runtime is there and asks it for its cgroup driver.
func (b *base) connect(ctx context.Context) (driver string, err error) {
	endpoint := b.cfg.ContainerRuntimeEndpoint
	rt := b.opts.RuntimeService
	call := func(fn func(ctx context.Context) error) error {
		cctx, cancel := loop.WithTimeout(ctx, b.cfg.RuntimeRequestTimeout.Duration)
		defer cancel()
		return fn(cctx)
	}
	if err := call(func(ctx context.Context) error { _, err := rt.Version(ctx, kubeletRuntimeAPI); return err }); err != nil {
		return "", fmt.Errorf("validate service connection: validate CRI v1 runtime API for endpoint %q: %w", endpoint, err)
	}
	if b.cfg.ImageServiceEndpoint != "" {
		endpoint = b.cfg.ImageServiceEndpoint
	}
	if err := call(func(ctx context.Context) error { _, err := b.opts.ImageService.ImageFsInfo(ctx); return err }); err != nil {
		return "", fmt.Errorf("validate service connection: validate CRI v1 image API for endpoint %q: %w", endpoint, err)
	}
	driver = b.cfg.CgroupDriver
	for i := range runtimeConfigTries {
		var resp *runtimeapi.RuntimeConfigResponse
		err := call(func(ctx context.Context) (err error) { resp, err = rt.RuntimeConfig(ctx); return err })
		last := i == runtimeConfigTries-1
		switch {
		case err != nil && isUnimplemented(err):
			b.logf("CRI implementation should be updated to support RuntimeConfig. Falling back to using cgroupDriver from kubelet config.")
			return driver, nil
		case err != nil && last:
			return "", err
		case err != nil:
			if err := b.l.Sleep(ctx, runtimeConfigPause); err != nil {
				return "", err
			}
		case last && resp.GetLinux() != nil:
			if driver = "cgroupfs"; resp.Linux.CgroupDriver == runtimeapi.CgroupDriver_SYSTEMD {
				driver = cgroupDriverSystemd
			}
		}
	}
	return driver, nil
}

// watchOOM has the node's events tell of processes that the kernel kills because
// the machine has no memory left. Its error ends the kubelet.
func (b *base) watchOOM() error {
	if b.opts.OOM == nil {
		return nil
	}
	err := b.opts.OOM.WatchOOM(func(k oom.Kill) {
		b.logf("Got sys oom event event=%+v", k)
		if msg, ok := oom.EventMessage(k); ok {
			b.nodeEvent(v1.EventTypeWarning, events.SystemOOM, msg)
		}
	})
	if err != nil {
		err = fmt.Errorf("failed to start OOM watcher: %w", err)
		b.nodeEvent(v1.EventTypeWarning, events.KubeletSetupFailed, err.Error())
		return fmt.Errorf("failed to initialize internal modules: %w", err)
	}
	return nil
}

// pluginHandlers are who uses the plugins of each type that the plugin manager finds.
func (kl *Kubelet) pluginHandlers() map[string]pluginmanager.Handler {
	out := map[string]pluginmanager.Handler{registerapi.CSIPlugin: kl.volumes.csi}
	if p := kl.containers.draPlugins; p != nil {
		out[registerapi.DRAPlugin] = p
		p.Start()
	}
	if m := kl.containers.deviceManager; m != nil {
		out[registerapi.DevicePlugin] = m.Handler()
	}
	return out
}

// startPlugins starts the plugin manager, if plugins can be there.
func (kl *Kubelet) startPlugins() {
	if kl.opts.PluginSockets == nil {
		return
	}
	m := pluginmanager.New(pluginmanager.Options{
		Group: kl.g, Sockets: kl.opts.PluginSockets, Dir: path.Join(kl.opts.RootDir, pluginmanager.Dir), Log: kl.logf,
	})
	for kind, h := range kl.pluginHandlers() { //drydock:unordered fills a map
		m.AddHandler(kind, h)
	}
	m.Start()
}
