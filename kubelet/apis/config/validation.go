package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// Host is what of its machine a configuration is judged against. It is only what upstream's
// validator itself asks the machine for.
type Host struct {
	// CgroupV1: the unified hierarchy of cgroup v2 is not the one in use.
	CgroupV1 bool
}

// Validate judges a configuration with its defaults set, for a machine of which
// nothing is known: all of ValidateConfiguration and ValidateValues. The error,
// if any, is an aggregate of upstream's texts in which each entry unwraps to a
// *field.Error. It is for a configuration that was loaded without flags: what comes from both is
// judged by the parts.
func Validate(cfg *kubeletconfig.KubeletConfiguration) error {
	c := ValidateConfiguration(cfg, nil)
	errs := append(features.ErrorsOf(c), features.ErrorsOf(ValidateValues(cfg))...)
	// A relative path fails upstream when the kubelet is set up, after validation.
	if p := cfg.StaticPodPath; p != "" && p[0] != '/' {
		v := validator{}
		v.check(false, "staticPodPath", "pod-manifest-path", p, "must be an absolute path")
		errs = append(errs, v.errs...)
	}
	return utilerrors.NewAggregate(errs)
}

// ValidateConfiguration judges a configuration with its defaults set, on a host
// if it is known, as upstream's validator does
// (pkg/kubelet/apis/config/validation). The order of the calls is the order of upstream's
// function, which is the order of the texts in the aggregate.
func ValidateConfiguration(cfg *kubeletconfig.KubeletConfiguration, host *Host) error {
	v := validator{}
	gates, err := features.Resolve(cfg.FeatureGates)
	for _, e := range features.ErrorsOf(err) {
		v.add(field.NewPath("featureGates"), cfg.FeatureGates, e.Error(), e.Error())
	}
	v.gates = gates
	v.numbers(cfg)
	v.durations(cfg)
	v.choices(cfg)
	v.taints(cfg)
	v.shutdown(cfg)
	v.enforcement(cfg)
	v.images(cfg)
	v.reserved(cfg)
	v.host(cfg, host)
	v.logging(cfg)
	v.tracing(cfg)
	v.memory(cfg)
	v.logs(cfg)
	return utilerrors.NewAggregate(v.errs)
}

// fault is one thing wrong: upstream's text, and the field that it is about. The two differ:
// upstream's texts name fields by hand, with flags in brackets.
type fault struct {
	text string
	at   *field.Error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.at }

type validator struct {
	errs  []error
	gates features.Gates
}

// add notes a fault with upstream's whole text. say, check and between put upstream's few
// patterns of texts together; add is for those that follow none.
func (v *validator) add(p *field.Path, value any, detail, text string) {
	v.errs = append(v.errs, &fault{text, field.Invalid(p, value, detail)})
}

// say notes a fault with upstream's text after "invalid configuration: ".
func (v *validator) say(name string, value any, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	v.add(fieldPath(name), value, text, "invalid configuration: "+text)
}

// check is for upstream's "<field> (--<flag>) <value> <detail>"; a flag of ""
// is left out.
func (v *validator) check(ok bool, name, flag string, value any, detail string) {
	if ok {
		return
	}
	named := name
	if flag != "" {
		named += " (--" + flag + ")"
	}
	v.add(fieldPath(name), value, detail, fmt.Sprintf("invalid configuration: %s %v %s", named, value, detail))
}

// fieldPath makes a field path of a dotted name.
func fieldPath(name string) *field.Path {
	parts := strings.Split(name, ".")
	return field.NewPath(parts[0], parts[1:]...)
}

