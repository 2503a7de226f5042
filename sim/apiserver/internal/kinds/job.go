package kinds

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Job is the kind of jobs. Two things are old habits of batch/v1: the selector is
// made of the job's UID, and the pods of one that is deleted without a policy are
// orphaned.
const Job kind.Kind = "Job"

// job returns the row of Job (pkg/registry/batch/job/strategy.go).
func job(on features.Gates) *kind.Info {
	return &kind.Info{
		Kind: Job, Meta: kind.MetaAgain, Group: "batch", Version: "v1", Resource: "jobs", Categories: []string{"all"}, Namespaced: true, OrphansByDefault: true,
		DeleteWarning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
		Strategy: &kind.Typed[batchv1.Job, *batchv1.Job]{
			Defaults:   func(o *batchv1.Job) { setJobDefaults(o, on) },
			UID:        generateJobSelector,
			CountsSpec: true,
			Halves:     kind.SpecAndStatus(func(j *batchv1.Job) (*batchv1.JobSpec, *batchv1.JobStatus) { return &j.Spec, &j.Status }),
			Fields: func(j *batchv1.Job) selectable.Set {
				return selectable.Set{"status.successful": strconv.Itoa(int(j.Status.Succeeded))}
			},
			Check:        validateJob,
			TrustsStatus: true,
			CheckUpdate:  validateJobUpdate,
			Warn:         warningsOfJob,
			Table:        jobTable(),
		},
	}
}

// The labels that a job's pods had before they got a prefix; they still have
// both (pkg/apis/batch/types.go).
const (
	legacyJobNameLabel       = "job-name"
	legacyControllerUIDLabel = "controller-uid"
)

// setJobDefaults is SetDefaults_Job. Neither completions nor parallelism means one
// of both; parallelism alone means a queue, which ends with the first that
// succeeds.
func setJobDefaults(j *batchv1.Job, on features.Gates) {
	setJobSpecDefaults(&j.Spec, on)
	// A job without labels takes its pods'.
	if j.Spec.Template.Labels != nil && len(j.Labels) == 0 {
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
	s := &j.Spec
	fields.DefaultPtr(&s.CompletionMode, batchv1.NonIndexedCompletion)
	fields.DefaultPtr(&s.Suspend, false)
	// With a policy, a pod that is terminating may yet count as failed, so its
	// replacement waits.
	if s.PodFailurePolicy != nil {
		fields.DefaultPtr(&s.PodReplacementPolicy, batchv1.Failed)
	}
	fields.DefaultPtr(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	if s.Completions == nil && s.Parallelism == nil {
		fields.DefaultPtr(&s.Completions, 1)
	}
	fields.DefaultPtr(&s.Parallelism, 1)
	// Each index has a limit of its own; the job's is as good as none.
	if s.BackoffLimitPerIndex != nil {
		fields.DefaultPtr(&s.BackoffLimit, math.MaxInt32)
	}
	fields.DefaultPtr(&s.BackoffLimit, 6)
	fields.DefaultPtr(&s.ManualSelector, false)
}

// generateJobSelector gives a new job the selector and the labels that only its
// pods have, unless its manifest has its own
// (pkg/registry/batch/job/strategy.go generateSelector). A conflict is left to
// validation.
func generateJobSelector(j *batchv1.Job, uid types.UID) {
	if j.Spec.ManualSelector != nil && *j.Spec.ManualSelector {
		return
	}
	labels := map[string]string{
		legacyJobNameLabel: j.Name, batchv1.JobNameLabel: j.Name,
		legacyControllerUIDLabel: string(uid), batchv1.ControllerUidLabel: string(uid),
	}
	// The manifest's own labels win; if they contradict, validation says so.
	maps.Copy(labels, j.Spec.Template.Labels)
	j.Spec.Template.Labels = labels
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	match := map[string]string{batchv1.ControllerUidLabel: string(uid)}
	maps.Copy(match, j.Spec.Selector.MatchLabels)
	j.Spec.Selector.MatchLabels = match
	// Upstream defaults what it reads from its storage, which copies them.
	if len(j.Labels) == 0 {
		j.Labels = maps.Clone(labels)
	}
}

// validateJob is ValidateJob. The pods of an indexed one have its name and their
// index for a host name, of which the longest must be a label.
func validateJob(j *batchv1.Job) field.ErrorList {
	errs := append(validateJobLabels(j), validateWholeJobSpec(&j.Spec)...)
	if isIndexed(&j.Spec) && j.Spec.Completions != nil && *j.Spec.Completions > 0 {
		host := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
		if len(validation.IsDNS1123Label(host)) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), j.Name, "will not able to create pod with invalid DNS label: "+host))
		}
	}
	return errs
}

