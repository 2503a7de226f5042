package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/cm"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/cpumanager"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/topologymanager"
	"github.com/drydock-sim/drydock/kubelet/internal/eviction/api"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
)

// ValidateValues judges what upstream's validator lets through and the kubelet
// refuses once it comes to use it: periods, reservations, eviction thresholds,
// names of policies. The error, if any, is an aggregate of upstream's texts, in
// upstream's order, in which each entry unwraps to a *field.Error. It is apart from
// ValidateConfiguration since upstream reports these faults at another time, without the prefix,
// and drydock kubelet has to do the same.
func ValidateValues(cfg *kubeletconfig.KubeletConfiguration) error {
	v := validator{}
	v.reservations(cfg)
	v.eviction(cfg)
	v.qosReserved(cfg)
	v.managers(cfg)
	v.periods(cfg)
	return utilerrors.NewAggregate(v.errs)
}

// reservations parses kubeReserved and systemReserved as pkg/kubelet/cm does when the container
// manager is made.
func (v *validator) reservations(cfg *kubeletconfig.KubeletConfiguration) {
	for _, r := range [...]struct {
		name, flag string
		m          map[string]string
	}{{"kubeReserved", "kube-reserved", cfg.KubeReserved}, {"systemReserved", "system-reserved", cfg.SystemReserved}} {
		if _, err := cm.ParseReserved(r.name, r.m); err != nil {
			detail := strings.TrimPrefix(err.Error(), r.name+": ")
			v.add(fieldPath(r.name), r.m, detail, "--"+r.flag+" value failed to parse: "+detail)
		}
	}
}

// signals are those that eviction thresholds can name. allocatableMemory.available is the
// kubelet's own and yet accepted from a configuration.
var signals = []string{
	"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
	"containerfs.available", "containerfs.inodesFree", "pid.available", "allocatableMemory.available",
}

// eviction parses the four maps about eviction (pkg/kubelet/eviction/helpers.go
// ParseThresholdConfig). Keys are walked in order; upstream's is a map's.
func (v *validator) eviction(cfg *kubeletconfig.KubeletConfiguration) {
	v.thresholds("evictionHard", cfg.EvictionHard)
	v.thresholds("evictionSoft", cfg.EvictionSoft)
	for _, s := range sets.List(sets.KeySet(cfg.EvictionSoft)) {
		if _, ok := cfg.EvictionSoftGracePeriod[s]; !ok {
			v.entry("evictionSoft", s, cfg.EvictionSoft[s], "grace period must be specified for the soft eviction threshold "+s)
		}
	}
	for _, s := range sets.List(sets.KeySet(cfg.EvictionSoftGracePeriod)) {
		text := cfg.EvictionSoftGracePeriod[s]
		if !v.signal("evictionSoftGracePeriod", s, text) {
			continue
		}
		if d, err := time.ParseDuration(text); err != nil {
			v.entry("evictionSoftGracePeriod", s, text, err.Error())
		} else if d < 0 {
			v.entry("evictionSoftGracePeriod", s, text, fmt.Sprintf("invalid eviction grace period specified: %v, must be a positive value", text))
		}
	}
	for _, s := range sets.List(sets.KeySet(cfg.EvictionMinimumReclaim)) {
		text := cfg.EvictionMinimumReclaim[s]
		if !v.signal("evictionMinimumReclaim", s, text) {
			continue
		}
		if _, err := api.ParseMinimumReclaim(s, text); err != nil {
			v.entry("evictionMinimumReclaim", s, text, err.Error())
		}
	}
}

// entry notes a fault of one key of a map.
func (v *validator) entry(name, key, value, text string) {
	v.add(fieldPath(name).Key(key), value, text, text)
}

// signal reports whether a name is a signal's, and notes a fault if not.
func (v *validator) signal(name, signal, text string) bool {
	if slices.Contains(signals, signal) {
		return true
	}
	v.entry(name, signal, text, "unsupported eviction signal "+signal)
	return false
}

// thresholds judges thresholds such as 10% or 500Mi.
func (v *validator) thresholds(name string, m map[string]string) {
	for _, s := range sets.List(sets.KeySet(m)) {
		if !v.signal(name, s, m[s]) {
			continue
		}
		if _, _, err := api.ParseThreshold(s, m[s]); err != nil {
			v.entry(name, s, m[s], err.Error())
		}
	}
}

