// Package features knows the kubelet's feature gates at v1.36: their stages, defaults, locks and
// dependencies. It mirrors upstream's pkg/features and k8s.io/component-base/featuregate, without
// their global state: a set of gates is a value.
//
// features.go has the rules: what a configuration may set, what is said of it, and which gates
// are on. known.go is the list of all gates, sorted by name, since find searches it by halves.
//
// A gate that is known need not have an effect: used names those that the code asks for, and
// whoever sets another one to something else than its default is told so.
package features

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// The gates that this module's own code asks for.
const (
	// The names are those that users write; code asks by these constants only, so a typo doesn't
	// compile.
	CSIVolumeHealth                        = "CSIVolumeHealth"
	ClusterTrustBundleProjection           = "ClusterTrustBundleProjection"
	ContainerStopSignals                   = "ContainerStopSignals"
	CPUManagerPolicyAlphaOptions           = "CPUManagerPolicyAlphaOptions"
	CPUManagerPolicyBetaOptions            = "CPUManagerPolicyBetaOptions"
	DisableCPUQuotaWithExclusiveCPUs       = "DisableCPUQuotaWithExclusiveCPUs"
	CPUCFSQuotaPeriod                      = "CustomCPUCFSQuotaPeriod"
	EventedPLEG                            = "EventedPLEG"
	GracefulNodeShutdown                   = "GracefulNodeShutdown"
	GracefulNodeShutdownBasedOnPodPriority = "GracefulNodeShutdownBasedOnPodPriority"
	KubeletCrashLoopBackOffMax             = "KubeletCrashLoopBackOffMax"
	KubeletEnsureSecretPulledImages        = "KubeletEnsureSecretPulledImages"
	LoggingAlphaOptions                    = "LoggingAlphaOptions"
	MemoryQoS                              = "MemoryQoS"
	NodeDeclaredFeatures                   = "NodeDeclaredFeatures"
	PodCertificateRequest                  = "PodCertificateRequest"
	PodLevelResources                      = "PodLevelResources"
	QOSReserved                            = "QOSReserved"
	RestartAllContainersOnContainerExits   = "RestartAllContainersOnContainerExits"
	RotateKubeletServerCertificate         = "RotateKubeletServerCertificate"

	KubeletServiceAccountTokenForCredentialProviders = "KubeletServiceAccountTokenForCredentialProviders"
)

// The gates that stand for all of a stage.
const (
	// Both are settings of a configuration, not gates that code could ask for.
	allAlpha = "AllAlpha"
	allBeta  = "AllBeta"
)

// clusterTrustBundle is the gate that ClusterTrustBundleProjection depends on.
const clusterTrustBundle = "ClusterTrustBundle"

// stage is how far a gate has come at v1.36; it decides what is said of it. GA gates are mostly
// locked; deprecated ones can still be set to get old behaviour back.
type stage string

const (
	alpha      stage = "ALPHA"
	beta       stage = "BETA"
	ga         stage = "GA"
	deprecated stage = "DEPRECATED"
)

// gate is one feature gate, as upstream's pkg/features has it. One entry a gate: upstream's list
// has one per version, of which that of v1.36 is taken.
type gate struct {
	name  string
	stage stage
	// on is the default; locked ones keep it.
	on, locked bool
	// needs are gates without which this one can't be on.
	needs []string
}

// find finds a gate of upstream's; the list is sorted by name. It returns a pointer into the
// list, which nobody changes.
func find(name string) (*gate, bool) {
	i, ok := slices.BinarySearchFunc(known, name, func(g gate, name string) int { return strings.Compare(g.name, name) })
	if !ok {
		return nil, false
	}
	return &known[i], true
}

// Gates says which gates are on. The zero value has the defaults.
// A set is handed to whoever asks for gates; upstream has one for the whole
// process, which a process with many kubelets could not have.
type Gates struct{ set map[string]bool }

// Enabled reports whether a gate is on; one that there is not is off.
// Only what differs from a default is in the set, so most look-ups find the
// list's entry. It is cheap enough to be asked each time; nothing keeps the answer.
func (g Gates) Enabled(name string) bool {
	if on, ok := g.set[name]; ok {
		return on
	}
	k, ok := find(name)
	return ok && k.on
}

