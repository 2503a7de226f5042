package deployment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Reasons of the condition Progressing that decisions depend on.
const (
	availableReason = "NewReplicaSetAvailable"
	timedOutReason  = "ProgressDeadlineExceeded"
	pausedReason    = "DeploymentPaused"
)

// hasDeadline reports whether progress is watched at all. MaxInt32 is what old
// clients write for none.
func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

// find is a condition in place, or nil.
func find(st *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range st.Conditions {
		if st.Conditions[i].Type == t {
			return &st.Conditions[i]
		}
	}
	return nil
}

// set adds a condition, or replaces one whose status or reason differ; the
// transition time moves only with the status. A message alone changes nothing,
// and so the update time stays: the progress deadline counts from it.
func set(st *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if is := find(st, c.Type); is != nil {
		if is.Status == c.Status && is.Reason == c.Reason {
			return
		}
		if is.Status == c.Status {
			c.LastTransitionTime = is.LastTransitionTime
		}
	}
	remove(st, c.Type)
	st.Conditions = append(st.Conditions, c)
}

// remove takes a condition out of a list of the status' own.
func remove(st *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	st.Conditions = slices.DeleteFunc(slices.Clone(st.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == t })
}

// complete reports whether the rollout is done: all pods are new and available.
// It goes by a status that has seen the present generation, or an old one would
// do.
func complete(d *appsv1.Deployment, st *appsv1.DeploymentStatus) bool {
	n := *d.Spec.Replicas
	return st.UpdatedReplicas == n && st.Replicas == n && st.AvailableReplicas == n && st.ObservedGeneration >= d.Generation
}

// progressing reports whether a status shows progress since the last. Progress
// is: more new pods, fewer old ones, more ready or more available.
func progressing(d *appsv1.Deployment, st *appsv1.DeploymentStatus) bool {
	was := &d.Status
	return st.UpdatedReplicas > was.UpdatedReplicas || st.Replicas-st.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		st.ReadyReplicas > was.ReadyReplicas || st.AvailableReplicas > was.AvailableReplicas
}

// timedOut reports whether there was no progress for the deadline. A rollout that
// is over never times out, whatever becomes of its pods.
func (r *rollout) timedOut(st *appsv1.DeploymentStatus) bool {
	c := find(st, appsv1.DeploymentProgressing)
	switch {
	case c == nil || c.Reason == availableReason:
		return false
	case c.Reason == timedOutReason:
		return true
	}
	deadline := time.Duration(*r.d.Spec.ProgressDeadlineSeconds) * time.Second
	return c.LastUpdateTime.Add(deadline).Before(r.c.l.Now())
}

