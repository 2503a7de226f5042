// Package cronjob starts Jobs at the times of a schedule. It mirrors
// pkg/controller/cronjob (the second version, cronjob_controllerv2.go) at v1.36.
// A schedule without a time zone is in UTC.
//
// A sync does three things: it deletes finished jobs beyond the limits, brings
// the list of active jobs up to date, and starts the job that is due. Then the
// key waits in the queue for the next scheduled time: a CronJob that sleeps is
// one timer.
package cronjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/internal/timezone"
)

const (
	// Workers is kube-controller-manager's --concurrent-cron-job-syncs. The sync of a CronJob
	// runs at delta after the scheduled second, so that the clock has certainly passed it
	// (nextScheduleDelta upstream).
	Workers = 5
	// delta is how long after a scheduled time a sync comes.
	delta = 100 * time.Millisecond
	// manyMissed is how many missed times are told of. It is upstream's number, too: more than
	// 100 missed times have an event, since a short deadline or a skewed clock is the likely
	// cause.
	manyMissed = 100
)

// Controller is the CronJob controller. Time zones are loaded once: a schedule is
// parsed in each sync. It keeps no state of a CronJob between syncs but its key in the queue:
// everything is worked out anew from the object and from its jobs.
type Controller struct {
	opts   controller.Options
	l      *loop.Loop
	queue  *controller.Queue
	events *record.Recorder
	// zones: those that schedules have named.
	zones map[string]*time.Location
	// owners: who by that name controls jobs, oldest first. Mostly that is one.
	owners map[controller.Key][]types.UID
}

// New starts a controller. It hears of its own objects and of Jobs that one of
// them owns.
func New(opts controller.Options) *Controller {
	c := &Controller{opts: opts, l: opts.Group.Loop(), zones: map[string]*time.Location{}, owners: map[controller.Key][]types.UID{}}
	c.events = controller.NewRecorder(opts.Group, opts.API, "cronjob-controller")
	// Jobs that go or change their state wake their CronJob, which is how a finished job leaves
	// the list of active ones.
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "cronjob", Workers: Workers, Delay: opts.API.Delivery, Sync: c.sync})
	opts.API.Server().OnChange(c.onChange, apiserver.KindCronJob)
	opts.Jobs().OnChange(func(owner *metav1.OwnerReference, old, job *batchv1.Job) {
		if owner != nil {
			c.onJob(owner, controller.Key{Namespace: cmp.Or(job, old).Namespace, Name: owner.Name})
		}
	})
	return c
}

// onJob keeps owners, and wakes the CronJob that controls the job if it is the one that there is.
func (c *Controller) onJob(owner *metav1.OwnerReference, key controller.Key) {
	switch at := slices.Index(c.owners[key], owner.UID); {
	case len(c.opts.Jobs().Of(owner.UID)) > 0:
		if at < 0 {
			c.owners[key] = append(c.owners[key], owner.UID)
		}
	case at >= 0 && len(c.owners[key]) == 1:
		delete(c.owners, key)
	case at >= 0:
		c.owners[key] = slices.Delete(c.owners[key], at, at+1)
	}
	if owner.Kind != string(apiserver.KindCronJob) {
		return
	}
	if cj, ok := controller.Lookup[*batchv1.CronJob](c.opts.API, apiserver.KindCronJob, key); ok && cj.UID == owner.UID {
		c.queue.Add(key)
	}
}

// jobsOf are the jobs whose controller has the name. Upstream goes by the name alone: a CronJob
// that was made anew still sees its predecessor's, until the garbage collector has them.
func (c *Controller) jobsOf(key controller.Key) (out []*batchv1.Job) {
	for _, uid := range c.owners[key] {
		for _, j := range c.opts.Jobs().Of(uid) {
			if j.Namespace == key.Namespace {
				out = append(out, j)
			}
		}
	}
	return out
}

// A new schedule can't wait for the time that the old one set: the key is added
// for the earlier of the two. A status that the controller itself wrote comes back here as well
// and costs one sync that finds nothing to do.
func (c *Controller) onChange(ch apiserver.Change) {
	cj := ch.New.(*batchv1.CronJob)
	key := controller.KeyOf(cj)
	if ch.Type == "MODIFIED" && rescheduled(ch.Old.(*batchv1.CronJob), cj) {
		if schedule, _, err := c.schedule(cj); err == nil {
			// a shorter wait must not be lost in the queue's longer one
			c.queue.AddAfter(key, next(cj, c.l.Now(), schedule))
		}
		return
	}
	c.queue.Add(key)
}

// rescheduled reports whether the times of a job have changed.
func rescheduled(old, cj *batchv1.CronJob) bool {
	return old.Spec.Schedule != cj.Spec.Schedule || !equality.Semantic.DeepEqual(old.Spec.TimeZone, cj.Spec.TimeZone)
}