// validateWholeJobSpec is ValidateJobSpec.
func validateWholeJobSpec(s *batchv1.JobSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateJobSpec(s, path)
	if s.Selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	}
	if sel, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil && !sel.Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`"))
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

// validateJobUpdate is ValidateJobSpecUpdate: what counts finished pods stays.
// Completions of an indexed job may change together with its parallelism (elastic
// indexed jobs).
func validateJobUpdate(j, old *batchv1.Job, _ string) field.ErrorList {
	path := field.NewPath("spec")
	s, was := &j.Spec, &old.Spec
	errs := append(validateJob(j), validateWholeJobSpec(s)...) // as upstream, twice
	completions := path.Child("completions")
	switch {
	// Without indexes, pods are counted towards completions, which stay.
	case !isIndexed(s):
		errs = append(errs, fields.Immutable(s.Completions, was.Completions, completions)...)
	case s.Completions != nil && !equality.Semantic.DeepEqual(s.Completions, was.Completions) && *s.Completions != *s.Parallelism:
		errs = append(errs, field.Invalid(completions, *s.Completions, "can only be modified in tandem with spec.parallelism"))
	}
	errs = append(errs, fields.Immutable(s.Selector, was.Selector, path.Child("selector"))...)
	// Immutable but for what may change of a job that nothing runs of.
	if t, mutable := mutableTemplate(j, old); mutable {
		errs = append(errs, fields.Immutable(s.Template.Spec, t.Spec, path.Child("template", "spec"))...)
	} else {
		errs = append(errs, fields.Immutable(&s.Template, t, path.Child("template"))...)
	}
	errs = append(errs, fields.Immutable(s.CompletionMode, was.CompletionMode, path.Child("completionMode"))...)
	errs = append(errs, fields.Immutable(s.PodFailurePolicy, was.PodFailurePolicy, path.Child("podFailurePolicy"))...)
	errs = append(errs, fields.Immutable(s.BackoffLimitPerIndex, was.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	errs = append(errs, fields.Immutable(s.ManagedBy, was.ManagedBy, path.Child("managedBy"))...)
	return append(errs, fields.Immutable(s.SuccessPolicy, was.SuccessPolicy, path.Child("successPolicy"))...)
}

// mutableTemplate returns the old template with what may change of a suspended
// job's taken from the new one: resources, and where pods may run. It reports whether
// anything may.
func mutableTemplate(j, old *batchv1.Job) (*v1.PodTemplateSpec, bool) {
	// Nothing runs by the template of a job that is suspended and has stopped.
	suspended := old.Spec.Suspend != nil && *old.Spec.Suspend
	stopped := old.Status.StartTime == nil
	for _, c := range old.Status.Conditions {
		stopped = stopped || c.Type == batchv1.JobSuspended && c.Status == v1.ConditionTrue
	}
	t := old.Spec.Template.DeepCopy()
	if !suspended || !stopped || old.Status.Active > 0 {
		return t, false
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
			if len(l[0]) == len(l[1]) && l[0][i].Name == l[1][i].Name {
				l[0][i].Resources = l[1][i].Resources
			}
		}
	}
	return t, true
}

// warningsOfJob are those of a name that is no host's, and of lists of indexes that may
// grow too long for the status (pkg/api/job/warnings.go).
func warningsOfJob(j, old *batchv1.Job, sub string) []string {
	switch {
	case sub != "" || old != nil && old.Generation == j.Generation:
		return nil
	case old != nil:
		return jobSpecWarnings(&j.Spec, field.NewPath("spec"))
	}
	return append(hostNameWarnings(j.Name), jobSpecWarnings(&j.Spec, field.NewPath("spec"))...)
}

func jobTable() []kind.Column[batchv1.Job] {
	columns := []kind.Column[batchv1.Job]{
		kind.NameColumn[batchv1.Job](),
		textColumn("Status", "Status of the job.", jobState),
		textColumn("Completions", batchv1.JobStatus{}.SwaggerDoc()["succeeded"], jobCompletions),
		{Name: "Duration", Type: "string", Description: "Time required to complete the job.", Cell: func(j *batchv1.Job, now time.Time) any {
			s := &j.Status
			switch {
			case s.StartTime == nil:
				return ""
			case s.CompletionTime == nil:
				return duration.HumanDuration(now.Sub(s.StartTime.Time))
			}
			return duration.HumanDuration(s.CompletionTime.Sub(s.StartTime.Time))
		}},
		kind.AgeColumn[batchv1.Job](),
	}
	columns = append(columns, containerColumns(func(j *batchv1.Job) *v1.PodTemplateSpec { return &j.Spec.Template })...)
	return append(columns, selectorColumn(batchv1.JobSpec{}.SwaggerDoc()["selector"], func(j *batchv1.Job) *metav1.LabelSelector { return j.Spec.Selector }))
}

// jobState says how a job is doing, by the first of its conditions that says so.
func jobState(j *batchv1.Job) string {
	is := func(t batchv1.JobConditionType) bool {
		for _, c := range j.Status.Conditions {
			if c.Type == t {
				return c.Status == v1.ConditionTrue
			}
		}
		return false
	}
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if is(t) {
			return string(t)
		}
	}
	if j.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		if is(t) {
			return string(t)
		}
	}
	return "Running"
}

func jobCompletions(j *batchv1.Job) string {
	if n := j.Spec.Completions; n != nil {
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *n)
	}
	if n := valueOf(j.Spec.Parallelism); n > 1 {
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, n)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}
