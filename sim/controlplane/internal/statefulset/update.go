package statefulset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/history"
)

// maxBatch is how many pods of a Parallel set are worked on at once.
const maxBatch = 500

// update is one sync of a set. What is read at its beginning (pods, set, time) is
// what the whole sync goes by, as in upstream, whose caches don't move during
// one.
type update struct {
	c    *Controller
	set  *appsv1.StatefulSet
	now  time.Time
	pods []*v1.Pod

	current, updated *history.Revision
	collisions       int32

	// replicas: by ordinal, from the start ordinal; those to be made have no
	// phase.
	replicas  []*v1.Pod
	condemned []*v1.Pod // by ordinal, highest first
	status    appsv1.StatefulSetStatus
	built     bool // status is worth writing
}

// ordinalOf splits a pod's name; the ordinal is -1 where there is none.
func ordinalOf(p *v1.Pod) (parent string, ordinal int) {
	i := strings.LastIndexByte(p.Name, '-')
	if i < 0 || i == len(p.Name)-1 {
		return "", -1
	}
	n, err := strconv.ParseUint(p.Name[i+1:], 10, 31)
	if err != nil {
		return "", -1
	}
	return p.Name[:i], int(n)
}

func revisionOf(p *v1.Pod) string { return p.Labels[appsv1.StatefulSetRevisionLabel] }

// created tells pods that exist from those that place made up.
func created(p *v1.Pod) bool     { return p.Status.Phase != "" }
func terminating(p *v1.Pod) bool { return p.DeletionTimestamp != nil }

// runningReady is what the next ordinal waits for.
func runningReady(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodRunning && controller.PodReady(p)
}

// available is by the time at which the sync began.
func (u *update) available(p *v1.Pod) bool {
	return controller.PodAvailable(p, u.set.Spec.MinReadySeconds, u.now)
}

func (u *update) unavailable(p *v1.Pod) bool { return !u.available(p) || terminating(p) }

// start is the first ordinal (spec.ordinals.start), 0 unless set.
func (u *update) start() int {
	if o := u.set.Spec.Ordinals; o != nil {
		return int(o.Start)
	}
	return 0
}

// run is updateStatefulSet. In order: the pods that are wanted, lowest ordinal
// first; then those that are not, highest first; then one of an old revision is
// replaced. With podManagementPolicy OrderedReady each step waits for the one
// before: whatever is on its way ends the sync, and the change it waits for
// starts the next.
func (u *update) run(ctx context.Context) error {
	u.status = appsv1.StatefulSetStatus{
		ObservedGeneration: u.set.Generation, CurrentRevision: u.current.Name, UpdateRevision: u.updated.Name,
		CollisionCount: &u.collisions, Conditions: u.set.Status.Conditions,
	}
	u.built = true
	// Counted twice: here for a sync that ends early, and below with what the
	// sync has done.
	u.count(u.pods)
	if err := u.place(); err != nil {
		return err
	}
	if u.set.DeletionTimestamp != nil {
		return nil
	}
	// OrderedReady is the default.
	monotonic := u.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	stop, err := u.forAll(ctx, u.replicas, monotonic, func(ctx context.Context, i int) (bool, error) { return u.replica(ctx, i, monotonic) })
	// Of all that are not wanted, before the first of them goes.
	if !stop && err == nil && len(u.set.Spec.VolumeClaimTemplates) > 0 {
		stop, err = u.forAll(ctx, u.condemned, monotonic, func(ctx context.Context, i int) (bool, error) {
			if u.claimsSettled(u.condemned[i]) {
				return false, nil
			}
			return false, u.settleClaims(ctx, u.condemned[i])
		})
	}
	if !stop && err == nil {
		first := u.firstUnavailable()
		stop, err = u.forAll(ctx, u.condemned, monotonic, func(ctx context.Context, i int) (bool, error) {
			return u.condemn(ctx, u.condemned[i], first, monotonic)
		})
	}
	u.count(append(slices.Clip(u.replicas), u.condemned...))
	if stop || err != nil || u.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return err
	}
	return u.replace(ctx)
}

// count fills in the status' numbers.
func (u *update) count(pods []*v1.Pod) {
	st := &u.status
	st.Replicas, st.ReadyReplicas, st.AvailableReplicas, st.CurrentReplicas, st.UpdatedReplicas = 0, 0, 0, 0, 0
	for _, p := range pods {
		if !created(p) {
			continue
		}
		st.Replicas++
		if runningReady(p) {
			st.ReadyReplicas++
			if u.available(p) {
				st.AvailableReplicas++
			}
		}
		if terminating(p) {
			continue
		}
		if revisionOf(p) == u.current.Name {
			st.CurrentReplicas++
		}
		if revisionOf(p) == u.updated.Name {
			st.UpdatedReplicas++
		}
	}
}

