package kinds

import (
	policyv1 "k8s.io/api/policy/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// PodDisruptionBudget is the kind of disruption budgets. Both who evicts (the API
// itself) and the disruption controller write the status.
const PodDisruptionBudget kind.Kind = "PodDisruptionBudget"

// podDisruptionBudget returns the row of PodDisruptionBudget
// (pkg/registry/policy/poddisruptionbudget).
func podDisruptionBudget() *kind.Info {
	return &kind.Info{
		Kind: PodDisruptionBudget, Group: "policy", Version: "v1", Resource: "poddisruptionbudgets", Namespaced: true,
		Strategy: &kind.Typed[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
			CountsSpec: true,
			Halves: kind.SpecAndStatus(func(pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudgetSpec, *policyv1.PodDisruptionBudgetStatus) {
				return &pdb.Spec, &pdb.Status
			}),
			Check: validateDisruptionBudget,
		},
	}
}

// validateDisruptionBudget is ValidatePodDisruptionBudget
// (pkg/apis/policy/validation/validation.go).
func validateDisruptionBudget(pdb *policyv1.PodDisruptionBudget) field.ErrorList {
	var errs field.ErrorList
	spec := &pdb.Spec
	path := field.NewPath("spec")
	// One would follow from the other, or contradict it.
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(path, *spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, budgetAmount(spec.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, budgetAmount(spec.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, metavalidation.ValidateLabelSelector(spec.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	if p := spec.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.IfHealthyBudget && *p != policyv1.AlwaysAllow {
		errs = append(errs, field.NotSupported(path.Child("unhealthyPodEvictionPolicy"), *p, []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}))
	}
	return errs
}

// budgetAmount checks a number or a percentage of up to 100 %.
func budgetAmount(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if v.Type == intstr.Int {
		return apivalidation.ValidateNonnegativeField(int64(v.IntVal), path)
	}
	var errs field.ErrorList
	errs = append(errs, fields.Invalid(path, *v, validation.IsValidPercent(v.StrVal))...)
	if p, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true); err == nil && p > 100 {
		errs = append(errs, field.Invalid(path, *v, "must not be greater than 100%"))
	}
	return errs
}
