// Package namespace empties namespaces that are being deleted. It mirrors
// upstream's pkg/controller/namespace: what is in the namespace is deleted, pods
// first, conditions tell what remains, and when nothing does the finalizer
// kubernetes is taken off and the namespace goes.
package namespace

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// gracePeriod is how long after a change a namespace is looked at, so that
	// all API servers have seen the deletion (namespaceDeletionGracePeriod). The delay also lets
	// objects that were created at the same time arrive before they are looked for.
	gracePeriod = 5 * time.Second
	// finalizerEstimate is how many seconds objects with finalizers are
	// thought to take (finalizerEstimateSeconds).
	finalizerEstimate = 15
	// workers is --concurrent-namespace-syncs.
	workers = 10
)

// Controller is the namespace controller. A namespace that is not being deleted
// is never in the queue. It has no index: a deletion of a namespace looks through its kinds one
// by one.
type Controller struct {
	api   *apiserver.Component
	l     *loop.Loop
	queue *controller.Queue
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API, l: opts.Group.Loop()}
	// nsControllerRateLimiter
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "empty namespace", Workers: workers, Sync: c.sync, BaseDelay: 5 * time.Millisecond, MaxDelay: 60 * time.Second})
	c.api.Server().OnChange(func(ch apiserver.Change) {
		if ch.Type != watch.Deleted {
			c.add(ch.New.(*v1.Namespace))
		}
	}, apiserver.KindNamespace)
	return c
}

// add has a namespace looked at if it is being deleted; one that is not would
// need nothing. Each change of a terminating namespace queues it again; the earliest look counts.
func (c *Controller) add(ns *v1.Namespace) {
	if ns.DeletionTimestamp != nil {
		c.queue.AddAfter(controller.Key{Name: ns.Name}, gracePeriod)
	}
}

// lookup returns a namespace as the API has it now; nil without one.
func (c *Controller) lookup(name string) *v1.Namespace {
	ns, _ := c.api.Server().Store().Lookup(apiserver.KindNamespace, "", name).(*v1.Namespace)
	return ns
}

// sync is NamespacedResourcesDeleter.Delete. Errors of single kinds don't stop the pass, so that
// as much goes as can; they stand in the conditions.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	ns := c.lookup(key.Name)
	if ns == nil || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, v1.FinalizerKubernetes) {
		return nil
	}
	left, err := c.deleteAll(ctx, ns)
	if err != nil {
		return err
	}
	if err := c.updateConditions(ctx, ns.Name, left); err != nil {
		return err
	}
	if len(left.errs) > 0 {
		return fmt.Errorf("emptying namespace %s: %s", ns.Name, strings.Join(left.errs, ", "))
	}
	// Half of the estimate and a second: a look too early costs a pass, one too late only time.
	if left.estimate > 0 {
		c.queue.AddAfter(key, time.Duration(left.estimate/2+1)*time.Second)
		return nil
	}
	// Finalization is a subresource of its own, since the finalizer stands in the spec.
	req := apiserver.Request{Verb: "update", Resource: "namespaces/finalize", Name: ns.Name}
	err = c.api.Do(ctx, req, func(s *apiserver.Server) error { return s.FinalizeNamespace(ns.Name) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finalizing namespace %s: %w", ns.Name, err)
	}
	return nil
}

// remains is what a pass over a namespace left. It is made anew for each pass.
type remains struct {
	estimate int64 // seconds until it may be gone
	// resources: instances, by "resource.group".
	resources  map[string]int
	finalizers map[string]int // instances, by finalizer
	errs       []string
	// pods is that there are still pods, which the rest waits for: upstream's
	// conditions do not tell what remains then.
	pods bool
}

// deleteAll deletes what is in a namespace: pods, and when they are gone the
// rest (OrderedNamespaceDeletion). Pods go first so that none outlives the policies, secrets and
// quotas around it (KEP-5080).
func (c *Controller) deleteAll(ctx context.Context, ns *v1.Namespace) (*remains, error) {
	kinds := c.api.Server().Store().Kinds()
	left := &remains{resources: map[string]int{}, finalizers: map[string]int{}}
	if err := c.deleteKind(ctx, ns, kinds.Find(apiserver.KindPod), left); err != nil {
		return nil, err
	}
	if left.resources["pods."] > 0 {
		left.pods = true
		return left, nil
	}
	for _, k := range kinds.All() {
		if k.Namespaced && k.Kind != apiserver.KindPod {
			if err := c.deleteKind(ctx, ns, k, left); err != nil {
				return nil, err
			}
		}
	}
	return left, nil
}

// deleteKind deletes a namespace's objects of a kind and counts what remains
// (deleteAllContentForGroupVersionResource). Two requests per kind, as upstream: a
// deletecollection and a list of what is left.
func (c *Controller) deleteKind(ctx context.Context, ns *v1.Namespace, k *apiserver.KindInfo, left *remains) error {
	var estimate int64
	if k.Kind == apiserver.KindPod {
		estimate = c.estimatePods(ns)
	}
	policy := metav1.DeletePropagationBackground
	req := apiserver.Request{Verb: "deletecollection", Resource: k.Resource, Namespace: ns.Name}
	var rest []apiserver.Object
	err := c.api.Do(ctx, req, func(s *apiserver.Server) error {
		list, err := s.List(k.Kind, ns.Name)
		if err != nil {
			return err
		}
		for _, o := range list {
			if err := s.Delete(k.Kind, ns.Name, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		left.errs = append(left.errs, err.Error())
		return ctx.Err()
	}
	req.Verb = "list"
	err = c.api.Do(ctx, req, func(s *apiserver.Server) (err error) {
		rest, err = s.List(k.Kind, ns.Name)
		return err
	})
	if err != nil {
		left.errs = append(left.errs, err.Error())
		return ctx.Err()
	}
	if len(rest) == 0 {
		return nil
	}
	gr := k.Resource + "." + k.Group
	left.resources[gr] += len(rest)
	// Finalizers are somebody else's to remove, and nobody knows how long that takes.
	pinned := false
	for _, o := range rest {
		for _, f := range o.GetFinalizers() {
			left.finalizers[f]++
			pinned = true
		}
	}
	switch {
	case estimate > 0:
	case pinned:
		estimate = finalizerEstimate
	default:
		// What has no finalizer and no grace should be gone; a retry finds out.
		left.errs = append(left.errs, fmt.Sprintf("unexpected items still remain in namespace: %s for gvr: %v", ns.Name, gvr(k)))
	}
	left.estimate = max(left.estimate, estimate)
	return nil
}

// estimatePods returns the longest grace period of the namespace's pods, while
// it is not over (estimateGracefulTermination). 0 after the longest grace period has passed: then
// whatever is left is unexpected.
func (c *Controller) estimatePods(ns *v1.Namespace) int64 {
	var longest int64
	for _, p := range c.api.Server().Store().PodsInNamespace(ns.Name) {
		if g := p.Spec.TerminationGracePeriodSeconds; g != nil && !controller.PodTerminated(p) {
			longest = max(longest, *g)
		}
	}
	if c.l.Since(ns.DeletionTimestamp.Time) >= time.Duration(longest)*time.Second {
		return 0
	}
	return longest
}

func sortedText(m map[string]int, format string) string {
	var list []string
	for name, n := range m { //drydock:unordered is sorted
		list = append(list, fmt.Sprintf(format, name, n))
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// gvr is how a schema.GroupVersionResource prints.
func gvr(k *apiserver.KindInfo) string {
	return fmt.Sprintf("%s/%s, Resource=%s", k.Group, k.Version, k.Resource)
}
