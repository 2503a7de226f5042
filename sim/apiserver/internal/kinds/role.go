package kinds

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Role and ClusterRole are the kinds of roles. Everybody may do everything here, as
// with upstream's authorization mode AlwaysAllow, so nothing reads them.
const (
	Role        kind.Kind = "Role"
	ClusterRole kind.Kind = "ClusterRole"
)

// roleName is ValidateRBACName: what can stand in a path, also "system:node".
func roleName(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// role returns the row of Role (pkg/registry/rbac/role/strategy.go).
func role() *kind.Info {
	return &kind.Info{
		Kind: Role, Meta: kind.MetaAgain, Group: rbacv1.GroupName, Version: "v1", Resource: "roles", Namespaced: true, CheckName: roleName, Inert: kind.InertAlways,
		Strategy: &kind.Typed[rbacv1.Role, *rbacv1.Role]{
			Check: func(r *rbacv1.Role) field.ErrorList { return validateRules(r.Rules, true) },
		},
	}
}

// clusterRole returns the row of ClusterRole (pkg/registry/rbac/clusterrole/strategy.go).
func clusterRole() *kind.Info {
	return &kind.Info{
		Kind: ClusterRole, Meta: kind.MetaAgain, Group: rbacv1.GroupName, Version: "v1", Resource: "clusterroles", CheckName: roleName, Inert: kind.InertAlways,
		Strategy: &kind.Typed[rbacv1.ClusterRole, *rbacv1.ClusterRole]{
			Check: func(r *rbacv1.ClusterRole) field.ErrorList { return validateClusterRole(r, nil) },
			CheckUpdate: func(r, old *rbacv1.ClusterRole, _ string) field.ErrorList {
				return validateClusterRole(r, old.AggregationRule)
			},
		},
	}
}

// validateClusterRole is ValidateClusterRole (pkg/apis/rbac/validation). Selectors
// that were wrong before may stay so.
func validateClusterRole(r *rbacv1.ClusterRole, old *rbacv1.AggregationRule) field.ErrorList {
	errs := validateRules(r.Rules, false)
	if r.AggregationRule == nil {
		return errs
	}
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	var o metavalidation.LabelSelectorValidationOptions
	if old != nil {
		o.AllowInvalidLabelValueInSelector = len(validateRoleSelectors(old, o, nil)) > 0
	}
	return append(errs, validateRoleSelectors(r.AggregationRule, o, path)...)
}

func validateRoleSelectors(rule *rbacv1.AggregationRule, o metavalidation.LabelSelectorValidationOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rule.ClusterRoleSelectors {
		errs = append(errs, metavalidation.ValidateLabelSelector(&rule.ClusterRoleSelectors[i], o, path.Index(i))...)
	}
	return errs
}

// validateRules is ValidatePolicyRule of each rule. URLs that are no resources are in
// no namespace.
func validateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		r, path := &rules[i], field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			errs = append(errs, field.Required(path.Child("verbs"), "verbs must contain at least one value"))
		}
		if len(r.NonResourceURLs) > 0 {
			urls := path.Child("nonResourceURLs")
			if namespaced {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}
