package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
	"github.com/drydock-sim/drydock/kubelet/internal/nodelease"
	"github.com/drydock-sim/drydock/kubelet/internal/nodestatus"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/util/queue"
	"github.com/drydock-sim/drydock/kubelet/record"
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

// run is the kubelet's main task: it connects, builds, starts everything in
// upstream's order and then is the sync loop.
func (kl *Kubelet) run(ctx context.Context) error {
	kl.logf("Kubelet version kubeletVersion=%s", Version)
	driver, err := kl.connect(ctx)
	if err != nil {
		return err
	}
	kl.systemdCgroups = driver == cgroupDriverSystemd
	kl.build()
	if err := kl.checkSwap(); err != nil {
		return err
	}
	kl.buildVolumes()
	if err := kl.buildEviction(); err != nil {
		return err
	}
	kl.buildShutdown()
	if err := kl.buildManagers(); err != nil {
		return err
	}
	if err := kl.buildAllocation(); err != nil {
		return err
	}
	kl.startSources()
	if err := kl.buildRuntime(ctx, driver); err != nil {
		return err
	}
	kl.buildNode()
	kl.waitForNode(ctx)
	kl.recorder.Event(kl.node.ref, v1.EventTypeNormal, events.StartingKubelet, "Starting kubelet.")
	if kl.opts.CgroupV1 {
		kl.logf("Warning: cgroup check: " + cgroupV1Deprecated)
		kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.CgroupV1, cgroupV1Deprecated)
	}
	kl.checkResolvConf()
	kl.elide()
	kl.g.Until("container-gc", containerGCPeriod, 0, func(ctx context.Context) { kl.bodies.collectContainers(ctx) }).Elide(loop.Skip(kl.elided.containerGC.Settled))
	kl.buildImageGC()
	kl.startImageGC(ctx)
	if kl.client != nil {
		kl.state.setStorageError(errors.New("CSINode is not yet initialized"))
	} else {
		kl.logf("No API server defined - no node status update will be sent")
	}
	for _, d := range [...]string{kl.opts.RootDir, kl.podsDir, kl.cfg.PodLogsDir} {
		if err := kl.fs.MkdirAll(d, 0o750); err != nil {
			kl.recorder.Event(kl.node.ref, v1.EventTypeWarning, events.KubeletSetupFailed, err.Error())
			return fmt.Errorf("failed to initialize internal modules: %w", err)
		}
	}
	if dir := kl.opts.ContainerLogsDir; dir != "" {
		if err := kl.fs.MkdirAll(dir, 0o755); err != nil {
			kl.logf("Failed to create directory %q: %v", dir, err)
		}
	}
	if err := kl.watchOOM(); err != nil {
		return err
	}
	kl.startImageDetection()
	kl.g.Until("image-list", imageListPeriod, 0, func(ctx context.Context) { kl.bodies.listImages(ctx) }).Elide(loop.Skip(kl.elided.sameImages))
	kl.volumes.Start()
	kl.startNode()
	checks := kl.g.Until("update-runtime-up", runtimeUpPeriod, 0, kl.updateRuntimeUp)
	kl.statusManager.Start(kl.g)
	kl.allocation.Run()
	kl.pleg.Start(kl.g)
	kl.loop = newSyncLoop(kl.g)
	kl.elideLoops(checks)
	kl.runSyncLoop(ctx)
	return nil
}

const cgroupV1Deprecated = "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. " +
	"Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"

