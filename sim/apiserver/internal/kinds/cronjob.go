package kinds

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/internal/timezone"
)

// CronJob is the kind of cron jobs.
const CronJob kind.Kind = "CronJob"

// cronJob returns the row of CronJob (pkg/registry/batch/cronjob/strategy.go).
func cronJob(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: CronJob, Group: "batch", Version: "v1", Resource: "cronjobs", ShortNames: []string{"cj"}, Categories: []string{"all"}, Namespaced: true,
		Strategy: &kind.Typed[batchv1.CronJob, *batchv1.CronJob]{
			Defaults:     func(o *batchv1.CronJob) { setCronJobDefaults(o, on) },
			CountsSpec:   true,
			Halves:       kind.SpecAndStatus(func(c *batchv1.CronJob) (*batchv1.CronJobSpec, *batchv1.CronJobStatus) { return &c.Spec, &c.Status }),
			Check:        func(c *batchv1.CronJob) field.ErrorList { return validateCronJob(c, nil, "") },
			TrustsStatus: true,
			CheckUpdate:  validateCronJob,
			Warn:         warningsOfCronJob,
			Table:        cronJobTable(),
		},
	}
}

// setCronJobDefaults is SetDefaults_CronJob. Of the template only the pods' part is
// defaulted: the rest its jobs get when they are made.
func setCronJobDefaults(c *batchv1.CronJob, on features.Gates) {
	s := &c.Spec
	setJobSpecDefaults(&s.JobTemplate.Spec, on)
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
		errs = append(errs, field.NotSupported(job.Child("manualSelector"), true, []string{"nil", "false"}))
	}
	errs = append(errs, fields.NonNegativePtr(s.SuccessfulJobsHistoryLimit, path.Child("successfulJobsHistoryLimit"))...)
	errs = append(errs, fields.NonNegativePtr(s.FailedJobsHistoryLimit, path.Child("failedJobsHistoryLimit"))...)
	if old == nil && len(c.Name) > 52 { // a job's name has 11 characters more
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters"))
	}
	return errs
}

// validateSchedule checks a cron expression, in which no zone may stand: it has a field
// of its own.
func validateSchedule(text string, path *field.Path) field.ErrorList {
	if text == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if err := parseSchedule(text); err != nil {
		errs = append(errs, field.Invalid(path, text, err.Error()))
	}
	if strings.Contains(text, "TZ") {
		errs = append(errs, field.Invalid(path, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	}
	return errs
}

// parseSchedule says what is wrong with a cron expression. A zone is taken off first: the
// parser would ask the machine for it, and panics where nothing follows.
func parseSchedule(text string) error {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		zone, rest, ok := strings.Cut(text, " ")
		if !ok { // what upstream catches of the parser's panic
			return errors.New("invalid schedule format: runtime error: slice bounds out of range [:-1]")
		}
		_, zone, _ = strings.Cut(zone, "=")
		if _, err := timezone.Load(zone); err != nil {
			return fmt.Errorf("provided bad location %s: %v", zone, err)
		}
		text = strings.TrimSpace(rest)
	}
	_, err := cron.ParseStandard(text)
	return err
}

// validateTimeZone is validateTimeZone. Zones come from the program's own data, not
// from the machine, so that a scenario is refused everywhere or nowhere.
func validateTimeZone(zone *string, path *field.Path) field.ErrorList {
	switch {
	case zone == nil:
		return nil
	case *zone == "":
		return field.ErrorList{field.Invalid(path, *zone, "timeZone must be nil or non-empty string")}
	}
	component := regexp.MustCompile(`^[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}$`)
	for part := range strings.SplitSeq(*zone, "/") {
		if part == "." || part == ".." || !component.MatchString(part) {
			return field.ErrorList{field.Invalid(path, *zone, "unknown time zone "+*zone)}
		}
	}
	var errs field.ErrorList
	if strings.EqualFold(*zone, "Local") {
		errs = append(errs, field.Invalid(path, *zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if *zone == "Local" { // the library knows it in this writing
		return errs
	}
	if _, err := timezone.Load(*zone); err != nil {
		errs = append(errs, field.Invalid(path, *zone, err.Error()))
	}
	return errs
}

func warningsOfCronJob(c, old *batchv1.CronJob, sub string) []string {
	path := field.NewPath("spec", "jobTemplate", "spec")
	switch {
	case sub != "" || old != nil && old.Generation == c.Generation:
		return nil
	case old != nil:
		return jobSpecWarnings(&c.Spec.JobTemplate.Spec, path)
	}
	return append(hostNameWarnings(c.Name), jobSpecWarnings(&c.Spec.JobTemplate.Spec, path)...)
}

func cronJobTable() []kind.Column[batchv1.CronJob] {
	type cronJob = batchv1.CronJob
	doc, status := batchv1.CronJobSpec{}.SwaggerDoc(), batchv1.CronJobStatus{}.SwaggerDoc()
	columns := []kind.Column[cronJob]{
		kind.NameColumn[cronJob](),
		textColumn("Schedule", doc["schedule"], func(c *cronJob) string { return c.Spec.Schedule }),
		textColumn("Timezone", doc["timeZone"], func(c *cronJob) string {
			if c.Spec.TimeZone == nil {
				return none
			}
			return *c.Spec.TimeZone
		}),
		{Name: "Suspend", Type: "boolean", Description: doc["suspend"], Cell: func(c *cronJob, _ time.Time) any {
			if valueOf(c.Spec.Suspend) {
				return "True"
			}
			return "False"
		}},
		numberColumn("Active", "integer", status["active"], func(c *cronJob) int32 { return int32(len(c.Status.Active)) }),
		{Name: "Last Schedule", Type: "string", Description: status["lastScheduleTime"], Cell: func(c *cronJob, now time.Time) any {
			if c.Status.LastScheduleTime == nil {
				return none
			}
			return kind.Age(*c.Status.LastScheduleTime, now)
		}},
		kind.AgeColumn[cronJob](),
	}
	columns = append(columns, containerColumns(func(c *cronJob) *v1.PodTemplateSpec { return &c.Spec.JobTemplate.Spec.Template })...)
	return append(columns, selectorColumn(batchv1.JobSpec{}.SwaggerDoc()["selector"], func(c *cronJob) *metav1.LabelSelector { return c.Spec.JobTemplate.Spec.Selector }))
}
