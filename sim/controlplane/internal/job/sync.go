package job

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// state is one sync of a job. job is a copy whose status is worked on. It is made
// anew for each sync, and thrown away with it; what lasts is the job's status and
// the controller's back-off. The numbers of pods are those of the index of pods at the sync's
// beginning, corrected by what was done since.
type state struct {
	c   *Controller
	job *batchv1.Job

	pods, activePods           []*v1.Pod
	active, ready, terminating int32
	// uncounted are the pods that the status holds besides its counters.
	uncountedSucceeded, uncountedFailed map[types.UID]bool
	// succeeded and failed are the counters with all pods that have ended.
	succeeded, failed int32
	record            failures
	// finish is what ends the job, or nil.
	finish *batchv1.JobCondition

	// before, done: completed indexes in the status, and with the pods' own.
	before, done intervals
	lost         intervals // failed indexes
	delayed      map[int]*v1.Pod
}

// sync is syncJob. Pods are brought to what is wanted before the status is
// written, with the numbers worked out from what was done. If creating or
// deleting failed the counts are written all the same, and the error has the sync
// repeated. A job that ended is not looked at again.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	stored, ok := c.get(key)
	if !ok {
		c.claims.Forget(key)
		delete(c.backoff, key)
		return nil
	}
	defer func() {
		if controller.Gone(c.opts.API, stored) {
			c.control.Forget(stored.UID)
		}
	}()
	if managedElsewhere(stored) {
		return nil
	}
	if finished(stored) {
		delete(c.backoff, key)
		return nil
	}
	if err := c.claims.Sync(ctx, stored, stored.Spec.Selector, nil); err != nil {
		return err
	}
	copied := *stored
	copied.Status = *stored.Status.DeepCopy()
	s := &state{c: c, job: &copied}
	s.look(key)
	s.decide(key)
	// Ready and Terminating are pointers in the API, nil before the first write.
	needsWrite, manageErr := s.act(ctx, key)
	st := &s.job.Status
	needsWrite = needsWrite || s.active != st.Active || st.Ready == nil || *st.Ready != s.ready || st.Terminating == nil || *st.Terminating != s.terminating
	st.Active, st.Ready, st.Terminating = s.active, &s.ready, &s.terminating
	if err := s.track(ctx, key, needsWrite); err != nil {
		return fmt.Errorf("tracking status: %w", err)
	}
	return manageErr
}

// look counts the pods. Pods that the status has as uncounted were seen by an
// earlier sync: they count once, by the list, not by the pod. It also sets the
// start time. A counter with an uncounted list added is what the job has, whether or not the
// finalizers have gone.
func (s *state) look(key controller.Key) {
	j := s.job
	if j.Status.UncountedTerminatedPods == nil {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	set := s.c.opts.Pods().Of(j.UID)
	s.pods = slices.Clone(set.All())
	s.activePods = set.In(controller.PodActive)
	if set != nil {
		s.active, s.ready, s.terminating = int32(set.Active), int32(set.Ready), int32(set.Terminating)
	}
	uncounted := func(list []types.UID) map[types.UID]bool {
		m := make(map[types.UID]bool, len(list))
		for _, uid := range list {
			m[uid] = true
		}
		return m
	}
	s.uncountedSucceeded = uncounted(j.Status.UncountedTerminatedPods.Succeeded)
	s.uncountedFailed = uncounted(j.Status.UncountedTerminatedPods.Failed)
	succeeded := s.valid(s.uncountedSucceeded, func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded })
	lost := s.valid(s.uncountedFailed, func(p *v1.Pod) bool { return failed(p, j) })
	s.succeeded = j.Status.Succeeded + int32(len(succeeded)+len(s.uncountedSucceeded))
	s.failed = j.Status.Failed + int32(len(s.uncountedFailed))
	for _, p := range lost {
		if _, counts, _ := matchFailure(j.Spec.PodFailurePolicy, p); counts {
			s.failed++
		}
	}
	s.record = s.c.backoff[key].with(succeeded, lost)
	// A suspended job has none; resuming it begins its deadline anew.
	if j.Status.StartTime == nil && !suspended(j) {
		j.Status.StartTime = new(controller.WireTime(s.c.l.Now()))
	}
}

// valid returns the pods that wait to be counted, are not in uncounted, and pass.
// So no pod is counted twice: not while the status lists it, and not after its
// finalizer is gone. An index that no longer belongs to the job is not counted.
func (s *state) valid(uncounted map[types.UID]bool, pass func(*v1.Pod) bool) []*v1.Pod {
	var out []*v1.Pod
	for _, p := range s.pods {
		if !tracked(p) || uncounted[p.UID] || indexed(s.job) && !s.indexCounts(indexOf(p)) {
			continue
		}
		if pass(p) {
			out = append(out, p)
		}
	}
	return out
}

// indexCounts reports whether an index is one of the job's: completions may have
// been lowered.
func (s *state) indexCounts(i int) bool { return i >= 0 && i < int(*s.job.Spec.Completions) }

// condition makes a condition that is True as of now.
func (s *state) condition(t batchv1.JobConditionType, reason, message string) *batchv1.JobCondition {
	now := controller.WireTime(s.c.l.Now())
	return &batchv1.JobCondition{Type: t, Status: v1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: reason, Message: message}
}