// place sorts the pods into those that are wanted, with what is missing, and
// those that are not. A pod whose name is no ordinal of the set, such as one that
// was adopted, is neither.
func (u *update) place() error {
	start, n := u.start(), int(*u.set.Spec.Replicas)
	u.replicas = make([]*v1.Pod, n)
	for _, p := range u.pods {
		if _, o := ordinalOf(p); o >= start && o < start+n {
			u.replicas[o-start] = p
		} else if o >= 0 {
			u.condemned = append(u.condemned, p)
		}
	}
	slices.SortStableFunc(u.condemned, func(a, b *v1.Pod) int { _, x := ordinalOf(a); _, y := ordinalOf(b); return y - x })
	for i := range u.replicas {
		if u.replicas[i] == nil {
			u.replicas[i] = u.missing(start + i)
		}
	}
	return nil
}

// missing is a pod that is to be made: its name and its revision. While a rolling
// update goes on, the lower ordinals keep the current one
// (newVersionedStatefulSetPod).
func (u *update) missing(ordinal int) *v1.Pod {
	revision := u.updated
	if s := &u.set.Spec.UpdateStrategy; s.Type == appsv1.RollingUpdateStatefulSetStrategyType && s.RollingUpdate == nil && ordinal < u.start()+int(u.set.Status.CurrentReplicas) ||
		s.RollingUpdate != nil && ordinal < u.start()+int(*s.RollingUpdate.Partition) {
		revision = u.current
	}
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", u.set.Name, ordinal), Namespace: u.set.Namespace,
		Labels: map[string]string{appsv1.StatefulSetRevisionLabel: revision.Name},
	}}
}

// firstUnavailable is the pod with the lowest ordinal that is not well: the only
// one that may be deleted while it is not (processCondemned).
func (u *update) firstUnavailable() *v1.Pod {
	for _, p := range u.replicas {
		if u.unavailable(p) {
			return p
		}
	}
	for _, p := range slices.Backward(u.condemned) {
		if u.unavailable(p) {
			return p
		}
	}
	return nil
}

// forAll does something for each pod: in order, until it says stop, or in batches
// of 1, 2, 4, ... In parallel no pod's state stops the others; an error does,
// after its batch.
func (u *update) forAll(ctx context.Context, pods []*v1.Pod, monotonic bool, do func(ctx context.Context, i int) (bool, error)) (bool, error) {
	if monotonic {
		for i := range pods {
			if stop, err := do(ctx, i); stop || err != nil {
				return true, err
			}
		}
		return false, nil
	}
	done := 0
	for batch := min(len(pods), 1); batch > 0; batch = min(2*batch, len(pods)-done, maxBatch) {
		errs := controller.Parallel(ctx, u.c.Group, "statefulset pods", batch, func(ctx context.Context, i int) error {
			_, err := do(ctx, done+i)
			return err
		})
		if len(errs) > 0 {
			return true, errors.Join(errs...)
		}
		done += batch
	}
	return false, nil
}

// replica sees to one pod that is wanted (processReplica). true: go no further. A
// pod that has ended is deleted and made again under its name. One that lacks the
// labels of its ordinal gets them, which repairs what a user took off; so do its claims their
// owners, after the policy has changed.
func (u *update) replica(ctx context.Context, i int, monotonic bool) (bool, error) {
	p := u.replicas[i]
	if controller.PodTerminated(p) {
		if terminating(p) {
			return true, nil
		}
		return true, u.deletePod(ctx, p)
	}
	if !created(p) {
		if u.leftBehind(p) {
			return true, nil
		}
		err := u.create(ctx, p) // the status counts it when it is heard of
		return monotonic || err != nil, err
	}
	// A claim that was deleted before its pod was scheduled would hold that up for ever.
	if p.Status.Phase == v1.PodPending {
		if err := u.makeClaims(ctx, p); err != nil {
			return true, err
		}
		if err := u.settleClaims(ctx, p); err != nil {
			u.tell("Update", p.Name, err)
			return true, err
		}
	}
	// The next ordinal may rely on this one.
	if monotonic && (terminating(p) || !runningReady(p) || !u.available(p)) {
		return true, nil
	}
	named := p.Labels[appsv1.StatefulSetPodNameLabel] == p.Name
	if named && u.claimsSettled(p) {
		return false, nil
	}
	err := u.settleClaims(ctx, p)
	if err == nil && !named {
		err = u.c.Control.PatchMeta(ctx, p, func(m *metav1.ObjectMeta) { m.Labels = identity(m.Labels, p) })
	}
	u.tell("Update", p.Name, err)
	return err != nil, err
}

