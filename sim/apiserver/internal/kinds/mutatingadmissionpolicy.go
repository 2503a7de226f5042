package kinds

import (
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/policy"
)

// MutatingAdmissionPolicy is the kind of changes, in CEL, that are made to objects when
// they are written. A binding has them act.
const MutatingAdmissionPolicy kind.Kind = "MutatingAdmissionPolicy"

// mutatingAdmissionPolicy returns the row of MutatingAdmissionPolicy
// (pkg/registry/admissionregistration/mutatingadmissionpolicy).
func mutatingAdmissionPolicy() *kind.Info {
	type mutating = admissionregistrationv1.MutatingAdmissionPolicy
	return &kind.Info{
		Kind: MutatingAdmissionPolicy, AnyFinalizer: true, Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies",
		Categories: []string{"api-extensions"}, NeedsVersion: true,
		Strategy: &kind.Typed[mutating, *mutating]{
			Generation: func(p, old *mutating, _ string) bool { return !fields.Same(p.Spec, old.Spec) },
			Defaults: func(p *mutating) {
				fields.DefaultPtr(&p.Spec.FailurePolicy, admissionregistrationv1.Fail)
				setMatchDefaults(p.Spec.MatchConstraints)
			},
			Check: validateMutatingPolicy,
			Table: []kind.Column[mutating]{
				kind.NameColumn[mutating](),
				{Name: "Mutations", Type: "integer", Description: "Mutation indicates the number of mutations rules defined in this configuration",
					Cell: func(p *mutating, _ time.Time) any { return int64(len(p.Spec.Mutations)) }},
				{Name: "ParamKind", Type: "string", Description: "ParamKind specifies the kind of resources used to parameterize this policy",
					Cell: func(p *mutating, _ time.Time) any { return paramKindCell(p.Spec.ParamKind) }},
				kind.AgeColumn[mutating](),
			},
		},
	}
}

// validateMutatingPolicy is validateMutatingAdmissionPolicy
// (pkg/apis/admissionregistration/validation).
func validateMutatingPolicy(p *admissionregistrationv1.MutatingAdmissionPolicy) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	errs := validateFailurePolicy(spec.FailurePolicy, path.Child("failurePolicy"))
	errs = append(errs, validateParamKind(spec.ParamKind, path.Child("paramKind"))...)
	errs = append(errs, validateConstraints(spec.MatchConstraints, path.Child("matchConstraints"))...)
	errs = append(errs, validateMutable(spec.MatchConstraints, path.Child("matchConstraints"))...)
	errs = append(errs, validateMatchConditions(spec.MatchConditions, spec.ParamKind != nil, path.Child("matchConditions"))...)
	check, err := policy.NewChecker(spec.ParamKind != nil)
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	errs = append(errs, validateVariables(spec.Variables, check, path.Child("variables"))...)
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(path.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, validateMutation(&spec.Mutations[i], check, path.Child("mutations").Index(i))...)
	}
	again := path.Child("reinvocationPolicy")
	if spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(again, ""))
	}
	return append(errs, oneOf(spec.ReinvocationPolicy, again, admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)...)
}

// validateMutable keeps mutations from what has no object.
func validateMutable(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m == nil {
		return nil
	}
	for _, r := range m.ResourceRules {
		for _, op := range r.Operations {
			errs = append(errs, oneOf(op, path.Child("resourceRules", "operations"), admissionregistrationv1.OperationAll, admissionregistrationv1.Connect, admissionregistrationv1.Create, admissionregistrationv1.Update)...)
		}
	}
	return errs
}

func validateMutation(m *admissionregistrationv1.Mutation, check *policy.Checker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	apply, steps := path.Child("applyConfiguration"), path.Child("jsonPatch")
	text := func(text string, at *field.Path, check func(string, *field.Path) field.ErrorList) {
		if text = strings.TrimSpace(text); text == "" {
			errs = append(errs, field.Required(at, ""))
			return
		}
		errs = append(errs, check(text, at)...)
	}
	switch m.PatchType {
	case "":
		errs = append(errs, field.Required(path.Child("patchType"), ""))
	case admissionregistrationv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			errs = append(errs, field.Required(steps, "must be specified when patchType is JSONPatch"))
		} else {
			text(m.JSONPatch.Expression, steps.Child("expression"), check.JSONPatch)
		}
		if m.ApplyConfiguration != nil {
			errs = append(errs, field.Invalid(apply, "{applyConfiguration}", "must not be specified when patchType is JSONPatch"))
		}
	case admissionregistrationv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			errs = append(errs, field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
		} else {
			text(m.ApplyConfiguration.Expression, apply.Child("expression"), check.ApplyConfiguration)
		}
		if m.JSONPatch != nil {
			errs = append(errs, field.Invalid(steps, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration"))
		}
	default:
		errs = append(errs, oneOf(m.PatchType, path.Child("patchType"), admissionregistrationv1.PatchTypeApplyConfiguration, admissionregistrationv1.PatchTypeJSONPatch)...)
	}
	return errs
}
