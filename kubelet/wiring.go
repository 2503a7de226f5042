package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	kubeletcfg "github.com/drydock-sim/drydock/kubelet/apis/config"
	"github.com/drydock-sim/drydock/kubelet/internal/config"
	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/containerdeletor"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
	"github.com/drydock-sim/drydock/kubelet/internal/images"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime"
	"github.com/drydock-sim/drydock/kubelet/internal/kuberuntime/resources"
	"github.com/drydock-sim/drydock/kubelet/internal/pleg"
	kubepod "github.com/drydock-sim/drydock/kubelet/internal/pod"
	"github.com/drydock-sim/drydock/kubelet/internal/podworkers"
	"github.com/drydock-sim/drydock/kubelet/internal/status"
	"github.com/drydock-sim/drydock/kubelet/internal/tracing"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/internal/util/queue"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/kubelet/stats"
)

// Where two parts need each other, the earlier one is given a function that looks
// for the later one when it is called. Nothing calls before all are made: the
// sources that startSources starts only fill the queue of the sync loop.

// assemble makes the kubelet's parts, each of those before it.
func (kl *Kubelet) assemble(ctx context.Context) error {
	b, known := &kl.base, &kl.knownPods
	kl.recorder = kl.newRecorder()
	kl.recorder.Start(kl.g)
	kl.node = newNodeView(b)
	kl.makeKnownPods()
	if err := kl.checkSwap(); err != nil {
		return err
	}
	kl.volumes = newPodVolumes(b, known, kl.node, kl.elided.conditions.Grow)
	var err error
	var volumeStats *stats.Volumes
	kl.usage, volumeStats = newStats(b, known, kl.volumes)
	kl.volumeStats = volumeStats
	kl.eviction, err = newEviction(b, known, kl.usage, volumeStats,
		func(ctx context.Context) error { return kl.gc.deleteAll(ctx) },
		func(ctx context.Context) error { return kl.imageGC.DeleteUnusedImages(ctx) }, kl.elided.conditions.Grow)
	if err != nil {
		return err
	}
	kl.shutdown = newShutdown(b, known, kl.volumes, func(ctx context.Context) { kl.reporter.nodeStatus.Sync(ctx) })
	if kl.containers, err = newContainerManager(b, known); err != nil {
		return err
	}
	kl.node.devices = kl.containers.deviceManager
	kl.containers.devicesChanged = kl.elided.conditions.Grow
	if kl.allocation, err = kl.newAllocation(); err != nil {
		return err
	}
	kl.startSources()
	kl.probes = newProbes(b, known, func() *kuberuntime.Manager { return kl.runtime })
	kl.inputs = newContainerInputs(b, known, kl.node, kl.volumes)
	kl.inputs.devices, kl.inputs.claims = kl.containers.deviceManager, kl.containers.claims
	removals := &removalCounter{RuntimeService: kl.opts.RuntimeService}
	if kl.runtime, err = kuberuntime.New(kl.runtimeOptions(removals)); err != nil {
		return err
	}
	if err := kl.runtime.Connect(ctx); err != nil {
		return err
	}
	kl.makeSyncer()
	if err := kl.makePLEG(); err != nil {
		return err
	}
	kl.reporter = newNodeReporter(kl.node, kl.runtime, kl.inputs.pulls, kl.eviction, kl.shutdown, kl.volumes, kl.startRuntimeModules)
	// With an API the node's own range follows, which wins.
	if _, err := kl.reporter.updatePodCIDR(ctx, kl.cfg.PodCIDR); err != nil {
		kl.logf("Pod CIDR update failed: %v", err)
	}
	kl.cleaner = &housekeeping{
		base: b, knownPods: known, containers: kl.containers, volumes: kl.volumes, runtime: kl.runtime, probes: kl.probes,
		mirrors: kl.syncer.mirrors, backOff: kl.syncer.backOff,
	}
	kl.gc = newContainerGC(b, known, kl.runtime, removals)
	return nil
}

// makePLEG makes what tells of changes of containers, with an ear for the runtime's own events
// if there is a gate for it.
func (kl *Kubelet) makePLEG() error {
	o := pleg.Options{Loop: kl.l, Runtime: kl.runtime, Cache: kl.podCache, Log: kl.log, Metrics: kl.metrics}
	kl.node.state.addHealthCheck("PLEG", func() error { return kl.pleg.Healthy() })
	if !kl.settings.gates.Enabled(features.EventedPLEG) {
		kl.pleg = pleg.New(o)
		return nil
	}
	service, ok := kl.opts.RuntimeService.(pleg.EventService)
	if !ok {
		return errors.New("feature gate EventedPLEG: the runtime's client does not stream container events")
	}
	o.RelistPeriod, o.RelistThreshold, o.Shared = pleg.EventedRelistPeriod, pleg.EventedRelistThreshold, true
	generic := pleg.New(o)
	kl.pleg = generic
	kl.metrics.Evented()
	kl.evented = pleg.NewEvented(pleg.EventedOptions{
		Service: service, Generate: kl.runtime.GeneratePodStatus, Generic: generic,
		Relister: func() pleg.Relister { return kl.pleg }, Metrics: kl.metrics,
	})
	kl.node.state.addHealthCheck("EventedPLEG", kl.evented.Healthy)
	return nil
}

