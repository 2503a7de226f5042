package admission

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// inOrder returns the plugins in upstream's order (AllOrderedPlugins of
// pkg/kubeapiserver/options/plugins.go). NamespaceLifecycle is the first of all, but
// is asked by [Plugins.Namespace]; EventRateLimit is asked by who packs events, and
// PodTopologyLabels about bindings and pods of templates by [Plugins.WithTopology].
func (p *Plugins) inOrder() []*Plugin {
	create := []admissionv1.Operation{admissionv1.Create}
	write := []admissionv1.Operation{admissionv1.Create, admissionv1.Update}
	all := []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	update := []admissionv1.Operation{admissionv1.Update}
	pod, node, claim := []kind.Kind{kinds.Pod}, []kind.Kind{kinds.Node}, []kind.Kind{kinds.PersistentVolumeClaim}
	none := func(k kind.Kind) func() bool { return func() bool { return !p.cluster.Has(k) } }
	noLimits, noQuotas := none(kinds.LimitRange), none(kinds.ResourceQuota)
	security := &podSecurity{cluster: p.cluster}
	return slices.Concat([]*Plugin{
		{Name: "LimitRanger", Kinds: pod, Operations: create, Idle: noLimits, Mutate: p.mutateLimits, Validate: p.validateLimits},
		{Name: "LimitRanger", Kinds: pod, Operations: update, Subresources: []string{"resize"}, Idle: noLimits, Mutate: p.mutateLimits, Validate: p.validateLimits},
		{Name: "LimitRanger", Kinds: claim, Operations: write, Idle: noLimits, Validate: p.validateLimits},
		{Name: "ServiceAccount", Kinds: pod, Operations: create, Mutate: p.admitServiceAccount, Validate: p.validateServiceAccount},
		{Name: "ServiceAccount", Kinds: pod, Operations: update, Subresources: []string{"ephemeralcontainers"}, Validate: p.validateServiceAccount},
		{Name: "TaintNodesByCondition", Kinds: node, Operations: create, Mutate: p.taintNode},
	}, security.plugins(write), []*Plugin{
		{Name: "Priority", Kinds: pod, Operations: write, Mutate: func(r *Request) error {
			if old, ok := r.Old.(*v1.Pod); ok {
				keepPriority(r.Object.(*v1.Pod), old)
				return nil
			}
			return p.admitPriority(r.Object.(*v1.Pod))
		}},
		{Name: "DefaultTolerationSeconds", Kinds: pod, Operations: write, Mutate: ofPod(func(pod *v1.Pod) error {
			addDefaultTolerations(&pod.Spec)
			return nil
		})},
		{Name: "DefaultStorageClass", Kinds: claim, Operations: create, Mutate: p.defaultStorageClass},
		{Name: "StorageObjectInUseProtection", Kinds: []kind.Kind{kinds.PersistentVolume, kinds.PersistentVolumeClaim}, Operations: create, Mutate: protectStorage},
		{Name: "PersistentVolumeClaimResize", Kinds: claim, Operations: update, Validate: p.validateClaimResize},
		{Name: "AdminAccess", Kinds: []kind.Kind{kinds.ResourceClaim, kinds.ResourceClaimTemplate}, Operations: create, Validate: p.validateAdminAccess},
		{Name: "RuntimeClass", Kinds: pod, Operations: create, Mutate: ofPod(p.admitRuntimeClass)},
		{Name: "CertificateSubjectRestriction", Kinds: []kind.Kind{kinds.CertificateSigningRequest}, Operations: create, Validate: restrictSubject},
		{Name: "DefaultIngressClass", Kinds: []kind.Kind{kinds.Ingress}, Operations: create, Idle: none(kinds.IngressClass), Mutate: p.defaultIngressClass},
		{Name: "PodTopologyLabels", Kinds: pod, Operations: create, Mutate: ofPod(p.labelTopology)},
		{Name: "PodResizeValidator", Kinds: pod, Operations: update, Subresources: []string{"resize"}, Validate: p.validateResize},
		{Name: "MutatingAdmissionPolicy", Operations: write, Subresources: []string{"*"}, Stamped: true, Idle: none(kinds.MutatingAdmissionPolicyBinding), Mutate: p.policies.mutate},
		{Name: "MutatingAdmissionWebhook", Operations: all, Subresources: []string{"*"}, Idle: none(kinds.MutatingWebhookConfiguration), Mutate: p.webhooks.mutate},
		{Name: "ValidatingAdmissionPolicy", Operations: all, Subresources: []string{"*"}, Stamped: true, Idle: none(kinds.ValidatingAdmissionPolicyBinding), Validate: p.policies.validate},
		{Name: "ValidatingAdmissionWebhook", Operations: all, Subresources: []string{"*"}, Idle: none(kinds.ValidatingWebhookConfiguration), Validate: p.webhooks.validate},
		{Name: "ResourceQuota", Operations: write, Subresources: []string{"", "resize", "status"}, Stamped: true, Idle: noQuotas, Validate: p.admitQuota},
	})
}

// ofPod is a plugin's function that goes by nothing but the pod.
func ofPod(fn func(*v1.Pod) error) func(*Request) error {
	return func(r *Request) error { return fn(r.Object.(*v1.Pod)) }
}