// connect checks that the runtime is there and asks it for its cgroup driver.
func (kl *Kubelet) connect(ctx context.Context) (driver string, err error) {
	endpoint := kl.cfg.ContainerRuntimeEndpoint
	rt := kl.opts.RuntimeService
	call := func(fn func(ctx context.Context) error) error {
		cctx, cancel := loop.WithTimeout(ctx, kl.cfg.RuntimeRequestTimeout.Duration)
		defer cancel()
		return fn(cctx)
	}
	if err := call(func(ctx context.Context) error { _, err := rt.Version(ctx, kubeletRuntimeAPI); return err }); err != nil {
		return "", fmt.Errorf("validate service connection: validate CRI v1 runtime API for endpoint %q: %w", endpoint, err)
	}
	if kl.cfg.ImageServiceEndpoint != "" {
		endpoint = kl.cfg.ImageServiceEndpoint
	}
	if err := call(func(ctx context.Context) error { _, err := kl.opts.ImageService.ImageFsInfo(ctx); return err }); err != nil {
		return "", fmt.Errorf("validate service connection: validate CRI v1 image API for endpoint %q: %w", endpoint, err)
	}
	driver = kl.cfg.CgroupDriver
	for i := range runtimeConfigTries {
		var resp *runtimeapi.RuntimeConfigResponse
		err := call(func(ctx context.Context) (err error) { resp, err = rt.RuntimeConfig(ctx); return err })
		last := i == runtimeConfigTries-1
		switch {
		case err != nil && isUnimplemented(err):
			kl.logf("CRI implementation should be updated to support RuntimeConfig. Falling back to using cgroupDriver from kubelet config.")
			return driver, nil
		case err != nil && last:
			return "", err
		case err != nil:
			if err := kl.l.Sleep(ctx, runtimeConfigPause); err != nil {
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

// build makes what needs no runtime.
func (kl *Kubelet) build() {
	cfg := kl.cfg
	ro := record.Options{Loop: kl.l, Host: kl.nodeName, QPS: 50, Burst: int(cfg.EventBurst), Log: kl.log}
	if cfg.EventRecordQPS != nil {
		ro.QPS = float64(*cfg.EventRecordQPS)
	}
	// client-go takes 0 for its own defaults, not for no limit (rest/config.go).
	if ro.QPS == 0 {
		ro.QPS = 5
	}
	if ro.Burst == 0 {
		ro.Burst = 10
	}
	if kl.client != nil {
		ro.Client = kl.client
		ro.PodVersion = kl.firstVersion
	}
	kl.recorder = record.New(ro)
	kl.recorder.Start(kl.g)
	kl.state = newRuntimeState(kl.l)
	kl.node.ref = nodestatus.NodeRef(kl.nodeName)
	kl.podConfig = config.NewPodConfig(config.Options{Loop: kl.l, Recorder: kl.recorder})
	kl.pods = kubepod.NewManager()
	kl.mirrors = kubepod.NewMirrorClient(nil, nil, nil)
	if kl.client != nil {
		kl.mirrors = kubepod.NewMirrorClient(kl.client, kl.node.get, kl.log)
	}
	kl.podCache = kubecontainer.NewCache()
	kl.reasons = newReasonCache()
	kl.queue = queue.NewWorkQueue()
	kl.workers = newPodWorkers(podWorkersOptions{
		Group: kl.g, Syncer: kl, Cache: kl.podCache, Queue: kl.queue, Recorder: kl.recorder,
		Resync: cfg.SyncFrequency.Duration, Log: kl.log,
		RequestRelist: func(uid types.UID) { kl.pleg.RequestRelist(uid) },
		Changed:       func() { kl.volumes.PodsChanged() },
		FirstSeen:     kl.podConfig.FirstSeen,
		Cancelled:     func(uid types.UID) { kl.probes.Cancel(uid); kl.volumes.CancelWait(uid) },
	})
	so := status.Options{Loop: kl.l, PodManager: kl.pods, DeletionSafety: deletionSafety{kl}, Log: kl.log}
	if kl.client != nil {
		so.Client = kl.client
	}
	kl.statusManager = status.New(so)
	kl.statusManager.Shared = kl.workers.replaceStatus
	kl.backOff = kubecontainer.NewBackoff(kubecontainer.BackoffBase, maxRestartPeriod(cfg))
	kl.deletor = &containerDeletor{
		start:  func(name string, fn func(context.Context)) { kl.g.Go(name, fn) },
		remove: func(ctx context.Context, id string) error { return kl.runtime.RemoveContainer(ctx, id) },
		logf:   kl.logf,
		keep:   max(kl.gcPolicy().MaxPerPodContainer, minDeadContainerInPod),
	}
}

// deletionSafety answers the status manager.
type deletionSafety struct{ kl *Kubelet }

// PodCouldHaveRunningContainers is about the API's pod; a mirror stands for its
// static pod.
func (d deletionSafety) PodCouldHaveRunningContainers(pod *v1.Pod) bool {
	return d.kl.workers.CouldHaveRunningContainers(d.kl.pods.TranslatePodUID(pod.UID))
}

// startSources starts the node informer and the sources of pods.
func (kl *Kubelet) startSources() {
	if kl.client != nil {
		kl.node.start(kl.g, kl.client, kl.nodeName)
	}
	if kl.cfg.StaticPodPath != "" {
		kl.logf("Adding static pod path path=%s", kl.cfg.StaticPodPath)
		config.StartFile(config.FileOptions{
			Group: kl.g, FS: kl.fs, Path: kl.cfg.StaticPodPath, Period: kl.cfg.FileCheckFrequency.Duration,
			Pods:   config.StaticPods{NodeName: kl.nodeName, Defaulter: kl.opts.Defaulter, Validator: kl.opts.Validator},
			Source: kl.podConfig.Source(kubetypes.FileSource), Log: kl.log,
		})
	}
	if kl.cfg.StaticPodURL != "" && kl.opts.Fetcher != nil {
		kl.logf("Adding pod URL url=%s", kl.cfg.StaticPodURL)
		config.StartHTTP(config.HTTPOptions{
			Group: kl.g, Fetcher: kl.opts.Fetcher, URL: kl.cfg.StaticPodURL, Header: kl.cfg.StaticPodURLHeader,
			Period: kl.cfg.HTTPCheckFrequency.Duration,
			Pods:   config.StaticPods{NodeName: kl.nodeName, Defaulter: kl.opts.Defaulter, Validator: kl.opts.Validator},
			Source: kl.podConfig.Source(kubetypes.HTTPSource), Log: kl.log,
		})
	}
	if kl.client != nil {
		kl.logf("Adding apiserver pod source")
		config.StartAPIServer(kl.g, kl.client, kl.nodeName, kl.node.hasSynced, kl.podConfig.Source(kubetypes.ApiserverSource))
	}
}

// buildRuntime makes what needs the runtime.
func (kl *Kubelet) buildRuntime(ctx context.Context, driver string) error {
	var err error
	kl.buildProbes()
	kl.buildContainerInputs()
	if kl.runtime, err = kuberuntime.New(kl.runtimeOptions(driver)); err != nil {
		return err
	}
	if err := kl.runtime.Connect(ctx); err != nil {
		return err
	}
	kl.statusEnv = status.Env{
		RuntimeName: kl.runtime.RuntimeName(), KubeletStart: kl.l.Now(), Reason: kl.reasons.Get,
		Probes: kl.probes.ForStatus(),
		Totals: &status.TotalsMemo{},
		DeadlineExceeded: func(pod *v1.Pod) {
			kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeNormal, events.DeadlineExceeded, "Pod was active on the node longer than the specified deadline")
		},
	}
	if kl.client != nil {
		kl.statusEnv.HostIPs = kl.hostIPs
	}
	kl.pleg = pleg.New(pleg.Options{Loop: kl.l, Runtime: kl.runtime, Cache: kl.podCache, Log: kl.log})
	kl.state.addHealthCheck("PLEG", func() error { return kl.pleg.Healthy() })
	return nil
}

func (kl *Kubelet) runtimeOptions(driver string) kuberuntime.Options {
	cfg := kl.cfg
	kl.removals.RuntimeService = kl.opts.RuntimeService
	mem := kl.opts.Machine.Capacity()[v1.ResourceMemory]
	var changes kuberuntime.ChangeLister
	var lean kuberuntime.LeanRuntime
	if kl.l.Elides() {
		changes, _ = kl.opts.RuntimeService.(kuberuntime.ChangeLister)
		lean, _ = kl.opts.RuntimeService.(kuberuntime.LeanRuntime)
	}
	o := kuberuntime.Options{
		Changes: changes, Lean: lean,
		Loop: kl.l, Group: kl.g, RuntimeService: &kl.removals, ImageService: kl.opts.ImageService,
		Recorder: kl.recorder, PodStates: kl.workers, FS: kl.fs, Log: kl.log,
		SandboxReady:   kl.sandboxReady,
		Annotator:      kl.annotator,
		Allocation:     kl.allocation,
		Cgroups:        kl.cgroups,
		Affinity:       kl.affinity(),
		Reinspect:      func(uid types.UID) { kl.pleg.RequestReinspect(uid) },
		Probes:         kl.probes.ForRuntime(),
		Network:        kl.opts.Network,
		RequestTimeout: cfg.RuntimeRequestTimeout.Duration, PodLogsDir: cfg.PodLogsDir, RootDir: kl.opts.RootDir,
		ContainerLogsDir: kl.opts.ContainerLogsDir,
		Node: kuberuntime.NodeConfig{
			CgroupsPerQOS: ptr.Deref(cfg.CgroupsPerQOS, true), CgroupRoot: path.Clean("/" + cfg.CgroupRoot),
			SystemdCgroups: driver == cgroupDriverSystemd,
			StopSignals:    kl.gates.Enabled(features.ContainerStopSignals),
			SeccompDefault: ptr.Deref(cfg.SeccompDefault, false),
			Resources:      resources.Options{NoCPUQuota: !ptr.Deref(cfg.CPUCFSQuota, true), CFSPeriod: defaultCPUPeriod, MemoryCapacity: mem.Value()},
		},
		Images: images.Options{Parallel: !ptr.Deref(cfg.SerializeImagePulls, true), QPS: 5, Burst: cfg.RegistryBurst},
	}
	if cfg.CPUCFSQuotaPeriod != nil {
		o.Node.Resources.CFSPeriod = cfg.CPUCFSQuotaPeriod.Duration
	}
	if cfg.MaxParallelImagePulls != nil {
		o.Images.MaxParallel = int(*cfg.MaxParallelImagePulls)
	}
	if cfg.RegistryPullQPS != nil {
		o.Images.QPS = *cfg.RegistryPullQPS
	}
	kl.addMemory(&o.Node.Resources)
	kl.addContainerInputs(&o)
	return o
}

// sandboxReady publishes, in the middle of a sync, that a pod's sandbox is
// ready: as a step of its own right after the runtime manager's.
func (kl *Kubelet) sandboxReady(pod *v1.Pod) {
	kl.g.After(0, func() { kl.statusManager.SetReadyToStartContainers(pod) })
}

// buildNode makes what reports the node.
func (kl *Kubelet) buildNode() {
	cfg := kl.cfg
	o := nodestatus.Options{
		Loop: kl.l, Recorder: kl.recorder, NodeName: kl.nodeName, Labels: kl.opts.NodeLabels,
		Register: ptr.Deref(cfg.RegisterNode, true), RegisterTaints: cfg.RegisterWithTaints, ProviderID: cfg.ProviderID,
		Annotations: kl.settings.annotations, Ref: kl.node.ref,
		UpdateFrequency: cfg.NodeStatusUpdateFrequency.Duration, ReportFrequency: cfg.NodeStatusReportFrequency.Duration,
		Port: cfg.Port, RuntimeName: kl.runtime.RuntimeName(), KubeletVersion: Version,
		DeclaredFeatures: kl.settings.declared, Timeout: heartbeatTimeout(cfg),
		Sources: kl.nodeSources(), Log: kl.log,
	}
	if cfg.NodeStatusMaxImages != nil {
		o.MaxImages = *cfg.NodeStatusMaxImages
	}
	lo := nodelease.Options{Loop: kl.l, NodeName: kl.nodeName, DurationSeconds: cfg.NodeLeaseDurationSeconds, Timeout: heartbeatTimeout(cfg), Log: kl.log}
	if kl.client != nil {
		o.Client, lo.Client = kl.client, kl.client
	}
	kl.nodeStatus = nodestatus.New(o)
	kl.lease = nodelease.New(lo)
}

// startNode starts what needs an API: node status, lease, and the mirrors of
// the static pods that are known when the node object appears.
func (kl *Kubelet) startNode() {
	if kl.client == nil {
		return
	}
	kl.nodeStatus.Start(kl.g)
	kl.lease.Start(kl.g)
	kl.g.Go("csi-node", kl.initializeCSINode)
	var poll *loop.Periodic
	poll = kl.g.EveryNow("fast-static-pods", mirrorPollPeriod, 0, func() {
		if kl.node.get() != nil {
			poll.Stop()
			kl.g.Go("fast-static-pods", kl.reconcileMirrors)
		}
	})
}

// waitForNode gives the node's first list the time that upstream takes to build
// itself meanwhile: by when it runs, an API that answers has answered. So the
// first relist and the sync loop come this much after the pod sources' start,
// and the relists after that much behind the sources' look for the node, which
// happens on whole seconds.
func (kl *Kubelet) waitForNode(ctx context.Context) {
	if kl.client == nil {
		return
	}
	if kl.l.Sleep(ctx, buildTime) == nil && !kl.node.hasSynced() {
		kl.logf("Node informer has not synced yet")
	}
}

// initializeCSINode stands for the CSINode object, which upstream writes once
// the API answers and the node is there; until then the node is not ready. The
// object itself belongs to CSI volumes.
func (kl *Kubelet) initializeCSINode(ctx context.Context) {
	_, err := kl.client.GetNode(ctx, kl.nodeName)
	for err != nil && !apierrors.IsNotFound(err) { // the API does not answer yet
		if kl.l.Sleep(ctx, csiPoll) != nil {
			return
		}
		_, err = kl.client.GetNode(ctx, kl.nodeName)
	}
	pause := csiFirstPause
	for try := 1; err != nil; try++ {
		if try == csiTries {
			kl.exit(fmt.Errorf("failed to initialize CSINode after retrying: %w", err))
			return
		}
		if kl.l.Sleep(ctx, pause) != nil {
			return
		}
		pause *= csiPauseFactor
		_, err = kl.client.GetNode(ctx, kl.nodeName)
	}
	kl.state.setStorageError(nil)
}

func (kl *Kubelet) machine() *nodestatus.Machine {
	m := kl.opts.Machine
	out := &nodestatus.Machine{
		MachineID: m.MachineID(), SystemUUID: m.SystemUUID(), BootID: m.BootID(),
		KernelVersion: m.KernelVersion(), OSImage: m.OSImage(),
	}
	if s := kl.swap(); s.Capacity > 0 {
		out.SwapCapacity = &s.Capacity
	}
	return out
}
