package kinds

import (
	"strings"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/internal/timezone"
)

// CronJob is the kind of cron jobs.
const CronJob kind.Kind = "CronJob"

// cronJob returns the row of CronJob (pkg/registry/batch/cronjob/strategy.go).
func cronJob() *kind.Info {
	return &kind.Info{
		Kind: CronJob, Group: "batch", Version: "v1", Resource: "cronjobs", Namespaced: true,
		Strategy: &kind.Typed[batchv1.CronJob, *batchv1.CronJob]{
			Defaults:     setCronJobDefaults,
			CountsSpec:   true,
			Halves:       kind.SpecAndStatus(func(c *batchv1.CronJob) (*batchv1.CronJobSpec, *batchv1.CronJobStatus) { return &c.Spec, &c.Status }),
			Check:        func(c *batchv1.CronJob) field.ErrorList { return validateCronJob(c, nil, "") },
			TrustsStatus: true,
			CheckUpdate:  validateCronJob,
		},
	}
}

// setCronJobDefaults is SetDefaults_CronJob. Of the template only the pods' part is
// defaulted: the rest its jobs get when they are made.
func setCronJobDefaults(c *batchv1.CronJob) {
	s := &c.Spec
	setJobSpecDefaults(&s.JobTemplate.Spec)
	fields.Default(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	fields.DefaultPtr(&s.Suspend, false)
	fields.DefaultPtr(&s.SuccessfulJobsHistoryLimit, 3)
	fields.DefaultPtr(&s.FailedJobsHistoryLimit, 1)
}

// validateCronJob is ValidateCronJobCreate, or with an old one
// ValidateCronJobUpdate: then the name is what it is.
func validateCronJob(c, old *batchv1.CronJob, _ string) field.ErrorList {
	s, path := &c.Spec, field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, validateSchedule(s.Schedule, path.Child("schedule"))...)
	errs = append(errs, fields.NonNegativePtr(s.StartingDeadlineSeconds, path.Child("startingDeadlineSeconds"))...)
	if old == nil || !equality.Semantic.DeepEqual(s.TimeZone, old.Spec.TimeZone) {
		errs = append(errs, validateTimeZone(s.TimeZone, path.Child("timeZone"))...)
	}
	errs = append(errs, fields.OneOf(s.ConcurrencyPolicy, path.Child("concurrencyPolicy"), batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	job := path.Child("jobTemplate", "spec")
	errs = append(errs, validateJobSpec(&s.JobTemplate.Spec, job)...)
	if sel := s.JobTemplate.Spec.Selector; sel != nil {
		errs = append(errs, field.Invalid(job.Child("selector"), sel, "`selector` will be auto-generated"))
	}
	// Each job has to have a selector of its own.
	if m := s.JobTemplate.Spec.ManualSelector; m != nil && *m {
		errs = append(errs, field.NotSupported(job.Child("manualSelector"), "true", []string{"nil", "false"}))
	}
	errs = append(errs, fields.NonNegativePtr(s.SuccessfulJobsHistoryLimit, path.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, fields.NonNegativePtr(s.FailedJobsHistoryLimit, path.Child("failedJobsHistoryLimit"))...)
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
	// The zone has a field of its own.
	case strings.Contains(text, "TZ"):
		return field.ErrorList{field.Invalid(path, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")}
	}
	if _, err := cron.ParseStandard(text); err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	return nil
}

// validateTimeZone is validateTimeZone. Zones come from the program's own data, not
// from the machine, so that a scenario is refused everywhere or nowhere.
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
