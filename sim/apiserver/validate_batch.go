package apiserver

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/internal/timezone"
)

// The rules of group batch (pkg/apis/batch/validation/validation.go).

// Limits of an indexed job.
const (
	maxIndexedParallelism  = 100_000
	maxFailedIndexes       = 100_000
	completionsSoftLimit   = 100_000
	parallelismAboveSoft   = 10_000
	failedIndexesAboveSoft = 10_000
)

func validateJob(j *batchv1.Job) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateJobLabels(j)
	errs = append(errs, validateJobSpec(&j.Spec, path)...)
	if sel := j.Spec.Selector; sel == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(sel, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
		if s, err := metav1.LabelSelectorAsSelector(sel); err == nil && !s.Matches(labels.Set(j.Spec.Template.Labels)) {
			errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), j.Spec.Template.Labels, "`selector` does not match template `labels`"))
		}
	}
	if isIndexed(&j.Spec) && j.Spec.Completions != nil && *j.Spec.Completions > 0 {
		host := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
		if len(validation.IsDNS1123Label(host)) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+host))
		}
	}
	return errs
}

// validateJobLabels checks that the labels that a job's selector is made of are
// the generated ones (validateGeneratedSelector).
func validateJobLabels(j *batchv1.Job) field.ErrorList {
	if j.Spec.ManualSelector != nil && *j.Spec.ManualSelector || j.Spec.Selector == nil {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "template", "metadata")
	want := labels.Set{}
	for _, l := range []struct{ key, value string }{
		{legacyControllerUIDLabel, string(j.UID)}, {legacyJobNameLabel, j.Name},
		{batchv1.ControllerUidLabel, string(j.UID)}, {batchv1.JobNameLabel, j.Name},
	} {
		want[l.key] = l.value
		switch is, ok := j.Spec.Template.Labels[l.key]; {
		case !ok:
			errs = append(errs, field.Required(path.Child("labels").Key(l.key), "must be '"+l.value+"'"))
		case is != l.value:
			errs = append(errs, field.Invalid(path.Child("labels").Key(l.key), j.Spec.Template.Labels, "must be '"+l.value+"'"))
		}
	}
	if s, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil && !s.Matches(want) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "selector"), j.Spec.Selector, "`selector` not auto-generated"))
	}
	return errs
}

func isIndexed(s *batchv1.JobSpec) bool {
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
}

