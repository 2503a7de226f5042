package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// Workers is kube-controller-manager's --concurrent-deployment-syncs.
	Workers = 5
	// maxRetries is after how many failures a Deployment waits for a change of it or of its
	// ReplicaSets. With the back-off that is after 160 s.
	maxRetries = 15
)

// Controller is the Deployment controller.
type Controller struct {
	opts   controller.Options
	l      *loop.Loop
	queue  *controller.Queue
	events *record.Recorder
	// claim: whose claims to ReplicaSets are to be looked at.
	claim map[controller.Key]struct{}
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{opts: opts, l: opts.Group.Loop(), claim: map[controller.Key]struct{}{}}
	c.events = controller.NewRecorder(opts.Group, opts.API, "deployment-controller")
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "deployment", Workers: Workers, Delay: opts.API.Delivery, Sync: c.syncUnlessGoing, MaxRetries: maxRetries})
	opts.API.Server().OnChange(c.onChange, apiserver.KindDeployment)
	opts.ReplicaSets().OnChange(c.onReplicaSet)
	opts.Pods().OnChange(apiserver.KindReplicaSet, c.onPod)
	return c
}

// onChange queues a Deployment after any change, its own writes of the status
// included: whether a rollout is over is found in the sync after it.
func (c *Controller) onChange(ch apiserver.Change) {
	key := controller.KeyOf(ch.New)
	if ch.Type == "ADDED" {
		c.claim[key] = struct{}{}
	}
	c.queue.Add(key)
}

// onReplicaSet queues the owner of a ReplicaSet that changed, or everyone who
// might adopt one that has none.
func (c *Controller) onReplicaSet(owner *metav1.OwnerReference, old, rs *appsv1.ReplicaSet) {
	obj := cmp.Or(rs, old)
	if owner != nil {
		if owner.Kind == string(apiserver.KindDeployment) {
			key := controller.Key{Namespace: obj.Namespace, Name: owner.Name}
			if old != nil && rs != nil && !maps.Equal(old.Labels, rs.Labels) {
				c.claim[key] = struct{}{}
			}
			c.queue.Add(key)
		}
		return
	}
	if rs == nil || old != nil && maps.Equal(old.Labels, rs.Labels) && metav1.GetControllerOfNoCopy(old) == nil {
		return
	}
	for _, d := range apiserver.Objects[*appsv1.Deployment](c.opts.API.Server().Store(), apiserver.KindDeployment) {
		if d.Namespace == rs.Namespace && controller.Selects(d.Spec.Selector, rs.Labels) {
			c.claim[controller.KeyOf(d)] = struct{}{}
			c.queue.Add(controller.KeyOf(d))
		}
	}
}

// onPod wakes a Deployment that waits for its last old pod to go. Only Recreate
// waits for pods themselves. What RollingUpdate waits for, the ReplicaSets'
// statuses say.
func (c *Controller) onPod(owner controller.Key, uid types.UID, ch controller.PodChange) {
	// Only the last pod of a ReplicaSet can be the one that is waited for.
	if ch.New != nil || c.opts.Pods().Of(uid).Len() > 0 {
		return
	}
	rs, ok := controller.Lookup[*appsv1.ReplicaSet](c.opts.API, apiserver.KindReplicaSet, owner)
	if !ok || rs.UID != uid {
		return
	}
	ref := metav1.GetControllerOfNoCopy(rs)
	if ref == nil || ref.Kind != string(apiserver.KindDeployment) {
		return
	}
	key := controller.Key{Namespace: rs.Namespace, Name: ref.Name}
	d, ok := c.get(key)
	if !ok || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		return
	}
	for _, r := range c.opts.ReplicaSets().Of(d.UID) {
		if c.opts.Pods().Of(r.UID).Len() > 0 {
			return
		}
	}
	c.queue.Add(key)
}

func (c *Controller) get(key controller.Key) (*appsv1.Deployment, bool) {
	return controller.Lookup[*appsv1.Deployment](c.opts.API, apiserver.KindDeployment, key)
}

