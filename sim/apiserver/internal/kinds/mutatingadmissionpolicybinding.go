package kinds

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// MutatingAdmissionPolicyBinding is the kind of what has a mutating policy act: on what,
// and with which parameters.
const MutatingAdmissionPolicyBinding kind.Kind = "MutatingAdmissionPolicyBinding"

// mutatingAdmissionPolicyBinding returns the row of MutatingAdmissionPolicyBinding
// (pkg/registry/admissionregistration/mutatingadmissionpolicybinding).
func mutatingAdmissionPolicyBinding() *kind.Info {
	type binding = admissionregistrationv1.MutatingAdmissionPolicyBinding
	return &kind.Info{
		Kind: MutatingAdmissionPolicyBinding, AnyFinalizer: true, Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings",
		Categories: []string{"api-extensions"}, NeedsVersion: true,
		Strategy: &kind.Typed[binding, *binding]{
			Generation: func(b, old *binding, _ string) bool { return !fields.Same(b.Spec, old.Spec) },
			Defaults:   func(b *binding) { setMatchDefaults(b.Spec.MatchResources) },
			Check: func(b *binding) field.ErrorList {
				path := field.NewPath("spec")
				errs := validatePolicyName(b.Spec.PolicyName, path.Child("policyName"))
				errs = append(errs, validateParamRef(b.Spec.ParamRef, path.Child("paramRef"))...)
				errs = append(errs, validateMatch(b.Spec.MatchResources, path.Child("matchResources"))...)
				return append(errs, validateMutable(b.Spec.MatchResources, path.Child("matchResources"))...)
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
