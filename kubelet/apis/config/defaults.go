package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// orUnset gives a zero value its default. It is for fields in which zero is no value of its own:
// a file that says 0 gets the default, as upstream.
func orUnset[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// orNil gives a nil pointer its default. A pointer is what upstream's types use where zero means
// something; a file's explicit zero stays.
func orNil[T any](p **T, def T) {
	if *p == nil {
		*p = &def
	}
}

// orDuration is orUnset for a duration: a zero one can't be told from one that is
// left out. That is a property of v1beta1's metav1.Duration fields, so 0s in a file is the
// default, too.
func orDuration(d *metav1.Duration, def time.Duration) { orUnset(&d.Duration, def) }

// hardEvictionDefaults are those of Linux, for signals that a configuration
// file leaves out.
// They are upstream's DefaultEvictionHard
// (pkg/kubelet/eviction/defaults_linux.go). A new map each time: callers change what they get.
func hardEvictionDefaults() map[string]string {
	return map[string]string{
		"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%",
		"imagefs.available": "15%", "imagefs.inodesFree": "5%",
	}
}

// SetDefaults fills in what a configuration file leaves out, as loading one
// with --config does: SetBaseDefaults and SetEvictionDefaults. Eviction comes first, since
// SetBaseDefaults sets the field that decides whether settings are merged.
func SetDefaults(cfg *kubeletconfig.KubeletConfiguration) {
	SetEvictionDefaults(cfg)
	SetBaseDefaults(cfg)
}

// SetBaseDefaults sets the defaults of v1beta1, among which there are no hard
// eviction thresholds (pkg/kubelet/apis/config/v1beta1/defaults.go). Groups of fields stand in
// functions of their own; their order matters only where one default depends on another field.
// Gates that cannot be resolved count as their defaults until Validate refuses them.
func SetBaseDefaults(cfg *kubeletconfig.KubeletConfiguration) {
	gates, _ := features.Resolve(cfg.FeatureGates) // Validate tells of errors
	setServerDefaults(cfg)
	setNodeDefaults(cfg)
	setPodDefaults(cfg, gates)
	setImageDefaults(cfg, gates)
	orNil(&cfg.MergeDefaultEvictionSettings, false)
	orDuration(&cfg.EvictionPressureTransitionPeriod, 5*time.Minute)
}

// SetEvictionDefaults sets the hard eviction thresholds that a configuration
// file leaves out: all if it has none, otherwise only with
// mergeDefaultEvictionSettings. An empty map that is not nil counts as given: it means no hard
// thresholds at all.
func SetEvictionDefaults(cfg *kubeletconfig.KubeletConfiguration) {
	switch {
	case cfg.EvictionHard == nil:
		cfg.EvictionHard = hardEvictionDefaults()
	case ptr.Deref(cfg.MergeDefaultEvictionSettings, false):
		merged := hardEvictionDefaults()
		for k, v := range cfg.EvictionHard { //drydock:unordered copies a map
			merged[k] = v
		}
		cfg.EvictionHard = merged
	}
}

// setServerDefaults sets what concerns the kubelet's own server, its client to the API and its
// log. Most of it has no effect in a simulation, but configz shows it, and Validate judges it.
func setServerDefaults(cfg *kubeletconfig.KubeletConfiguration) {
	orNil(&cfg.EnableServer, true)
	orUnset(&cfg.Address, "0.0.0.0")
	orUnset(&cfg.Port, 10250)
	orNil(&cfg.Authentication.Anonymous.Enabled, false)
	orNil(&cfg.Authentication.Webhook.Enabled, true)
	orDuration(&cfg.Authentication.Webhook.CacheTTL, 2*time.Minute)
	orUnset(&cfg.Authorization.Mode, kubeletconfig.KubeletAuthorizationModeWebhook)
	orDuration(&cfg.Authorization.Webhook.CacheAuthorizedTTL, 5*time.Minute)
	orDuration(&cfg.Authorization.Webhook.CacheUnauthorizedTTL, 30*time.Second)
	orNil(&cfg.EventRecordQPS, 50)
	orUnset(&cfg.EventBurst, 100)
	orNil(&cfg.EnableDebuggingHandlers, true)
	orNil(&cfg.HealthzPort, 10248)
	orUnset(&cfg.HealthzBindAddress, "127.0.0.1")
	orDuration(&cfg.StreamingConnectionIdleTimeout, 4*time.Hour)
	orUnset(&cfg.ContentType, "application/vnd.kubernetes.protobuf")
	orNil(&cfg.KubeAPIQPS, 50)
	orUnset(&cfg.KubeAPIBurst, 100)
	orNil(&cfg.EnableSystemLogHandler, true)
	orNil(&cfg.EnableSystemLogQuery, false)
	orNil(&cfg.EnableProfilingHandler, true)
	orNil(&cfg.EnableDebugFlagsHandler, true)
	orUnset(&cfg.Logging.Format, "text")
	if cfg.Logging.FlushFrequency.Duration.Duration == 0 {
		cfg.Logging.FlushFrequency.Duration.Duration = 5 * time.Second
	}
}

// setNodeDefaults sets what the node reports, and how it keeps to its resources.
func setNodeDefaults(cfg *kubeletconfig.KubeletConfiguration) {
	orNil(&cfg.RegisterNode, true)
	// Upstream reports as often as it updates where only the latter is
	// configured, so this comes before the other's default.
	if cfg.NodeStatusReportFrequency.Duration == 0 {
		cfg.NodeStatusReportFrequency.Duration = cfg.NodeStatusUpdateFrequency.Duration
		orDuration(&cfg.NodeStatusReportFrequency, 5*time.Minute)
	}
	orDuration(&cfg.NodeStatusUpdateFrequency, 10*time.Second)
	// The lease is renewed every quarter of it.
	orUnset(&cfg.NodeLeaseDurationSeconds, 40)
	orNil(&cfg.NodeStatusMaxImages, 50)
	orNil(&cfg.OOMScoreAdj, -999)
	orNil(&cfg.CgroupsPerQOS, true)
	orUnset(&cfg.CgroupDriver, "cgroupfs")
	orUnset(&cfg.CPUManagerPolicy, "none")
	orDuration(&cfg.CPUManagerReconcilePeriod, 10*time.Second)
	orUnset(&cfg.MemoryManagerPolicy, kubeletconfig.NoneMemoryManagerPolicy)
	orUnset(&cfg.TopologyManagerPolicy, kubeletconfig.NoneTopologyManagerPolicy)
	orUnset(&cfg.TopologyManagerScope, kubeletconfig.ContainerTopologyManagerScope)
	orUnset(&cfg.HairpinMode, kubeletconfig.PromiscuousBridge)
	orUnset(&cfg.MaxPods, 110)
	// Any negative limit means none, and is normalized to -1.
	if cfg.PodPidsLimit == nil || *cfg.PodPidsLimit < 0 {
		limit := int64(-1)
		cfg.PodPidsLimit = &limit
	}
	orNil(&cfg.ResolverConfig, "/etc/resolv.conf")
	orNil(&cfg.CPUCFSQuota, true)
	orNil(&cfg.CPUCFSQuotaPeriod, metav1.Duration{Duration: 100 * time.Millisecond})
	orUnset(&cfg.MaxOpenFiles, 1_000_000)
	orNil(&cfg.EnableControllerAttachDetach, true)
	orNil(&cfg.MakeIPTablesUtilChains, true)
	orNil(&cfg.IPTablesMasqueradeBit, 14)
	orNil(&cfg.IPTablesDropBit, 15)
	orNil(&cfg.FailSwapOn, true)
	orNil(&cfg.FailCgroupV1, true)
	if cfg.EnforceNodeAllocatable == nil {
		cfg.EnforceNodeAllocatable = []string{"pods"}
	}
	orUnset(&cfg.VolumePluginDir, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")
	orNil(&cfg.MemoryThrottlingFactor, 0.9)
	orUnset(&cfg.MemoryReservationPolicy, kubeletconfig.NoneMemoryReservationPolicy)
	orNil(&cfg.LocalStorageCapacityIsolation, true)
	orUnset(&cfg.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")
}

// setPodDefaults sets what concerns pods, their sources, logs and restarts. gates are the
// resolved feature gates: a field that belongs to a gate has a default only while the gate is on.
func setPodDefaults(cfg *kubeletconfig.KubeletConfiguration, gates features.Gates) {
	orUnset(&cfg.PodLogsDir, "/var/log/pods")
	orDuration(&cfg.SyncFrequency, time.Minute)
	orDuration(&cfg.FileCheckFrequency, 20*time.Second)
	orDuration(&cfg.HTTPCheckFrequency, 20*time.Second)
	orDuration(&cfg.VolumeStatsAggPeriod, time.Minute)
	orDuration(&cfg.RuntimeRequestTimeout, 2*time.Minute)
	orUnset(&cfg.ContainerLogMaxSize, "10Mi")
	orNil(&cfg.ContainerLogMaxFiles, 5)
	orNil(&cfg.ContainerLogMaxWorkers, 1)
	orNil(&cfg.ContainerLogMonitorInterval, metav1.Duration{Duration: 10 * time.Second})
	orUnset(&cfg.ConfigMapAndSecretChangeDetectionStrategy, kubeletconfig.WatchChangeDetectionStrategy)
	orNil(&cfg.SeccompDefault, false)
	// With the gate on, upstream requires the field; with it off the field must not be set.
	if gates.Enabled(features.KubeletCrashLoopBackOffMax) {
		orNil(&cfg.CrashLoopBackOff.MaxContainerRestartPeriod, metav1.Duration{Duration: 5 * time.Minute})
	}
}

// setImageDefaults sets what concerns pulls (the rates are per second) and
// garbage collection of images.
func setImageDefaults(cfg *kubeletconfig.KubeletConfiguration, gates features.Gates) {
	orNil(&cfg.RegistryPullQPS, 5)
	orUnset(&cfg.RegistryBurst, 10)
	if gates.Enabled(features.KubeletEnsureSecretPulledImages) {
		orUnset(&cfg.ImagePullCredentialsVerificationPolicy, kubeletconfig.NeverVerifyPreloadedImages)
	}
	orDuration(&cfg.ImageMinimumGCAge, 2*time.Minute)
	orNil(&cfg.ImageGCHighThresholdPercent, 85)
	orNil(&cfg.ImageGCLowThresholdPercent, 80)
	// Whoever asks for several pulls at once need not switch the other field off. The default
	// follows the other field: more than one pull at once contradicts serial pulls.
	orNil(&cfg.SerializeImagePulls, cfg.MaxParallelImagePulls == nil || *cfg.MaxParallelImagePulls < 2)
}

// MaxRestartPeriod is the cap of the crash-loop back-off. It is asked with and without the gate;
// without it upstream's constant of five minutes holds.
func MaxRestartPeriod(cfg *kubeletconfig.KubeletConfiguration) time.Duration {
	if p := cfg.CrashLoopBackOff.MaxContainerRestartPeriod; p != nil {
		return p.Duration
	}
	return 5 * time.Minute
}

// HeartbeatTimeout is the timeout of requests about the node and its lease.
// Upstream (cmd/kubelet/app/server.go) bounds it by the lease's duration, because
// a request that takes longer would come too late.
func HeartbeatTimeout(cfg *kubeletconfig.KubeletConfiguration) time.Duration {
	t := cfg.NodeStatusUpdateFrequency.Duration
	if lease := time.Duration(cfg.NodeLeaseDurationSeconds) * time.Second; t <= 0 || lease > 0 && lease < t {
		t = lease
	}
	return t
}
