package kinds

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// Limits of an indexed job.
const (
	maxIndexedParallelism  = 100_000
	maxFailedIndexes       = 100_000
	completionsSoftLimit   = 100_000
	parallelismAboveSoft   = 10_000
	failedIndexesAboveSoft = 10_000
)

// setJobSpecDefaults fills in what a job and a cron job's template have in
// common.
func setJobSpecDefaults(s *batchv1.JobSpec, on features.Gates) {
	podspec.DefaultTemplate(&s.Template, on)
	if s.PodFailurePolicy == nil {
		return
	}
	for i := range s.PodFailurePolicy.Rules {
		conditions := s.PodFailurePolicy.Rules[i].OnPodConditions
		for j := range conditions {
			fields.Default(&conditions[j].Status, v1.ConditionTrue)
		}
	}
}

// jobSpecWarnings is WarningsForJobSpec.
func jobSpecWarnings(s *batchv1.JobSpec, path *field.Path) []string {
	var out []string
	if isIndexed(s) && valueOf(s.Completions) > completionsSoftLimit && valueOf(s.Parallelism) > parallelismAboveSoft {
		out = append(out, path.String()+": In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail")
	}
	return append(out, podspec.TemplateWarnings(&s.Template, path.Child("template"))...)
}

// isIndexed reports whether each pod of a job has an index to do.
func isIndexed(s *batchv1.JobSpec) bool {
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
}

// validateJobSpec checks what jobs and the templates of cron jobs share.
func validateJobSpec(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := fields.NonNegativePtr(s.Parallelism, path.Child("parallelism"))
	errs = append(errs, fields.NonNegativePtr(s.Completions, path.Child("completions"))...)
	errs = append(errs, fields.NonNegativePtr(s.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, fields.NonNegativePtr(s.BackoffLimit, path.Child("backoffLimit"))...)
	errs = append(errs, fields.NonNegativePtr(s.TTLSecondsAfterFinished, path.Child("ttlSecondsAfterFinished"))...)
	errs = append(errs, fields.NonNegativePtr(s.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	errs = append(errs, fields.NonNegativePtr(s.MaxFailedIndexes, path.Child("maxFailedIndexes"))...)
	// Only a limit per index makes indexes fail.
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	if s.ManagedBy != nil {
		errs = append(errs, validation.IsDomainPrefixedPath(path.Child("managedBy"), *s.ManagedBy)...)
		if len(*s.ManagedBy) > 63 {
			errs = append(errs, field.TooLong(path.Child("managedBy"), "", 63))
		}
	}
	if m := s.CompletionMode; m != nil && *m != batchv1.NonIndexedCompletion && *m != batchv1.IndexedCompletion {
		errs = append(errs, field.NotSupported(path.Child("completionMode"), *m, []batchv1.CompletionMode{batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}))
	}
	errs = append(errs, validateIndexed(s, path)...)
	// The policy judges how a pod failed, so a pod that is terminating has to be
	// waited for.
	if s.PodFailurePolicy != nil {
		errs = append(errs, validatePodFailurePolicy(s, path.Child("podFailurePolicy", "rules"))...)
	}
	if s.SuccessPolicy != nil {
		errs = append(errs, validateSuccessPolicy(s, path.Child("successPolicy"))...)
	}
	if p := s.PodReplacementPolicy; p != nil {
		valid := []batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}
		if s.PodFailurePolicy != nil {
			valid = valid[:1]
		}
		if !slices.Contains(valid, *p) {
			errs = append(errs, field.NotSupported(path.Child("podReplacementPolicy"), *p, valid))
		}
	}
	errs = append(errs, podspec.ValidateTemplate(&s.Template, path.Child("template"))...)
	restart := path.Child("template", "spec", "restartPolicy")
	// A pod that restarts for ever never finishes, and the policies judge finished
	// pods.
	switch p := s.Template.Spec.RestartPolicy; {
	case p == v1.RestartPolicyAlways || p == "":
		errs = append(errs, field.Required(restart, fmt.Sprintf("valid values: %q, %q", v1.RestartPolicyOnFailure, v1.RestartPolicyNever)))
	case p != v1.RestartPolicyOnFailure && p != v1.RestartPolicyNever:
		errs = append(errs, field.NotSupported(restart, p, []v1.RestartPolicy{v1.RestartPolicyOnFailure, v1.RestartPolicyNever}))
	case s.PodFailurePolicy != nil && p != v1.RestartPolicyNever:
		errs = append(errs, field.Invalid(restart, p, fmt.Sprintf("only %q is supported when podFailurePolicy is specified", v1.RestartPolicyNever)))
	}
	return errs
}

// validateIndexed checks what indexed jobs must have, and what only they may.
func validateIndexed(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	perIndex, failed := path.Child("backoffLimitPerIndex"), path.Child("maxFailedIndexes")
	// What follows bounds indexes, of which there are none.
	if !isIndexed(s) {
		if s.BackoffLimitPerIndex != nil {
			errs = append(errs, field.Invalid(perIndex, *s.BackoffLimitPerIndex, "requires indexed completion mode"))
		}
		if s.MaxFailedIndexes != nil {
			errs = append(errs, field.Invalid(failed, *s.MaxFailedIndexes, "requires indexed completion mode"))
		}
		return errs
	}
	atMost := func(v *int32, limit int32, path *field.Path, when string) {
		if v != nil && *v > limit {
			errs = append(errs, field.Invalid(path, *v, fmt.Sprintf("must be less than or equal to %d%s", limit, when)))
		}
	}
	if s.Completions == nil {
		errs = append(errs, field.Required(path.Child("completions"), "when completion mode is Indexed"))
	}
	atMost(s.Parallelism, maxIndexedParallelism, path.Child("parallelism"), " when completion mode is Indexed")
	if s.Completions != nil && s.MaxFailedIndexes != nil && *s.MaxFailedIndexes > *s.Completions {
		errs = append(errs, field.Invalid(failed, *s.MaxFailedIndexes, "must be less than or equal to completions"))
	}
	atMost(s.MaxFailedIndexes, maxFailedIndexes, failed, "")
	// The lists of indexes in the status grow with what runs and fails: with more
	// completions there may be less of both.
	if s.Completions != nil && *s.Completions > completionsSoftLimit && s.BackoffLimitPerIndex != nil {
		if s.MaxFailedIndexes == nil {
			errs = append(errs, field.Required(failed, fmt.Sprintf("must be specified when completions is above %d", completionsSoftLimit)))
		}
		when := fmt.Sprintf(" when completions are above %d and used with backoff limit per index", completionsSoftLimit)
		atMost(s.Parallelism, parallelismAboveSoft, path.Child("parallelism"), when)
		atMost(s.MaxFailedIndexes, failedIndexesAboveSoft, failed, when)
	}
	return errs
}