// qosReserved judges the percentages of memory requests that are kept from lower QoS classes;
// memory is the only resource.
func (v *validator) qosReserved(cfg *kubeletconfig.KubeletConfiguration) {
	for _, name := range sets.List(sets.KeySet(cfg.QOSReserved)) {
		text := cfg.QOSReserved[name]
		say := func(detail string) {
			v.add(fieldPath("qosReserved").Key(name), text, detail, "--qos-reserved value failed to parse: "+detail)
		}
		p, percent := strings.CutSuffix(text, "%")
		n, err := strconv.ParseInt(p, 10, 64)
		switch {
		case name != "memory":
			say(fmt.Sprintf("cannot reserve %q resource", name))
		case !percent || err != nil || n < 0 || n > 100:
			say(fmt.Sprintf("failed to parse percentage %q for %q resource: want 0%% to 100%%", text, name))
		}
	}
}

// managers checks names that upstream's managers look up. A name that is unknown fails when the
// manager is made, which in upstream ends the kubelet.
func (v *validator) managers(cfg *kubeletconfig.KubeletConfiguration) {
	for _, c := range [...]struct {
		name, got, text string
		allowed         []string
	}{
		{"cgroupDriver", cfg.CgroupDriver, "misconfiguration: kubelet cgroup driver: %q is none of %q", []string{"cgroupfs", "systemd"}},
		{"cpuManagerPolicy", cfg.CPUManagerPolicy, "unknown policy: %q, want one of %q", []string{"none", "static"}},
		{"memoryManagerPolicy", cfg.MemoryManagerPolicy, "unknown policy: %q, want one of %q", []string{"None", "Static"}},
		{"configMapAndSecretChangeDetectionStrategy", string(cfg.ConfigMapAndSecretChangeDetectionStrategy), "unknown configmap and secret manager mode: %v, want one of %q", []string{"Get", "Cache", "Watch"}},
	} {
		if slices.Contains(c.allowed, c.got) {
			continue
		}
		v.errs = append(v.errs, &fault{fmt.Sprintf(c.text, c.got, c.allowed), field.NotSupported(field.NewPath(c.name), c.got, c.allowed)})
	}
	if _, err := cpumanager.ParseOptions(cfg.CPUManagerPolicy, cfg.CPUManagerPolicyOptions, v.gates); err != nil {
		v.add(fieldPath("cpuManagerPolicyOptions"), cfg.CPUManagerPolicyOptions, err.Error(), err.Error())
	}
	if cfg.TopologyManagerPolicy != topologymanager.PolicyNone {
		// Options of a policy none are not looked at, as upstream.
		if _, err := topologymanager.ParseOptions(cfg.TopologyManagerPolicyOptions); err != nil {
			v.add(fieldPath("topologyManagerPolicyOptions"), cfg.TopologyManagerPolicyOptions, err.Error(), err.Error())
		}
	}
	if _, err := lifecycle.NewSysctls(cfg.AllowedUnsafeSysctls); err != nil {
		v.add(fieldPath("allowedUnsafeSysctls"), cfg.AllowedUnsafeSysctls, err.Error(), err.Error())
	}
	if err := quantityFault(cfg.ContainerLogMaxSize); err != nil {
		v.add(fieldPath("containerLogMaxSize"), cfg.ContainerLogMaxSize, err.Error(), fmt.Sprintf("failed to parse container log max size %q: %v", cfg.ContainerLogMaxSize, err))
	}
}

// periods are those without which nothing would move. Upstream checks
// syncFrequency; the others would make it spin. A period of zero or less would mean a timer that
// fires without end.
func (v *validator) periods(cfg *kubeletconfig.KubeletConfiguration) {
	for _, c := range [...]struct {
		name, text string
		d          time.Duration
	}{
		{"syncFrequency", "invalid sync frequency", cfg.SyncFrequency.Duration},
		{"fileCheckFrequency", "invalid file check frequency", cfg.FileCheckFrequency.Duration},
		{"httpCheckFrequency", "invalid http check frequency", cfg.HTTPCheckFrequency.Duration},
		{"nodeStatusUpdateFrequency", "invalid node status update frequency", cfg.NodeStatusUpdateFrequency.Duration},
		{"nodeStatusReportFrequency", "invalid node status report frequency", cfg.NodeStatusReportFrequency.Duration},
		{"runtimeRequestTimeout", "invalid runtime request timeout", cfg.RuntimeRequestTimeout.Duration},
	} {
		if c.d <= 0 {
			v.add(fieldPath(c.name), c.d.String(), "must be positive", fmt.Sprintf("%s %d", c.text, c.d))
		}
	}
}