// schedule returns a cron job's schedule and the zone that it is in. Without a time zone upstream
// uses that of the controller manager's process, which in the simulation is UTC.
func (c *Controller) schedule(cj *batchv1.CronJob) (cron.Schedule, *time.Location, error) {
	zone := time.UTC
	if z := cj.Spec.TimeZone; z != nil {
		if zone = c.zones[*z]; zone == nil {
			var err error
			if zone, err = timezone.Load(*z); err != nil {
				return nil, nil, err // validation has refused it
			}
			c.zones[*z] = zone
		}
	}
	s, err := cron.ParseStandard(cj.Spec.Schedule)
	// A Location that ParseStandard has set is the process' own, so it is replaced in either
	// case.
	if spec, ok := s.(*cron.SpecSchedule); ok { // an interval ("@every 5m") has no zone
		spec.Location = zone
	}
	return s, zone, err
}

// sync is one look at a cron job: its history, its jobs, its schedule. One status
// write at the end holds what all steps have changed. An error without a time to
// look again backs off. The stored object is shared by everyone who reads it; what is changed is
// a copy.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	stored, ok := controller.Lookup[*batchv1.CronJob](c.opts.API, apiserver.KindCronJob, key)
	if !ok {
		return nil
	}
	cj := *stored
	cj.Status.Active = slices.Clone(cj.Status.Active)
	s := &cronSync{c: c, cj: &cj, jobs: c.jobsOf(key)}
	s.trim(ctx)
	after, err := s.sync(ctx)
	if s.changed {
		if _, e := controller.Update(ctx, c.opts.API, s.cj, "status"); e != nil {
			return e
		}
	}
	// AddAfter keeps the earlier of two times for a key.
	if after > 0 {
		c.queue.AddAfter(key, after)
		return nil
	}
	return err
}

// cronSync is one sync of a cron job; changed: its status is to be written. cj is
// a copy whose status is worked on; jobs are those that it owned when the sync
// began.
type cronSync struct {
	c       *Controller
	cj      *batchv1.CronJob
	jobs    []*batchv1.Job
	changed bool
}

// event records an event about the CronJob.
func (r *cronSync) event(eventtype, reason, format string, args ...any) {
	r.c.events.Eventf(controller.Reference(r.cj), eventtype, reason, format, args...)
}

// finished returns the condition that ended a job. Both conditions are final (JobComplete and
// JobFailed); a job that is suspended or about to fail has neither.
func finished(j *batchv1.Job) (batchv1.JobConditionType, bool) {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue {
			return c.Type, true
		}
	}
	return "", false
}

// active reports whether a job is in the status' list.
func (r *cronSync) active(uid types.UID) bool {
	return slices.ContainsFunc(r.cj.Status.Active, func(ref v1.ObjectReference) bool { return ref.UID == uid })
}

// drop takes a job out of the status' list.
func (r *cronSync) drop(uid types.UID) {
	r.cj.Status.Active = slices.DeleteFunc(r.cj.Status.Active, func(ref v1.ObjectReference) bool { return ref.UID == uid })
}

// trim deletes the oldest finished jobs beyond the limits (cleanupFinishedJobs).
// Errors are told in events and tried again with the next sync. A nil limit keeps all. The API's
// defaults are 3 successful jobs and 1 failed one.
func (r *cronSync) trim(ctx context.Context) {
	for _, h := range []struct {
		how   batchv1.JobConditionType
		limit *int32
	}{{batchv1.JobComplete, r.cj.Spec.SuccessfulJobsHistoryLimit}, {batchv1.JobFailed, r.cj.Spec.FailedJobsHistoryLimit}} {
		if h.limit == nil {
			continue
		}
		var list []*batchv1.Job
		for _, j := range r.jobs {
			if how, ok := finished(j); ok && how == h.how {
				list = append(list, j)
			}
		}
		slices.SortStableFunc(list, byStart)
		for i := 0; i < len(list)-int(*h.limit); i++ {
			if r.delete(ctx, list[i]) {
				r.changed = true
			}
		}
	}
}

// byStart orders jobs by when they started; those that have not come last. Names decide ties, so
// that equal times give the same order in each run.
func byStart(a, b *batchv1.Job) int {
	switch x, y := a.Status.StartTime, b.Status.StartTime; {
	case x == nil && y == nil:
		return cmp.Compare(a.Name, b.Name)
	case x == nil:
		return 1
	case y == nil:
		return -1
	default:
		return cmp.Or(x.Compare(y.Time), cmp.Compare(a.Name, b.Name))
	}
}

