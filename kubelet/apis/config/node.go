package config

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// The second half of ValidateConfiguration: taints, images, reservations, the
// host, logging, tracing, memory.

// taints judges the taints that the node registers with. Each is judged on its own; doubles are
// the API server's to refuse.
func (v *validator) taints(cfg *kubeletconfig.KubeletConfiguration) {
	for i := range cfg.RegisterWithTaints {
		t := &cfg.RegisterWithTaints[i]
		p := field.NewPath("registerWithTaints").Index(i)
		if name, val, detail := taintFault(t); detail != "" {
			v.add(p.Child(name), val, detail, fmt.Sprintf("invalid taint: %v", *t))
		}
		if t.TimeAdded != nil {
			const text = "taint.TimeAdded is not nil"
			v.add(p.Child("timeAdded"), t.TimeAdded.String(), text, "invalid configuration: "+text)
		}
	}
}

// taintFault names the field of a taint that is wrong. An empty effect passes here as it does
// upstream. The first fault of a taint is the one told.
func taintFault(t *v1.Taint) (name, value, detail string) {
	if errs := validation.IsQualifiedName(t.Key); len(errs) > 0 {
		return "key", t.Key, strings.Join(errs, "; ")
	}
	if errs := validation.IsValidLabelValue(t.Value); len(errs) > 0 {
		return "value", t.Value, strings.Join(errs, "; ")
	}
	switch t.Effect {
	case "", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
		return "", "", ""
	}
	return "effect", string(t.Effect), "unsupported taint effect"
}

// images judges when credentials of pulled images are verified (KEP-2535). Without the gate
// neither field may be set.
func (v *validator) images(cfg *kubeletconfig.KubeletConfiguration) {
	const policyField, listField = "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
	policy, list := cfg.ImagePullCredentialsVerificationPolicy, cfg.PreloadedImagesVerificationAllowlist
	if !v.gates.Enabled(features.KubeletEnsureSecretPulledImages) {
		const gate = "must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"
		if policy != "" {
			v.say(policyField, policy, "`%s` %s", policyField, gate)
		}
		if len(list) > 0 {
			v.say(listField, list, "`%s` %s", listField, gate)
		}
		return
	}
	switch policy {
	case kubeletconfig.NeverVerify, kubeletconfig.NeverVerifyPreloadedImages, kubeletconfig.NeverVerifyAllowlistedImages, kubeletconfig.AlwaysVerify:
	default:
		v.say(policyField, policy, `option %q specified for %s. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"`, policy, policyField)
	}
	if len(list) > 0 && policy != kubeletconfig.NeverVerifyAllowlistedImages {
		// The name of the policy is upstream's slip.
		v.say(listField, list, "can't set `%s` if `imagePullCredentialsVertificationPolicy` is not \"NeverVerifyAllowlistedImages\"", listField)
		return
	}
	for _, pattern := range list {
		if err := checkAllowlisted(pattern); err != nil {
			v.say(listField, list, "invalid image pattern in `%s`: %v", listField, err)
			return
		}
	}
}

// checkAllowlisted judges an image without tag and digest, or a prefix that ends
// in "/*". The rules are those of pkg/kubelet/images/pullmanager: a pattern names a repository or
// everything below a path.
func checkAllowlisted(pattern string) error {
	if pattern != strings.TrimSpace(pattern) {
		return fmt.Errorf("leading/trailing spaces are not allowed: %s", pattern)
	}
	rest, wildcard := strings.CutSuffix(pattern, "/*")
	switch {
	case rest == "" && wildcard:
		return errors.New("at least registry hostname is required")
	case rest == "":
		return fmt.Errorf("the supplied pattern is too short: %s", pattern)
	case strings.Contains(rest, "*"):
		return fmt.Errorf("not a valid wildcard pattern, only patterns ending with '/*' are allowed: %s", pattern)
	case wildcard:
		return nil
	}
	ref, err := reference.Parse(pattern)
	if err != nil {
		return fmt.Errorf("failed to parse as an image name: %w", err)
	}
	_, tagged := ref.(reference.Tagged)
	_, digested := ref.(reference.Digested)
	if tagged || digested {
		return fmt.Errorf("neither tag nor digest is accepted in an image reference: %s", pattern)
	}
	return nil
}