// newRecorder makes what sends events to the API.
func (kl *Kubelet) newRecorder() *record.Recorder {
	o := record.Options{Loop: kl.l, Host: kl.nodeName, QPS: 50, Burst: int(kl.cfg.EventBurst), Log: kl.log}
	if kl.cfg.EventRecordQPS != nil {
		o.QPS = float64(*kl.cfg.EventRecordQPS)
	}
	// client-go takes 0 for its own defaults, not for no limit (rest/config.go).
	if o.QPS == 0 {
		o.QPS = 5
	}
	if o.Burst == 0 {
		o.Burst = 10
	}
	if kl.client != nil {
		o.Client = kl.client
		o.PodVersion = kl.firstVersion
	}
	return record.New(o)
}

// makeKnownPods makes what keeps pods, and their workers.
func (kl *Kubelet) makeKnownPods() {
	known := &kl.knownPods
	known.podConfig = config.NewPodConfig(config.Options{Loop: kl.l, Recorder: kl.recorder})
	known.pods = kubepod.NewManager()
	known.podCache = kubecontainer.NewCache()
	known.workers = podworkers.New(podworkers.Options{
		Group: kl.g, Metrics: kl.metrics, Cache: known.podCache, Queue: queue.NewWorkQueue(), Recorder: kl.recorder,
		Resync: kl.cfg.SyncFrequency.Duration, Log: kl.log,
		RequestRelist: func(uid types.UID) { kl.pleg.RequestRelist(uid) },
		Changed:       func() { kl.volumes.PodsChanged() },
		FirstSeen:     known.podConfig.FirstSeen,
		Cancelled:     func(uid types.UID) { kl.probes.Cancel(uid); kl.volumes.CancelWait(uid) },
	})
	o := status.Options{Metrics: kl.metrics, Loop: kl.l, PodManager: known.pods, DeletionSafety: deletionSafety{known}, Log: kl.log}
	if kl.client != nil {
		o.Client = kl.client
	}
	known.statusManager = status.New(o)
	known.statusManager.Shared = known.workers.ReplaceStatus
}

