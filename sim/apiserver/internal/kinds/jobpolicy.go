package kinds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// Limits of the two policies.
const (
	maxPolicyRules        = 20
	maxExitCodes          = 255
	maxPodConditions      = 20
	maxSucceededIndexText = 64 << 10 // bytes
)

// validatePodFailurePolicy is validatePodFailurePolicy: which ends of a pod count
// as failures of the job. A rule is about exit codes or about conditions.
func validatePodFailurePolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	rules := s.PodFailurePolicy.Rules
	var errs field.ErrorList
	if len(rules) > maxPolicyRules {
		errs = append(errs, field.TooMany(path, len(rules), maxPolicyRules))
	}
	actions := []batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
	}
	for i := range rules {
		r, path := &rules[i], path.Index(i)
		switch action := path.Child("action"); {
		case r.Action == "":
			errs = append(errs, field.Required(action, fmt.Sprintf("valid values: %q", actions)))
		// An index can fail only where each has a limit.
		case r.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil:
			errs = append(errs, field.Invalid(action, r.Action, "requires the backoffLimitPerIndex to be set"))
		case !slices.Contains(actions, r.Action):
			errs = append(errs, field.NotSupported(action, r.Action, actions))
		}
		if r.OnExitCodes != nil {
			errs = append(errs, validateOnExitCodes(s, r.OnExitCodes, path.Child("onExitCodes"))...)
		}
		errs = append(errs, validateOnPodConditions(r.OnPodConditions, path.Child("onPodConditions"))...)
		switch on := len(r.OnPodConditions) > 0; {
		case on && r.OnExitCodes != nil:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
		case !on && r.OnExitCodes == nil:
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
		}
	}
	return errs
}

// validateOnExitCodes is validatePodFailurePolicyRuleOnExitCodes. Code 0 is no
// failure, and a rule for it would never fit.
func validateOnExitCodes(s *batchv1.JobSpec, r *batchv1.PodFailurePolicyOnExitCodesRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	ops := []batchv1.PodFailurePolicyOnExitCodesOperator{batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn}
	if op := path.Child("operator"); r.Operator == "" {
		errs = append(errs, field.Required(op, fmt.Sprintf("valid values: %q", ops)))
	} else if !slices.Contains(ops, r.Operator) {
		errs = append(errs, field.NotSupported(op, r.Operator, ops))
	}
	// Ephemeral containers are no part of a template, so no rule can name one.
	if n := r.ContainerName; n != nil {
		named := func(c v1.Container) bool { return c.Name == *n }
		if !slices.ContainsFunc(s.Template.Spec.Containers, named) && !slices.ContainsFunc(s.Template.Spec.InitContainers, named) {
			errs = append(errs, field.Invalid(path.Child("containerName"), *n, "must be one of the container or initContainer names in the pod template"))
		}
	}
	values := path.Child("values")
	switch n := len(r.Values); {
	case n == 0:
		errs = append(errs, field.Invalid(values, r.Values, "at least one value is required"))
	case n > maxExitCodes:
		errs = append(errs, field.TooMany(values, n, maxExitCodes))
	}
	seen := map[int32]bool{}
	for i, v := range r.Values {
		if r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && v == 0 {
			errs = append(errs, field.Invalid(values.Index(i), v, "must not be 0 for the In operator"))
		}
		if seen[v] {
			errs = append(errs, field.Duplicate(values.Index(i), v))
		}
		seen[v] = true
	}
	// A set is written in one way only.
	if !slices.IsSorted(r.Values) {
		errs = append(errs, field.Invalid(values, r.Values, "must be ordered"))
	}
	return errs
}

// validateOnPodConditions is validatePodFailurePolicyRuleOnPodConditions.
func validateOnPodConditions(on []batchv1.PodFailurePolicyOnPodConditionsPattern, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(on) > maxPodConditions {
		errs = append(errs, field.TooMany(path, len(on), maxPodConditions))
	}
	for i, p := range on {
		errs = append(errs, fields.Invalid(path.Index(i).Child("type"), string(p.Type), validation.IsQualifiedName(string(p.Type)))...)
		errs = append(errs, fields.OneOf(p.Status, path.Index(i).Child("status"), v1.ConditionFalse, v1.ConditionTrue, v1.ConditionUnknown)...)
	}
	return errs
}

// validateSuccessPolicy is validateSuccessPolicy: which indexes are enough for the
// job to succeed.
func validateSuccessPolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if !isIndexed(s) {
		return field.ErrorList{field.Invalid(path, fields.GoNames(*s.SuccessPolicy), "requires indexed completion mode")}
	}
	path = path.Child("rules")
	rules := s.SuccessPolicy.Rules
	var errs field.ErrorList
	if len(rules) == 0 {
		errs = append(errs, field.Required(path, "at least one rules must be specified when the successPolicy is specified"))
	}
	if len(rules) > maxPolicyRules {
		errs = append(errs, field.TooMany(path, len(rules), maxPolicyRules))
	}
	if s.Completions == nil {
		return errs // said already
	}
	for i := range rules {
		errs = append(errs, validateSuccessRule(&rules[i], *s.Completions, path.Index(i))...)
	}
	return errs
}

// validateSuccessRule is validateSuccessPolicyRule. Of the indexes that a rule
// names, it may ask for as many as there are.
func validateSuccessRule(r *batchv1.SuccessPolicyRule, completions int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		return field.ErrorList{field.Required(path, "at least one of succeededCount or succeededIndexes must be specified")}
	}
	var total int32
	if text := r.SucceededIndexes; text != nil {
		p := path.Child("succeededIndexes")
		if len(*text) > maxSucceededIndexText {
			errs = append(errs, field.TooLong(p, "", maxSucceededIndexText))
		}
		var err error
		if total, err = countIndexes(*text, completions); err != nil {
			errs = append(errs, field.Invalid(p, *text, "error parsing succeededIndexes: "+err.Error()))
		}
	}
	if n := r.SucceededCount; n != nil {
		p := path.Child("succeededCount")
		errs = append(errs, fields.NonNegative(int64(*n), p)...)
		if *n > completions {
			errs = append(errs, field.Invalid(p, *n, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions)))
		}
		if r.SucceededIndexes != nil && *n > total {
			errs = append(errs, field.Invalid(p, *n, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", total)))
		}
	}
	return errs
}

// countIndexes returns how many indexes a text like "1,3-5" names
// (validateIndexesFormat). They must be in order, without repetition, and below
// completions.
func countIndexes(text string, completions int32) (int32, error) {
	if text == "" {
		return 0, nil
	}
	last, total := -1, int32(0)
	for part := range strings.SplitSeq(text, ",") {
		ends := strings.Split(part, "-")
		if len(ends) > 2 {
			return 0, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
		}
		var at [2]int
		for i, e := range ends {
			n, err := strconv.Atoi(e)
			if err != nil {
				return 0, fmt.Errorf("cannot convert string to integer for index: %q", e)
			}
			if n >= int(completions) {
				return 0, fmt.Errorf("too large index: %q", e)
			}
			at[i] = n
		}
		if len(ends) == 1 {
			at[1] = at[0]
		} else if at[0] >= at[1] {
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", at[0], at[1])
		}
		if last >= at[0] {
			return 0, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, at[0])
		}
		last = at[1]
		total += int32(at[1] - at[0] + 1)
	}
	return total, nil
}
