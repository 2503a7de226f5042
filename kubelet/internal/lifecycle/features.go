package lifecycle

import (
	"context"
	"slices"
	"strings"

	"k8s.io/component-helpers/resource"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
)

// DeclaredFeatures is the handler that refuses pods that need a feature which
// the node does not declare (upstream nodedeclaredfeatures admit handler and
// k8s.io/component-helpers/nodedeclaredfeatures).
type DeclaredFeatures struct{ declared []string }

// NewDeclaredFeatures returns a handler for a node that declares these features.
func NewDeclaredFeatures(declared []string) *DeclaredFeatures { return &DeclaredFeatures{declared} }

// The features that a pod may need of its node.
const (
	featureRestartAll           = "RestartAllContainersOnContainerExits"
	featureUserNamespaceHostNet = "UserNamespacesHostNetworkSupport"
)

// Admit refuses a pod for all features that are missing.
func (f *DeclaredFeatures) Admit(_ context.Context, attrs *PodAdmitAttributes) PodAdmitResult {
	var missing []string
	spec := &attrs.Pod.Spec
	need := func(name string, needed bool) {
		if needed && !slices.Contains(f.declared, name) {
			missing = append(missing, name)
		}
	}
	need(featureRestartAll, kubecontainer.HasRestartAllRule(attrs.Pod))
	need(featureUserNamespaceHostNet, spec.HostNetwork && spec.HostUsers != nil && !*spec.HostUsers)
	if len(missing) == 0 {
		return PodAdmitResult{Admit: true}
	}
	return PodAdmitResult{Reason: "PodFeatureUnsupported", Message: "Pod requires node features that are not available: " + strings.Join(missing, ", ")}
}

// PodFeatures is the handler that refuses pods for what the kubelet's feature
// gates have off (upstream podFeaturesAdmitHandler).
type PodFeatures struct {
	// NoPodLevelResources says that the gate PodLevelResources is off.
	NoPodLevelResources bool
}

// Admit refuses a pod with resources of its own, if need be.
func (f PodFeatures) Admit(_ context.Context, attrs *PodAdmitAttributes) PodAdmitResult {
	if f.NoPodLevelResources && resource.IsPodLevelResourcesSet(attrs.Pod) {
		return PodAdmitResult{Reason: "PodLevelResourcesNotSupported", Message: "PodLevelResources feature gate is disabled"}
	}
	return PodAdmitResult{Admit: true}
}
