package kinds

import (
	"fmt"
	"maps"
	"math"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Job is the kind of jobs. Two things are old habits of batch/v1: the selector is
// made of the job's UID, and the pods of one that is deleted without a policy are
// orphaned.
const Job kind.Kind = "Job"

// job returns the row of Job (pkg/registry/batch/job/strategy.go).
func job() *kind.Info {
	return &kind.Info{
		Kind: Job, Group: "batch", Version: "v1", Resource: "jobs", Namespaced: true, OrphansByDefault: true,
		DeleteWarning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
		Strategy: &kind.Typed[batchv1.Job, *batchv1.Job]{
			Defaults:   setJobDefaults,
			UID:        generateJobSelector,
			CountsSpec: true,
			Halves:     kind.SpecAndStatus(func(j *batchv1.Job) (*batchv1.JobSpec, *batchv1.JobStatus) { return &j.Spec, &j.Status }),
			Fields: func(j *batchv1.Job) selectable.Set {
				return selectable.Set{"status.successful": strconv.Itoa(int(j.Status.Succeeded))}
			},
			Check:        validateJob,
			TrustsStatus: true,
			CheckUpdate:  validateJobUpdate,
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
func setJobDefaults(j *batchv1.Job) {
	setJobSpecDefaults(&j.Spec)
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
}

// validateJob is ValidateJob. The pods of an indexed one have its name and their
// index for a host name, of which the longest must be a label.
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

// validateJobUpdate is ValidateJobSpecUpdate: what counts finished pods stays.
// Completions of an indexed job may change together with its parallelism (elastic
// indexed jobs).
func validateJobUpdate(j, old *batchv1.Job, _ string) field.ErrorList {
	errs := validateJob(j)
	path := field.NewPath("spec")
	s, was := &j.Spec, &old.Spec
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
	errs = append(errs, fields.Immutable(&s.Template, mutableTemplate(j, old), path.Child("template"))...)
	errs = append(errs, fields.Immutable(s.CompletionMode, was.CompletionMode, path.Child("completionMode"))...)
	errs = append(errs, fields.Immutable(s.PodFailurePolicy, was.PodFailurePolicy, path.Child("podFailurePolicy"))...)
	errs = append(errs, fields.Immutable(s.BackoffLimitPerIndex, was.BackoffLimitPerIndex, path.Child("backoffLimitPerIndex"))...)
	errs = append(errs, fields.Immutable(s.ManagedBy, was.ManagedBy, path.Child("managedBy"))...)
	return append(errs, fields.Immutable(s.SuccessPolicy, was.SuccessPolicy, path.Child("successPolicy"))...)
}

// mutableTemplate returns the old template with what may change of a suspended
// job's taken from the new one: resources, and where pods may run.
func mutableTemplate(j, old *batchv1.Job) *v1.PodTemplateSpec {
	// Nothing runs by the template of a job that is suspended and has stopped.
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
