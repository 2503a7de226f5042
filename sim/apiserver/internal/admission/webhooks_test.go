package admission

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// hooked is a cluster with webhooks and nothing else.
type hooked struct{ Cluster }

// Each implements Cluster.
func (hooked) Each(k kind.Kind, fn func(kind.Object) bool) {
	switch k {
	case kinds.MutatingWebhookConfiguration:
		fn(&admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "a.example.com"}}})
	case kinds.ValidatingWebhookConfiguration:
		fn(&admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "b.example.com"}}})
	}
}

// TestNobodyCalls has requests of the cluster's own components, for whom nobody calls webhooks.
func TestNobodyCalls(t *testing.T) {
	w := &webhooks{cluster: hooked{}}
	for _, caller := range []*Caller{nil, {}} {
		r := &Request{Kind: &kind.Info{Kind: "ConfigMap"}, Object: &v1.ConfigMap{}, Caller: caller}
		if err := w.mutate(r); err != nil {
			t.Errorf("mutating: %v", err)
		}
		if err := w.validate(r); err != nil {
			t.Errorf("validating: %v", err)
		}
	}
}
