package job

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// track counts pods that have ended, in three steps that lose none: they are
// written to the status as uncounted, their finalizers go, the counters are
// written (trackJobStatusAndRemoveFinalizers). Cut off after the first step, the
// next sync finds the pods in the list and does not count them again; after the
// second, it finds that their finalizers are gone and moves them to the counters. Steps are
// ordered so that each is safe to repeat, see the package's comment.
func (s *state) track(ctx context.Context, key controller.Key, write bool) error {
	if indexed(s.job) {
		// By index, so that the order of counting is the order of the indexes.
		slices.SortStableFunc(s.pods, func(a, b *v1.Pod) int { return indexOf(a) - indexOf(b) })
	}
	waiting := map[types.UID]bool{}
	for _, p := range s.pods {
		if tracked(p) {
			waiting[p.UID] = true
		}
	}
	// Pods that an earlier sync freed come first: their places in the list are
	// needed.
	write = s.countFreed(waiting) || write
	free, full, added := s.collect()
	write = s.writeIndexes() || added || write
	write = s.targetConditions() || write
	if write {
		if err := s.writeStatus(ctx); err != nil {
			return fmt.Errorf("adding uncounted pods to status: %w", err)
		}
		if !controller.Gone(s.c.opts.API, s.job) {
			s.c.backoff[key] = s.record
		}
	}
	// All finalizers go at once; a pod whose request failed stays in the list. Results by
	// position: requests end in any order.
	freed := make([]bool, len(free))
	errs := controller.Parallel(ctx, s.c.opts.Group, "job finalizers", len(free), func(ctx context.Context, i int) error {
		err := s.c.untrack(ctx, free[i])
		freed[i] = err == nil
		return err
	})
	for i, p := range free {
		if freed[i] {
			delete(waiting, p.UID)
		}
	}
	write = s.countFreed(waiting)
	if len(errs) > 0 {
		if write {
			if err := s.writeStatus(ctx); err != nil {
				return fmt.Errorf("removing uncounted pods from status: %w", err)
			}
		}
		return errs[0]
	}
	// A job is over only when no pod is left to be counted.
	over := !full && s.enact()
	if !write && !over {
		return nil
	}
	if err := s.writeStatus(ctx); err != nil {
		return fmt.Errorf("removing uncounted pods from status: %w", err)
	}
	if over {
		s.tellFinished()
	}
	return nil
}

// countFreed moves the uncounted pods that have no finalizer any more to the
// counters. It reports whether there were any. waiting are the pods that still have their
// finalizer; a UID that is not in it was freed or is gone.
func (s *state) countFreed(waiting map[types.UID]bool) bool {
	st := &s.job.Status
	move := func(list *[]types.UID, counter *int32) bool {
		keep := lists.Filter(*list, func(uid types.UID) bool { return waiting[uid] })
		n := len(*list) - len(keep)
		*counter += int32(n)
		*list = keep
		return n > 0
	}
	a := move(&st.UncountedTerminatedPods.Succeeded, &st.Succeeded)
	b := move(&st.UncountedTerminatedPods.Failed, &st.Failed)
	return a || b
}

// collect finds the pods whose finalizers can go, and notes those that are to be
// counted. full: more are left for the next sync. The list in the status is
// bounded, as an object's size is. Indexed jobs need none for success: the index
// itself says that it was counted. A sync that is full leaves the rest for the next, and the job
// cannot be over.
func (s *state) collect() (free []*v1.Pod, full, added bool) {
	uncounted := s.job.Status.UncountedTerminatedPods
	newDone := 0
	for _, p := range s.pods {
		lost := failed(p, s.job)
		if !tracked(p) || !s.freeable(p, lost) {
			continue
		}
		free = append(free, p)
		i := indexOf(p)
		switch {
		// A pod counts as what it was first noted for.
		case p.Status.Phase == v1.PodSucceeded && !s.uncountedFailed[p.UID]:
			if indexed(s.job) {
				if s.indexCounts(i) && !s.before.has(i) {
					newDone++
					added = true
				}
			} else if !s.uncountedSucceeded[p.UID] {
				uncounted.Succeeded = append(uncounted.Succeeded, p.UID)
				added = true
			}
		case lost || s.finish != nil && s.finish.Type != batchv1.JobSuccessCriteriaMet:
			if s.uncountedFailed[p.UID] || indexed(s.job) && !s.indexCounts(i) {
				break
			}
			if _, counts, _ := matchFailure(s.job.Spec.PodFailurePolicy, p); counts {
				uncounted.Failed = append(uncounted.Failed, p.UID)
				added = true
			}
		}
		if newDone+len(uncounted.Succeeded)+len(uncounted.Failed) >= maxUncounted {
			full = true
			break
		}
	}
	return free, full, added
}

