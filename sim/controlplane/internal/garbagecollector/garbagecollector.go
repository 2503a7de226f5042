package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// workers is --concurrent-gc-syncs. Both queues have as many, as upstream.
const workers = 20

// Controller is the garbage collector. Upstream builds its graph from watches of
// everything. Here the API's own store is the graph's nodes, and owned has the
// edges. An entry of owned or absent goes with the last dependent, so both are as large as what
// is owned at the time.
type Controller struct {
	api   *apiserver.Component
	store *apiserver.Store
	group *loop.Group

	toDelete, toOrphan *controller.Queue // of keys made by keyOf

	owned map[types.UID]*owned
	// absent are the owners that are gone, by what references say of them
	// (absentOwnerCache), while they have dependents.
	absent   map[types.UID][]item
	recorder *record.Recorder
}

// New starts a controller. All kinds are watched that the API says may own or be owned;
// custom resources from their definition on, which upstream looks for each 30 s.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API, store: opts.API.Server().Store(), group: opts.Group, owned: map[types.UID]*owned{}, absent: map[types.UID][]item{}}
	c.recorder = controller.NewRecorder(opts.Group, opts.API, "garbage-collector-controller")
	c.toDelete = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "collect garbage", Workers: workers, Delay: c.api.Delivery, Sync: c.attemptToDelete})
	c.toOrphan = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "orphan dependents", Workers: workers, Delay: c.api.Delivery, Sync: c.attemptToOrphan})
	c.api.Server().OnChangeBut(c.onChange, c.store.Kinds().Uncollected()...)
	return c
}

// later queues an item. The queue's keys have no kind: it is put before the
// namespace. Kinds have no slashes, so the first one is the separator.
func (c *Controller) later(q *controller.Queue, it item) {
	q.Add(controller.Key{Namespace: string(it.kind) + "/" + it.namespace, Name: it.name})
}

// itemOfKey undoes later's key.
func itemOfKey(key controller.Key) item {
	for i := range key.Namespace {
		if key.Namespace[i] == '/' {
			return item{apiserver.Kind(key.Namespace[:i]), key.Namespace[i+1:], key.Name}
		}
	}
	return item{name: key.Name}
}

// request is one about an item, for statistics and faults.
func (c *Controller) request(verb string, it item) apiserver.Request {
	req := apiserver.Request{Verb: verb, Namespace: it.namespace, Name: it.name}
	if row := c.store.Kinds().Find(it.kind); row != nil { // its definition may have gone
		req.Resource = row.Resource
	}
	return req
}

// get asks the API for an object; nil when there is none. It costs a request, as upstream's: the
// cache may lag behind, and deletion must not be decided by it.
func (c *Controller) get(ctx context.Context, it item) (apiserver.Object, error) {
	obj, err := controller.Get[apiserver.Object](ctx, c.api, it.kind, controller.Key{Namespace: it.namespace, Name: it.name})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s %s/%s: %w", it.kind, it.namespace, it.name, err)
	}
	return obj, nil
}

// attemptToDelete deletes an object none of whose owners is left, or that only
// waits with them (attemptToDeleteItem). Every decision is taken on the live object; the store's
// own is only the reason to look.
func (c *Controller) attemptToDelete(ctx context.Context, key controller.Key) error {
	it := itemOfKey(key)
	cached := c.store.Lookup(it.kind, it.namespace, it.name)
	if cached == nil {
		return nil
	}
	if cached.GetDeletionTimestamp() != nil && !deletingDependents(cached) {
		return nil // it is being deleted, and its dependents follow when it is gone
	}
	obj, err := c.get(ctx, it)
	// Another object of the same name has nothing to do with what was queued.
	if err != nil || obj == nil || obj.GetUID() != cached.GetUID() {
		return err
	}
	if deletingDependents(obj) {
		return c.deleteDependents(ctx, it, obj)
	}
	refs := obj.GetOwnerReferences()
	if len(refs) == 0 {
		return nil
	}
	solid, dangling, waiting, err := c.classify(ctx, obj)
	switch {
	case errors.Is(err, errUnresolvable):
		return nil
	case err != nil:
		return err
	// An object with one live owner stays; references to owners that are gone are taken out.
	case len(solid) > 0:
		if len(dangling)+len(waiting) == 0 {
			return nil
		}
		return c.dropOwners(ctx, it, obj, append(dangling, waiting...))
	case len(waiting) > 0 && c.owned[obj.GetUID()] != nil:
		return c.deleteBlocked(ctx, it, obj)
	}
	// The object's own finalizers say how its dependents are to be treated, or else they go in the
	// background.
	policy := metav1.DeletePropagationBackground
	switch finalizers := obj.GetFinalizers(); {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	return c.delete(ctx, it, obj, policy)
}

// errUnresolvable is of an object without a namespace that names an owner in one:
// it is left alone (namespacedOwnerOfClusterScopedObjectErr).
var errUnresolvable = errors.New("cluster-scoped objects cannot refer to namespaced owners")

// classify sorts an object's owners: there, gone, and waiting for their
// dependents (classifyReferences). The three are disjoint. An owner that is waiting for its
// dependents is there and will not stay.
func (c *Controller) classify(ctx context.Context, obj apiserver.Object) (solid, dangling, waiting []types.UID, err error) {
	refs := obj.GetOwnerReferences()
	for i := range refs {
		r := &refs[i]
		k := c.kindOf(r)
		if k == "" {
			// A kind that the API doesn't serve cannot be looked up; the retries go on, as
			// upstream's, which is a known way to leave garbage.
			return nil, nil, nil, fmt.Errorf("no matches for kind %q in version %q", r.Kind, r.APIVersion)
		}
		it, ok := c.referenced(obj, r, k)
		if !ok {
			return nil, nil, nil, errUnresolvable
		}
		if slices.Contains(c.absent[r.UID], it) {
			dangling = append(dangling, r.UID)
			continue
		}
		owner, err := c.get(ctx, it)
		switch {
		case err != nil:
			return nil, nil, nil, err
		case owner == nil || owner.GetUID() != r.UID:
			// What is noted here spares the next dependents the request.
			c.isAbsent(r.UID, it)
			dangling = append(dangling, r.UID)
		case deletingDependents(owner):
			waiting = append(waiting, r.UID)
		default:
			solid = append(solid, r.UID)
		}
	}
	return solid, dangling, waiting, nil
}

// deleteBlocked deletes an object whose owner waits for it and that has
// dependents itself: they go first. Were one of them to wait for the object as
// well, the two would wait for ever: then it does not block it. Cycles of owners exist: two
// objects that name each other.
func (c *Controller) deleteBlocked(ctx context.Context, it item, obj apiserver.Object) error {
	for _, d := range c.dependents(obj) {
		dep := c.store.Lookup(d.kind, d.namespace, d.name)
		if dep == nil || !deletingDependents(dep) {
			continue
		}
		refs := slices.Clone(obj.GetOwnerReferences())
		for i := range refs {
			refs[i].BlockOwnerDeletion = new(false)
		}
		if err := c.patchOwners(ctx, it, obj, refs); err != nil {
			return err
		}
		break
	}
	return c.delete(ctx, it, obj, metav1.DeletePropagationForeground)
}

// deleteDependents is for an object that waits for its dependents: when none
// blocks it, it goes (processDeletingDependentsItem). Only references with blockOwnerDeletion
// hold it up; other dependents are deleted with it.
func (c *Controller) deleteDependents(ctx context.Context, it item, obj apiserver.Object) error {
	blocking := false
	for _, d := range c.dependents(obj) {
		dep := c.store.Lookup(d.kind, d.namespace, d.name)
		if dep == nil || !slices.ContainsFunc(dep.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == obj.GetUID() && blocks(r) }) {
			continue
		}
		blocking = true
		if !deletingDependents(dep) {
			c.later(c.toDelete, d)
		}
	}
	if blocking {
		return nil
	}
	return c.removeFinalizer(ctx, it, obj, metav1.FinalizerDeleteDependents)
}

