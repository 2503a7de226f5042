package deployment

import (
	"context"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// rollout is one sync of a Deployment. d is a copy of the struct; it keeps the
// resource version that the sync began with, so a second write of one sync is a
// conflict and waits for the next sync, as upstream.
type rollout struct {
	c *Controller
	d *appsv1.Deployment
	// next: of the present template, or nil.
	next *appsv1.ReplicaSet
	old  []*appsv1.ReplicaSet
}

// sort finds the ReplicaSet of the present template among the Deployment's; of
// several it is the oldest.
func (r *rollout) sort() {
	r.next, r.old = nil, nil
	for _, rs := range sorted(r.c.opts.ReplicaSets().Of(r.d.UID), byAge) {
		if r.next == nil && sameTemplate(&rs.Spec.Template, &r.d.Spec.Template) {
			r.next = rs
		} else {
			r.old = append(r.old, rs)
		}
	}
}

// all returns the old ReplicaSets and the new one. The slice is the caller's:
// Clip keeps an append from writing into old.
func (r *rollout) all() []*appsv1.ReplicaSet {
	if r.next == nil {
		return r.old
	}
	return append(slices.Clip(r.old), r.next)
}

// condition makes a condition as of now.
func (r *rollout) condition(t appsv1.DeploymentConditionType, status v1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
	now := controller.WireTime(r.c.l.Now())
	return appsv1.DeploymentCondition{Type: t, Status: status, LastUpdateTime: now, LastTransitionTime: now, Reason: reason, Message: message}
}

// writeStatus writes the copy's status. See rollout for what a second write does.
func (r *rollout) writeStatus(ctx context.Context) error {
	_, err := controller.Update(ctx, r.c.opts.API, r.d, "status")
	return err
}

// ensureNew brings the newest ReplicaSet and the revision up to date, and makes
// one if create says so (getNewReplicaSet). Revisions count from the old
// ReplicaSets: a new template is one more than the highest, and a ReplicaSet that
// comes back by a rollback is renumbered to that.
func (r *rollout) ensureNew(ctx context.Context, create bool) error {
	revision := maxRevision(r.old) + 1
	if r.next == nil {
		if !create {
			return nil
		}
		return r.createNew(ctx, revision)
	}
	rs := *r.next
	changed := setNewAnnotations(r.d, &rs, revision, true)
	if changed || rs.Spec.MinReadySeconds != r.d.Spec.MinReadySeconds {
		rs.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
		made, err := controller.Update(ctx, r.c.opts.API, &rs, "")
		if err == nil {
			r.next = made
		}
		return err
	}
	write := r.setRevision(rs.Annotations[revisionAnnotation])
	if hasDeadline(r.d) && find(&r.d.Status, appsv1.DeploymentProgressing) == nil {
		set(&r.d.Status, r.condition(appsv1.DeploymentProgressing, v1.ConditionTrue, "FoundNewReplicaSet", fmt.Sprintf("Found new replica set %q", rs.Name)))
		write = true
	}
	if write {
		return r.writeStatus(ctx)
	}
	return nil
}

// setRevision notes the revision on the Deployment's copy and reports whether it
// is another.
func (r *rollout) setRevision(revision string) bool {
	if r.d.Annotations[revisionAnnotation] == revision && r.d.Annotations != nil {
		return false
	}
	r.d.Annotations = with(r.d.Annotations, revisionAnnotation, revision)
	return true
}

// createNew makes the ReplicaSet of the present template. Its name is the
// template's hash, so a sync that is repeated after its answer was lost finds
// what it made. The hash is also a label of its pods and part of its selector,
// which is what keeps the ReplicaSets of one Deployment apart.
func (r *rollout) createNew(ctx context.Context, revision int64) error {
	d := r.d
	hash := controller.ComputeHash(&d.Spec.Template, d.Status.CollisionCount)
	labels := with(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := *d.Spec.Selector
	selector.MatchLabels = with(d.Spec.Selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: replicaSetName(d.Name, hash), Namespace: d.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{controller.OwnerReference(d)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds, Selector: &selector, Template: d.Spec.Template},
	}
	rs.Spec.Template.Labels = labels
	n := r.newReplicas(append(slices.Clip(r.old), rs), rs)
	rs.Spec.Replicas = &n
	setNewAnnotations(d, rs, revision, false)
	// The name is the template's hash: what is there under it is ours, or a
	// collision.
	made, err := controller.Create(ctx, r.c.opts.API, rs)
	existed := apierrors.IsAlreadyExists(err)
	switch {
	case existed:
		is, ok := controller.Lookup[*appsv1.ReplicaSet](r.c.opts.API, apiserver.KindReplicaSet, controller.KeyOf(rs))
		if !ok {
			return err
		}
		if owner := metav1.GetControllerOfNoCopy(is); owner == nil || owner.UID != d.UID || !sameTemplate(&d.Spec.Template, &is.Spec.Template) {
			return r.collided(ctx, err)
		}
		made = is
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		return err
	case err != nil:
		return r.createFailed(ctx, rs, err)
	case n > 0:
		r.event(v1.EventTypeNormal, "ScalingReplicaSet", fmt.Sprintf("Scaled up replica set %s from 0 to %d", made.Name, n))
	}
	r.next = made
	write := r.setRevision(fmt.Sprint(revision))
	if !existed && hasDeadline(d) {
		set(&d.Status, r.condition(appsv1.DeploymentProgressing, v1.ConditionTrue, "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", made.Name)))
		write = true
	}
	if write {
		return r.writeStatus(ctx)
	}
	return nil
}

// collided counts that another ReplicaSet has the name: the next hash differs.
func (r *rollout) collided(ctx context.Context, exists error) error {
	n := int32(1)
	if c := r.d.Status.CollisionCount; c != nil {
		n = *c + 1
	}
	r.d.Status.CollisionCount = &n
	_ = r.writeStatus(ctx) // tried again with the sync
	return exists
}

// createFailed tells of a ReplicaSet that the API refused, in an event and in the
// condition Progressing.
func (r *rollout) createFailed(ctx context.Context, rs *appsv1.ReplicaSet, err error) error {
	msg := fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, err)
	if hasDeadline(r.d) {
		set(&r.d.Status, r.condition(appsv1.DeploymentProgressing, v1.ConditionFalse, "ReplicaSetCreateError", msg))
		_ = r.writeStatus(ctx) // tried again with the sync
	}
	r.event(v1.EventTypeWarning, "ReplicaSetCreateError", msg)
	return err
}