// reserved judges what is kept from pods: CPUs by number, and memory by NUMA node for the memory
// manager. Names are walked in order, since the texts' order is what tests compare.
func (v *validator) reserved(cfg *kubeletconfig.KubeletConfiguration) {
	if s := cfg.ReservedSystemCPUs; s != "" {
		if cfg.SystemReservedCgroup != "" || cfg.KubeReservedCgroup != "" {
			v.say("reservedSystemCPUs", s, "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)")
		}
		if _, err := cm.ParseCPUs(s); err != nil {
			v.say("reservedSystemCPUs", s, "unable to parse reservedSystemCPUs (--reserved-cpus) %v, error: %v", s, err)
		}
	}
	type key struct {
		node int32
		name v1.ResourceName
	}
	// A NUMA node's resource must be named once, over the whole list.
	seen := map[key]bool{}
	for i := range cfg.ReservedMemory {
		r := &cfg.ReservedMemory[i]
		p := field.NewPath("reservedMemory").Index(i).Child("limits")
		say := func(name v1.ResourceName, format string, args ...any) {
			q := r.Limits[name]
			text := fmt.Sprintf(format, args...)
			v.add(p.Key(string(name)), q.String(), text, "invalid configuration: "+text)
		}
		for _, name := range sets.List(sets.KeySet(r.Limits)) {
			if q := r.Limits[name]; q.IsZero() {
				say(name, "reserved memory may not be zero for NUMA node %d and resource %q", r.NumaNode, name)
			}
			if name != v1.ResourceMemory && !strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
				say(name, "the limit type %q for NUMA node %d is not supported, only [memory hugepages-<HugePageSize>] is accepted", name, r.NumaNode)
			}
			if seen[key{r.NumaNode, name}] {
				say(name, "the reserved memory has a duplicate value for NUMA node %d and resource %q", r.NumaNode, name)
			}
			seen[key{r.NumaNode, name}] = true
		}
	}
}

// idsUnit is the number of user IDs that a pod's range is a multiple of. A user namespace maps a
// whole 16-bit range of IDs, so that any uid of an image exists in it (KEP-127).
const idsUnit = 65536

// host judges what depends on the machine: cgroup v1 is refused unless failCgroupV1 is false
// (KEP-4569). A nil host is a machine of which nothing is known.
func (v *validator) host(cfg *kubeletconfig.KubeletConfiguration, host *Host) {
	if host != nil && host.CgroupV1 {
		if ptr.Deref(cfg.FailCgroupV1, true) {
			const text = "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release"
			v.add(fieldPath("failCgroupV1"), true, text, text)
			return
		}
		if !ptr.Deref(cfg.SingleProcessOOMKill, true) {
			v.say("singleProcessOOMKill", false, "singleProcessOOMKill must not be explicitly set to false when using cgroup v1")
			return
		}
	}
	if cfg.UserNamespaces == nil || cfg.UserNamespaces.IDsPerPod == nil {
		return
	}
	const name = "userNamespaces.idsPerPod"
	switch n := *cfg.UserNamespaces.IDsPerPod; {
	case n < idsUnit:
		v.say(name, n, "%s must not be less than %d", name, idsUnit)
	case n%idsUnit != 0:
		v.say(name, n, "%s must be a multiple of %d", name, idsUnit)
	case n > math.MaxUint32:
		v.say(name, n, "%s must not be more than %d", name, int64(math.MaxUint32))
	}
}

// addField notes a fault whose text is that of the field's error. The shared packages of
// component-base report field errors without the prefix of the kubelet's own.
func (v *validator) addField(e *field.Error) {
	v.errs = append(v.errs, &fault{e.Error(), e})
}

// logging mirrors k8s.io/component-base/logs/api/v1.Validate.
func (v *validator) logging(cfg *kubeletconfig.KubeletConfiguration) {
	l, p := &cfg.Logging, field.NewPath("logging")
	if l.FlushFrequency.Duration.Duration <= 0 {
		v.addField(field.Invalid(p.Child("flushFrequency"), l.FlushFrequency, "Must be greater than zero"))
	}
	if l.Format != "" && l.Format != "text" && l.Format != "json" {
		v.addField(field.Invalid(p.Child("format"), l.Format, "Unsupported log format"))
	}
	most := fmt.Sprintf("Must be <= %d", math.MaxInt32)
	if l.Verbosity > math.MaxInt32 {
		v.addField(field.Invalid(p.Child("verbosity"), l.Verbosity, most))
	}
	vmodule := p.Child("vmodule")
	if len(l.VModule) > 0 && l.Format != "" && l.Format != "text" {
		v.addField(field.Forbidden(vmodule, "Only supported for text log format"))
	}
	for i, item := range l.VModule {
		if item.FilePattern == "" {
			v.addField(field.Required(vmodule.Index(i), "File pattern must not be empty"))
		}
		if strings.ContainsAny(item.FilePattern, "=,") {
			v.addField(field.Invalid(vmodule.Index(i), item.FilePattern, "File pattern must not contain equal sign or comma"))
		}
		if item.Verbosity > math.MaxInt32 {
			v.addField(field.Invalid(vmodule.Index(i), item.Verbosity, most))
		}
	}
	if v.gates.Enabled(features.LoggingAlphaOptions) {
		return
	}
	const disabled = "Feature LoggingAlphaOptions is disabled"
	o, p := &l.Options, p.Child("options")
	for _, alpha := range [...]struct {
		used   bool
		format string
		name   string
	}{
		{o.Text.SplitStream, "text", "splitStream"}, {o.Text.InfoBufferSize.Value() != 0, "text", "infoBufferSize"},
		{o.JSON.SplitStream, "json", "splitStream"}, {o.JSON.InfoBufferSize.Value() != 0, "json", "infoBufferSize"},
	} {
		if alpha.used {
			v.addField(field.Forbidden(p.Child(alpha.format, alpha.name), disabled))
		}
	}
}

