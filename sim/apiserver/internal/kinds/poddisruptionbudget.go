package kinds

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
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
		Kind: PodDisruptionBudget, Group: "policy", Version: "v1", Resource: "poddisruptionbudgets", ShortNames: []string{"pdb"}, Namespaced: true, NeedsVersion: true,
		Meta: kind.MetaLeft, CheckName: path.ValidatePathSegmentName, AnyFinalizer: true,
		Strategy: &kind.Typed[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
			CountsSpec: true,
			Halves: kind.SpecAndStatus(func(pdb *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudgetSpec, *policyv1.PodDisruptionBudgetStatus) {
				return &pdb.Spec, &pdb.Status
			}),
			Check: validateDisruptionBudget,
			CheckUpdate: func(pdb, _ *policyv1.PodDisruptionBudget, sub string) field.ErrorList {
				if sub != "" {
					return validateDisruptionBudgetStatus(&pdb.Status)
				}
				return validateDisruptionBudget(pdb)
			},
			Table: disruptionBudgetTable(),
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
		errs = append(errs, field.Invalid(path, fields.GoNames(*spec), "minAvailable and maxUnavailable cannot be both set"))
	}
	for _, a := range []struct {
		name  string
		value *intstr.IntOrString
	}{{"minAvailable", spec.MinAvailable}, {"maxUnavailable", spec.MaxUnavailable}} {
		if a.value != nil {
			errs = append(errs, fields.CountOrPercent(a.value, path.Child(a.name))...)
			errs = append(errs, fields.AtMost100Percent(a.value, path.Child(a.name))...)
		}
	}
	errs = append(errs, metavalidation.ValidateLabelSelector(spec.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	if p := spec.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.IfHealthyBudget && *p != policyv1.AlwaysAllow {
		errs = append(errs, field.NotSupported(path.Child("unhealthyPodEvictionPolicy"), *p, []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}))
	}
	return errs
}

// validateDisruptionBudgetStatus is ValidatePodDisruptionBudgetStatusUpdate.
func validateDisruptionBudgetStatus(s *policyv1.PodDisruptionBudgetStatus) field.ErrorList {
	errs := metavalidation.ValidateConditions(s.Conditions, field.NewPath("status", "conditions"))
	return append(errs, validateCounts(0, count{"disruptionsAllowed", s.DisruptionsAllowed}, count{"currentHealthy", s.CurrentHealthy},
		count{"desiredHealthy", s.DesiredHealthy}, count{"expectedPods", s.ExpectedPods})...)
}

func disruptionBudgetTable() []kind.Column[policyv1.PodDisruptionBudget] {
	type budget = policyv1.PodDisruptionBudget
	text := func(v *intstr.IntOrString) string {
		if v == nil {
			return "N/A"
		}
		return v.String()
	}
	return []kind.Column[budget]{
		kind.NameColumn[budget](),
		textColumn("Min Available", "The minimum number of pods that must be available.", func(b *budget) string { return text(b.Spec.MinAvailable) }),
		textColumn("Max Unavailable", "The maximum number of pods that may be unavailable.", func(b *budget) string { return text(b.Spec.MaxUnavailable) }),
		numberColumn("Allowed Disruptions", "integer", "Calculated number of pods that may be disrupted at this time.", func(b *budget) int32 { return b.Status.DisruptionsAllowed }),
		kind.AgeColumn[budget](),
	}
}
