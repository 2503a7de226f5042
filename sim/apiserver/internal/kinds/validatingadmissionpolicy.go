package kinds

import (
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/policy"
)

// ValidatingAdmissionPolicy is the kind of rules, in CEL, that requests are refused by.
// A binding has them act.
const ValidatingAdmissionPolicy kind.Kind = "ValidatingAdmissionPolicy"

// validatingAdmissionPolicy returns the row of ValidatingAdmissionPolicy
// (pkg/registry/admissionregistration/validatingadmissionpolicy).
func validatingAdmissionPolicy() *kind.Info {
	type vap = admissionregistrationv1.ValidatingAdmissionPolicy
	return &kind.Info{
		Kind: ValidatingAdmissionPolicy, AnyFinalizer: true, Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
		Categories: []string{"api-extensions"}, NeedsVersion: true,
		Strategy: &kind.Typed[vap, *vap]{
			CountsSpec: true,
			Halves: kind.SpecAndStatus(func(p *vap) (*admissionregistrationv1.ValidatingAdmissionPolicySpec, *admissionregistrationv1.ValidatingAdmissionPolicyStatus) {
				return &p.Spec, &p.Status
			}),
			Defaults: func(p *vap) {
				fields.DefaultPtr(&p.Spec.FailurePolicy, admissionregistrationv1.Fail)
				setMatchDefaults(p.Spec.MatchConstraints)
			},
			Check: validateValidatingPolicy,
			CheckUpdate: func(p, _ *vap, sub string) field.ErrorList {
				if sub == "status" {
					return metavalidation.ValidateConditions(p.Status.Conditions, field.NewPath("status", "conditions"))
				}
				return validateValidatingPolicy(p)
			},
			Table: []kind.Column[vap]{
				kind.NameColumn[vap](),
				{Name: "Validations", Type: "integer", Description: "Validations indicates the number of validation rules defined in this configuration",
					Cell: func(p *vap, _ time.Time) any { return int64(len(p.Spec.Validations)) }},
				{Name: "ParamKind", Type: "string", Description: "ParamKind specifies the kind of resources used to parameterize this policy",
					Cell: func(p *vap, _ time.Time) any { return paramKindCell(p.Spec.ParamKind) }},
				kind.AgeColumn[vap](),
			},
		},
	}
}

// maxAuditAnnotations and maxAuditExpression bound what a policy says of requests.
const (
	maxAuditAnnotations = 20
	maxAuditExpression  = 5 << 10
)

// validateValidatingPolicy is validateValidatingAdmissionPolicy
// (pkg/apis/admissionregistration/validation).
func validateValidatingPolicy(p *admissionregistrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	errs := validateFailurePolicy(spec.FailurePolicy, path.Child("failurePolicy"))
	errs = append(errs, validateParamKind(spec.ParamKind, path.Child("paramKind"))...)
	errs = append(errs, validateConstraints(spec.MatchConstraints, path.Child("matchConstraints"))...)
	errs = append(errs, validateMatchConditions(spec.MatchConditions, spec.ParamKind != nil, path.Child("matchConditions"))...)
	check, err := policy.NewChecker(spec.ParamKind != nil)
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	errs = append(errs, validateVariables(spec.Variables, check, path.Child("variables"))...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(path.Child("validations"), why), field.Required(path.Child("auditAnnotations"), why))
	}
	for i := range spec.Validations {
		errs = append(errs, validateValidation(&spec.Validations[i], check, path.Child("validations").Index(i))...)
	}
	at := path.Child("auditAnnotations")
	if len(spec.AuditAnnotations) > maxAuditAnnotations {
		errs = append(errs, field.Invalid(at, spec.AuditAnnotations, fmt.Sprintf("must not have more than %d auditAnnotations", maxAuditAnnotations)))
	}
	seen := sets.New[string]()
	for i, a := range spec.AuditAnnotations {
		errs = append(errs, validateAuditAnnotation(p.Name, a, check, at.Index(i))...)
		if seen.Has(a.Key) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("key"), a.Key))
		}
		seen.Insert(a.Key)
	}
	return errs
}

// validateConstraints checks what a policy is for, which it must say.
func validateConstraints(m *admissionregistrationv1.MatchResources, path *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := validateMatch(m, path)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(path.Child("resourceRules"), ""))
	}
	return errs
}

func validateValidation(v *admissionregistrationv1.Validation, check *policy.Checker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "expression is not specified"))
	} else {
		errs = append(errs, check.Condition(v.Expression, path.Child("expression"))...)
	}
	switch at := path.Child("messageExpression"); {
	case v.MessageExpression == "":
	case strings.TrimSpace(v.MessageExpression) == "":
		errs = append(errs, field.Invalid(at, v.MessageExpression, "must be non-empty if specified"))
	default:
		errs = append(errs, check.Message(v.MessageExpression, at)...)
	}
	switch at, text := path.Child("message"), strings.TrimSpace(v.Message); {
	case v.Message != "" && text == "":
		errs = append(errs, field.Invalid(at, v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(text, "\n\r"):
		errs = append(errs, field.Invalid(at, v.Message, "must not contain line breaks"))
	}
	if v.Reason != nil {
		errs = append(errs, oneOf(*v.Reason, path.Child("reason"), metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
	}
	return errs
}

func validateAuditAnnotation(name string, a admissionregistrationv1.AuditAnnotation, check *policy.Checker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Invalid(path.Child("key"), a.Key, "requires metadata.name be non-empty"))
	} else {
		key := name + "/" + a.Key
		errs = append(errs, fields.Invalid(path.Child("key"), key, validation.IsQualifiedName(key))...)
	}
	at, text := path.Child("valueExpression"), strings.TrimSpace(a.ValueExpression)
	switch {
	case text == "":
		errs = append(errs, field.Required(at, "valueExpression is not specified"))
	case len(text) > maxAuditExpression:
		errs = append(errs, field.Required(at, fmt.Sprintf("must not exceed %d bytes in length", maxAuditExpression)))
	default:
		errs = append(errs, check.AuditValue(text, at)...)
	}
	return errs
}
