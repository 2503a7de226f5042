package endpointslice

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// concurrentEndpointSyncs is --concurrent-endpoint-syncs.
	concurrentEndpointSyncs = 5
	// maxEndpoints is how many addresses an Endpoints has at most.
	maxEndpoints = 1000

	endpointsManagedBy = "endpoints.kubernetes.io/managed-by"
	endpointController = "endpoint-controller"
)

// EndpointsController keeps the Endpoints of Services that have a selector, for
// clients that don't know slices (pkg/controller/endpoint). Nothing here reads them, so
// that it works from when clients come in (apiserver.Server.OnDoor): before, a change
// costs it a comparison.
type EndpointsController struct {
	api      *apiserver.Component
	store    *apiserver.Store
	queue    *controller.Queue
	recorder *record.Recorder
	open     bool
	index    index
}

// NewEndpoints starts a controller.
func NewEndpoints(opts controller.Options) *EndpointsController {
	c := &EndpointsController{api: opts.API, store: opts.API.Server().Store(), index: newIndex()}
	c.recorder = controller.NewRecorder(opts.Group, opts.API, endpointController)
	c.queue = controller.NewQueue(controller.QueueOptions{
		Group: opts.Group, Name: "endpoints", Workers: concurrentEndpointSyncs, Delay: opts.API.Delivery,
		Sync: c.sync, MaxRetries: maxRetries,
	})
	srv, group := opts.API.Server(), opts.Group
	srv.OnChange(c.onChange, apiserver.KindPod, apiserver.KindService, apiserver.KindEndpoints)
	srv.OnDoor(func() {
		if group.Dead() {
			return
		}
		c.open = true
		for _, svc := range apiserver.Objects[*v1.Service](c.store, apiserver.KindService) {
			c.serviceChanged(nil, svc)
		}
	})
	return c
}

// onChange sorts changes by kind.
func (c *EndpointsController) onChange(ch apiserver.Change) {
	switch {
	case !c.open:
	case ch.Kind == apiserver.KindPod:
		c.podChanged(ch)
	case ch.Kind == apiserver.KindEndpoints:
		if ch.Type == watch.Deleted { // by somebody else, perhaps
			c.queue.Add(controller.KeyOf(ch.New))
		}
	default:
		old, _ := ch.Old.(*v1.Service)
		svc := ch.New.(*v1.Service)
		if ch.Type == watch.Deleted {
			old, svc = svc, nil
		}
		c.serviceChanged(old, svc)
	}
}

// serviceChanged keeps the index and queues a service. svc is nil for one that is gone.
func (c *EndpointsController) serviceChanged(old, svc *v1.Service) {
	if svc == nil {
		if selects(old) {
			c.index.drop(old)
		}
		c.queue.Add(controller.KeyOf(old))
		return
	}
	var was *service
	if selects(old) && (!selects(svc) || !maps.Equal(old.Spec.Selector, svc.Spec.Selector)) {
		was = c.index.drop(old)
	}
	key := controller.KeyOf(svc)
	if selects(svc) && c.index.services[key] == nil {
		c.index.put(svc, c.store.PodsInNamespace(svc.Namespace), was)
	}
	c.queue.Add(key)
}

// podChanged queues the services that take a pod, or took it.
func (c *EndpointsController) podChanged(ch apiserver.Change) {
	pod := ch.New.(*v1.Pod)
	old, _ := ch.Old.(*v1.Pod)
	if len(c.index.byLabel) == 0 || ch.Type == watch.Modified && maps.Equal(old.Labels, pod.Labels) && !podMatters(old, pod) {
		return
	}
	if old != nil {
		for _, s := range c.index.of(old) {
			delete(s.pods, pod.Name)
			c.queue.Add(s.key)
		}
	}
	if ch.Type == watch.Deleted {
		return
	}
	for _, s := range c.index.of(pod) {
		s.pods[pod.Name] = struct{}{}
		c.queue.Add(s.key)
	}
}

// sync is syncService.
func (c *EndpointsController) sync(ctx context.Context, key controller.Key) error {
	svc, _ := c.store.Lookup(apiserver.KindService, key.Namespace, key.Name).(*v1.Service)
	is, _ := c.store.Lookup(apiserver.KindEndpoints, key.Namespace, key.Name).(*v1.Endpoints)
	s := c.index.services[key]
	switch {
	case svc == nil && is != nil:
		if err := controller.Delete(ctx, c.api, is, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("endpoints %s: %w", key, err)
		}
		return nil
	case svc == nil || s == nil: // without a selector they are somebody else's
		return nil
	}
	var pods []*v1.Pod
	for name := range s.pods { //drydock:unordered sorted below
		if pod := c.store.Pod(key.Namespace, name); pod != nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, comparePods)
	trigger := s.triggers.next(svc, pods)
	want := endpointsOf(svc, pods)
	if is != nil && equality.Semantic.DeepEqual(is.Subsets, want.Subsets) && maps.Equal(is.Labels, want.Labels) &&
		is.Annotations[v1.EndpointsOverCapacity] == want.Annotations[v1.EndpointsOverCapacity] {
		return nil
	}
	return c.write(ctx, svc, is, want, trigger)
}

// write makes or replaces a service's Endpoints.
func (c *EndpointsController) write(ctx context.Context, svc *v1.Service, is, want *v1.Endpoints, trigger time.Time) error {
	reason, err := "FailedToCreateEndpoint", error(nil)
	if is != nil {
		next := is.DeepCopy()
		next.Subsets, next.Labels = want.Subsets, want.Labels
		for _, name := range []string{v1.EndpointsOverCapacity, v1.EndpointsLastChangeTriggerTime} {
			delete(next.Annotations, name)
		}
		for name, text := range want.Annotations { //drydock:unordered fills a map
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, name, text)
		}
		reason, want = "FailedToUpdateEndpoint", next
	}
	if !trigger.IsZero() {
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, v1.EndpointsLastChangeTriggerTime, trigger.UTC().Format(time.RFC3339Nano))
	}
	if is == nil {
		_, err = controller.Create(ctx, c.api, want)
	} else {
		_, err = controller.Update(ctx, c.api, want, "")
	}
	switch {
	case err == nil || apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause):
		return nil
	case is == nil:
		// Of Endpoints that were to be made the name alone is known (upstream's copy has no namespace).
		c.recorder.Eventf(&v1.ObjectReference{APIVersion: "v1", Kind: string(apiserver.KindEndpoints), Name: svc.Name}, v1.EventTypeWarning, reason, "Failed to create endpoint for service %v/%v: %v", svc.Namespace, svc.Name, err)
	default:
		c.recorder.Eventf(controller.Reference(is), v1.EventTypeWarning, reason, "Failed to update endpoint %v/%v: %v", svc.Namespace, svc.Name, err)
	}
	return fmt.Errorf("endpoints %s: %w", controller.KeyOf(svc), err)
}