// A nil pointer counts as zero, which passes every bound below.
func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// numbers judges single numbers against their bounds.
func (v *validator) numbers(cfg *kubeletconfig.KubeletConfiguration) {
	const negative = "must not be a negative number"
	if cfg.NodeLeaseDurationSeconds <= 0 {
		v.say("nodeLeaseDurationSeconds", cfg.NodeLeaseDurationSeconds, "nodeLeaseDurationSeconds must be greater than 0")
	}
	if cfg.SystemCgroups != "" && cfg.CgroupRoot == "" {
		v.say("systemCgroups", cfg.SystemCgroups, "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified")
	}
	v.check(cfg.EventBurst >= 0, "eventBurst", "event-burst", cfg.EventBurst, negative)
	v.check(value(cfg.EventRecordQPS) >= 0, "eventRecordQPS", "event-qps", value(cfg.EventRecordQPS), negative)
	// The text says 1, but 0, which switches the endpoint off, passes.
	v.between("healthzPort", "healthz-port", value(cfg.HealthzPort), 0, 65535, "must be between 1 and 65535, inclusive")
	v.between("imageGCHighThresholdPercent", "image-gc-high-threshold", value(cfg.ImageGCHighThresholdPercent), 0, 100, "")
	v.between("imageGCLowThresholdPercent", "image-gc-low-threshold", value(cfg.ImageGCLowThresholdPercent), 0, 100, "")
	if h, l := cfg.ImageGCHighThresholdPercent, cfg.ImageGCLowThresholdPercent; h != nil && l != nil {
		v.check(*l < *h, "imageGCLowThresholdPercent", "image-gc-low-threshold", *l,
			fmt.Sprintf("must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) %d", *h))
	}
	v.between("iptablesDropBit", "iptables-drop-bit", value(cfg.IPTablesDropBit), 0, 31, "")
	v.between("iptablesMasqueradeBit", "iptables-masquerade-bit", value(cfg.IPTablesMasqueradeBit), 0, 31, "")
	v.check(cfg.KubeAPIBurst >= 0, "kubeAPIBurst", "kube-api-burst", cfg.KubeAPIBurst, negative)
	v.check(value(cfg.KubeAPIQPS) >= 0, "kubeAPIQPS", "kube-api-qps", value(cfg.KubeAPIQPS), negative)
	v.check(value(cfg.NodeStatusMaxImages) >= -1, "nodeStatusMaxImages", "node-status-max-images", value(cfg.NodeStatusMaxImages), "must be -1 or greater")
	v.check(cfg.MaxOpenFiles >= 0, "maxOpenFiles", "max-open-files", cfg.MaxOpenFiles, negative)
	v.check(cfg.MaxPods >= 0, "maxPods", "max-pods", cfg.MaxPods, negative)
	v.between("oomScoreAdj", "oom-score-adj", value(cfg.OOMScoreAdj), -1000, 1000, "")
	v.check(cfg.PodsPerCore >= 0, "podsPerCore", "pods-per-core", cfg.PodsPerCore, negative)
	v.between("port", "port", cfg.Port, 1, 65535, "")
	v.between("readOnlyPort", "read-only-port", cfg.ReadOnlyPort, 0, 65535, "")
	v.check(cfg.RegistryBurst >= 0, "registryBurst", "registry-burst", cfg.RegistryBurst, negative)
	v.check(value(cfg.RegistryPullQPS) >= 0, "registryPullQPS", "registry-qps", value(cfg.RegistryPullQPS), negative)
}

// between refuses a number outside of a range; detail says so in other words.
func (v *validator) between(name, flag string, n, low, high int32, detail string) {
	if detail == "" {
		detail = fmt.Sprintf("must be between %d and %d, inclusive", low, high)
	}
	v.check(n >= low && n <= high, name, flag, n, detail)
}

