// Package kinds is the catalogue of the kinds that the API serves, a file each:
// its row in the table (names, scope, how nodes watch it), its defaults, its rules,
// what an update of it or of its status reaches, and what the trace says of it.
// The files are all of one shape: a constant with the kind's name, a function that
// returns its row, and what the row is made of. jobspec.go and jobpolicy.go are
// what Job and CronJob share; what all that run pods share is package podspec.
//
// To add a kind, write its file and name it in [New]. Store, watches, trace,
// garbage collection and the checking of manifests follow from the row.
//
// Defaults mirror upstream's pkg/apis/GROUP/VERSION/defaults.go, rules its
// pkg/apis/GROUP/validation, the rest its pkg/registry/GROUP/RESOURCE/strategy.go.
package kinds

import (
	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// New returns the table of the kinds that are served with these gates, in the order
// that kind.NewTable wants.
func New(on features.Gates) *kind.Table {
	return kind.NewTable(append(gated(on),
		apiService(), flowSchema(), priorityLevelConfiguration(), serviceCIDR(), ipAddress(), clusterRole(), clusterRoleBinding(), certificateSigningRequest(), ingressClass(),
		namespace(), customResourceDefinition(), priorityClass(), runtimeClass(), node(),
		role(), roleBinding(), networkPolicy(), ingress(),
		configMap(), secret(), serviceAccount(), service(), podDisruptionBudget(),
		storageClass(), volumeAttributesClass(), persistentVolume(), persistentVolumeClaim(),
		volumeAttachment(), csiDriver(), csiNode(), csiStorageCapacity(),
		deviceClass(), resourceSlice(), resourceClaimTemplate(), resourceClaim(), endpoints(), podTemplate(on), replicationController(on),
		limitRange(), resourceQuota(),
		validatingWebhookConfiguration(), mutatingWebhookConfiguration(),
		validatingAdmissionPolicy(), validatingAdmissionPolicyBinding(), mutatingAdmissionPolicy(), mutatingAdmissionPolicyBinding(),
		controllerRevision(), daemonSet(on), statefulSet(on), deployment(on), replicaSet(on), cronJob(on), job(on),
		horizontalPodAutoscaler(), endpointSlice(),
		lease(), pod(on), event(),
	)...)
}

// gated are the kinds that are served with a gate only.
func gated(on features.Gates) []*kind.Info {
	var out []*kind.Info
	if on.ClusterTrustBundle {
		out = append(out, clusterTrustBundle())
	}
	if on.PodCertificateRequest {
		out = append(out, podCertificateRequest())
	}
	return out
}

// none is what tables say of what isn't there.
const none = "<none>"