// validateJobSpec checks what jobs and the templates of cron jobs share.
func validateJobSpec(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := nonNegativePtr(s.Parallelism, path.Child("parallelism"))
	errs = append(errs, nonNegativePtr(s.Completions, path.Child("completions"))...)
	errs = append(errs, nonNegativePtr(s.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, nonNegativePtr(s.BackoffLimit, path.Child("backoffLimit"))...)
	errs = append(errs, nonNegativePtr(s.TTLSecondsAfterFinished, path.Child("ttlSecondsAfterFinished"))...)
	errs = append(errs, nonNegativePtr(s.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	errs = append(errs, nonNegativePtr(s.MaxFailedIndexes, path.Child("maxFailedIndexes"))...)
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
		if !contains(valid, *p) {
			errs = append(errs, field.NotSupported(path.Child("podReplacementPolicy"), *p, valid))
		}
	}
	errs = append(errs, validateTemplate(&s.Template, path.Child("template"))...)
	restart := path.Child("template", "spec", "restartPolicy")
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

func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	errs := validateJob(j)
	path := field.NewPath("spec")
	s, was := &j.Spec, &old.Spec
	completions := path.Child("completions")
	switch {
	case !isIndexed(s):
		errs = append(errs, immutable(s.Completions, was.Completions, completions)...)
	case s.Completions != nil && !equality.Semantic.DeepEqual(s.Completions, was.Completions) && *s.Completions != *s.Parallelism:
		errs = append(errs, field.Invalid(completions, *s.Completions, "can only be modified in tandem with spec.parallelism"))
	}
	errs = append(errs, immutable(s.Selector, was.Selector, path.Child("selector"))...)
	errs = append(errs, immutable(&s.Template, mutableTemplate(j, old), path.Child("template"))...)
	errs = append(errs, immutable(s.CompletionMode, was.CompletionMode, path.Child("completionMode"))...)
	errs = append(errs, immutable(s.PodFailurePolicy, was.PodFailurePolicy, path.Child("podFailurePolicy"))...)
	errs = append(errs, immutable(s.BackoffLimitPerIndex, was.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	errs = append(errs, immutable(s.ManagedBy, was.ManagedBy, path.Child("managedBy"))...)
	return append(errs, immutable(s.SuccessPolicy, was.SuccessPolicy, path.Child("successPolicy"))...)
}

// mutableTemplate returns the old template with what may change of a suspended
// job's taken from the new one: resources, and where pods may run.
func mutableTemplate(j, old *batchv1.Job) *v1.PodTemplateSpec {
	suspended := old.Spec.Suspend != nil && *old.Spec.Suspend
	stopped := old.Status.StartTime == nil
	for _, c := range old.Status.Conditions {
		stopped = stopped || c.Type == batchv1.JobSuspended && c.Status == v1.ConditionTrue
	}
	t := old.Spec.Template.DeepCopy()
	if !suspended || !stopped || old.Status.Active > 0 {
		return t
	}
	is := &j.Spec.Template
	t.Annotations, t.Labels = is.Annotations, is.Labels
	t.Spec.NodeSelector, t.Spec.Tolerations, t.Spec.SchedulingGates = is.Spec.NodeSelector, is.Spec.Tolerations, is.Spec.SchedulingGates
	switch now := is.Spec.Affinity; {
	case now == nil && t.Spec.Affinity != nil:
		t.Spec.Affinity.NodeAffinity = nil
		if *t.Spec.Affinity == (v1.Affinity{}) {
			t.Spec.Affinity = nil
		}
	case now != nil && t.Spec.Affinity == nil:
		t.Spec.Affinity = &v1.Affinity{NodeAffinity: now.NodeAffinity}
	case now != nil:
		t.Spec.Affinity.NodeAffinity = now.NodeAffinity
	}
	for _, l := range [][2][]v1.Container{{t.Spec.Containers, is.Spec.Containers}, {t.Spec.InitContainers, is.Spec.InitContainers}} {
		for i := range l[0] {
			if i < len(l[1]) && l[0][i].Name == l[1][i].Name {
				l[0][i].Resources = l[1][i].Resources
			}
		}
	}
	return t
}

func validateCronJob(c, old *batchv1.CronJob) field.ErrorList {
	s, path := &c.Spec, field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, validateSchedule(s.Schedule, path.Child("schedule"))...)
	errs = append(errs, nonNegativePtr(s.StartingDeadlineSeconds, path.Child("startingDeadlineSeconds"))...)
	if old == nil || !equality.Semantic.DeepEqual(s.TimeZone, old.Spec.TimeZone) {
		errs = append(errs, validateTimeZone(s.TimeZone, path.Child("timeZone"))...)
	}
	errs = append(errs, oneOf(s.ConcurrencyPolicy, path.Child("concurrencyPolicy"), batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	job := path.Child("jobTemplate", "spec")
	errs = append(errs, validateJobSpec(&s.JobTemplate.Spec, job)...)
	if sel := s.JobTemplate.Spec.Selector; sel != nil {
		errs = append(errs, field.Invalid(job.Child("selector"), sel, "`selector` will be auto-generated"))
	}
	if m := s.JobTemplate.Spec.ManualSelector; m != nil && *m {
		errs = append(errs, field.NotSupported(job.Child("manualSelector"), "true", []string{"nil", "false"}))
	}
	errs = append(errs, nonNegativePtr(s.SuccessfulJobsHistoryLimit, path.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, nonNegativePtr(s.FailedJobsHistoryLimit, path.Child("failedJobsHistoryLimit"))...)
	if old == nil && len(c.Name) > 52 { // a job's name has 11 characters more
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters"))
	}
	return errs
}

// validateSchedule checks a cron expression. What names a zone is refused before
// it is parsed: the parser panics on some ("TZ=UTC") and asks the machine for others.
func validateSchedule(text string, path *field.Path) field.ErrorList {
	switch {
	case text == "":
		return field.ErrorList{field.Required(path, "")}
	case strings.Contains(text, "TZ"):
		return field.ErrorList{field.Invalid(path, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")}
	}
	if _, err := cron.ParseStandard(text); err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	return nil
}

func validateTimeZone(zone *string, path *field.Path) field.ErrorList {
	switch {
	case zone == nil:
		return nil
	case *zone == "":
		return field.ErrorList{field.Invalid(path, *zone, "timeZone must be nil or non-empty string")}
	case strings.EqualFold(*zone, "Local"):
		return field.ErrorList{field.Invalid(path, *zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")}
	}
	if _, err := timezone.Load(*zone); err != nil {
		return field.ErrorList{field.Invalid(path, *zone, err.Error())}
	}
	return nil
}