// durations judges periods, some of which only a gate allows.
func (v *validator) durations(cfg *kubeletconfig.KubeletConfiguration) {
	if p := cfg.CPUCFSQuotaPeriod; p != nil {
		const name, flag = "cpuCFSQuotaPeriod", "cpu-cfs-quota-period"
		if v.gates.Enabled(features.CPUCFSQuotaPeriod) {
			v.check(p.Duration >= time.Millisecond && p.Duration <= time.Second, name, flag, p.Duration, "must be between 1ms and 1sec, inclusive")
		} else {
			v.check(p.Duration == 100*time.Millisecond, name, flag, p.Duration, "requires feature gate CustomCPUCFSQuotaPeriod")
		}
	}
	minAge, maxAge := cfg.ImageMinimumGCAge.Duration, cfg.ImageMaximumGCAge.Duration
	v.check(minAge >= 0, "imageMinimumGCAge", "", minAge, "must not be negative")
	v.check(maxAge >= 0, "imageMaximumGCAge", "", maxAge, "must not be negative")
	v.check(maxAge <= 0 || maxAge > minAge, "imageMaximumGCAge", "", maxAge, fmt.Sprintf("must be greater than imageMinimumGCAge %v", minAge))
	const crash = "crashLoopBackOff.maxContainerRestartPeriod"
	p := cfg.CrashLoopBackOff.MaxContainerRestartPeriod
	switch {
	case !v.gates.Enabled(features.KubeletCrashLoopBackOffMax):
		if p != nil {
			v.say(crash, p.Duration.String(), "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set")
		}
	case p == nil:
		v.say(crash, "", "FeatureGate KubeletCrashLoopBackOffMax is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set")
	case p.Duration < time.Second || p.Duration >= 5*time.Minute+time.Millisecond:
		// The gap of a millisecond is upstream's way to write "at most five minutes".
		v.say(crash, p.Duration.String(), "CrashLoopBackOff.MaxContainerRestartPeriod (got: %v seconds) must be set between 1s and 300s", p.Seconds())
	}
}

// choices judges names from fixed lists and pairs of fields that contradict each other.
func (v *validator) choices(cfg *kubeletconfig.KubeletConfiguration) {
	if n := cfg.MaxParallelImagePulls; n != nil {
		v.check(*n >= 1, "maxParallelImagePulls", "", *n, "must be a positive number")
		if *n > 1 && ptr.Deref(cfg.SerializeImagePulls, true) {
			v.say("maxParallelImagePulls", *n, "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false")
		}
	}
	v.check(!cfg.ServerTLSBootstrap || v.gates.Enabled(features.RotateKubeletServerCertificate), "serverTLSBootstrap", "",
		cfg.ServerTLSBootstrap, "requires feature gate RotateKubeletServerCertificate")
	if cfg.RunOnce {
		v.say("runOnce", true, "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set")
	}
	policies := []string{"none", "best-effort", "restricted", "single-numa-node"}
	if p := cfg.TopologyManagerPolicy; !slices.Contains(policies, p) {
		v.say("topologyManagerPolicy", p, "topologyManagerPolicy (--topology-manager-policy) %q must be one of: %q", p, policies)
	}
	if s := cfg.TopologyManagerScope; s != "container" && s != "pod" {
		v.say("topologyManagerScope", s, `topologyManagerScope (--topology-manager-scope) %q must be one of: "container", or "pod"`, s)
	}
	if b := cfg.MemorySwap.SwapBehavior; !slices.Contains([]string{"", "LimitedSwap", "NoSwap"}, b) {
		v.say("memorySwap.swapBehavior", b, `memorySwap.swapBehavior %q must be one of: "", "LimitedSwap" or "NoSwap"`, b)
	}
	if m := cfg.HairpinMode; !slices.Contains([]string{"none", "hairpin-veth", "promiscuous-bridge"}, m) {
		v.say("hairpinMode", m, `option %q specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`, m)
	}
	if cfg.ContainerRuntimeEndpoint == "" {
		v.say("containerRuntimeEndpoint", "", "the containerRuntimeEndpoint was not specified or empty")
	}
	if ptr.Deref(cfg.EnableSystemLogQuery, false) && !ptr.Deref(cfg.EnableSystemLogHandler, true) {
		v.say("enableSystemLogQuery", true, "enableSystemLogHandler is required for enableSystemLogQuery")
	}
	if s := cfg.ShowHiddenMetricsForVersion; s != "" && s != previousMinor {
		e := field.Invalid(fieldPath("showHiddenMetricsForVersion"), s, "must be omitted or have the value '"+previousMinor+"'; only the previous minor version is allowed")
		v.errs = append(v.errs, &fault{"invalid showHiddenMetricsForVersion: " + e.Error(), e})
	}
}

