package statefulset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/history"
)

// Workers is kube-controller-manager's --concurrent-statefulset-syncs.
const Workers = 5

// Controller is the StatefulSet controller.
type Controller struct {
	*controller.Workload[*appsv1.StatefulSet]
	l       *loop.Loop
	events  *record.Recorder
	history *history.History
	// adopt: whose revisions may have no controller.
	adopt map[controller.Key]struct{}
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{l: opts.Group.Loop(), adopt: map[controller.Key]struct{}{}}
	c.events = controller.NewRecorder(opts.Group, opts.API, "statefulset-controller")
	c.history = history.NewHistory(opts.API, opts.Revisions())
	// Its events are worded differently: the pod control tells none.
	control := &controller.PodControl{API: opts.API}
	c.Workload = controller.NewWorkload(opts, apiserver.KindStatefulSet, controller.QueueOptions{Name: "statefulset", Workers: Workers, Sync: c.sync}, control,
		controller.PodsOf[*appsv1.StatefulSet]{
			Selector:        func(set *appsv1.StatefulSet) *metav1.LabelSelector { return set.Spec.Selector },
			MinReadySeconds: func(set *appsv1.StatefulSet) int32 { return set.Spec.MinReadySeconds },
			Deletions:       true,
			Wakes:           claiming,
		})
	opts.API.Server().OnChange(c.onChange, apiserver.KindStatefulSet)
	return c
}

// onChange queues a set after any change, also of its status: the revision that
// is current moves with it, and a sync that has nothing to do is cheap.
func (c *Controller) onChange(ch apiserver.Change) {
	key := controller.KeyOf(ch.New)
	switch ch.Type {
	case "ADDED":
		c.Claims.Review(key)
		c.adopt[key] = struct{}{}
	case "DELETED":
		c.forget(ch.New.GetUID())
	}
	c.Queue.Add(key)
}

// claiming reports whether a pod waits that has claims: they may be missing, and a sync makes them.
func claiming(ch controller.PodChange) bool {
	return ch.New.Status.Phase == v1.PodPending && slices.ContainsFunc(ch.New.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// forget drops what is kept of a set that is gone.
func (c *Controller) forget(uid types.UID) {
	c.Control.Forget(uid)
	c.history.Forget(uid)
}

// sync brings a set one step further and writes its status. A pod that ends stays
// until it is gone, since its name is its successor's. The status is written even
// if the pods could not be brought further; the first error wins.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	set, ok := c.Get(key)
	if !ok {
		c.Claims.Forget(key)
		delete(c.adopt, key)
		return nil
	}
	defer func() {
		if controller.Gone(c.API, set) {
			c.forget(set.UID)
		}
	}()
	// Revisions lose their controller when a set is deleted and its pods are
	// orphaned.
	if _, ok := c.adopt[key]; ok && set.DeletionTimestamp == nil {
		if err := c.history.Adopt(ctx, set, set.Spec.Selector); err != nil {
			return err
		}
		delete(c.adopt, key)
	}
	if err := c.Claims.Sync(ctx, set, set.Spec.Selector, func(p *v1.Pod) bool { parent, _ := ordinalOf(p); return parent == set.Name }); err != nil {
		return err
	}
	now := c.l.Now()
	u := &update{c: c, set: set, now: now, pods: append([]*v1.Pod(nil), c.Pods().Of(set.UID).All()...)}
	revisions := c.history.List(set.UID)
	if err := u.revise(ctx, revisions); err != nil {
		return err
	}
	err := u.run(ctx)
	if u.built {
		if e := u.writeStatus(ctx); err == nil {
			err = e
		}
	}
	if e := u.truncate(ctx, revisions); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if set.Spec.MinReadySeconds > 0 && u.status.ReadyReplicas != u.status.AvailableReplicas {
		c.SyncWhenAvailable(set, u.pods, now)
	}
	return nil
}

// revise finds the revision that the pods are to get, and stores it if it is new
// (getStatefulSetRevisions). A template that some older revision has is a
// rollback: that revision becomes the newest. The current revision is the one
// that the status names, and where there is none, as with a new set, the same as
// the updated one.
func (u *update) revise(ctx context.Context, list []*history.Revision) error {
	h, set := u.c.history, u.set
	if n := set.Status.CollisionCount; n != nil {
		u.collisions = *n
	}
	raw, err := h.Patch(set, &set.Spec.Template)
	if err != nil {
		return err
	}
	next := int64(1)
	var equal, last *history.Revision
	for _, r := range list {
		if history.Equal(r, raw) {
			equal = r
		}
		last, next = r, r.Revision+1
	}
	switch {
	case equal != nil && history.Equal(last, equal.Data.Raw):
		u.updated = last
	case equal != nil: // a rollback
		u.updated, err = h.Renumber(ctx, equal, next)
	default:
		u.updated, err = h.Create(ctx, set, history.New(set, set.Spec.Template.Labels, raw, next, &u.collisions), &u.collisions)
	}
	if err != nil {
		return err
	}
	u.current = u.updated
	for _, r := range list {
		if r.Name == set.Status.CurrentRevision {
			u.current = r
		}
	}
	return nil
}

// truncate deletes the oldest revisions that no pod has, beyond the limit. The
// two revisions in use never count against the limit.
func (u *update) truncate(ctx context.Context, list []*history.Revision) error {
	live := map[string]bool{u.current.Name: true, u.updated.Name: true}
	for _, p := range u.pods {
		live[revisionOf(p)] = true
	}
	dead := lists.Filter(list, func(r *history.Revision) bool { return !live[r.Name] })
	for i := 0; i < len(dead)-int(*u.set.Spec.RevisionHistoryLimit); i++ {
		if err := u.c.history.Delete(ctx, dead[i]); err != nil {
			return err
		}
	}
	return nil
}

// deletePod deletes one of the set's pods and tells of it. A pod that is gone was
// deleted, too.
func (u *update) deletePod(ctx context.Context, p *v1.Pod) error {
	ns := p.Namespace
	err := u.c.API.Do(ctx, apiserver.Request{Verb: "delete", Resource: "pods", Namespace: ns, Name: p.Name}, func(s *apiserver.Server) error {
		return s.Delete(apiserver.KindPod, ns, p.Name, metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	u.tell("Delete", p.Name, err)
	return err
}
