package kinds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ResourceQuota is the kind of limits on what a namespace uses in all. Admission
// charges the status of a quota with what is made, and the quota controller counts it
// anew.
const ResourceQuota kind.Kind = "ResourceQuota"

// resourceQuota returns the row of ResourceQuota
// (pkg/registry/core/resourcequota/strategy.go).
func resourceQuota() *kind.Info {
	return &kind.Info{
		Kind: ResourceQuota, Version: "v1", Resource: "resourcequotas", ShortNames: []string{"quota"}, Namespaced: true, ReturnsDeleted: true,
		Strategy: &kind.Typed[v1.ResourceQuota, *v1.ResourceQuota]{
			Halves: kind.SpecAndStatus(func(q *v1.ResourceQuota) (*v1.ResourceQuotaSpec, *v1.ResourceQuotaStatus) { return &q.Spec, &q.Status }),
			Defaults: func(q *v1.ResourceQuota) {
				roundUp(q.Spec.Hard)
				roundUp(q.Status.Hard)
				roundUp(q.Status.Used)
			},
			Check:       func(q *v1.ResourceQuota) field.ErrorList { return validateQuotaSpec(&q.Spec) },
			CheckUpdate: validateQuotaUpdate,
			Table:       resourceQuotaTable(),
		},
	}
}

// roundUp has amounts be whole thousandths (SetDefaults_ResourceList).
func roundUp(list v1.ResourceList) {
	for _, name := range fields.SortedKeys(list) {
		q := list[name]
		if q.RoundUp(-3); q.Cmp(list[name]) != 0 {
			list[name] = q
		}
	}
}

// validateQuotaUpdate lets scopes not change: what was counted is by the old ones.
func validateQuotaUpdate(q, old *v1.ResourceQuota, sub string) field.ErrorList {
	if sub == "status" {
		status := field.NewPath("status")
		return append(validateQuotaAmounts(q.Status.Hard, status.Child("hard")), validateQuotaAmounts(q.Status.Used, status.Child("used"))...)
	}
	errs := validateQuotaSpec(&q.Spec)
	if !sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "scopes"), q.Spec.Scopes, "field is immutable"))
	}
	return errs
}

// validateQuotaSpec is ValidateResourceQuotaSpec (pkg/apis/core/validation/validation.go).
func validateQuotaSpec(spec *v1.ResourceQuotaSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateQuotaAmounts(spec.Hard, path.Child("hard"))
	for _, s := range spec.Scopes {
		errs = append(errs, validateScope(spec, s, path.Child("scopes"), spec.Scopes, path.Child("scopes"), spec.Scopes)...)
	}
	errs = append(errs, validateScopePairs(spec.Scopes, path.Child("scopes"), spec.Scopes)...)
	if spec.ScopeSelector != nil {
		errs = append(errs, validateScopeSelector(spec, path.Child("scopeSelector", "matchExpressions"))...)
	}
	return errs
}

func validateQuotaAmounts(list v1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range fields.SortedKeys(list) {
		errs = append(errs, fields.QuotaResourceName(name, path.Key(string(name)))...)
		errs = append(errs, fields.Quantity(name, list[name], path.Key(string(name)))...)
	}
	return errs
}

// validateScope checks one scope: it is known, and the quota's resources can have it.
// What is wrong with the resources is said of value at path, the other of what at
// unknown.
func validateScope(spec *v1.ResourceQuotaSpec, s v1.ResourceQuotaScope, path *field.Path, value any, unknown *field.Path, what any) field.ErrorList {
	var errs field.ErrorList
	if _, ok := scopedResources[s]; !ok {
		errs = append(errs, field.Invalid(unknown, what, "unsupported scope"))
	}
	for _, name := range fields.SortedKeys(spec.Hard) {
		if of, ok := scopedResources[s]; ok && fields.QuotaResource(name) && !slices.Contains(of, name) {
			errs = append(errs, field.Invalid(path, value, "unsupported scope applied to resource"))
		}
	}
	return errs
}

