package kubelet

import (
	"fmt"
	"path"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/lifecycle"
)

// Validate judges a configuration with its defaults set. The error, if any, is
// an aggregate in which each entry names its field
// (pkg/kubelet/apis/config/validation, and what the kubelet checks when it
// reads a value).
func Validate(cfg *kubeletconfig.KubeletConfiguration) error {
	v := validator{}
	v.numbers(cfg)
	v.durations(cfg)
	v.choices(cfg)
	v.images(cfg)
	v.reserved(cfg)
	v.eviction(cfg)
	v.shutdown(cfg)
	if _, err := lifecycle.NewSysctls(cfg.AllowedUnsafeSysctls); err != nil {
		v.bad(field.NewPath("allowedUnsafeSysctls"), cfg.AllowedUnsafeSysctls, err.Error())
	}
	for i := range cfg.RegisterWithTaints {
		v.taint(field.NewPath("registerWithTaints").Index(i), &cfg.RegisterWithTaints[i])
	}
	if err := v.errs.ToAggregate(); err != nil {
		return fmt.Errorf("invalid configuration: %w", err)
	}
	return nil
}

type validator struct{ errs field.ErrorList }

func (v *validator) bad(p *field.Path, value any, detail string) {
	v.errs = append(v.errs, field.Invalid(p, value, detail))
}

// check refuses a value of a top-level field unless ok.
func (v *validator) check(ok bool, name string, value any, detail string) {
	if !ok {
		v.bad(field.NewPath(name), value, detail)
	}
}

func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func (v *validator) numbers(cfg *kubeletconfig.KubeletConfiguration) {
	const negative = "must not be a negative number"
	v.check(cfg.NodeLeaseDurationSeconds > 0, "nodeLeaseDurationSeconds", cfg.NodeLeaseDurationSeconds, "must be greater than 0")
	v.check(cfg.EventBurst >= 0, "eventBurst", cfg.EventBurst, negative)
	v.check(value(cfg.EventRecordQPS) >= 0, "eventRecordQPS", value(cfg.EventRecordQPS), negative)
	v.check(cfg.KubeAPIBurst >= 0, "kubeAPIBurst", cfg.KubeAPIBurst, negative)
	v.check(value(cfg.KubeAPIQPS) >= 0, "kubeAPIQPS", value(cfg.KubeAPIQPS), negative)
	v.check(cfg.RegistryBurst >= 0, "registryBurst", cfg.RegistryBurst, negative)
	v.check(value(cfg.RegistryPullQPS) >= 0, "registryPullQPS", value(cfg.RegistryPullQPS), negative)
	v.check(cfg.MaxOpenFiles >= 0, "maxOpenFiles", cfg.MaxOpenFiles, negative)
	v.check(cfg.MaxPods >= 0, "maxPods", cfg.MaxPods, negative)
	v.check(cfg.PodsPerCore >= 0, "podsPerCore", cfg.PodsPerCore, negative)
	v.port("healthzPort", value(cfg.HealthzPort), true)
	v.port("port", cfg.Port, false)
	v.port("readOnlyPort", cfg.ReadOnlyPort, true)
	v.between("imageGCHighThresholdPercent", int64(value(cfg.ImageGCHighThresholdPercent)), 0, 100)
	v.between("imageGCLowThresholdPercent", int64(value(cfg.ImageGCLowThresholdPercent)), 0, 100)
	if h, l := cfg.ImageGCHighThresholdPercent, cfg.ImageGCLowThresholdPercent; h != nil && l != nil {
		v.check(*l < *h, "imageGCLowThresholdPercent", *l, fmt.Sprintf("must be less than imageGCHighThresholdPercent %d", *h))
	}
	v.between("iptablesDropBit", int64(value(cfg.IPTablesDropBit)), 0, 31)
	v.between("iptablesMasqueradeBit", int64(value(cfg.IPTablesMasqueradeBit)), 0, 31)
	v.check(value(cfg.NodeStatusMaxImages) >= -1, "nodeStatusMaxImages", value(cfg.NodeStatusMaxImages), "must be -1 or greater")
	v.between("oomScoreAdj", int64(value(cfg.OOMScoreAdj)), -1000, 1000)
	if cfg.ContainerLogMaxFiles != nil {
		v.check(*cfg.ContainerLogMaxFiles > 1, "containerLogMaxFiles", *cfg.ContainerLogMaxFiles, "must be greater than 1")
	}
	if cfg.ContainerLogMaxWorkers != nil {
		v.check(*cfg.ContainerLogMaxWorkers >= 1, "containerLogMaxWorkers", *cfg.ContainerLogMaxWorkers, "must be greater than or equal to 1")
	}
	if f := cfg.MemoryThrottlingFactor; f != nil {
		v.check(*f > 0 && *f <= 1, "memoryThrottlingFactor", *f, "must be greater than 0 and less than or equal to 1.0")
	}
	if _, err := resource.ParseQuantity(cfg.ContainerLogMaxSize); err != nil {
		v.bad(field.NewPath("containerLogMaxSize"), cfg.ContainerLogMaxSize, err.Error())
	}
}