// status is calculateStatus: the sums of what the ReplicaSets report. The rollout
// has gone on since these were written: a status trails, as upstream's does.
func (r *rollout) status() appsv1.DeploymentStatus {
	all := r.all()
	st := appsv1.DeploymentStatus{
		ObservedGeneration: r.d.Generation,
		Replicas:           sum(all, actual),
		ReadyReplicas:      sum(all, ready),
		AvailableReplicas:  sum(all, available),
		CollisionCount:     r.d.Status.CollisionCount,
		Conditions:         slices.Clone(r.d.Status.Conditions),
	}
	if r.next != nil {
		st.UpdatedReplicas = actual(r.next)
	}
	st.UnavailableReplicas = max(sum(all, wanted)-st.AvailableReplicas, 0)
	st.TerminatingReplicas = terminating(all)
	if st.AvailableReplicas >= *r.d.Spec.Replicas-maxUnavailable(r.d) {
		set(&st, r.condition(appsv1.DeploymentAvailable, v1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability."))
	} else {
		set(&st, r.condition(appsv1.DeploymentAvailable, v1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."))
	}
	return st
}

// terminating sums up what ReplicaSets say; nil when one says nothing yet.
func terminating(all []*appsv1.ReplicaSet) *int32 {
	n := int32(0)
	for _, rs := range all {
		switch t := rs.Status.TerminatingReplicas; {
		case t != nil:
			n += *t
		case rs.Status.ObservedGeneration != 0:
			return nil
		}
	}
	return &n
}

// syncStatus writes the sums if they differ. The condition Progressing is left as
// it is.
func (r *rollout) syncStatus(ctx context.Context) error {
	st := r.status()
	if equality.Semantic.DeepEqual(r.d.Status, st) {
		return nil
	}
	r.d.Status = st
	return r.writeStatus(ctx)
}

// syncRolloutStatus writes the status of a rollout, with what the condition
// Progressing says of it. Nothing judges a rollout that was found complete: only
// another template makes it one again. Where nothing is written no change will
// wake the Deployment, so its deadline has to.
func (r *rollout) syncRolloutStatus(ctx context.Context) error {
	d := r.d
	st := r.status()
	// A condition that nobody would update any more is taken off.
	if !hasDeadline(d) {
		remove(&st, appsv1.DeploymentProgressing)
	}
	current := find(&d.Status, appsv1.DeploymentProgressing)
	done := st.Replicas == st.UpdatedReplicas && current != nil && current.Reason == availableReason
	if hasDeadline(d) && !done {
		r.judge(&st, current)
	}
	if c, ok := r.replicaFailure(); ok {
		set(&st, c)
	} else {
		remove(&st, appsv1.DeploymentReplicaFailure)
	}
	if equality.Semantic.DeepEqual(d.Status, st) {
		r.requeueStuck(&st)
		return nil
	}
	d.Status = st
	return r.writeStatus(ctx)
}

// judge sets the condition Progressing. Progress moves the condition's update
// time, and with it the deadline.
func (r *rollout) judge(st *appsv1.DeploymentStatus, current *appsv1.DeploymentCondition) {
	what := fmt.Sprintf("Deployment %q", r.d.Name)
	if r.next != nil {
		what = fmt.Sprintf("ReplicaSet %q", r.next.Name)
	}
	switch {
	case complete(r.d, st):
		set(st, r.condition(appsv1.DeploymentProgressing, v1.ConditionTrue, availableReason, what+" has successfully progressed."))
	case progressing(r.d, st):
		c := r.condition(appsv1.DeploymentProgressing, v1.ConditionTrue, "ReplicaSetUpdated", what+" is progressing.")
		if current != nil {
			if current.Status == v1.ConditionTrue {
				c.LastTransitionTime = current.LastTransitionTime
			}
			// set would keep the old one: status and reason are the same.
			remove(st, appsv1.DeploymentProgressing) // its update time moves
		}
		set(st, c)
	case r.timedOut(st):
		set(st, r.condition(appsv1.DeploymentProgressing, v1.ConditionFalse, timedOutReason, what+" has timed out progressing."))
	}
}

// replicaFailure is the new ReplicaSet's condition ReplicaFailure, or else the
// first of another's.
func (r *rollout) replicaFailure() (appsv1.DeploymentCondition, bool) {
	list := r.old
	if r.next != nil {
		list = append([]*appsv1.ReplicaSet{r.next}, r.old...)
	}
	for _, rs := range list {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				return appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason, Message: c.Message,
					LastTransitionTime: c.LastTransitionTime, LastUpdateTime: c.LastTransitionTime,
				}, true
			}
		}
	}
	return appsv1.DeploymentCondition{}, false
}

// requeueStuck has a rollout looked at again when its deadline has passed. A
// second is added, because a status has whole seconds: the deadline must have
// passed by then (requeueStuckDeployment).
func (r *rollout) requeueStuck(st *appsv1.DeploymentStatus) {
	c := find(&r.d.Status, appsv1.DeploymentProgressing)
	if !hasDeadline(r.d) || c == nil || complete(r.d, st) || c.Reason == timedOutReason {
		return
	}
	if c.Reason == availableReason {
		return // it never times out: upstream looks ten times a second from the deadline on, and nothing comes of it
	}
	key := controller.KeyOf(r.d)
	after := c.LastUpdateTime.Add(time.Duration(*r.d.Spec.ProgressDeadlineSeconds) * time.Second).Sub(r.c.l.Now())
	if after < time.Second {
		r.c.queue.AddRateLimited(key)
		return
	}
	r.c.queue.AddAfter(key, after+time.Second)
}