// scopedResources are the resources that a scope can be applied to
// (IsResourceQuotaScopeValidForResource).
var scopedResources = map[v1.ResourceQuotaScope][]v1.ResourceName{
	v1.ResourceQuotaScopeTerminating:               podResources,
	v1.ResourceQuotaScopeNotTerminating:            podResources,
	v1.ResourceQuotaScopeNotBestEffort:             podResources,
	v1.ResourceQuotaScopePriorityClass:             podResources,
	v1.ResourceQuotaScopeCrossNamespacePodAffinity: podResources,
	v1.ResourceQuotaScopeBestEffort:                {v1.ResourcePods},
	v1.ResourceQuotaScopeVolumeAttributesClass:     {v1.ResourcePersistentVolumeClaims, v1.ResourceRequestsStorage},
}

var podResources = []v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory,
	v1.ResourceLimitsCPU, v1.ResourceLimitsMemory, v1.ResourceRequestsCPU, v1.ResourceRequestsMemory}

// validateScopePairs refuses scopes that nothing can be in at once.
func validateScopePairs(scopes []v1.ResourceQuotaScope, path *field.Path, value any) field.ErrorList {
	var errs field.ErrorList
	for _, pair := range [][2]v1.ResourceQuotaScope{
		{v1.ResourceQuotaScopeBestEffort, v1.ResourceQuotaScopeNotBestEffort},
		{v1.ResourceQuotaScopeTerminating, v1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			errs = append(errs, field.Invalid(path, value, "conflicting scopes"))
		}
	}
	return errs
}

// validateScopeSelector is validateScopedResourceSelectorRequirement.
func validateScopeSelector(spec *v1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var scopes []v1.ResourceQuotaScope
	for _, req := range spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, req.ScopeName)
		errs = append(errs, validateScope(spec, req.ScopeName, path, spec.ScopeSelector, path.Child("scopeName"), req.ScopeName)...)
		switch req.ScopeName {
		case v1.ResourceQuotaScopeBestEffort, v1.ResourceQuotaScopeNotBestEffort, v1.ResourceQuotaScopeTerminating, v1.ResourceQuotaScopeNotTerminating, v1.ResourceQuotaScopeCrossNamespacePodAffinity:
			if req.Operator != v1.ScopeSelectorOpExists {
				errs = append(errs, field.Invalid(path.Child("operator"), req.Operator, "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
			}
		}
		switch req.Operator {
		case v1.ScopeSelectorOpIn, v1.ScopeSelectorOpNotIn:
			if len(req.Values) == 0 {
				errs = append(errs, field.Required(path.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
			}
		case v1.ScopeSelectorOpExists, v1.ScopeSelectorOpDoesNotExist:
			if len(req.Values) != 0 {
				errs = append(errs, field.Invalid(path.Child("values"), req.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
			}
		default:
			errs = append(errs, field.Invalid(path.Child("operator"), req.Operator, "not a valid selector operator"))
		}
	}
	return append(errs, validateScopePairs(scopes, path, spec.Scopes)...)
}

func resourceQuotaTable() []kind.Column[v1.ResourceQuota] {
	type quota = v1.ResourceQuota
	used := func(q *quota, limits bool) string {
		var out []string
		for _, name := range fields.SortedKeys(q.Status.Hard) {
			if strings.HasPrefix(string(name), "limits.") == limits {
				is, hard := q.Status.Used[name], q.Status.Hard[name]
				out = append(out, fmt.Sprintf("%s: %s/%s", name, &is, &hard))
			}
		}
		return strings.Join(out, ", ")
	}
	return []kind.Column[quota]{
		kind.NameColumn[quota](),
		{Name: "Request", Type: "string", Description: "Request represents a minimum amount of cpu/memory that a container may consume.",
			Cell: func(q *quota, _ time.Time) any { return used(q, false) }},
		{Name: "Limit", Type: "string", Description: "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
			Cell: func(q *quota, _ time.Time) any { return used(q, true) }},
		kind.AgeColumn[quota](),
	}
}
