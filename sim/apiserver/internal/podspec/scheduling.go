package podspec

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// validateScheduling checks what a pod tells the scheduler beside its node
// selector, node affinity and tolerations. Overhead, which the RuntimeClass has
// set, is checked as limits are. Node affinity and tolerations are checked with the pod.
func validateScheduling(s *v1.PodSpec, path *field.Path) field.ErrorList {
	errs := validateSpread(s.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))
	if a := s.Affinity; a != nil && a.PodAffinity != nil {
		p := path.Child("affinity", "podAffinity")
		errs = append(errs, validatePodTerms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, p)...)
	}
	if a := s.Affinity; a != nil && a.PodAntiAffinity != nil {
		p := path.Child("affinity", "podAntiAffinity")
		errs = append(errs, validatePodTerms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, p)...)
	}
	for i, g := range s.SchedulingGates {
		p := path.Child("schedulingGates").Index(i)
		errs = append(errs, fields.Invalid(p, g.Name, validation.IsQualifiedName(g.Name))...)
		// A gate is taken away by name: a second one of its name would stay.
		if slices.Contains(s.SchedulingGates[:i], g) {
			errs = append(errs, field.Duplicate(p, g.Name))
		}
	}
	if s.PreemptionPolicy != nil {
		errs = append(errs, fields.OneOf(*s.PreemptionPolicy, path.Child("preemptionPolicy"), v1.PreemptLowerPriority, v1.PreemptNever)...)
	}
	return append(errs, ValidateOverhead(s.Overhead, path.Child("overhead"))...)
}

// validateSpread is validateTopologySpreadConstraints. Two constraints of one key
// and one consequence would contradict each other or say the same. Both directions of a pair are
// compared once.
func validateSpread(list []v1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	const positive = "must be greater than zero"
	var errs field.ErrorList
	for i := range list {
		c, p := &list[i], path.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(p.Child("maxSkew"), c.MaxSkew, positive))
		}
		// Without a key all nodes would be one domain.
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(p.Child("topologyKey"), "can not be empty"))
		}
		if c.WhenUnsatisfiable != v1.DoNotSchedule && c.WhenUnsatisfiable != v1.ScheduleAnyway {
			errs = append(errs, field.NotSupported(p.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}))
		}
		for j := range list[i+1:] {
			if o := &list[i+1+j]; o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable {
				errs = append(errs, field.Duplicate(p.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable)))
				break
			}
		}
		if m := c.MinDomains; m != nil && *m <= 0 {
			errs = append(errs, field.Invalid(p.Child("minDomains"), *m, positive))
		}
		// It makes missing domains count as empty ones, which only a hard
		// constraint notices.
		if m := c.MinDomains; m != nil && c.WhenUnsatisfiable != v1.DoNotSchedule {
			errs = append(errs, field.Invalid(p.Child("minDomains"), *m, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", v1.DoNotSchedule, c.WhenUnsatisfiable)))
		}
		for _, f := range []struct {
			name   string
			policy *v1.NodeInclusionPolicy
		}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
			if f.policy != nil && *f.policy != v1.NodeInclusionPolicyHonor && *f.policy != v1.NodeInclusionPolicyIgnore {
				errs = append(errs, field.NotSupported(p.Child(f.name), *f.policy, []v1.NodeInclusionPolicy{v1.NodeInclusionPolicyHonor, v1.NodeInclusionPolicyIgnore}))
			}
		}
		errs = append(errs, validateLabelKeys(c.LabelSelector, c.MatchLabelKeys, nil, p)...)
		errs = append(errs, metavalidation.ValidateLabelSelector(c.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, p.Child("labelSelector"))...)
	}
	return errs
}

// validatePodTerms checks the terms of pod affinity or anti-affinity
// (validatePodAffinityTerms, validateWeightedPodAffinityTerms). The path tells the two lists
// apart.
func validatePodTerms(required []v1.PodAffinityTerm, preferred []v1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range required {
		errs = append(errs, validatePodTerm(&required[i], path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i))...)
	}
	for i := range preferred {
		w, p := &preferred[i], path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		if w.Weight < 1 || w.Weight > 100 {
			errs = append(errs, field.Invalid(p.Child("weight"), w.Weight, "must be in the range 1-100"))
		}
		errs = append(errs, validatePodTerm(&w.PodAffinityTerm, p.Child("podAffinityTerm"))...)
	}
	return errs
}

// validatePodTerm is validatePodAffinityTerm. The topology key may not be empty:
// pods would be together anywhere.
func validatePodTerm(t *v1.PodAffinityTerm, path *field.Path) field.ErrorList {
	opts := metavalidation.LabelSelectorValidationOptions{}
	errs := metavalidation.ValidateLabelSelector(t.LabelSelector, opts, path.Child("labelSelector"))
	errs = append(errs, metavalidation.ValidateLabelSelector(t.NamespaceSelector, opts, path.Child("namespaceSelector"))...)
	for _, name := range t.Namespaces {
		errs = append(errs, fields.Invalid(path.Child("namespace"), name, apivalidation.ValidateNamespaceName(name, false))...)
	}
	errs = append(errs, validateLabelKeys(t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys, path)...)
	if t.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metavalidation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey"))...)
}

// validateLabelKeys is validateMatchLabelKeysAndMismatchLabelKeys. The selector
// of a pod has been completed: a key that the user gave in both is there twice.
func validateLabelKeys(sel *metav1.LabelSelector, match, mismatch []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := func(keys []string, path *field.Path) {
		if len(keys) > 0 && sel == nil {
			errs = append(errs, field.Forbidden(path, "must not be specified when labelSelector is not set"))
			return
		}
		for i, k := range keys {
			errs = append(errs, metavalidation.ValidateLabelName(k, path.Index(i))...)
		}
	}
	names(match, path.Child("matchLabelKeys"))
	names(mismatch, path.Child("mismatchLabelKeys"))
	for i, k := range match {
		if sel != nil && selectsTwice(sel, k) {
			errs = append(errs, field.Invalid(path.Index(i), k, "exists in both matchLabelKeys and labelSelector"))
		}
		// The same label can't be both equal and different.
		if slices.Contains(mismatch, k) {
			errs = append(errs, field.Invalid(path.Child("matchLabelKeys").Index(i), k, "exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
	return errs
}

// selectsTwice reports whether a selector asks for a label more than once. Once is the merged key
// itself.
func selectsTwice(sel *metav1.LabelSelector, key string) bool {
	n := 0
	if _, ok := sel.MatchLabels[key]; ok {
		n++
	}
	for i := range sel.MatchExpressions {
		if sel.MatchExpressions[i].Key == key {
			n++
		}
	}
	return n > 1
}