// Resolve makes a set of gates of what a configuration says (featureGates,
// --feature-gates). The error, if any, is an aggregate of upstream's texts, in
// the order of the gates' names.
// All errors are found: a user mends them at once. AllAlpha and AllBeta come
// after the gates that are named, which win. With an error the set is empty, apart from unmet
// dependencies, with which it is complete.
func Resolve(m map[string]bool) (Gates, error) {
	var errs []error
	set := make(map[string]bool, len(m))
	names := sortedNames(m)
	for _, name := range names {
		on := m[name]
		if name == allAlpha || name == allBeta {
			continue
		}
		k, ok := find(name)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("unrecognized feature gate: %s", name))
		case k.locked && k.on != on:
			errs = append(errs, fmt.Errorf("cannot set feature gate %v to %v, feature is locked to %v", name, on, k.on))
		default:
			set[name] = on
		}
	}
	setStage(set, m, allAlpha, alpha)
	setStage(set, m, allBeta, beta)
	if len(errs) > 0 {
		return Gates{}, utilerrors.NewAggregate(errs)
	}
	g := Gates{set}
	// Dependencies are judged with the defaults of all gates in force, since switching one off
	// may take away what a default needs.
	for i := range known {
		k := &known[i]
		if len(k.needs) == 0 || !g.Enabled(k.name) {
			continue
		}
		if off := slices.DeleteFunc(slices.Clone(k.needs), g.Enabled); len(off) > 0 {
			errs = append(errs, fmt.Errorf("%s is enabled, but depends on features that are disabled: %v", k.name, off))
		}
	}
	return g, utilerrors.NewAggregate(errs)
}

// setStage sets the gates of a stage that are not named themselves. A locked gate is never of
// these stages.
func setStage(set, m map[string]bool, all string, s stage) {
	on, ok := m[all]
	if !ok {
		return
	}
	for i := range known {
		k := &known[i]
		if _, named := m[k.name]; k.stage == s && !named {
			set[k.name] = on
		}
	}
}

// Warnings are upstream's about gates that will go away.
// The order is that of the names, upstream's that of a map. Unknown gates are Resolve's to
// refuse.
func Warnings(m map[string]bool) []string {
	var out []string
	for _, name := range sortedNames(m) {
		k, ok := find(name)
		switch {
		case !ok:
		case k.stage == deprecated:
			out = append(out, fmt.Sprintf("setting deprecated feature gate. It will be removed in a future release. featureGate=%s value=%t", name, m[name]))
		case k.stage == ga:
			out = append(out, fmt.Sprintf("setting GA feature gate. It will be removed in a future release. featureGate=%s value=%t", name, m[name]))
		}
	}
	return out
}

// used are the gates that the kubelet's code asks for, and those declared features without which
// it refuses pods. Of other declared features only the declaration goes with the gate, so they stay
// out: nothing that the kubelet does changes.
// A gate that is built gets its name here, or Unused goes on to warn of it.
var used = []string{
	// The kubelet asks for ClusterTrustBundle by the gate that depends on it only.
	clusterTrustBundle, ClusterTrustBundleProjection, PodCertificateRequest,
	ContainerStopSignals, CSIVolumeHealth, CPUCFSQuotaPeriod, CPUManagerPolicyAlphaOptions, CPUManagerPolicyBetaOptions, DisableCPUQuotaWithExclusiveCPUs, EventedPLEG, GracefulNodeShutdown, GracefulNodeShutdownBasedOnPodPriority,
	KubeletCrashLoopBackOffMax, KubeletEnsureSecretPulledImages, LoggingAlphaOptions, MemoryQoS, NodeDeclaredFeatures, PodLevelResources, QOSReserved,
	RotateKubeletServerCertificate, RestartAllContainersOnContainerExits, KubeletServiceAccountTokenForCredentialProviders,
}

// Unused returns those settings of gates, as name=value and sorted, that differ
// from the default and that nothing in the kubelet asks for. It is for warnings at the start.
func Unused(m map[string]bool) []string {
	var out []string
	for _, name := range sortedNames(m) {
		k, ok := find(name)
		if ok && k.on != m[name] && !slices.Contains(used, name) || name == allAlpha && m[name] || name == allBeta && !m[name] {
			out = append(out, fmt.Sprintf("%s=%t", name, m[name]))
		}
	}
	return out
}

// Help has a line per gate that can be set, for --feature-gates.
// Gates that are GA or deprecated are left out, as upstream's help does. It is one line each, in
// the form of upstream's help.
func Help() []string {
	out := []string{allAlpha + "=true|false (ALPHA - default=false)", allBeta + "=true|false (BETA - default=false)"}
	for i := range known {
		if k := &known[i]; k.stage == alpha || k.stage == beta {
			out = append(out, fmt.Sprintf("%s=true|false (%s - default=%t)", k.name, k.stage, k.on))
		}
	}
	slices.Sort(out)
	return out
}

// ErrorsOf takes an aggregate of Resolve apart.
// An error that is no aggregate is the only one. It is for callers that word each error on its
// own.
func ErrorsOf(err error) []error {
	var agg utilerrors.Aggregate
	if errors.As(err, &agg) {
		return agg.Errors()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// sortedNames is the order in which gates are judged, so that the first error
// is always the same.
func sortedNames(m map[string]bool) []string {
	names := make([]string, 0, len(m))
	for name := range m { //drydock:unordered sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
