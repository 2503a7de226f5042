package kinds

import (
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ValidatingWebhookConfiguration is the kind of servers that are asked whether a request
// may be.
const ValidatingWebhookConfiguration kind.Kind = "ValidatingWebhookConfiguration"

// validatingWebhookConfiguration returns the row of ValidatingWebhookConfiguration
// (pkg/registry/admissionregistration/validatingwebhookconfiguration).
func validatingWebhookConfiguration() *kind.Info {
	type configuration = admissionregistrationv1.ValidatingWebhookConfiguration
	hooks := func(c *configuration) []admissionregistrationv1.MutatingWebhook {
		out := make([]admissionregistrationv1.MutatingWebhook, len(c.Webhooks))
		for i, h := range c.Webhooks {
			out[i] = MutatingForm(h)
		}
		return out
	}
	return &kind.Info{
		Kind: ValidatingWebhookConfiguration, AnyFinalizer: true, Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
		Categories: []string{"api-extensions"}, NeedsVersion: true, Inert: kind.InertWithoutClients,
		Strategy: &kind.Typed[configuration, *configuration]{
			Generation: func(c, old *configuration, _ string) bool { return !fields.Same(c.Webhooks, old.Webhooks) },
			Defaults: func(c *configuration) {
				for i := range c.Webhooks {
					h := &c.Webhooks[i]
					setWebhookDefaults(&h.FailurePolicy, &h.MatchPolicy, &h.NamespaceSelector, &h.ObjectSelector, &h.TimeoutSeconds, h.Rules, h.ClientConfig.Service)
				}
			},
			Check:       func(c *configuration) field.ErrorList { return validateWebhooks(hooks(c), nil) },
			CheckUpdate: func(c, old *configuration, _ string) field.ErrorList { return validateWebhooks(hooks(c), hooks(old)) },
			Table: []kind.Column[configuration]{
				kind.NameColumn[configuration](),
				{Name: "Webhooks", Type: "integer", Description: "Webhooks indicates the number of webhooks registered in this configuration",
					Cell: func(c *configuration, _ time.Time) any { return int64(len(c.Webhooks)) }},
				kind.AgeColumn[configuration](),
			},
		},
	}
}

// MutatingForm returns a validating webhook as a mutating one, which has all that it has.
func MutatingForm(h admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy, MatchPolicy: h.MatchPolicy,
		NamespaceSelector: h.NamespaceSelector, ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects, TimeoutSeconds: h.TimeoutSeconds,
		AdmissionReviewVersions: h.AdmissionReviewVersions, MatchConditions: h.MatchConditions,
	}
}