// makeSyncer makes what the pods' workers do.
func (kl *Kubelet) makeSyncer() {
	kl.syncer = &syncer{
		base: &kl.base, knownPods: &kl.knownPods, node: kl.node, containers: kl.containers, volumes: kl.volumes, runtime: kl.runtime, probes: kl.probes,
		mirrors: kubepod.NewMirrorClient(nil, nil, nil), reasons: status.NewReasons(),
		backOff: kubecontainer.NewBackoff(kubecontainer.BackoffBase, kubeletcfg.MaxRestartPeriod(kl.cfg)), users: kl.inputs.users,
	}
	if kl.client != nil {
		kl.syncer.mirrors = kubepod.NewMirrorClient(kl.client, kl.node.get, kl.log)
	}
	kl.syncer.env = status.Env{
		PrimaryIPv6: len(kl.opts.NodeIPs) > 0 && utilnet.IsIPv6(kl.opts.NodeIPs[0]),
		RuntimeName: kl.runtime.RuntimeName(), KubeletStart: kl.l.Now(), Reason: kl.syncer.reasons.Get,
		Probes: kl.probes.ForStatus(),
		Totals: &status.TotalsMemo{},
		DeadlineExceeded: func(pod *v1.Pod) {
			kl.recorder.Event(kubecontainer.PodRef(pod), v1.EventTypeNormal, events.DeadlineExceeded, "Pod was active on the node longer than the specified deadline")
		},
	}
	if kl.client != nil {
		kl.syncer.env.HostIPs = kl.node.hostIPs
	}
	kl.syncer.env.Claims = kl.containers.claimStatus
	if kl.opts.DevicePlugins != nil {
		kl.syncer.env.Devices = kl.containers.deviceManager.Status
	}
	kl.workers.Syncer = kl.syncer
	if kl.opts.Tracer != nil {
		kl.workers.Syncer = tracing.Syncer(kl.syncer, kl.opts.Tracer)
	}
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

func (kl *Kubelet) runtimeOptions(removals *removalCounter) kuberuntime.Options {
	cfg := kl.cfg
	mem := kl.opts.Machine.Capacity()[v1.ResourceMemory]
	var changes kuberuntime.ChangeLister
	var lean kuberuntime.LeanRuntime
	if kl.l.Elides() {
		changes, _ = kl.opts.RuntimeService.(kuberuntime.ChangeLister)
		lean, _ = kl.opts.RuntimeService.(kuberuntime.LeanRuntime)
	}
	o := kuberuntime.Options{
		Changes: changes, Lean: lean, Metrics: kl.metrics,
		Loop: kl.l, Group: kl.g, RuntimeService: removals, ImageService: kl.opts.ImageService,
		Recorder: kl.recorder, PodStates: kl.workers, FS: kl.fs, Log: kl.log,
		SandboxReady:            kl.sandboxReady,
		PrepareDynamicResources: kl.containers.prepareClaims,
		Annotator:               kl.annotator,
		Allocation:              kl.allocation,
		Cgroups:                 kl.containers.cgroups,
		Affinity:                kl.containers.affinity(),
		Reinspect:               func(uid types.UID) { kl.pleg.RequestReinspect(uid) },
		Probes:                  kl.probes.ForRuntime(),
		Network:                 kl.opts.Network,
		RequestTimeout:          cfg.RuntimeRequestTimeout.Duration, PodLogsDir: cfg.PodLogsDir, RootDir: kl.opts.RootDir,
		ContainerLogsDir: kl.opts.ContainerLogsDir,
		Node: kuberuntime.NodeConfig{
			CgroupsPerQOS: ptr.Deref(cfg.CgroupsPerQOS, true), CgroupRoot: path.Clean("/" + cfg.CgroupRoot),
			SystemdCgroups: kl.systemdCgroups,
			StopSignals:    kl.settings.gates.Enabled(features.ContainerStopSignals),
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
	kl.containers.addMemory(&o.Node.Resources)
	kl.inputs.complete(&o)
	return o
}

// sandboxReady publishes, in the middle of a sync, that a pod's sandbox is
// ready: as a step of its own right after the runtime manager's.
func (kl *Kubelet) sandboxReady(pod *v1.Pod) {
	kl.g.After(0, func() { kl.statusManager.SetReadyToStartContainers(pod) })
}

// startRuntimeModules starts what needs the runtime, once.
func (kl *Kubelet) startRuntimeModules(ctx context.Context) error {
	if kl.client != nil && kl.node.get() == nil {
		// The container manager and the DRA manager each ask for the node. While
		// the API has none they get one built here, whose new conditions show in
		// events.
		kl.reporter.nodeStatus.InitialNode(ctx)
		kl.reporter.nodeStatus.InitialNode(ctx)
	}
	if err := kl.settings.reserved.Check(kl.settings.resources.all.Capacity); err != nil {
		kl.nodeEvent(v1.EventTypeWarning, events.KubeletSetupFailed, err.Error())
		return fmt.Errorf("failed to start ContainerManager: %w", err)
	}
	if err := kl.containers.startManagers(ctx, kl.elided.cpus.Settled); err != nil {
		return fmt.Errorf("failed to start ContainerManager: %w", err)
	}
	if err := kl.startContainerLogs(); err != nil {
		return err
	}
	if err := kl.containers.startCgroups(ctx); err != nil {
		return fmt.Errorf("failed to start ContainerManager: %w", err)
	}
	kl.startPlugins()
	kl.eviction.Start()
	// If the machine's shutdown can't be held up, nobody does.
	if err := kl.shutdown.Start(ctx); err != nil {
		kl.logf("Failed to start node shutdown manager: %v", err)
	}
	return nil
}

// newSyncLoop makes the sync loop, whose ticks begin now.
func (kl *Kubelet) newSyncLoop() *syncLoop {
	return &syncLoop{
		base: &kl.base, knownPods: &kl.knownPods, node: kl.node, volumes: kl.volumes, containers: kl.containers, probes: kl.probes, pleg: kl.pleg,
		eviction: kl.eviction, admission: kl.elided.admission(&kl.knownPods), cleanUpPods: kl.elided.cleanups(kl.cleaner.handlePodCleanups), runtimeName: kl.syncer.env.RuntimeName,
		deletor:      containerdeletor.New(kl.g, kl.gcPolicy().MaxPerPodContainer, kl.runtime.RemoveContainer, kl.logf),
		ticks:        kl.g.Ticks("sync-tick", syncTickPeriod),
		housekeeping: kl.g.Ticks("housekeeping-tick", housekeepingPeriod),
	}
}