func (v *validator) port(name string, port int32, zero bool) {
	low := int64(1)
	if zero {
		low = 0
	}
	v.between(name, int64(port), low, 65535)
}

func (v *validator) between(name string, n, low, high int64) {
	v.check(n >= low && n <= high, name, n, fmt.Sprintf("must be between %d and %d, inclusive", low, high))
}

func (v *validator) durations(cfg *kubeletconfig.KubeletConfiguration) {
	positive := func(name string, d time.Duration) { v.check(d > 0, name, d.String(), "must be positive") }
	positive("syncFrequency", cfg.SyncFrequency.Duration)
	positive("fileCheckFrequency", cfg.FileCheckFrequency.Duration)
	positive("nodeStatusUpdateFrequency", cfg.NodeStatusUpdateFrequency.Duration)
	positive("nodeStatusReportFrequency", cfg.NodeStatusReportFrequency.Duration)
	positive("runtimeRequestTimeout", cfg.RuntimeRequestTimeout.Duration)
	if p := cfg.CPUCFSQuotaPeriod; p != nil {
		v.check(p.Duration >= time.Millisecond && p.Duration <= time.Second, "cpuCFSQuotaPeriod", p.Duration.String(), "must be between 1ms and 1sec, inclusive")
	}
	if p := cfg.ContainerLogMonitorInterval; p != nil {
		v.check(p.Duration >= 3*time.Second, "containerLogMonitorInterval", p.Duration.String(), "must be a positive time duration greater than or equal to 3s")
	}
	if p := cfg.CrashLoopBackOff.MaxContainerRestartPeriod; p != nil && (p.Duration < time.Second || p.Duration > 5*time.Minute) {
		v.bad(field.NewPath("crashLoopBackOff", "maxContainerRestartPeriod"), p.Duration.String(), "must be between 1s and 5m0s, inclusive")
	}
}

func (v *validator) oneOf(name, got string, allowed ...string) {
	if !slices.Contains(allowed, got) {
		v.errs = append(v.errs, field.NotSupported(field.NewPath(name), got, allowed))
	}
}

