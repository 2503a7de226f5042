package daemon

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/history"
)

const (
	// BurstReplicas is how many pods a sync creates or deletes at most. It bounds the API
	// requests of one sync (pkg/controller/daemon/daemon_controller.go BurstReplicas).
	BurstReplicas = 250
	// Workers is kube-controller-manager's --concurrent-daemonset-syncs.
	Workers = 2
)

// Controller is the DaemonSet controller. Queue has sets; nodes has nodes, whose sync only
// decides which sets to add to Queue. That is upstream's split, too.
type Controller struct {
	*controller.Workload[*appsv1.DaemonSet]
	l       *loop.Loop
	nodes   *controller.Queue // nodes that have changed
	history *history.History
	// adopt holds the sets that may have revisions to adopt or to let go; fits and backoff
	// have entries of sets that there are.
	adopt   map[controller.Key]struct{}
	fits    map[types.UID]*placement
	backoff backoff
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{l: opts.Group.Loop(), adopt: map[controller.Key]struct{}{}, fits: map[types.UID]*placement{}}
	c.history = history.NewHistory(opts.API, opts.Revisions())
	c.backoff = backoff{l: c.l}
	control := &controller.PodControl{API: opts.API, Events: controller.NewRecorder(opts.Group, opts.API, "daemonset-controller")}
	c.Workload = controller.NewWorkload(opts, apiserver.KindDaemonSet, controller.QueueOptions{Name: "daemonset", Workers: Workers, Sync: c.sync}, control,
		// Deletions asks for deletions of pods beside changes: a daemon's pod that is being
		// deleted makes room for its successor only once it is gone.
		controller.PodsOf[*appsv1.DaemonSet]{
			Selector:        func(ds *appsv1.DaemonSet) *metav1.LabelSelector { return ds.Spec.Selector },
			MinReadySeconds: func(ds *appsv1.DaemonSet) int32 { return ds.Spec.MinReadySeconds },
			Deletions:       true,
		})
	c.nodes = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "daemonset nodes", Delay: opts.API.Delivery, Sync: c.syncNode})
	opts.API.Server().OnChange(c.onChange, apiserver.KindNode, apiserver.KindDaemonSet)
	opts.Revisions().OnChange(c.onRevision)
	return c
}

// onChange hears of sets and of nodes. A set's status is its own writing. Pods come by the
// workload's own hook.
func (c *Controller) onChange(ch apiserver.Change) {
	switch ch.Kind {
	case apiserver.KindNode:
		c.onNode(ch)
	case apiserver.KindDaemonSet:
		key := controller.KeyOf(ch.New)
		switch {
		case ch.Type == "ADDED":
			c.Claims.Review(key)
			c.adopt[key] = struct{}{}
		case ch.Type == "DELETED":
			c.forget(ch.New.GetUID())
		case ch.Subresource == "status":
			return // its own writing
		}
		c.Queue.Add(key)
	}
}

// onRevision has a set looked at that has lost a revision, or of which one was changed, and those
// that might adopt one (addHistory, updateHistory, deleteHistory). A revision that a set has just
// made wakes nobody.
func (c *Controller) onRevision(owner *metav1.OwnerReference, old, r *history.Revision) {
	wake := func(ds *appsv1.DaemonSet) {
		c.adopt[controller.KeyOf(ds)] = struct{}{}
		c.Queue.Add(controller.KeyOf(ds))
	}
	if owner != nil {
		if owner.Kind != string(apiserver.KindDaemonSet) || old == nil {
			return
		}
		if ds, ok := c.Get(controller.Key{Namespace: old.Namespace, Name: owner.Name}); ok && ds.UID == owner.UID {
			wake(ds)
		}
		return
	}
	if r == nil || old != nil && maps.Equal(old.Labels, r.Labels) && metav1.GetControllerOfNoCopy(old) == nil {
		return
	}
	for _, ds := range apiserver.Objects[*appsv1.DaemonSet](c.API.Server().Store(), apiserver.KindDaemonSet) {
		if ds.Namespace == r.Namespace && controller.Selects(ds.Spec.Selector, r.Labels) {
			wake(ds)
		}
	}
}

// onNode looks at nodes that came, or whose labels or taints have changed. Heartbeats change
// neither labels nor taints; they are most of a node's changes and end at the comparison.
func (c *Controller) onNode(ch apiserver.Change) {
	node := ch.New.(*v1.Node)
	if ch.Type == "DELETED" {
		c.forgetNode(node.Name)
		return
	}
	if ch.Old != nil {
		old := ch.Old.(*v1.Node)
		if maps.Equal(old.Labels, node.Labels) && equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints) {
			return
		}
		c.forgetNode(node.Name)
	}
	c.nodes.Add(controller.Key{Name: node.Name})
}