// attemptToOrphan takes an object out of its dependents' owners, and lets it go
// (attemptToOrphanWorker). Dependents first and the finalizer last: cut off in between, nothing
// is lost.
func (c *Controller) attemptToOrphan(ctx context.Context, key controller.Key) error {
	it := itemOfKey(key)
	obj := c.store.Lookup(it.kind, it.namespace, it.name)
	if obj == nil || !slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		return nil
	}
	dependents := c.dependents(obj)
	errs := controller.Parallel(ctx, c.group, "orphan dependents", len(dependents), func(ctx context.Context, i int) error {
		d := dependents[i]
		dep := c.store.Lookup(d.kind, d.namespace, d.name)
		if dep == nil {
			return nil
		}
		return c.dropOwners(ctx, d, dep, []types.UID{obj.GetUID()})
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.removeFinalizer(ctx, it, obj, metav1.FinalizerOrphanDependents)
}

// delete deletes this object as it was when its owners were looked at, not another of its name
// (deleteObject). If it has changed since, its owners decide: with the same ones it goes all the same,
// with others it is looked at again.
func (c *Controller) delete(ctx context.Context, it item, obj apiserver.Object, policy metav1.DeletionPropagation) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	attempt := func(only metav1.Preconditions) error {
		return c.api.Do(ctx, c.request("delete", it), func(s *apiserver.Server) error {
			return s.Delete(it.kind, it.namespace, it.name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &only})
		})
	}
	err := attempt(metav1.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		live, e := c.get(ctx, it)
		switch {
		case e != nil:
		case live == nil:
			return nil
		case live.GetUID() == uid && equality.Semantic.DeepEqual(live.GetOwnerReferences(), obj.GetOwnerReferences()):
			err = attempt(metav1.Preconditions{UID: &uid})
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s/%s: %w", it.kind, it.namespace, it.name, err)
	}
	return nil
}

// dropOwners removes owners from an object. A patch by UID: it must not hit a new object of the
// name either.
func (c *Controller) dropOwners(ctx context.Context, it item, obj apiserver.Object, uids []types.UID) error {
	refs := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return slices.Contains(uids, r.UID) })
	return c.patchOwners(ctx, it, obj, refs)
}

func (c *Controller) patchOwners(ctx context.Context, it item, obj apiserver.Object, refs []metav1.OwnerReference) error {
	return c.patch(ctx, it, func(s *apiserver.Server) error {
		return s.PatchMeta(it.kind, it.namespace, it.name, obj.GetUID(), apiserver.MetaPatch{OwnerReferences: &refs})
	})
}

func (c *Controller) removeFinalizer(ctx context.Context, it item, obj apiserver.Object, name string) error {
	return c.patch(ctx, it, func(s *apiserver.Server) error {
		return s.PatchMeta(it.kind, it.namespace, it.name, obj.GetUID(), apiserver.MetaPatch{RemoveFinalizer: name})
	})
}

func (c *Controller) patch(ctx context.Context, it item, fn func(s *apiserver.Server) error) error {
	if err := c.api.Do(ctx, c.request("patch", it), fn); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patching %s %s/%s: %w", it.kind, it.namespace, it.name, err)
	}
	return nil
}