// replicaSetName keeps the name within what a DNS subdomain may have.
func replicaSetName(deployment, hash string) string {
	if most := validation.DNS1123SubdomainMaxLength - len(hash) - 1; len(deployment) > most {
		deployment = deployment[:most]
	}
	return deployment + "-" + hash
}

// newReplicas is how many pods the new ReplicaSet may want now
// (NewRSNewReplicas). With RollingUpdate all ReplicaSets together never want more
// than the Deployment's size and its surge.
func (r *rollout) newReplicas(all []*appsv1.ReplicaSet, rs *appsv1.ReplicaSet) int32 {
	want := *r.d.Spec.Replicas
	if !isRolling(r.d) {
		return want
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(r.d.Spec.Strategy.RollingUpdate.MaxSurge, int(want), true)
	if err != nil {
		return *rs.Spec.Replicas // validation has refused it
	}
	now, most := sum(all, wanted), want+int32(surge)
	if now >= most {
		return *rs.Spec.Replicas
	}
	return *rs.Spec.Replicas + min(most-now, want-*rs.Spec.Replicas)
}

// scaleTo has a ReplicaSet want n pods; it reports whether it wanted another
// number before (scaleReplicaSet). The ReplicaSet that is returned is the one
// stored. The annotations that say what the Deployment wants go with it, also
// where the size is right already: scaleProportionally needs them.
func (r *rollout) scaleTo(ctx context.Context, rs *appsv1.ReplicaSet, n int32) (bool, *appsv1.ReplicaSet, error) {
	was := *rs.Spec.Replicas
	next := *rs
	if noted := setReplicasAnnotations(&next, r.d); !noted && was == n {
		return false, rs, nil
	}
	next.Spec.Replicas = &n
	made, err := controller.Update(ctx, r.c.opts.API, &next, "")
	if err != nil {
		return false, rs, err
	}
	if was == n {
		return false, made, nil
	}
	direction := "up"
	if n < was {
		direction = "down"
	}
	r.event(v1.EventTypeNormal, "ScalingReplicaSet", fmt.Sprintf("Scaled %s replica set %s from %d to %d", direction, made.Name, was, n))
	return true, made, nil
}

// replace puts what was stored in a ReplicaSet's place.
func (r *rollout) replace(rs *appsv1.ReplicaSet) {
	if r.next != nil && r.next.UID == rs.UID {
		r.next = rs
		return
	}
	for i := range r.old {
		if r.old[i].UID == rs.UID {
			r.old[i] = rs
		}
	}
}

// rolling is rolloutRolling: up as far as the surge lets it, then down as far as
// enough pods stay available. A sync either grows the new ReplicaSet or shrinks
// the old ones: the second would go by numbers that the first has made old.
func (r *rollout) rolling(ctx context.Context) error {
	if err := r.ensureNew(ctx, true); err != nil {
		return err
	}
	scaled, err := r.growNew(ctx)
	if err != nil {
		return err
	}
	if !scaled && r.shrinkOld(ctx) {
		scaled = true
	}
	if !scaled && complete(r.d, &r.d.Status) {
		if err := r.cleanUp(ctx); err != nil {
			return err
		}
	}
	return r.syncRolloutStatus(ctx)
}

// growNew is reconcileNewReplicaSet. One that is larger than wanted shrinks at
// once: the Deployment was scaled down.
func (r *rollout) growNew(ctx context.Context) (bool, error) {
	want := *r.d.Spec.Replicas
	n := want
	switch is := *r.next.Spec.Replicas; {
	case is == want:
		return false, nil
	case is < want:
		n = r.newReplicas(r.all(), r.next)
		if n == is {
			return false, nil
		}
	}
	scaled, _, err := r.scaleTo(ctx, r.next, n)
	return scaled, err
}

// shrinkOld scales the old ReplicaSets down, unhealthy pods first
// (reconcileOldReplicaSets). What fails is tried in the next sync. Pods of the
// new ReplicaSet that are not available yet can't be counted on, so as many old
// ones must stay. Unhealthy ones go first because their going makes nothing
// worse.
func (r *rollout) shrinkOld(ctx context.Context) bool {
	old := sorted(active(r.old), byAge)
	if len(old) == 0 {
		return false
	}
	// So many must be available at any time.
	least := *r.d.Spec.Replicas - maxUnavailable(r.d)
	most := sum(r.all(), wanted) - least - (*r.next.Spec.Replicas - r.next.Status.AvailableReplicas)
	if most <= 0 {
		return false
	}
	done := int32(0)
	for i, rs := range old {
		// Pods that don't serve can go without anybody's noticing.
		sick := *rs.Spec.Replicas - rs.Status.AvailableReplicas
		if done >= most {
			break
		}
		if *rs.Spec.Replicas == 0 || sick == 0 {
			continue
		}
		n := min(most-done, sick)
		if n < 0 {
			return false // more are available than wanted: the ReplicaSet is behind
		}
		_, made, err := r.scaleTo(ctx, rs, *rs.Spec.Replicas-n)
		if err != nil {
			return false
		}
		old[i] = made
		done += n
	}
	n, err := r.shrinkAvailable(ctx, old, least)
	return err == nil && done+n > 0
}

// shrinkAvailable is scaleDownOldReplicaSetsForRollingUpdate. It takes as many
// healthy pods as there are more available than least, oldest ReplicaSet first.
func (r *rollout) shrinkAvailable(ctx context.Context, old []*appsv1.ReplicaSet, least int32) (int32, error) {
	most := sum(old, available) + r.next.Status.AvailableReplicas - least
	done := int32(0)
	for _, rs := range old {
		if done >= most {
			break
		}
		if *rs.Spec.Replicas == 0 {
			continue
		}
		n := min(*rs.Spec.Replicas, most-done)
		if _, _, err := r.scaleTo(ctx, rs, *rs.Spec.Replicas-n); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// recreate is rolloutRecreate: all old pods go before the first new one comes.
// The price is the time without any pod; what it buys is that two versions never
// run at once.
func (r *rollout) recreate(ctx context.Context) error {
	if err := r.ensureNew(ctx, false); err != nil {
		return err
	}
	scaled := false
	for _, rs := range active(r.old) {
		did, made, err := r.scaleTo(ctx, rs, 0)
		if err != nil {
			return err
		}
		if did {
			r.replace(made)
			scaled = true
		}
	}
	// The first new pod waits for the end of the last old one, not for its
	// deletion.
	if scaled || r.oldPodsRunning() {
		return r.syncRolloutStatus(ctx)
	}
	if r.next == nil {
		if err := r.ensureNew(ctx, true); err != nil {
			return err
		}
	}
	if *r.next.Spec.Replicas != *r.d.Spec.Replicas {
		if _, _, err := r.scaleTo(ctx, r.next, *r.d.Spec.Replicas); err != nil {
			return err
		}
	}
	if complete(r.d, &r.d.Status) {
		if err := r.cleanUp(ctx); err != nil {
			return err
		}
	}
	return r.syncRolloutStatus(ctx)
}

// oldPodsRunning reports whether an old pod may still run. A status may be
// behind, so the pods are asked, too.
func (r *rollout) oldPodsRunning() bool {
	if sum(r.old, actual) > 0 {
		return true
	}
	for _, rs := range r.old {
		for _, p := range r.c.opts.Pods().Of(rs.UID).All() {
			if !controller.PodTerminated(p) {
				return true
			}
		}
	}
	return false
}

// cleanUp deletes old ReplicaSets beyond the history limit. Only one that is
// empty, and known to be, goes: a ReplicaSet whose status is behind may still
// have pods.
func (r *rollout) cleanUp(ctx context.Context) error {
	limit := r.d.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return nil
	}
	alive := slices.DeleteFunc(sorted(r.old, byRevision), func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	for i := 0; i < len(alive)-int(*limit); i++ {
		rs := alive[i]
		if rs.Status.Replicas != 0 || *rs.Spec.Replicas != 0 || rs.Generation > rs.Status.ObservedGeneration {
			continue
		}
		if err := controller.Delete(ctx, r.c.opts.API, rs, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
