package kinds

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// MutatingWebhookConfiguration is the kind of servers that are asked what to change of
// an object before it is stored.
const MutatingWebhookConfiguration kind.Kind = "MutatingWebhookConfiguration"

// mutatingWebhookConfiguration returns the row of MutatingWebhookConfiguration
// (pkg/registry/admissionregistration/mutatingwebhookconfiguration).
func mutatingWebhookConfiguration() *kind.Info {
	type configuration = admissionregistrationv1.MutatingWebhookConfiguration
	return &kind.Info{
		Kind: MutatingWebhookConfiguration, AnyFinalizer: true, Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations",
		Categories: []string{"api-extensions"}, NeedsVersion: true, Inert: kind.InertWithoutClients,
		Strategy: &kind.Typed[configuration, *configuration]{
			Generation: func(c, old *configuration, _ string) bool { return !fields.Same(c.Webhooks, old.Webhooks) },
			Defaults: func(c *configuration) {
				for i := range c.Webhooks {
					h := &c.Webhooks[i]
					setWebhookDefaults(&h.FailurePolicy, &h.MatchPolicy, &h.NamespaceSelector, &h.ObjectSelector, &h.TimeoutSeconds, h.Rules, h.ClientConfig.Service)
					fields.DefaultPtr(&h.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
				}
			},
			Check: func(c *configuration) field.ErrorList { return validateWebhooks(c.Webhooks, nil) },
			CheckUpdate: func(c, old *configuration, _ string) field.ErrorList {
				return validateWebhooks(c.Webhooks, old.Webhooks)
			},
			Table: []kind.Column[configuration]{
				kind.NameColumn[configuration](),
				{Name: "Webhooks", Type: "integer", Description: "Webhooks indicates the number of webhooks registered in this configuration",
					Cell: func(c *configuration, _ time.Time) any { return int64(len(c.Webhooks)) }},
				kind.AgeColumn[configuration](),
			},
		},
	}
}