// decide finds out whether the job ends, and by what. What was decided in an
// earlier sync stands, whatever has changed since. Of several reasons to fail the
// first counts, in upstream's order; success is looked for only if none is found.
// JobFailureTarget and JobSuccessCriteriaMet are set before the job is over (KEP-3998, KEP-3939),
// so a decision survives a restart.
func (s *state) decide(key controller.Key) {
	j := s.job
	if c := isTrue(j, batchv1.JobSuccessCriteriaMet); c != nil {
		s.finish = c
	} else if c := isTrue(j, batchv1.JobFailureTarget); c != nil {
		s.finish = s.condition(batchv1.JobFailed, c.Reason, c.Message)
	} else if msg, ok := s.failJobMessage(); ok {
		s.finish = s.condition(batchv1.JobFailureTarget, batchv1.JobReasonPodFailurePolicy, msg)
	}
	fail := func(reason, message string) {
		if s.finish == nil {
			s.finish = s.condition(batchv1.JobFailureTarget, reason, message)
		}
	}
	switch deadline := j.Spec.ActiveDeadlineSeconds; {
	// Decided already, or by the failure policy, which goes before every limit.
	case s.finish != nil:
	// More failures than the limit: a limit of 0 allows none.
	case s.failed > *j.Spec.BackoffLimit || s.restartedTooOften():
		fail(batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case deadline != nil && !suspended(j):
		left := time.Duration(*deadline)*time.Second - s.c.l.Since(j.Status.StartTime.Time)
		if left <= 0 {
			fail(batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
		} else {
			// Time passes without a change, so the sync is asked for.
			s.c.queue.AddAfter(key, left)
		}
	}
	if !indexed(j) {
		return
	}
	s.countIndexes()
	if perIndex(j) {
		switch {
		case j.Spec.MaxFailedIndexes != nil && s.lost.total() > int(*j.Spec.MaxFailedIndexes):
			fail(batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes")
		case s.lost.total() > 0 && s.lost.total()+s.done.total() >= int(*j.Spec.Completions):
			fail(batchv1.JobReasonFailedIndexes, "Job has failed indexes")
		}
		s.findDelayed()
	}
	if s.finish == nil {
		if msg, ok := matchSuccess(j.Spec.SuccessPolicy, int(*j.Spec.Completions), s.done); ok {
			s.finish = s.condition(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonSuccessPolicy, msg)
		}
	}
}

// failJobMessage is why the pod failure policy ends the job. One pod is enough,
// and the first in the pods' order is named. A pod that failed before this sync counts as well,
// as long as it is there.
func (s *state) failJobMessage() (string, bool) {
	if s.job.Spec.PodFailurePolicy == nil {
		return "", false
	}
	for _, p := range s.pods {
		if failed(p, s.job) {
			if msg, _, action := matchFailure(s.job.Spec.PodFailurePolicy, p); action == batchv1.PodFailurePolicyActionFailJob {
				return msg, true
			}
		}
	}
	return "", false
}

// restartedTooOften is for pods that restart their containers themselves. Such
// pods never fail, so their restarts count against the limit
// (pastBackoffLimitOnFailure). A limit of 0 means no restart at all.
func (s *state) restartedTooOften() bool {
	if s.job.Spec.Template.Spec.RestartPolicy != v1.RestartPolicyOnFailure {
		return false
	}
	n := int32(0)
	for _, p := range s.pods {
		if p.Status.Phase == v1.PodRunning || p.Status.Phase == v1.PodPending {
			n += restarts(p)
		}
	}
	if *s.job.Spec.BackoffLimit == 0 {
		return n > 0
	}
	return n >= *s.job.Spec.BackoffLimit
}

// act deletes the pods of a job that ends, or brings the others to what is
// wanted. It reports whether a condition has changed. A job that ends is not said
// to until all of its pods were deleted: if that failed, the decision is dropped
// and made again. Suspended and complete at once is complete.
func (s *state) act(ctx context.Context, key controller.Key) (changed bool, err error) {
	j := s.job
	if s.finish != nil {
		// The pods of a job that ends keep their finalizers: they are counted
		// when they have ended.
		was := s.active
		n, ready, err := s.delete(ctx, s.activePods, false)
		if n != was {
			s.finish = nil
		}
		s.removed(n, ready)
		return false, err
	}
	managed := j.DeletionTimestamp == nil
	if managed {
		err = s.manage(ctx, key)
	}
	// Without completions one success is enough, once no other pod runs.
	complete := s.active == 0
	if j.Spec.Completions == nil {
		complete = complete && s.succeeded > 0
	} else {
		complete = complete && s.succeeded >= *j.Spec.Completions
	}
	switch {
	case complete:
		s.finish = s.condition(batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	case managed && suspended(j):
		if changed = s.set(batchv1.JobSuspended, v1.ConditionTrue, "JobSuspended", "Job suspended"); changed {
			s.event(v1.EventTypeNormal, "Suspended", "Job suspended")
			// activeDeadlineSeconds is counted from the next start.
			j.Status.StartTime = nil
		}
	case managed:
		if changed = s.set(batchv1.JobSuspended, v1.ConditionFalse, "JobResumed", "Job resumed"); changed {
			s.event(v1.EventTypeNormal, "Resumed", "Job resumed")
			j.Status.StartTime = new(controller.WireTime(s.c.l.Now()))
		}
	}
	return changed, err
}

// set sets a condition and reports whether that changed it; one that is False is
// not added. A message that changes moves the transition time, too, as upstream's newCondition
// does.
func (s *state) set(t batchv1.JobConditionType, status v1.ConditionStatus, reason, message string) bool {
	next := s.condition(t, reason, message)
	next.Status = status
	c := condition(s.job, t)
	switch {
	case c == nil && status == v1.ConditionFalse:
		return false
	case c == nil:
		s.job.Status.Conditions = append(s.job.Status.Conditions, *next)
		return true
	case c.Status == status && c.Reason == reason && c.Message == message:
		return false
	}
	*c = *next
	return true
}

// event records an event about the job.
func (s *state) event(eventtype, reason, message string) {
	s.c.control.Events.Event(controller.Reference(s.job), eventtype, reason, message)
}