// setWebhookDefaults fills in what both kinds of webhooks have
// (pkg/apis/admissionregistration/v1/defaults.go).
func setWebhookDefaults(failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchPolicyType, namespace, object **metav1.LabelSelector,
	timeout **int32, rules []admissionregistrationv1.RuleWithOperations, service *admissionregistrationv1.ServiceReference) {
	fields.DefaultPtr(failure, admissionregistrationv1.Fail)
	fields.DefaultPtr(match, admissionregistrationv1.Equivalent)
	fields.DefaultPtr(namespace, metav1.LabelSelector{})
	fields.DefaultPtr(object, metav1.LabelSelector{})
	fields.DefaultPtr(timeout, int32(10))
	for i := range rules {
		fields.DefaultPtr(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
	if service != nil {
		fields.DefaultPtr(&service.Port, int32(443))
	}
}

// reviewVersions are those of AdmissionReview that the API speaks.
var reviewVersions = []string{"v1", "v1beta1"}

// validateWebhooks checks a configuration's webhooks. What is wrong with old ones,
// already, may be wrong again, where rules came later than the kind.
func validateWebhooks(hooks, old []admissionregistrationv1.MutatingWebhook) field.ErrorList {
	var errs field.ErrorList
	was := func(bad func(h admissionregistrationv1.MutatingWebhook) bool) bool {
		return slices.ContainsFunc(old, bad)
	}
	effects := was(func(h admissionregistrationv1.MutatingWebhook) bool {
		return len(validateSideEffects(h.SideEffects, nil)) > 0
	})
	versions := was(func(h admissionregistrationv1.MutatingWebhook) bool {
		return !speaks(h.AdmissionReviewVersions) && len(h.AdmissionReviewVersions) > 0
	})
	twice := sets.New[string]()
	for i := range old {
		twice.Insert(old[i].Name)
	}
	names := sets.New[string]()
	for i := range hooks {
		h, path := &hooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateWebhook(h, effects, path)...)
		if i >= len(old) || !fields.Same(h.MatchConditions, old[i].MatchConditions) {
			errs = append(errs, validateMatchConditions(h.MatchConditions, false, path.Child("matchConditions"))...)
		}
		errs = append(errs, validateReviewVersions(h.AdmissionReviewVersions, versions, path.Child("admissionReviewVersions"))...)
		if names.Has(h.Name) && h.Name != "" && twice.Len() == len(old) {
			errs = append(errs, field.Duplicate(path.Child("name"), h.Name))
		}
		names.Insert(h.Name)
	}
	return errs
}

// validateWebhook checks one webhook but for its conditions and versions.
func validateWebhook(h *admissionregistrationv1.MutatingWebhook, effects bool, path *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(path.Child("name"), h.Name)
	for i := range h.Rules {
		errs = append(errs, validateRule(&h.Rules[i], path.Child("rules").Index(i))...)
	}
	errs = append(errs, validateFailurePolicy(h.FailurePolicy, path.Child("failurePolicy"))...)
	errs = append(errs, validateMatchPolicy(h.MatchPolicy, path.Child("matchPolicy"))...)
	if !effects || h.SideEffects == nil {
		errs = append(errs, validateSideEffects(h.SideEffects, path.Child("sideEffects"))...)
	}
	if t := h.TimeoutSeconds; t != nil && (*t > 30 || *t < 1) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *t, "the timeout value must be between 1 and 30 seconds"))
	}
	options := metavalidation.LabelSelectorValidationOptions{}
	errs = append(errs, metavalidation.ValidateLabelSelector(h.NamespaceSelector, options, path.Child("namespaceSelector"))...)
	errs = append(errs, metavalidation.ValidateLabelSelector(h.ObjectSelector, options, path.Child("objectSelector"))...)
	if h.ReinvocationPolicy != nil {
		errs = append(errs, oneOf(*h.ReinvocationPolicy, path.Child("reinvocationPolicy"), admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
	}
	switch at, c := path.Child("clientConfig"), h.ClientConfig; {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(at, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = append(errs, webhook.ValidateWebhookURL(at.Child("url"), *c.URL, true)...)
	default:
		s := c.Service
		errs = append(errs, webhook.ValidateWebhookService(at.Child("service"), s.Name, s.Namespace, s.Path, *s.Port)...)
	}
	return errs
}

func validateSideEffects(e *admissionregistrationv1.SideEffectClass, path *field.Path) field.ErrorList {
	if e == nil {
		return field.ErrorList{field.Required(path, "must specify one of None, NoneOnDryRun")}
	}
	return oneOf(*e, path, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)
}

// speaks reports whether one of the versions is one that the API speaks.
func speaks(versions []string) bool {
	return slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(reviewVersions, v) })
}

func validateReviewVersions(versions []string, foreign bool, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of "+strings.Join(reviewVersions, ", "))}
	}
	var errs field.ErrorList
	for i, v := range versions {
		if slices.Contains(versions[:i], v) {
			errs = append(errs, field.Invalid(path.Index(i), v, "duplicate version"))
			continue
		}
		errs = append(errs, fields.Invalid(path.Index(i), v, validation.IsDNS1035Label(v))...)
	}
	if !foreign && !speaks(versions) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+strings.Join(reviewVersions, ", ")))
	}
	return errs
}