// tracing mirrors k8s.io/component-base/tracing/api/v1. An endpoint without a scheme is taken for
// a DNS name, as gRPC does.
func (v *validator) tracing(cfg *kubeletconfig.KubeletConfiguration) {
	if cfg.Tracing == nil {
		return
	}
	p := field.NewPath("tracing")
	if r := cfg.Tracing.SamplingRatePerMillion; r != nil && *r < 0 {
		v.addField(field.Invalid(p.Child("samplingRatePerMillion"), *r, "sampling rate must be positive"))
	} else if r != nil && *r > 1_000_000 {
		v.addField(field.Invalid(p.Child("samplingRatePerMillion"), *r, "sampling rate per million must be less than or equal to one million"))
	}
	if cfg.Tracing.Endpoint == nil {
		return
	}
	endpoint := *cfg.Tracing.Endpoint
	if !strings.Contains(endpoint, "//") {
		endpoint = "dns://" + endpoint
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		v.addField(field.Invalid(p.Child("endpoint"), endpoint, err.Error()))
	case u.Scheme != "dns" && u.Scheme != "unix" && u.Scheme != "unix-abstract":
		v.addField(field.Invalid(p.Child("endpoint"), endpoint, fmt.Sprintf("unsupported scheme: %v.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md", u.Scheme)))
	}
}

// memory judges MemoryQoS (KEP-2570): the factor that memory.high is set by, and what memory.min
// and memory.low are set to.
func (v *validator) memory(cfg *kubeletconfig.KubeletConfiguration) {
	qos := v.gates.Enabled(features.MemoryQoS)
	f := cfg.MemoryThrottlingFactor
	if qos && f == nil {
		v.say("memoryThrottlingFactor", "", "memoryThrottlingFactor is required when MemoryQoS feature flag is enabled")
	}
	if f != nil {
		v.check(*f > 0 && *f <= 1, "memoryThrottlingFactor", "", *f, "must be greater than 0 and less than or equal to 1.0")
	}
	const name = "memoryReservationPolicy"
	switch p := cfg.MemoryReservationPolicy; {
	case p == kubeletconfig.TieredReservationMemoryReservationPolicy && !qos:
		v.say(name, p, "%s %q requires MemoryQoS feature gate to be enabled", name, p)
	case p != kubeletconfig.TieredReservationMemoryReservationPolicy && p != kubeletconfig.NoneMemoryReservationPolicy:
		v.say(name, p, `option %q specified for %s. Valid options are "None" or "TieredReservation"`, p, name)
	}
}

// logs judges the rotation of containers' logs and where they are. One file alone could not be
// rotated.
func (v *validator) logs(cfg *kubeletconfig.KubeletConfiguration) {
	if n := cfg.ContainerLogMaxWorkers; n != nil && *n < 1 {
		v.say("containerLogMaxWorkers", *n, "containerLogMaxWorkers must be greater than or equal to 1")
	}
	if d := cfg.ContainerLogMonitorInterval; d != nil && d.Duration < 3*time.Second {
		v.say("containerLogMonitorInterval", d.Duration.String(), "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s")
	}
	if n := cfg.ContainerLogMaxFiles; n != nil && *n <= 1 {
		v.say("containerLogMaxFiles", *n, "containerLogMaxFiles must be greater than 1")
	}
	dir := cfg.PodLogsDir
	if dir == "" {
		v.say("podLogsDir", dir, "podLogsDir was not specified")
	}
	if !path.IsAbs(dir) {
		v.say("podLogsDir", dir, "pod logs path %q must be absolute path", dir)
	}
	if path.Clean(dir) != dir {
		v.say("podLogsDir", dir, "pod logs path %q must be normalized", dir)
	}
	if strings.IndexFunc(dir, func(c rune) bool { return c > 127 }) >= 0 {
		// "mut" is upstream's.
		v.say("podLogsDir", dir, "pod logs path %q mut contains ASCII characters only", dir)
	}
}

// quantityFault judges a quantity such as 10Mi. It is what parsing says; callers word the
// message.
func quantityFault(text string) error {
	_, err := resource.ParseQuantity(text)
	return err
}
