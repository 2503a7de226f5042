package kinds

import (
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ValidatingAdmissionPolicyBinding is the kind of what has a policy act: on what, with
// which parameters, and what comes of a refusal.
const ValidatingAdmissionPolicyBinding kind.Kind = "ValidatingAdmissionPolicyBinding"

// validatingAdmissionPolicyBinding returns the row of ValidatingAdmissionPolicyBinding
// (pkg/registry/admissionregistration/validatingadmissionpolicybinding).
func validatingAdmissionPolicyBinding() *kind.Info {
	type binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	return &kind.Info{
		Kind: ValidatingAdmissionPolicyBinding, AnyFinalizer: true, Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings",
		Categories: []string{"api-extensions"}, NeedsVersion: true,
		Strategy: &kind.Typed[binding, *binding]{
			Generation: func(b, old *binding, _ string) bool { return !fields.Same(b.Spec, old.Spec) },
			Defaults:   func(b *binding) { setMatchDefaults(b.Spec.MatchResources) },
			Check: func(b *binding) field.ErrorList {
				path := field.NewPath("spec")
				errs := validatePolicyName(b.Spec.PolicyName, path.Child("policyName"))
				errs = append(errs, validateParamRef(b.Spec.ParamRef, path.Child("paramRef"))...)
				errs = append(errs, validateMatch(b.Spec.MatchResources, path.Child("matchResources"))...)
				return append(errs, validateActions(b.Spec.ValidationActions, path.Child("validationActions"))...)
			},
			Table: []kind.Column[binding]{
				kind.NameColumn[binding](),
				{Name: "PolicyName", Type: "string", Description: "PolicyName indicates the policy definition which the policy binding binded to",
					Cell: func(b *binding, _ time.Time) any { return b.Spec.PolicyName }},
				{Name: "ParamRef", Type: "string", Description: "ParamRef indicates the param resource which sets the configuration param",
					Cell: func(b *binding, _ time.Time) any { return paramRefCell(b.Spec.ParamRef) }},
				kind.AgeColumn[binding](),
			},
		},
	}
}

// validateActions checks what comes of a refusal.
func validateActions(list []admissionregistrationv1.ValidationAction, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, a := range list {
		errs = append(errs, oneOf(a, path.Index(i), admissionregistrationv1.Audit, admissionregistrationv1.Deny, admissionregistrationv1.Warn)...)
		if slices.Contains(list[:i], a) {
			errs = append(errs, field.Duplicate(path.Index(i), a))
		}
	}
	if slices.Contains(list, admissionregistrationv1.Deny) && slices.Contains(list, admissionregistrationv1.Warn) {
		errs = append(errs, field.Invalid(path, list, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	if len(list) == 0 {
		errs = append(errs, field.Required(path, "at least one validation action is required"))
	}
	return errs
}
