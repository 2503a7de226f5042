package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	logsapi "k8s.io/component-base/logs/api/v1"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

type configuration = kubeletconfig.KubeletConfiguration

func p32(n int32) *int32 { return &n }

func dur(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func gate(c *configuration, name string, on bool) { c.FeatureGates = map[string]bool{name: on} }

// validationCases has one case per rule: what is changed, upstream's text, and
// the field that the error names.
var validationCases = []struct {
	field, text string
	change      func(c *configuration)
}{
	{"featureGates", "unrecognized feature gate: Nope", func(c *configuration) { gate(c, "Nope", true) }},
	{"featureGates", "cannot set feature gate SidecarContainers to false, feature is locked to true", func(c *configuration) { gate(c, "SidecarContainers", false) }},
	{"featureGates", "GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled: [GracefulNodeShutdown]", func(c *configuration) { gate(c, "GracefulNodeShutdown", false) }},
	{"nodeLeaseDurationSeconds", "invalid configuration: nodeLeaseDurationSeconds must be greater than 0", func(c *configuration) { c.NodeLeaseDurationSeconds = -1 }},
	{"systemCgroups", "invalid configuration: systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified", func(c *configuration) { c.SystemCgroups = "/system" }},
	{"eventBurst", "invalid configuration: eventBurst (--event-burst) -1 must not be a negative number", func(c *configuration) { c.EventBurst = -1 }},
	{"eventRecordQPS", "invalid configuration: eventRecordQPS (--event-qps) -1 must not be a negative number", func(c *configuration) { c.EventRecordQPS = p32(-1) }},
	{"kubeAPIBurst", "invalid configuration: kubeAPIBurst (--kube-api-burst) -1 must not be a negative number", func(c *configuration) { c.KubeAPIBurst = -1 }},
	{"kubeAPIQPS", "invalid configuration: kubeAPIQPS (--kube-api-qps) -1 must not be a negative number", func(c *configuration) { c.KubeAPIQPS = p32(-1) }},
	{"registryBurst", "invalid configuration: registryBurst (--registry-burst) -1 must not be a negative number", func(c *configuration) { c.RegistryBurst = -1 }},
	{"registryPullQPS", "invalid configuration: registryPullQPS (--registry-qps) -1 must not be a negative number", func(c *configuration) { c.RegistryPullQPS = p32(-1) }},
	{"maxOpenFiles", "invalid configuration: maxOpenFiles (--max-open-files) -1 must not be a negative number", func(c *configuration) { c.MaxOpenFiles = -1 }},
	{"maxPods", "invalid configuration: maxPods (--max-pods) -1 must not be a negative number", func(c *configuration) { c.MaxPods = -1 }},
	{"podsPerCore", "invalid configuration: podsPerCore (--pods-per-core) -1 must not be a negative number", func(c *configuration) { c.PodsPerCore = -1 }},
	{"healthzPort", "invalid configuration: healthzPort (--healthz-port) 65536 must be between 1 and 65535, inclusive", func(c *configuration) { c.HealthzPort = p32(65536) }},
	{"port", "invalid configuration: port (--port) -1 must be between 1 and 65535, inclusive", func(c *configuration) { c.Port = -1 }},
	{"readOnlyPort", "invalid configuration: readOnlyPort (--read-only-port) 65536 must be between 0 and 65535, inclusive", func(c *configuration) { c.ReadOnlyPort = 65536 }},
	{"cpuCFSQuotaPeriod", "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 2s must be between 1ms and 1sec, inclusive", func(c *configuration) { *c.CPUCFSQuotaPeriod = dur(2 * time.Second) }},
	{"cpuCFSQuotaPeriod", "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 10ms requires feature gate CustomCPUCFSQuotaPeriod", func(c *configuration) {
		gate(c, features.CPUCFSQuotaPeriod, false)
		*c.CPUCFSQuotaPeriod = dur(10 * time.Millisecond)
	}},
	{"imageGCHighThresholdPercent", "invalid configuration: imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive", func(c *configuration) { c.ImageGCHighThresholdPercent = p32(101) }},
	{"imageGCLowThresholdPercent", "invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) 85 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85", func(c *configuration) { c.ImageGCLowThresholdPercent = p32(85) }},
	{"imageMinimumGCAge", "invalid configuration: imageMinimumGCAge -1s must not be negative", func(c *configuration) { c.ImageMinimumGCAge = dur(-time.Second) }},
	{"imageMaximumGCAge", "invalid configuration: imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 2m0s", func(c *configuration) { c.ImageMaximumGCAge = dur(time.Minute) }},
	{"iptablesDropBit", "invalid configuration: iptablesDropBit (--iptables-drop-bit) 32 must be between 0 and 31, inclusive", func(c *configuration) { c.IPTablesDropBit = p32(32) }},
	{"iptablesMasqueradeBit", "invalid configuration: iptablesMasqueradeBit (--iptables-masquerade-bit) -1 must be between 0 and 31, inclusive", func(c *configuration) { c.IPTablesMasqueradeBit = p32(-1) }},
	{"nodeStatusMaxImages", "invalid configuration: nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater", func(c *configuration) { c.NodeStatusMaxImages = p32(-2) }},
	{"oomScoreAdj", "invalid configuration: oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive", func(c *configuration) { c.OOMScoreAdj = p32(1001) }},
	{"maxParallelImagePulls", "invalid configuration: maxParallelImagePulls 0 must be a positive number", func(c *configuration) { c.MaxParallelImagePulls = p32(0) }},
	{"maxParallelImagePulls", "invalid configuration: maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false", func(c *configuration) { c.MaxParallelImagePulls = p32(3) }},
	{"serverTLSBootstrap", "invalid configuration: serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate", func(c *configuration) {
		gate(c, features.RotateKubeletServerCertificate, false)
		c.ServerTLSBootstrap = true
	}},
	{"runOnce", "invalid configuration: runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set", func(c *configuration) { c.RunOnce = true }},
	{"registerWithTaints[0].effect", "invalid taint: {a  Never <nil>}", func(c *configuration) { c.RegisterWithTaints = []v1.Taint{{Key: "a", Effect: "Never"}} }},
	{"registerWithTaints[0].timeAdded", "invalid configuration: taint.TimeAdded is not nil", func(c *configuration) {
		c.RegisterWithTaints = []v1.Taint{{Key: "a", Effect: "NoExecute", TimeAdded: &metav1.Time{}}}
	}},
	{"topologyManagerPolicy", `invalid configuration: topologyManagerPolicy (--topology-manager-policy) "x" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]`, func(c *configuration) { c.TopologyManagerPolicy = "x" }},
	{"topologyManagerScope", `invalid configuration: topologyManagerScope (--topology-manager-scope) "x" must be one of: "container", or "pod"`, func(c *configuration) { c.TopologyManagerScope = "x" }},
	{"shutdownGracePeriodCriticalPods", "invalid configuration: shutdownGracePeriodCriticalPods 2s must be <= shutdownGracePeriod 1s", func(c *configuration) {
		c.ShutdownGracePeriod, c.ShutdownGracePeriodCriticalPods = dur(time.Second), dur(2*time.Second)
	}},
	{"shutdownGracePeriod", "invalid configuration: shutdownGracePeriod 500ms must be either zero or otherwise >= 1 sec", func(c *configuration) { c.ShutdownGracePeriod = dur(time.Second / 2) }},
	{"shutdownGracePeriod", "invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown", func(c *configuration) {
		c.FeatureGates = map[string]bool{"GracefulNodeShutdown": false, "GracefulNodeShutdownBasedOnPodPriority": false}
		c.ShutdownGracePeriod = dur(time.Second)
	}},
	{"shutdownGracePeriodByPodPriority", "invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time", func(c *configuration) {
		c.ShutdownGracePeriod = dur(time.Second)
		c.ShutdownGracePeriodByPodPriority = []kubeletconfig.ShutdownGracePeriodByPodPriority{{}}
	}},
	{"memorySwap.swapBehavior", `invalid configuration: memorySwap.swapBehavior "x" must be one of: "", "LimitedSwap" or "NoSwap"`, func(c *configuration) { c.MemorySwap.SwapBehavior = "x" }},
	{"crashLoopBackOff.maxContainerRestartPeriod", "invalid configuration: CrashLoopBackOff.MaxContainerRestartPeriod (got: 3600 seconds) must be set between 1s and 300s", func(c *configuration) {
		*c.CrashLoopBackOff.MaxContainerRestartPeriod = dur(time.Hour)
	}},
	{"crashLoopBackOff.maxContainerRestartPeriod", "invalid configuration: FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set", func(c *configuration) {
		gate(c, features.KubeletCrashLoopBackOffMax, false)
	}},
	{"enforceNodeAllocatable", `invalid configuration: enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when "none" is specified`, func(c *configuration) { c.EnforceNodeAllocatable = []string{"none", "pods"} }},
	{"enforceNodeAllocatable", `invalid configuration: duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)`, func(c *configuration) { c.EnforceNodeAllocatable = []string{"pods", "pods"} }},
	{"enforceNodeAllocatable", `invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in enforceNodeAllocatable (--enforce-node-allocatable)`, func(c *configuration) { *c.CgroupsPerQOS = false }},
	{"enforceNodeAllocatable", `invalid configuration: kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or "kube-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)`, func(c *configuration) { c.EnforceNodeAllocatable = []string{"kube-reserved"} }},
	{"enforceNodeAllocatable", `invalid configuration: option "x" specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"`, func(c *configuration) { c.EnforceNodeAllocatable = []string{"x"} }},
	{"enforceNodeAllocatable", `invalid configuration: both "system-reserved" and "system-reserved-compressible" cannot be specified together in enforceNodeAllocatable (--enforce-node-allocatable)`, func(c *configuration) {
		c.SystemReservedCgroup = "/s"
		c.EnforceNodeAllocatable = []string{"system-reserved", "system-reserved-compressible"}
	}},
	{"hairpinMode", `invalid configuration: option "x" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`, func(c *configuration) { c.HairpinMode = "x" }},
	{"imagePullCredentialsVerificationPolicy", `invalid configuration: option "x" specified for imagePullCredentialsVerificationPolicy. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"`, func(c *configuration) { c.ImagePullCredentialsVerificationPolicy = "x" }},
	{"preloadedImagesVerificationAllowlist", "invalid configuration: invalid image pattern in `preloadedImagesVerificationAllowlist`: neither tag nor digest is accepted in an image reference: a:1", func(c *configuration) {
		c.ImagePullCredentialsVerificationPolicy = "NeverVerifyAllowlistedImages"
		c.PreloadedImagesVerificationAllowlist = []string{"quay.io/x/*", "a:1"}
	}},
	{"reservedSystemCPUs", "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)", func(c *configuration) {
		c.ReservedSystemCPUs, c.KubeReservedCgroup = "0", "/k"
	}},
	{"reservedMemory[0].limits[memory]", `invalid configuration: reserved memory may not be zero for NUMA node 1 and resource "memory"`, func(c *configuration) {
		c.ReservedMemory = []kubeletconfig.MemoryReservation{{NumaNode: 1, Limits: v1.ResourceList{"memory": resource.Quantity{}}}}
	}},
	{"userNamespaces.idsPerPod", "invalid configuration: userNamespaces.idsPerPod must be a multiple of 65536", func(c *configuration) {
		c.UserNamespaces = &kubeletconfig.UserNamespaces{IDsPerPod: ptr.To[int64](65537)}
	}},
	{"showHiddenMetricsForVersion", `invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: "1.30": must be omitted or have the value '1.35'; only the previous minor version is allowed`, func(c *configuration) { c.ShowHiddenMetricsForVersion = "1.30" }},
	{"logging.format", `logging.format: Invalid value: "xml": Unsupported log format`, func(c *configuration) { c.Logging.Format = "xml" }},
	{"logging.vmodule", "logging.vmodule: Forbidden: Only supported for text log format", func(c *configuration) {
		c.Logging.Format = "json"
		c.Logging.VModule = logsapi.VModuleConfiguration{{FilePattern: "a", Verbosity: 1}}
	}},
	{"logging.options.json.splitStream", "logging.options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled", func(c *configuration) { c.Logging.Options.JSON.SplitStream = true }},
	{"tracing.samplingRatePerMillion", "tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive", func(c *configuration) {
		c.Tracing = &tracingapi.TracingConfiguration{SamplingRatePerMillion: p32(-1)}
	}},
	{"tracing.samplingRatePerMillion", "tracing.samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million", func(c *configuration) {
		c.Tracing = &tracingapi.TracingConfiguration{SamplingRatePerMillion: p32(1_000_001)}
	}},
	{"tracing.endpoint", `tracing.endpoint: Invalid value: "dns://otel collector:4317": parse "dns://otel collector:4317": invalid character " " in host name`, func(c *configuration) {
		c.Tracing = &tracingapi.TracingConfiguration{Endpoint: ptr.To("otel collector:4317")}
	}},
	{"tracing.endpoint", `tracing.endpoint: Invalid value: "http://otel:4317": unsupported scheme: http.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md`, func(c *configuration) {
		c.Tracing = &tracingapi.TracingConfiguration{Endpoint: ptr.To("http://otel:4317")}
	}},
	{"memoryThrottlingFactor", "invalid configuration: memoryThrottlingFactor 2 must be greater than 0 and less than or equal to 1.0", func(c *configuration) { c.MemoryThrottlingFactor = ptr.To(2.0) }},
	{"memoryReservationPolicy", `invalid configuration: memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled`, func(c *configuration) { c.MemoryReservationPolicy = "TieredReservation" }},
	{"containerRuntimeEndpoint", "invalid configuration: the containerRuntimeEndpoint was not specified or empty", func(c *configuration) { c.ContainerRuntimeEndpoint = "" }},
	{"enableSystemLogQuery", "invalid configuration: enableSystemLogHandler is required for enableSystemLogQuery", func(c *configuration) {
		*c.EnableSystemLogQuery, *c.EnableSystemLogHandler = true, false
	}},
	{"containerLogMaxWorkers", "invalid configuration: containerLogMaxWorkers must be greater than or equal to 1", func(c *configuration) { c.ContainerLogMaxWorkers = p32(0) }},
	{"containerLogMonitorInterval", "invalid configuration: containerLogMonitorInterval must be a positive time duration greater than or equal to 3s", func(c *configuration) { *c.ContainerLogMonitorInterval = dur(time.Second) }},
	{"containerLogMaxFiles", "invalid configuration: containerLogMaxFiles must be greater than 1", func(c *configuration) { c.ContainerLogMaxFiles = p32(1) }},
	{"podLogsDir", `invalid configuration: pod logs path "logs" must be absolute path`, func(c *configuration) { c.PodLogsDir = "logs" }},
	{"podLogsDir", `invalid configuration: pod logs path "/logs/" must be normalized`, func(c *configuration) { c.PodLogsDir = "/logs/" }},
	{"podLogsDir", `invalid configuration: pod logs path "/lögs" mut contains ASCII characters only`, func(c *configuration) { c.PodLogsDir = "/lögs" }},
	// What upstream finds later.
	{"syncFrequency", "invalid sync frequency -1", func(c *configuration) { c.SyncFrequency.Duration = -1 }},
	{"kubeReserved", `--kube-reserved value failed to parse: cannot reserve "gpu" resource`, func(c *configuration) { c.KubeReserved = map[string]string{"gpu": "1"} }},
	{"evictionHard[memory.avail]", "unsupported eviction signal memory.avail", func(c *configuration) { c.EvictionHard = map[string]string{"memory.avail": "1Mi"} }},
	{"evictionHard[nodefs.available]", "eviction percentage threshold nodefs.available must be <= 100%: 120%", func(c *configuration) { c.EvictionHard = map[string]string{"nodefs.available": "120%"} }},
	{"evictionHard[pid.available]", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'", func(c *configuration) { c.EvictionHard = map[string]string{"pid.available": ""} }},
	{"evictionSoft[memory.available]", "grace period must be specified for the soft eviction threshold memory.available", func(c *configuration) { c.EvictionSoft = map[string]string{"memory.available": "1Gi"} }},
	{"evictionMinimumReclaim[memory.available]", "negative eviction minimum reclaim specified for memory.available", func(c *configuration) { c.EvictionMinimumReclaim = map[string]string{"memory.available": "-1Gi"} }},
	{"qosReserved[cpu]", `--qos-reserved value failed to parse: cannot reserve "cpu" resource`, func(c *configuration) { c.QOSReserved = map[string]string{"cpu": "10%"} }},
	{"cpuManagerPolicy", `unknown policy: "dynamic", want one of ["none" "static"]`, func(c *configuration) { c.CPUManagerPolicy = "dynamic" }},
	{"allowedUnsafeSysctls", `the sysctls "vm.*" are not known to be namespaced`, func(c *configuration) { c.AllowedUnsafeSysctls = []string{"vm.*"} }},
	{"staticPodPath", "invalid configuration: staticPodPath (--pod-manifest-path) pods must be an absolute path", func(c *configuration) { c.StaticPodPath = "pods" }},
}

func TestValidationTexts(t *testing.T) {
	for _, tc := range validationCases {
		cfg := &configuration{}
		SetDefaults(cfg)
		tc.change(cfg)
		err := Validate(cfg)
		if err == nil {
			t.Errorf("want %q, got none", tc.text)
			continue
		}
		found := false
		for _, e := range features.ErrorsOf(err) {
			var fe *field.Error
			if strings.HasPrefix(e.Error(), tc.text) && errors.As(e, &fe) && fe.Field == tc.field {
				found = true
			}
		}
		if !found {
			t.Errorf("want %q of %s, got %v", tc.text, tc.field, err)
		}
	}
}

func TestValidateOnAHost(t *testing.T) {
	cfg := &configuration{}
	SetDefaults(cfg)
	const want = "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release"
	if err := ValidateConfiguration(cfg, &Host{CgroupV1: true}); err == nil || err.Error() != want {
		t.Errorf("on cgroup v1: %v", err)
	}
	if err := ValidateConfiguration(cfg, &Host{}); err != nil {
		t.Errorf("on cgroup v2: %v", err)
	}
	*cfg.FailCgroupV1 = false
	cfg.SingleProcessOOMKill = ptr.To(false)
	if err := ValidateConfiguration(cfg, &Host{CgroupV1: true}); err == nil || !strings.Contains(err.Error(), "singleProcessOOMKill must not be explicitly set to false") {
		t.Errorf("single process OOM kill on cgroup v1: %v", err)
	}
}

func TestGatesDecideDefaults(t *testing.T) {
	cfg := &configuration{FeatureGates: map[string]bool{"KubeletCrashLoopBackOffMax": false, "KubeletEnsureSecretPulledImages": false}}
	SetDefaults(cfg)
	if cfg.CrashLoopBackOff.MaxContainerRestartPeriod != nil || cfg.ImagePullCredentialsVerificationPolicy != "" {
		t.Error("defaults of fields whose gates are off")
	}
	if err := Validate(cfg); err != nil {
		t.Error(err)
	}
	if MaxRestartPeriod(cfg) != 5*time.Minute {
		t.Error("the back-off's cap without the gate")
	}
}

func TestSeveralFaultsAreJoined(t *testing.T) {
	cfg := &configuration{}
	SetDefaults(cfg)
	cfg.MaxPods, cfg.ContainerRuntimeEndpoint = -1, ""
	want := "[invalid configuration: maxPods (--max-pods) -1 must not be a negative number, invalid configuration: the containerRuntimeEndpoint was not specified or empty]"
	if err := Validate(cfg); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