// identity adds the labels that only this pod has. They are why a StatefulSet's
// pods can't be stamped from one set of labels.
func identity(labels map[string]string, p *v1.Pod) map[string]string {
	_, ordinal := ordinalOf(p)
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[appsv1.StatefulSetPodNameLabel] = p.Name
	out[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	return out
}

// create makes a pod that is missing. The template is that of the pod's revision,
// not of the set: during a rollout, or below the partition, that is an older one.
// An event tells of it unless the pod exists already, which the next sync sees.
func (u *update) create(ctx context.Context, p *v1.Pod) error {
	revision := u.updated
	if revisionOf(p) == u.current.Name {
		revision = u.current
	}
	t, err := u.c.history.Template(revision)
	if err != nil {
		return err
	}
	if t.Spec.Subdomain != u.set.Spec.ServiceName || t.Spec.Hostname != "" {
		own := *t
		own.Spec.Subdomain, own.Spec.Hostname = u.set.Spec.ServiceName, ""
		t = &own
	}
	if len(u.set.Spec.VolumeClaimTemplates) > 0 {
		if err := u.makeClaims(ctx, p); err != nil {
			u.tell("Create", p.Name, err)
			return err
		}
		own := *t
		own.Spec.Volumes = u.withClaims(t.Spec.Volumes, p)
		t = &own
	}
	labels := identity(t.Labels, p)
	labels[appsv1.StatefulSetRevisionLabel] = revision.Name
	_, err = u.c.Control.Create(ctx, u.set, t, apiserver.Stamp{Name: p.Name, Hostname: p.Name, Labels: labels})
	if apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := u.settleClaims(ctx, p); err != nil {
		u.tell("Update", p.Name, err)
		return err
	}
	u.tell("Create", p.Name, err)
	return err
}

// condemn deletes a pod that is not wanted, once those above it are gone and
// those below are well (processCondemned).
func (u *update) condemn(ctx context.Context, p, firstUnavailable *v1.Pod, monotonic bool) (bool, error) {
	if terminating(p) {
		return monotonic, nil
	}
	if monotonic && p != firstUnavailable && (!runningReady(p) || !u.available(p)) {
		return true, nil
	}
	return true, u.deletePod(ctx, p)
}

// replace deletes the pod of another revision with the highest ordinal, not under
// the partition, unless one above it is unavailable. One pod a sync: the next
// goes when its successor is available, since a set's pods depend on each other.
// status.currentReplicas counts down with it, as upstream's does.
func (u *update) replace(ctx context.Context) error {
	least := 0
	if r := u.set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		least = int(*r.Partition)
	}
	for i := len(u.replicas) - 1; i >= least; i-- {
		p := u.replicas[i]
		if revisionOf(p) != u.updated.Name && !terminating(p) {
			if err := u.deletePod(ctx, p); err != nil {
				return err
			}
			u.status.CurrentReplicas--
			return nil
		}
		if u.unavailable(p) {
			return nil
		}
	}
	return nil
}

// writeStatus writes a status that differs (updateStatefulSetStatus). When all
// pods are new and ready, the updated revision becomes the current one
// (completeRollingUpdate). A conflict is retried on the fresh object, up to five
// times at once; upstream's retry back-off is too short to be seen.
func (u *update) writeStatus(ctx context.Context) error {
	st, was, want := &u.status, &u.set.Status, *u.set.Spec.Replicas
	if u.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && st.UpdatedReplicas == want && st.ReadyReplicas == want && st.Replicas == want {
		st.CurrentReplicas, st.CurrentRevision = st.UpdatedReplicas, st.UpdateRevision
	}
	if st.ObservedGeneration <= was.ObservedGeneration && st.Replicas == was.Replicas && st.CurrentReplicas == was.CurrentReplicas &&
		st.ReadyReplicas == was.ReadyReplicas && st.UpdatedReplicas == was.UpdatedReplicas && st.CurrentRevision == was.CurrentRevision &&
		st.AvailableReplicas == was.AvailableReplicas && st.UpdateRevision == was.UpdateRevision {
		return nil
	}
	set := u.set
	for range 5 { // retry.RetryOnConflict
		next := *set
		next.Status = *st
		_, err := controller.Update(ctx, u.c.API, &next, "status")
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, ok := u.c.Get(controller.KeyOf(set))
		if !ok {
			return err
		}
		set = fresh
	}
	return apierrors.NewConflict(appsv1.Resource("statefulsets"), u.set.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// tell records what became of a request about a pod (recordPodEvent).
func (u *update) tell(verb, pod string, err error) {
	ref := controller.Reference(u.set)
	if err == nil {
		u.c.events.Eventf(ref, v1.EventTypeNormal, "Successful"+verb, "%s Pod %s in StatefulSet %s successful", verb, pod, u.set.Name)
		return
	}
	u.c.events.Eventf(ref, v1.EventTypeWarning, "Failed"+verb, "%s Pod %s in StatefulSet %s failed error: %s", verb, pod, u.set.Name, err)
}