// previousMinor is the release before Version's. Hidden metrics of the release before can be
// switched on, none older (component-base/metrics).
const previousMinor = "1.35"

// shutdown judges graceful node shutdown (KEP-2000, KEP-2712): either two periods, or periods by
// priority.
func (v *validator) shutdown(cfg *kubeletconfig.KubeletConfiguration) {
	total, critical := cfg.ShutdownGracePeriod.Duration, cfg.ShutdownGracePeriodCriticalPods.Duration
	const name, nameCritical, byPriority = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority"
	if v.gates.Enabled(features.GracefulNodeShutdown) {
		const second = "must be either zero or otherwise >= 1 sec"
		v.check(critical <= total, nameCritical, "", critical, fmt.Sprintf("must be <= shutdownGracePeriod %v", total))
		v.check(total == 0 || total >= time.Second, name, "", total, second)
		v.check(critical == 0 || critical >= time.Second, nameCritical, "", critical, second)
	} else if total > 0 || critical > 0 {
		v.say(name, total.String(), "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown")
	}
	switch {
	case len(cfg.ShutdownGracePeriodByPodPriority) == 0:
	case !v.gates.Enabled(features.GracefulNodeShutdownBasedOnPodPriority):
		v.say(byPriority, cfg.ShutdownGracePeriodByPodPriority, "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority")
	case total > 0 || critical > 0:
		v.say(byPriority, cfg.ShutdownGracePeriodByPodPriority, "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time")
	}
}

// enforcement judges which cgroups the reservations are enforced on: each needs the cgroup's
// name, and "none" stands alone.
func (v *validator) enforcement(cfg *kubeletconfig.KubeletConfiguration) {
	const name = "enforceNodeAllocatable"
	const flag = name + " (--enforce-node-allocatable)"
	all := []string{"pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible", "none"}
	keys := cfg.EnforceNodeAllocatable
	set := sets.New(keys...)
	for _, kind := range [...]string{"system-reserved", "kube-reserved"} {
		if set.HasAll(kind, kind+"-compressible") {
			v.say(name, keys, "both %q and %q cannot be specified together in %s", kind, kind+"-compressible", flag)
		}
	}
	seen := sets.New[string]()
	for _, key := range keys {
		if seen.Has(key) {
			v.say(name, keys, "duplicated enforcements %q in %s", key, flag)
			continue
		}
		seen.Insert(key)
		switch {
		case !slices.Contains(all, key):
			v.say(name, keys, "option %q specified for %s. Valid options are %q, %q, %q, %q, %q or %q", key, flag, all[0], all[1], all[2], all[3], all[4], all[5])
			continue
		case key == "none":
			if len(keys) > 1 {
				v.say(name, keys, "%s may not contain additional enforcements when %q is specified", flag, key)
			}
			continue
		case (key == all[1] || key == all[2]) && cfg.SystemReservedCgroup == "":
			v.say(name, keys, "systemReservedCgroup (--system-reserved-cgroup) must be specified when %q or %q included in %s", all[1], all[2], flag)
		case (key == all[3] || key == all[4]) && cfg.KubeReservedCgroup == "":
			v.say(name, keys, "kubeReservedCgroup (--kube-reserved-cgroup) must be specified when %q or %q included in %s", all[3], all[4], flag)
		}
		if !ptr.Deref(cfg.CgroupsPerQOS, true) {
			v.say(name, keys, "cgroupsPerQOS (--cgroups-per-qos) must be set to true when %q contained in %s", key, flag)
		}
	}
}