// forgetNode drops what sets know of a node whose labels or taints are others, or
// that is gone.
func (c *Controller) forgetNode(name string) {
	// There are as many as sets, a few in any cluster.
	for _, p := range c.fits { //drydock:unordered forgets in each
		delete(p.nodes, name)
	}
}

// syncNode finds the sets that have to do something about a node. A change of one
// node wakes only the sets that it is about, as upstream's syncNodeUpdate: a
// cluster that grows by a node does not sync all DaemonSets for all nodes.
func (c *Controller) syncNode(_ context.Context, key controller.Key) error {
	srv := c.API.Server()
	// A node that is gone has nothing to be done about: its pods are the pod garbage collector's.
	node := srv.Node(key.Name)
	if node == nil {
		return nil
	}
	var on map[types.UID]bool
	for _, ds := range apiserver.Objects[*appsv1.DaemonSet](srv.Store(), apiserver.KindDaemonSet) {
		// One walk over the node's pods serves all sets.
		if on == nil {
			on = map[types.UID]bool{}
			for _, p := range srv.Store().PodsOnNode(node.Name) {
				for i := range p.OwnerReferences {
					on[p.OwnerReferences[i].UID] = true
				}
			}
		}
		// Something is to be done where a pod is missing, where one may not stay,
		// and where a set has misplaced ones to count anew.
		f, scheduled := c.fit(ds, node), on[ds.UID]
		if f.run && !scheduled || !f.stay && scheduled || scheduled && ds.Status.NumberMisscheduled > 0 {
			c.Queue.Add(controller.KeyOf(ds))
		}
	}
	return nil
}

// forget drops what is kept of a set that is gone.
func (c *Controller) forget(uid types.UID) {
	c.Control.Forget(uid)
	c.history.Forget(uid)
	delete(c.fits, uid)
	c.backoff.forget(uid)
}

// sync is syncDaemonSet. A rolling update runs after the pods that are missing or
// superfluous were dealt with, so it sees every node with the pods that it will
// keep. The status is written whatever failed before; the first error is
// returned. Upstream claims revisions in each sync; here it is done where one was changed.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	ds, ok := c.Get(key)
	if !ok {
		c.Claims.Forget(key)
		delete(c.adopt, key)
		return nil
	}
	// Its pods are the garbage collector's.
	if ds.DeletionTimestamp != nil {
		return nil
	}
	defer func() {
		// A set may be deleted while requests of its sync are under way; what the sync remembered
		// then must not stay.
		if controller.Gone(c.API, ds) {
			c.forget(ds.UID)
		}
	}()
	if err := c.Claims.Sync(ctx, ds, ds.Spec.Selector, nil); err != nil {
		return err
	}
	if _, ok := c.adopt[key]; ok {
		if err := c.history.Claim(ctx, ds, ds.Spec.Selector); err != nil {
			return err
		}
		delete(c.adopt, key)
	}
	s := &step{c: c, ds: ds}
	if err := s.revise(ctx); err != nil {
		return fmt.Errorf("failed to construct revisions of DaemonSet: %w", err)
	}
	err := s.manage(ctx)
	if err == nil && ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		err = s.rollingUpdate(ctx)
	}
	if err == nil {
		if err = s.cleanUp(ctx); err != nil {
			err = fmt.Errorf("failed to clean up revisions of DaemonSet: %w", err)
		}
	}
	if e := s.writeStatus(ctx); err == nil {
		err = e
	}
	return err
}

// writeStatus counts and writes what differs. An unchanged status is not written, which would
// wake whoever watches the set.
func (s *step) writeStatus(ctx context.Context) error {
	st := s.count()
	if st == numbersOf(&s.ds.Status) && s.ds.Status.ObservedGeneration >= s.ds.Generation {
		s.checkLater(st)
		return nil
	}
	_, err := s.c.WriteStatus(ctx, s.ds, func(ds *appsv1.DaemonSet) *appsv1.DaemonSet {
		next := *ds
		st.apply(&next.Status)
		next.Status.ObservedGeneration = s.ds.Generation
		return &next
	})
	if err != nil {
		return fmt.Errorf("error storing status for daemon set %s/%s: %w", s.ds.Namespace, s.ds.Name, err)
	}
	s.checkLater(st)
	return nil
}

// ignoreGone drops the error that a pod is gone: that is what was wanted. Somebody else, such as
// an eviction, may have been faster.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