func (v *validator) choices(cfg *kubeletconfig.KubeletConfiguration) {
	v.oneOf("cgroupDriver", cfg.CgroupDriver, "cgroupfs", "systemd")
	v.oneOf("cpuManagerPolicy", cfg.CPUManagerPolicy, "none", "static")
	v.oneOf("memoryManagerPolicy", cfg.MemoryManagerPolicy, "None", "Static")
	v.oneOf("topologyManagerPolicy", cfg.TopologyManagerPolicy, "none", "best-effort", "restricted", "single-numa-node")
	v.oneOf("topologyManagerScope", cfg.TopologyManagerScope, "container", "pod")
	v.oneOf("hairpinMode", cfg.HairpinMode, "promiscuous-bridge", "hairpin-veth", "none")
	v.oneOf("configMapAndSecretChangeDetectionStrategy", string(cfg.ConfigMapAndSecretChangeDetectionStrategy), "Get", "Cache", "Watch")
	if b := cfg.MemorySwap.SwapBehavior; !slices.Contains([]string{"", "LimitedSwap", "NoSwap"}, b) {
		v.errs = append(v.errs, field.NotSupported(field.NewPath("memorySwap", "swapBehavior"), b, []string{"LimitedSwap", "NoSwap"}))
	}
	v.check(!cfg.RunOnce, "runOnce", cfg.RunOnce, "is not supported any more")
	v.check(cfg.ContainerRuntimeEndpoint != "", "containerRuntimeEndpoint", "", "the containerRuntimeEndpoint was not specified or empty")
	v.check(path.IsAbs(cfg.PodLogsDir) && path.Clean(cfg.PodLogsDir) == cfg.PodLogsDir, "podLogsDir", cfg.PodLogsDir, "must be an absolute, clean path")
	v.check(cfg.StaticPodPath == "" || path.IsAbs(cfg.StaticPodPath), "staticPodPath", cfg.StaticPodPath, "must be an absolute path")
	v.check(cfg.SystemCgroups == "" || cfg.CgroupRoot != "", "systemCgroups", cfg.SystemCgroups, "systemCgroups specified and cgroupRoot not")
	for _, name := range sets.List(sets.KeySet(cfg.FeatureGates)) {
		if on := cfg.FeatureGates[name]; !on && gateLocked(name) {
			v.bad(field.NewPath("featureGates").Key(name), on, "feature is locked to true")
		}
	}
}

func (v *validator) images(cfg *kubeletconfig.KubeletConfiguration) {
	if n := cfg.MaxParallelImagePulls; n != nil {
		v.check(*n >= 1, "maxParallelImagePulls", *n, "must be a positive number")
		v.check(*n <= 1 || !ptr.Deref(cfg.SerializeImagePulls, true), "maxParallelImagePulls", *n, "cannot be larger than 1 unless serializeImagePulls is set to false")
	}
	minAge, maxAge := cfg.ImageMinimumGCAge.Duration, cfg.ImageMaximumGCAge.Duration
	v.check(minAge >= 0, "imageMinimumGCAge", minAge.String(), "must not be negative")
	v.check(maxAge == 0 || maxAge > minAge, "imageMaximumGCAge", maxAge.String(), "must be 0 or greater than imageMinimumGCAge")
	v.oneOf("imagePullCredentialsVerificationPolicy", string(cfg.ImagePullCredentialsVerificationPolicy),
		"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")
}

func (v *validator) reserved(cfg *kubeletconfig.KubeletConfiguration) {
	if _, err := cm.ParseReserved("systemReserved", cfg.SystemReserved); err != nil {
		v.errs = append(v.errs, field.Invalid(field.NewPath("systemReserved"), cfg.SystemReserved, err.Error()))
	}
	if _, err := cm.ParseReserved("kubeReserved", cfg.KubeReserved); err != nil {
		v.errs = append(v.errs, field.Invalid(field.NewPath("kubeReserved"), cfg.KubeReserved, err.Error()))
	}
	if s := cfg.ReservedSystemCPUs; s != "" {
		if _, err := cm.CountCPUs(s); err != nil {
			v.bad(field.NewPath("reservedSystemCPUs"), s, err.Error())
		}
		v.check(cfg.SystemReservedCgroup == "" && cfg.KubeReservedCgroup == "", "reservedSystemCPUs", s, "can't be used with systemReservedCgroup or kubeReservedCgroup")
	}
	p := field.NewPath("enforceNodeAllocatable")
	seen := sets.New[string]()
	all := []string{"pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible", "none"}
	for i, key := range cfg.EnforceNodeAllocatable {
		switch {
		case !slices.Contains(all, key):
			v.errs = append(v.errs, field.NotSupported(p.Index(i), key, all))
		case seen.Has(key):
			v.errs = append(v.errs, field.Duplicate(p.Index(i), key))
		case key == "none" && len(cfg.EnforceNodeAllocatable) > 1:
			v.bad(p.Index(i), key, "must be alone")
		case key != "none" && !ptr.Deref(cfg.CgroupsPerQOS, true):
			v.bad(p.Index(i), key, "is not supported unless cgroupsPerQOS is set to true")
		case (key == "system-reserved" || key == "system-reserved-compressible") && cfg.SystemReservedCgroup == "":
			v.bad(p.Index(i), key, "needs systemReservedCgroup")
		case (key == "kube-reserved" || key == "kube-reserved-compressible") && cfg.KubeReservedCgroup == "":
			v.bad(p.Index(i), key, "needs kubeReservedCgroup")
		}
		seen.Insert(key)
	}
	for _, kind := range [...]string{"system-reserved", "kube-reserved"} {
		if seen.HasAll(kind, kind+"-compressible") {
			v.bad(p, cfg.EnforceNodeAllocatable, kind+" and "+kind+"-compressible exclude each other")
		}
	}
}

