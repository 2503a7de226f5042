package apiserver

import (
	"maps"
	"math"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The defaults of group batch (pkg/apis/batch/v1/defaults.go).

func setJobDefaults(j *batchv1.Job) {
	setJobSpecDefaults(&j.Spec)
	if j.Spec.Template.Labels != nil && len(j.Labels) == 0 {
		j.Labels = maps.Clone(j.Spec.Template.Labels)
	}
	s := &j.Spec
	setPtr(&s.CompletionMode, batchv1.NonIndexedCompletion)
	setPtr(&s.Suspend, false)
	if s.PodFailurePolicy != nil {
		setPtr(&s.PodReplacementPolicy, batchv1.Failed)
	}
	setPtr(&s.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	if s.Completions == nil && s.Parallelism == nil {
		setPtr(&s.Completions, 1)
	}
	setPtr(&s.Parallelism, 1)
	if s.BackoffLimitPerIndex != nil {
		setPtr(&s.BackoffLimit, math.MaxInt32)
	}
	setPtr(&s.BackoffLimit, 6)
	setPtr(&s.ManualSelector, false)
}

// setJobSpecDefaults fills in what a job and a cron job's template have in
// common.
func setJobSpecDefaults(s *batchv1.JobSpec) {
	setTemplateDefaults(&s.Template)
	if s.PodFailurePolicy == nil {
		return
	}
	for i := range s.PodFailurePolicy.Rules {
		on := s.PodFailurePolicy.Rules[i].OnPodConditions
		for j := range on {
			setDefault(&on[j].Status, v1.ConditionTrue)
		}
	}
}

func setCronJobDefaults(c *batchv1.CronJob) {
	s := &c.Spec
	setJobSpecDefaults(&s.JobTemplate.Spec)
	setDefault(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setPtr(&s.Suspend, false)
	setPtr(&s.SuccessfulJobsHistoryLimit, 3)
	setPtr(&s.FailedJobsHistoryLimit, 1)
}

// The labels that a job's pods had before they got a prefix; they still have
// both (pkg/apis/batch/types.go).
const (
	legacyJobNameLabel       = "job-name"
	legacyControllerUIDLabel = "controller-uid"
)

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
	maps.Copy(labels, j.Spec.Template.Labels)
	j.Spec.Template.Labels = labels
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	match := map[string]string{batchv1.ControllerUidLabel: string(uid)}
	maps.Copy(match, j.Spec.Selector.MatchLabels)
	j.Spec.Selector.MatchLabels = match
}