// freeable reports whether a pod's finalizer can go (canRemoveFinalizer). Of a job that is being
// deleted nothing needs counting.
func (s *state) freeable(p *v1.Pod, lost bool) bool {
	if s.job.DeletionTimestamp != nil || s.finish != nil || p.Status.Phase == v1.PodSucceeded {
		return true
	}
	if !lost {
		return false
	}
	if perIndex(s.job) {
		if d := s.delayed[indexOf(p)]; d != nil && d.UID == p.UID {
			return false // its successor is made after its back-off
		}
	}
	return true
}

// writeIndexes puts the indexes into the status and reports whether they differ.
// An indexed job's succeeded counter is the number of its completed indexes,
// however many pods it took. It is called before the status is first written, so that indexes and
// list of a sync are in one write.
func (s *state) writeIndexes() bool {
	if !indexed(s.job) {
		return false
	}
	st := &s.job.Status
	text := s.done.String()
	changed := text != st.CompletedIndexes
	st.CompletedIndexes, st.Succeeded = text, int32(s.done.total())
	if perIndex(s.job) {
		lost := s.lost.String()
		if st.FailedIndexes == nil || *st.FailedIndexes != lost {
			st.FailedIndexes, changed = &lost, true
		}
	}
	return changed
}

// targetConditions notes that the job ends; the last condition follows when all
// pods are gone. So clients learn that the job will fail, or has what it wanted,
// before its last pod is gone. finish becomes the final condition, which enact sets later.
func (s *state) targetConditions() bool {
	f, st := s.finish, &s.job.Status
	switch {
	case f == nil:
		return false
	case f.Type == batchv1.JobFailureTarget:
		st.Conditions = append(st.Conditions, *f)
		s.finish = s.condition(batchv1.JobFailed, f.Reason, f.Message)
		return true
	case f.Type == batchv1.JobSuccessCriteriaMet:
		added := isTrue(s.job, batchv1.JobSuccessCriteriaMet) == nil
		reason, message := f.Reason, f.Message
		if added {
			st.Conditions = append(st.Conditions, *f)
		}
		s.finish = s.condition(batchv1.JobComplete, reason, message)
		return added
	}
	return false
}

// enact sets the last condition once all pods are counted and gone. It reports
// whether the job is over now. Pods that terminate hold it up: their nodes still
// work for it. The conditions Complete and Failed promise that no pod of the job runs any more
// (KEP-3939).
func (s *state) enact() bool {
	st := &s.job.Status
	if s.finish == nil || len(st.UncountedTerminatedPods.Succeeded)+len(st.UncountedTerminatedPods.Failed) > 0 || s.terminating > 0 {
		return false
	}
	s.set(s.finish.Type, s.finish.Status, s.finish.Reason, s.finish.Message)
	if s.finish.Type == batchv1.JobComplete {
		st.CompletionTime = new(s.finish.LastTransitionTime)
	}
	return true
}

// tellFinished records how the job ended (recordJobFinished). It is recorded after the status was
// written.
func (s *state) tellFinished() {
	j := s.job
	if s.finish.Type != batchv1.JobComplete {
		s.event(v1.EventTypeWarning, s.finish.Reason, s.finish.Message)
		return
	}
	if j.Spec.Completions != nil && j.Status.Succeeded > *j.Spec.Completions {
		s.event(v1.EventTypeWarning, "TooManySucceededPods", "Too many succeeded pods running after completion count reached")
	}
	s.event(v1.EventTypeNormal, "Completed", "Job completed")
}

// writeStatus writes the status and goes on with what was stored. The stored
// object is shared, so the status that the sync goes on with is a copy. The new version is
// needed: the next write would conflict otherwise.
func (s *state) writeStatus(ctx context.Context) error {
	made, err := controller.Update(ctx, s.c.opts.API, s.job, "status")
	if err != nil {
		return err
	}
	next := *made
	next.Status = *made.Status.DeepCopy()
	if next.Status.UncountedTerminatedPods == nil {
		next.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	s.job = &next
	return nil
}