// syncUnlessGoing is sync, but that nothing can be made in a namespace that is being deleted is no
// reason to try again (handleErr).
func (c *Controller) syncUnlessGoing(ctx context.Context, key controller.Key) error {
	err := c.sync(ctx, key)
	if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

// sync is syncDeployment. The order of the cases is upstream's and matters: a
// paused Deployment scales but does not roll out, a rollback replaces the
// template before anything is scaled, and scaling goes before the rollout's own
// steps.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	stored, ok := c.get(key)
	if !ok {
		delete(c.claim, key)
		return nil
	}
	if err := c.claimReplicaSets(ctx, stored); err != nil {
		return err
	}
	r := &rollout{c: c, d: new(*stored)}
	r.sort()
	d := r.d
	if d.DeletionTimestamp != nil {
		return r.syncStatusOnly(ctx)
	}
	// Before anything else, since resuming starts the progress deadline anew.
	if err := r.checkPaused(ctx); err != nil {
		return err
	}
	if d.Spec.Paused {
		return r.syncScale(ctx)
	}
	if revision, ok := rollbackTo(d); ok {
		return r.rollback(ctx, revision)
	}
	scaling, err := r.isScaling(ctx)
	if err != nil {
		return err
	}
	if scaling {
		return r.syncScale(ctx)
	}
	switch d.Spec.Strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		return r.recreate(ctx)
	case appsv1.RollingUpdateDeploymentStrategyType:
		return r.rolling(ctx)
	}
	return fmt.Errorf("unexpected deployment strategy type: %s", d.Spec.Strategy.Type)
}

// claimReplicaSets adopts and releases ReplicaSets, where something has happened
// that can matter. Errors leave the claim due, so that the retry looks again.
func (c *Controller) claimReplicaSets(ctx context.Context, d *appsv1.Deployment) error {
	key := controller.KeyOf(d)
	if _, ok := c.claim[key]; !ok || d.DeletionTimestamp != nil {
		return nil
	}
	delete(c.claim, key)
	var errs []error
	edit := func(rs *appsv1.ReplicaSet, refs []metav1.OwnerReference) {
		next := *rs
		next.OwnerReferences = refs
		if _, err := controller.Update(ctx, c.opts.API, &next, ""); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	all := slices.Clone(apiserver.Objects[*appsv1.ReplicaSet](c.opts.API.Server().Store(), apiserver.KindReplicaSet))
	for _, rs := range all {
		if rs.Namespace != d.Namespace {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(rs)
		match := controller.Selects(d.Spec.Selector, rs.Labels)
		switch {
		case owner == nil && match && rs.DeletionTimestamp == nil:
			edit(rs, append(slices.Clone(rs.OwnerReferences), controller.OwnerReference(d)))
		case owner != nil && owner.UID == d.UID && !match:
			edit(rs, slices.DeleteFunc(slices.Clone(rs.OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == d.UID }))
		}
	}
	if err := errors.Join(errs...); err != nil {
		c.claim[key] = struct{}{}
		return err
	}
	return nil
}

// rollback puts an older revision's template in the Deployment's place
// (rollback.go). The annotation that asked for it is taken off whatever comes of
// it, so that it happens once. Revision 0 is the one before the newest.
func (r *rollout) rollback(ctx context.Context, revision int64) error {
	if err := r.ensureNew(ctx, true); err != nil {
		return err
	}
	warn := func(reason, msg string) { r.event(v1.EventTypeWarning, reason, msg) }
	all := r.all()
	if revision == 0 {
		if revision = lastRevision(all); revision == 0 {
			warn("DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
			return r.clearRollback(ctx)
		}
	}
	for _, rs := range all {
		v, err := revisionOf(rs)
		if err != nil || v != revision {
			continue
		}
		// Nothing to roll back to: the request is taken off, and that is said.
		if sameTemplate(&r.d.Spec.Template, &rs.Spec.Template) {
			warn("DeploymentRollbackTemplateUnchanged", fmt.Sprintf("The rollback revision contains the same template as current deployment %q", r.d.Name))
			return r.clearRollback(ctx)
		}
		r.d.Spec.Template = rs.Spec.Template
		r.d.Spec.Template.Labels = without(rs.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		r.d.Annotations = annotationsOf(r.d, rs)
		err = r.clearRollback(ctx)
		if err == nil {
			r.event(v1.EventTypeNormal, "DeploymentRollback", fmt.Sprintf("Rolled back deployment %q to revision %d", r.d.Name, revision))
		}
		return err
	}
	warn("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
	return r.clearRollback(ctx)
}

// clearRollback takes the annotation off; with it the template goes out, if that
// was replaced.
func (r *rollout) clearRollback(ctx context.Context) error {
	r.d.Annotations = without(r.d.Annotations, appsv1.DeprecatedRollbackTo)
	_, err := controller.Update(ctx, r.c.opts.API, r.d, "")
	return err
}

// rollbackTo is the revision that the annotation asks for.
func rollbackTo(d *appsv1.Deployment) (int64, bool) {
	n, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedRollbackTo], 10, 64)
	return n, err == nil
}

// event records an event about the Deployment.
func (r *rollout) event(eventtype, reason, message string) {
	r.c.events.Event(controller.Reference(r.d), eventtype, reason, message)
}
