package replicaset

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// BurstReplicas is how many pods a sync creates or deletes at most.
	BurstReplicas = 500
	// Workers is kube-controller-manager's --concurrent-replicaset-syncs.
	Workers = 5
)

// Controller is the ReplicaSet controller, or that of another kind that is like it.
type Controller[T controller.Stored] struct {
	*controller.Workload[T]
	l  *loop.Loop
	as like[T]
}

// like is what the controller has to know of a kind whose objects are ReplicaSets by
// another name.
type like[T controller.Stored] struct {
	kind apiserver.Kind
	// queue and source are what the queue and the source of events are called.
	queue, source string
	// set is an object as a ReplicaSet: its spec's template apart, which is template's.
	set      func(T) *appsv1.ReplicaSet
	template func(T) *v1.PodTemplateSpec
	selector func(T) *metav1.LabelSelector
	minReady func(T) int32
	// with is a copy of an object with that status.
	with func(T, appsv1.ReplicaSetStatus) T
	// terminating: the status tells of pods that end.
	terminating bool
	// family are the objects whose pods count when crowded nodes are looked for; none: nodes
	// don't count.
	family func(T) []T
}

// New starts a controller of ReplicaSets.
func New(opts controller.Options) *Controller[*appsv1.ReplicaSet] {
	sets := opts.ReplicaSets()
	return start(opts, like[*appsv1.ReplicaSet]{
		kind: apiserver.KindReplicaSet, queue: "replicaset", source: "replicaset-controller", terminating: true,
		set:      func(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet { return rs },
		template: func(rs *appsv1.ReplicaSet) *v1.PodTemplateSpec { return &rs.Spec.Template },
		selector: func(rs *appsv1.ReplicaSet) *metav1.LabelSelector { return rs.Spec.Selector },
		minReady: func(rs *appsv1.ReplicaSet) int32 { return rs.Spec.MinReadySeconds },
		with: func(rs *appsv1.ReplicaSet, st appsv1.ReplicaSetStatus) *appsv1.ReplicaSet {
			next := *rs
			next.Status = st
			return &next
		},
		family: func(rs *appsv1.ReplicaSet) []*appsv1.ReplicaSet {
			if owner := metav1.GetControllerOfNoCopy(rs); owner != nil {
				return sets.Of(owner.UID)
			}
			return nil
		},
	})
}

func start[T controller.Stored](opts controller.Options, as like[T]) *Controller[T] {
	c := &Controller[T]{l: opts.Group.Loop(), as: as}
	control := &controller.PodControl{API: opts.API, Events: controller.NewRecorder(opts.Group, opts.API, as.source)}
	c.Workload = controller.NewWorkload(opts, as.kind, controller.QueueOptions{Name: as.queue, Workers: Workers, Sync: c.sync}, control,
		controller.PodsOf[T]{Selector: as.selector, MinReadySeconds: as.minReady})
	c.Claims.Active = true
	opts.API.Server().OnChange(c.onChange, as.kind)
	return c
}

// onChange queues a ReplicaSet that a user, a Deployment or an autoscaler has
// changed. Statuses are left out: nobody but this controller writes them.
func (c *Controller[T]) onChange(ch apiserver.Change) {
	rs := ch.New
	key := controller.KeyOf(rs)
	switch {
	case ch.Type == "ADDED":
		c.Claims.Review(key)
	case ch.Type == "DELETED":
		c.Control.Forget(rs.GetUID())
	case ch.Subresource == "status":
		return // its own writing
	}
	c.Queue.Add(key)
}

// sync is syncReplicaSet. Pods are claimed first, then created or deleted, then
// the status is written with what there was in the beginning. An error has the
// sync tried again.
func (c *Controller[T]) sync(ctx context.Context, key controller.Key) error {
	obj, ok := c.Get(key)
	if !ok {
		c.Claims.Forget(key)
		return nil
	}
	rs := c.as.set(obj)
	// The set may go while requests are out; what was kept of it would stay for
	// ever.
	defer func() {
		if controller.Gone(c.API, obj) {
			c.Control.Forget(rs.UID)
		}
	}()
	if err := c.Claims.Sync(ctx, obj, rs.Spec.Selector, nil); err != nil {
		return err
	}
	// The status tells of the pods that there were before this sync changed
	// them; what it does brings the next one.
	now := c.l.Now()
	status := c.count(obj, rs, now)
	var manageErr error
	if rs.DeletionTimestamp == nil {
		manageErr = c.manage(ctx, obj, rs, int(status.Replicas))
	}
	setFailure(&status, int(status.Replicas-*rs.Spec.Replicas), manageErr, now)
	stored, err := c.writeStatus(ctx, obj, rs, status)
	if err != nil {
		return err
	}
	if manageErr != nil {
		return manageErr
	}
	if written := c.as.set(stored); written.Spec.MinReadySeconds > 0 && written.Status.ReadyReplicas != written.Status.AvailableReplicas {
		c.SyncWhenAvailable(stored, c.Pods().Of(rs.UID).In(controller.PodActive), now)
	}
	return nil
}

// manage creates the pods that are missing or deletes those that are too many.
// The first creation that fails ends the batches: a quota that refuses one pod
// refuses the next thousand, too (manageReplicas). Deletions go out all at once.
func (c *Controller[T]) manage(ctx context.Context, obj T, rs *appsv1.ReplicaSet, active int) error {
	diff := active - int(*rs.Spec.Replicas)
	if diff < 0 {
		_, err := controller.SlowStart(ctx, c.Group, "replicaset creates", min(-diff, BurstReplicas), func(ctx context.Context, _ int) error {
			_, err := c.Control.Create(ctx, obj, c.as.template(obj), apiserver.Stamp{})
			if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
				return nil // nothing can be created any more
			}
			return err
		})
		return err
	}
	if diff == 0 {
		return nil
	}
	victims := c.victims(obj, min(diff, BurstReplicas))
	errs := controller.Parallel(ctx, c.Group, "replicaset deletes", len(victims), func(ctx context.Context, i int) error {
		err := c.Control.Delete(ctx, obj, victims[i].Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// victims chooses the pods to delete.
func (c *Controller[T]) victims(obj T, n int) []*v1.Pod {
	active := c.Pods().Of(obj.GetUID()).In(controller.PodActive)
	// If all go, their order means nothing.
	if n < len(active) {
		rank(active, c.relatedOnNode(obj), c.l.Now())
	}
	return active[:n]
}

// relatedOnNode counts the active pods per node of all ReplicaSets of one
// controller. During a rollout old and new pods share nodes, and what matters for
// spreading is how many of the Deployment's there are. For a ReplicaSet without a
// controller upstream finds none, so its own pods don't count either.
func (c *Controller[T]) relatedOnNode(obj T) map[string]int {
	n := map[string]int{}
	for _, r := range c.as.family(obj) {
		for _, p := range c.Pods().Of(r.GetUID()).In(controller.PodActive) {
			n[p.Spec.NodeName]++
		}
	}
	return n
}

// setFailure sets or removes the condition ReplicaFailure. diff is how many pods
// there were too many.
func setFailure(st *appsv1.ReplicaSetStatus, diff int, manageErr error, now time.Time) {
	failed := slices.ContainsFunc(st.Conditions, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	switch {
	case manageErr != nil && !failed:
		cond := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: v1.ConditionTrue, LastTransitionTime: controller.WireTime(now), Message: manageErr.Error()}
		if diff < 0 {
			cond.Reason = "FailedCreate"
		} else if diff > 0 {
			cond.Reason = "FailedDelete"
		}
		st.Conditions = append(slices.Clone(st.Conditions), cond)
	case manageErr == nil && failed:
		st.Conditions = slices.DeleteFunc(slices.Clone(st.Conditions), func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	}
}

// count is the part of calculateStatus that counts pods. A pod is available when
// it has been ready for minReadySeconds; without that, the index's counts are the
// whole answer.
func (c *Controller[T]) count(obj T, rs *appsv1.ReplicaSet, now time.Time) appsv1.ReplicaSetStatus {
	st := rs.Status
	set := c.Pods().Of(rs.UID)
	st.Replicas, st.ReadyReplicas, st.FullyLabeledReplicas, st.AvailableReplicas = 0, 0, 0, 0
	terminating := int32(0)
	if set != nil {
		st.Replicas, st.ReadyReplicas, terminating = int32(set.Active), int32(set.Ready), int32(set.Terminating)
		st.FullyLabeledReplicas = fullyLabeled(rs, c.as.template(obj), set)
		st.AvailableReplicas = st.ReadyReplicas
		if rs.Spec.MinReadySeconds > 0 {
			st.AvailableReplicas = 0
			for _, p := range set.In(controller.PodActive) {
				if controller.PodAvailable(p, rs.Spec.MinReadySeconds, now) {
					st.AvailableReplicas++
				}
			}
		}
	}
	if c.as.terminating {
		st.TerminatingReplicas = &terminating
	}
	return st
}

// fullyLabeled counts the active pods with all of the template's labels. All
// have them unless the template has labels that the selector does not ask for.
func fullyLabeled(rs *appsv1.ReplicaSet, t *v1.PodTemplateSpec, set *controller.PodSet) int32 {
	covered := true
	for k, v := range t.Labels { //drydock:unordered asks whether all are there
		covered = covered && rs.Spec.Selector.MatchLabels[k] == v
	}
	if covered {
		return int32(set.Active)
	}
	n := int32(0)
	for _, p := range set.In(controller.PodActive) {
		if has(p.Labels, t.Labels) {
			n++
		}
	}
	return n
}

// has reports whether labels include others.
func has(labels, want map[string]string) bool {
	for k, v := range want { //drydock:unordered asks whether all are there
		if is, ok := labels[k]; !ok || is != v {
			return false
		}
	}
	return true
}

// writeStatus is updateReplicaSetStatus: it writes a status that differs, and
// tries once more when the object was changed meanwhile. The second try
// overwrites a status written meanwhile: the counts are this controller's alone.
func (c *Controller[T]) writeStatus(ctx context.Context, obj T, rs *appsv1.ReplicaSet, st appsv1.ReplicaSetStatus) (T, error) {
	st.ObservedGeneration = rs.Generation
	if equality.Semantic.DeepEqual(rs.Status, st) {
		return obj, nil
	}
	return c.WriteStatus(ctx, obj, func(obj T) T { return c.as.with(obj, st) })
}
