package deployment

import (
	"context"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

// isScaling reports whether the Deployment's size was changed since its
// ReplicaSets were told of it. Each ReplicaSet carries the size that the
// Deployment had when it was last scaled (isScalingEvent).
func (r *rollout) isScaling(ctx context.Context) (bool, error) {
	if err := r.ensureNew(ctx, false); err != nil {
		return false, err
	}
	for _, rs := range active(r.all()) {
		if n, ok := number(rs, desiredReplicasAnnotation); ok && n != *r.d.Spec.Replicas {
			return true, nil
		}
	}
	return false, nil
}

// syncScale is for Deployments that are being scaled or are paused. Old
// ReplicaSets of a paused one are cleaned up here, since its rollout does not
// end.
func (r *rollout) syncScale(ctx context.Context) error {
	if err := r.ensureNew(ctx, false); err != nil {
		return err
	}
	if err := r.scale(ctx); err != nil {
		return err
	}
	if _, rolling := rollbackTo(r.d); r.d.Spec.Paused && !rolling {
		if err := r.cleanUp(ctx); err != nil {
			return err
		}
	}
	return r.syncStatus(ctx)
}

// syncStatusOnly is for a Deployment that is being deleted: nothing is scaled any
// more.
func (r *rollout) syncStatusOnly(ctx context.Context) error {
	if err := r.ensureNew(ctx, false); err != nil {
		return err
	}
	return r.syncStatus(ctx)
}

// scale gives a new size to the one ReplicaSet that has pods, or spreads it over
// those that do during a rollout. Outside of a rollout one ReplicaSet has pods,
// and there is nothing to share. When the new one is saturated, what old ones
// still want is a leftover.
func (r *rollout) scale(ctx context.Context) error {
	if rs := r.activeOrLatest(); rs != nil {
		if *rs.Spec.Replicas == *r.d.Spec.Replicas {
			return nil
		}
		_, _, err := r.scaleTo(ctx, rs, *r.d.Spec.Replicas)
		return err
	}
	if saturated(r.d, r.next) {
		for _, rs := range active(r.old) {
			if _, _, err := r.scaleTo(ctx, rs, 0); err != nil {
				return err
			}
		}
		return nil
	}
	if !isRolling(r.d) {
		return nil
	}
	return r.scaleProportionally(ctx)
}

// activeOrLatest is the only ReplicaSet with pods; without any the newest, or the
// latest old one; nil when several have pods. It is FindActiveOrLatest.
func (r *rollout) activeOrLatest() *appsv1.ReplicaSet {
	latest := sorted(r.old, func(a, b *appsv1.ReplicaSet) int { return byAge(b, a) })
	switch on := active(r.all()); {
	case len(on) == 1:
		return on[0]
	case len(on) > 1:
		return nil
	case r.next != nil:
		return r.next
	case len(latest) > 0:
		return latest[0]
	}
	return nil
}

// saturated reports whether a ReplicaSet has all of the Deployment's pods.
func saturated(d *appsv1.Deployment, rs *appsv1.ReplicaSet) bool {
	if rs == nil {
		return false
	}
	desired, err := strconv.Atoi(rs.Annotations[desiredReplicasAnnotation])
	n := *d.Spec.Replicas
	return err == nil && *rs.Spec.Replicas == n && int32(desired) == n && rs.Status.AvailableReplicas == n
}

// scaleProportionally spreads what is added or taken over the ReplicaSets by
// their share; the largest takes what rounding leaves. So a rollout that is
// scaled in its middle risks no larger share of the pods on the new template than
// it did before. Sizes are worked out for all before the first is written, and go
// by the sizes before.
func (r *rollout) scaleProportionally(ctx context.Context) error {
	all := active(r.all())
	allowed := int32(0)
	if n := *r.d.Spec.Replicas; n > 0 {
		allowed = n + maxSurge(r.d)
	}
	add := allowed - sum(all, wanted)
	switch {
	case add > 0:
		slices.SortStableFunc(all, bySizeNewer)
	case add < 0:
		slices.SortStableFunc(all, bySizeOlder)
	}
	sizes := make([]int32, len(all))
	added := int32(0)
	for i, rs := range all {
		part := r.proportion(rs, add, added)
		sizes[i] = *rs.Spec.Replicas + part
		added += part
	}
	for i, rs := range all {
		if i == 0 && add != 0 {
			sizes[0] = max(sizes[0]+add-added, 0)
		}
		if _, _, err := r.scaleTo(ctx, rs, sizes[i]); err != nil {
			return err
		}
	}
	return nil
}

// proportion is a ReplicaSet's share of what is added (GetReplicaSetProportion).
// It never exceeds what is left to share out, in either direction.
func (r *rollout) proportion(rs *appsv1.ReplicaSet, add, added int32) int32 {
	if *rs.Spec.Replicas == 0 || add == 0 || add == added {
		return 0
	}
	part, left := r.fraction(rs), add-added
	if add > 0 {
		return min(part, left)
	}
	return max(part, left)
}

// fraction is how much a ReplicaSet would grow if it kept its share of the
// Deployment's greatest size, as noted on it (getReplicaSetFraction).
func (r *rollout) fraction(rs *appsv1.ReplicaSet) int32 {
	size := *rs.Spec.Replicas
	if *r.d.Spec.Replicas == 0 {
		return -size
	}
	before, ok := number(rs, maxReplicasAnnotation)
	if !ok || before == 0 {
		if before = r.d.Status.Replicas; before == 0 {
			return 0
		}
	}
	scaled := float64(size*(*r.d.Spec.Replicas+maxSurge(r.d))) / float64(before)
	return int32(math.Round(scaled)) - size
}

// checkPaused notes when the Deployment is paused or resumed, so that the time of
// a pause does not count against the progress deadline. One that has timed out
// already stays so: pausing does not undo it (checkPausedConditions).
func (r *rollout) checkPaused(ctx context.Context) error {
	if !hasDeadline(r.d) {
		return nil
	}
	cond := find(&r.d.Status, appsv1.DeploymentProgressing)
	if cond != nil && cond.Reason == timedOutReason {
		return nil
	}
	noted := cond != nil && cond.Reason == pausedReason
	switch {
	case r.d.Spec.Paused && !noted:
		set(&r.d.Status, r.condition(appsv1.DeploymentProgressing, v1.ConditionUnknown, pausedReason, "Deployment is paused"))
	case !r.d.Spec.Paused && noted:
		set(&r.d.Status, r.condition(appsv1.DeploymentProgressing, v1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed"))
	default:
		return nil
	}
	return r.writeStatus(ctx)
}