// delete deletes a job; its pods go in the background, as kubectl would have it.
// It reports whether that worked. The job leaves the list of active ones at once, whether or not
// it ran.
func (r *cronSync) delete(ctx context.Context, j *batchv1.Job) bool {
	background := metav1.DeletePropagationBackground
	if err := controller.Delete(ctx, r.c.opts.API, j, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		r.event(v1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		return false
	}
	r.drop(j.UID)
	r.event(v1.EventTypeNormal, "SuccessfulDelete", "Deleted job %v", j.Name)
	return true
}

// sync is syncCronJob; it returns when to look again. A time that is missed is
// made up for once, however many were missed: the latest counts. Job names are
// made of the scheduled minute, so a second sync of the same time finds the job
// there. Zero means: not before something changes. The order of the checks is upstream's, since
// each has an event or a return of its own: suspended, bad schedule, nothing due, too late,
// started already, concurrency.
func (r *cronSync) sync(ctx context.Context) (time.Duration, error) {
	cj, now := r.cj, r.c.l.Now()
	r.review()
	if cj.DeletionTimestamp != nil || cj.Spec.Suspend != nil && *cj.Spec.Suspend {
		return 0, nil
	}
	schedule, zone, err := r.c.schedule(cj)
	if err != nil {
		r.event(v1.EventTypeWarning, "UnparseableSchedule", "unparseable schedule: %q : %s", cj.Spec.Schedule, err)
		return 0, nil
	}
	// With the starting deadline, which forgets what is too old. The deadline bounds how far back
	// is looked, not only what is started: with it an old gap counts few missed times.
	due, missed, err := latest(cj, now, schedule, true)
	if err != nil {
		r.event(v1.EventTypeWarning, "InvalidSchedule", "invalid schedule: %s : %s", cj.Spec.Schedule, err)
		return 0, nil
	}
	again := next(cj, now, schedule)
	if due.at.IsZero() || due.at.After(now) {
		return again, nil
	}
	if missed > manyMissed {
		r.event(v1.EventTypeWarning, "TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	if d := cj.Spec.StartingDeadlineSeconds; d != nil && due.at.Add(time.Duration(*d)*time.Second).Before(now) {
		r.event(v1.EventTypeWarning, "MissSchedule", "Missed scheduled time to start a job: %s", due.at.UTC().Format(time.RFC1123Z))
		return again, nil
	}
	// Schedules have minutes, so a minute names a time.
	name := fmt.Sprintf("%s-%d", cj.Name, due.at.Unix()/60)
	// The name is deterministic, so that a controller that crashed between creation and status
	// write doesn't start the job twice.
	if slices.ContainsFunc(cj.Status.Active, func(ref v1.ObjectReference) bool { return ref.Name == name }) ||
		cj.Status.LastScheduleTime != nil && cj.Status.LastScheduleTime.Time.Equal(due.at) {
		return again, nil
	}
	switch {
	// The time that was skipped is not forgotten: while the active job runs, a later sync may
	// still start it within the deadline, as the documentation of concurrencyPolicy has it.
	case cj.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(cj.Status.Active) > 0:
		r.event(v1.EventTypeNormal, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
		return again, nil
	case cj.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent:
		if err := r.replace(ctx); err != nil {
			return 0, err
		}
	}
	if done, err := r.start(ctx, name, due.at.In(zone)); !done {
		return 0, err
	}
	return next(cj, now, schedule), nil
}

// review brings the list of active jobs up to date. Jobs that finished leave the
// list, those that vanished, too; one that is there and in no list is only told
// of, because nobody knows whose it is. The event UnexpectedJob comes in every sync that sees
// such a job.
func (r *cronSync) review() {
	st := &r.cj.Status
	known := map[types.UID]bool{}
	for _, j := range r.jobs {
		known[j.UID] = true
		found := r.active(j.UID)
		how, over := finished(j)
		switch {
		case !found && !over:
			r.event(v1.EventTypeWarning, "UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", j.Name)
			continue
		case !over:
			continue
		case found:
			r.drop(j.UID)
			r.event(v1.EventTypeNormal, "SawCompletedJob", "Saw completed job: %s, condition: %v", j.Name, how)
			r.changed = true
		}
		if at := j.Status.CompletionTime; how == batchv1.JobComplete && at != nil && (st.LastSuccessfulTime == nil || at.After(st.LastSuccessfulTime.Time)) {
			st.LastSuccessfulTime = at
			r.changed = true
		}
	}
	// A job may be gone without its end having been seen. The cache may lag, so upstream asks the
	// API for the job before it believes that it is gone; here the store is asked.
	for _, ref := range slices.Clone(st.Active) {
		if !known[ref.UID] && r.c.opts.API.Server().Store().Lookup(apiserver.KindJob, ref.Namespace, ref.Name) == nil {
			r.event(v1.EventTypeNormal, "MissingJob", "Active job went missing: %v", ref.Name)
			r.drop(ref.UID)
			r.changed = true
		}
	}
}

// replace deletes the jobs that run. An error ends the sync: with one job still there the policy
// would be broken.
func (r *cronSync) replace(ctx context.Context) error {
	for _, ref := range slices.Clone(r.cj.Status.Active) {
		j, ok := controller.Lookup[*batchv1.Job](r.c.opts.API, apiserver.KindJob, controller.Key{Namespace: ref.Namespace, Name: ref.Name})
		if !ok {
			err := apierrors.NewNotFound(batchv1.Resource("jobs"), ref.Name)
			r.event(v1.EventTypeWarning, "FailedGet", "Get job: %v", err)
			return err
		}
		if !r.delete(ctx, j) {
			return fmt.Errorf("could not replace job %s/%s", j.Namespace, j.Name)
		}
		r.changed = true
	}
	return nil
}

// start creates the job of a scheduled time, in the schedule's zone; false when
// the sync ends with that. A job of that name that is ours and was not noted yet
// counts as started: an earlier sync made it and could not write the status. The annotation tells
// a job's time in the schedule's zone; names and the status are in UTC.
func (r *cronSync) start(ctx context.Context, name string, at time.Time) (bool, error) {
	cj := r.cj
	annotations := map[string]string{}
	maps.Copy(annotations, cj.Spec.JobTemplate.Annotations)
	annotations[batchv1.CronJobScheduledTimestampAnnotation] = at.Format(time.RFC3339)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: cj.Namespace, Labels: maps.Clone(cj.Spec.JobTemplate.Labels), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{controller.OwnerReference(cj)},
		},
		Spec: cj.Spec.JobTemplate.Spec,
	}
	made, err := controller.Create(ctx, r.c.opts.API, job)
	switch {
	// Nothing can be created in a namespace that is going; an event would say it over and over.
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		return false, err
	case apierrors.IsAlreadyExists(err):
		is, ok := controller.Lookup[*batchv1.Job](r.c.opts.API, apiserver.KindJob, controller.KeyOf(job))
		if !ok {
			return false, err
		}
		if !metav1.IsControlledBy(is, cj) || r.active(is.UID) {
			return false, nil
		}
		made = is
	case err != nil:
		r.event(v1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
		return false, err
	default:
		r.event(v1.EventTypeNormal, "SuccessfulCreate", "Created job %v", made.Name)
	}
	cj.Status.Active = append(cj.Status.Active, *controller.Reference(made))
	cj.Status.LastScheduleTime = &metav1.Time{Time: at.UTC()}
	r.changed = true
	return true, nil
}

// times are the latest scheduled time that has passed (zero: none), and since
// when times count.
type times struct{ since, at time.Time }

// latest is mostRecentScheduleTime; missed is how many times have passed. Long
// gaps are crossed by the distance between the first two times rather than one by
// one: a CronJob of every second that was off for a year has missed 31 million.
// An error means that the times come more often than once a second. It counts by arithmetic and
// then walks the last two intervals, so its cost does not depend on the gap. For schedules with
// uneven intervals the count is an estimate, as upstream's.
func latest(cj *batchv1.CronJob, now time.Time, schedule cron.Schedule, deadline bool) (t times, missed int64, err error) {
	t.since = cj.CreationTimestamp.Time
	if last := cj.Status.LastScheduleTime; last != nil {
		t.since = last.Time
	}
	if d := cj.Spec.StartingDeadlineSeconds; deadline && d != nil {
		if from := now.Add(-time.Duration(*d) * time.Second); from.After(t.since) {
			t.since = from
		}
	}
	first := schedule.Next(t.since)
	second := schedule.Next(first)
	switch {
	case now.Before(first):
		return t, 0, nil
	case now.Before(second):
		t.at = first
		return t, 0, nil
	}
	between := int64(second.Sub(first).Round(time.Second).Seconds())
	if between < 1 {
		return t, 0, errors.New("time difference between two schedules is less than 1 second")
	}
	missed = int64(now.Sub(first).Seconds())/between + 1
	from := first.Add(time.Duration((missed-2)*between) * time.Second)
	for at := schedule.Next(from); !at.After(now); at = schedule.Next(at) {
		t.at = at
	}
	return t, missed, nil
}

// next is how long it takes to the next scheduled time. It adds delta, so that
// the clock has passed the time when the sync comes (nextScheduledTimeDuration). Without the
// starting deadline: the next time does not depend on it.
func next(cj *batchv1.CronJob, now time.Time, schedule cron.Schedule) time.Duration {
	t, missed, err := latest(cj, now, schedule, false)
	from := t.at
	switch {
	case err != nil:
		from = now
	case from.IsZero() && missed == 0:
		from = t.since
	case from.IsZero():
		from = now
	}
	return schedule.Next(from).Add(delta).Sub(now)
}