// signals are those that eviction thresholds can name.
var signals = []string{
	"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
	"containerfs.available", "containerfs.inodesFree", "pid.available", "allocatableMemory.available",
}

func (v *validator) eviction(cfg *kubeletconfig.KubeletConfiguration) {
	v.thresholds("evictionHard", cfg.EvictionHard)
	v.thresholds("evictionSoft", cfg.EvictionSoft)
	for _, s := range sets.List(sets.KeySet(cfg.EvictionSoft)) {
		if _, ok := cfg.EvictionSoftGracePeriod[s]; !ok {
			v.bad(field.NewPath("evictionSoft").Key(s), cfg.EvictionSoft[s], "grace period must be specified for the soft eviction threshold "+s)
		}
	}
	p := field.NewPath("evictionSoftGracePeriod")
	for _, s := range sets.List(sets.KeySet(cfg.EvictionSoftGracePeriod)) {
		text := cfg.EvictionSoftGracePeriod[s]
		v.signal(p, s, text)
		if d, err := time.ParseDuration(text); err != nil {
			v.bad(p.Key(s), text, err.Error())
		} else if d < 0 {
			v.bad(p.Key(s), text, "must be a positive value")
		}
	}
	p = field.NewPath("evictionMinimumReclaim")
	for _, s := range sets.List(sets.KeySet(cfg.EvictionMinimumReclaim)) {
		v.signal(p, s, cfg.EvictionMinimumReclaim[s])
	}
}

func (v *validator) signal(p *field.Path, signal, text string) {
	if !slices.Contains(signals, signal) {
		v.bad(p.Key(signal), text, "unsupported eviction signal "+signal)
	}
}

func (v *validator) thresholds(name string, m map[string]string) {
	p := field.NewPath(name)
	for _, s := range sets.List(sets.KeySet(m)) {
		v.signal(p, s, m[s])
		if err := cm.CheckThreshold(s, m[s]); err != nil {
			v.bad(p.Key(s), m[s], err.Error())
		}
	}
}

func (v *validator) shutdown(cfg *kubeletconfig.KubeletConfiguration) {
	total, critical := cfg.ShutdownGracePeriod.Duration, cfg.ShutdownGracePeriodCriticalPods.Duration
	v.check(critical <= total, "shutdownGracePeriodCriticalPods", critical.String(), fmt.Sprintf("must be less than or equal to shutdownGracePeriod %v", total))
	v.check(total == 0 || total >= time.Second, "shutdownGracePeriod", total.String(), "must be either zero or otherwise >= 1 sec")
	v.check(critical == 0 || critical >= time.Second, "shutdownGracePeriodCriticalPods", critical.String(), "must be either zero or otherwise >= 1 sec")
	v.check(len(cfg.ShutdownGracePeriodByPodPriority) == 0 || total == 0 && critical == 0, "shutdownGracePeriodByPodPriority",
		cfg.ShutdownGracePeriodByPodPriority, "cannot be specified together with shutdownGracePeriod or shutdownGracePeriodCriticalPods")
}

func (v *validator) taint(p *field.Path, t *v1.Taint) {
	if t.Key == "" {
		v.errs = append(v.errs, field.Required(p.Child("key"), "a taint needs a key"))
	}
	effects := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		v.errs = append(v.errs, field.NotSupported(p.Child("effect"), t.Effect, effects))
	}
	if t.TimeAdded != nil {
		v.bad(p.Child("timeAdded"), t.TimeAdded, "taint.TimeAdded is not nil")
	}
}
