package endpointslice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Upstream's defaults (pkg/controller/endpointslice/endpointslice_controller.go,
// config/v1alpha1/defaults.go).
const (
	// MaxEndpointsPerSlice is --max-endpoints-per-slice.
	MaxEndpointsPerSlice = 100
	// ConcurrentServiceEndpointSyncs is --concurrent-service-endpoint-syncs.
	ConcurrentServiceEndpointSyncs = 5

	// Retries: an exponential back-off from one second, up to maxRetries times, then the service
	// waits for the next change.
	defaultSyncBackOff = time.Second
	maxSyncBackOff     = 1000 * time.Second
	maxRetries         = 15

	// sliceChangeDelay is after what time a service is looked at for a slice that somebody else
	// has changed (endpointSliceChangeMinSyncDelay): several of them are mended together.
	sliceChangeDelay = time.Second
)

// Options configure a Controller.
type Options struct {
	controller.Options
	// MaxEndpointsPerSlice of 0 means the default.
	MaxEndpointsPerSlice int
	// UpdatesBatchPeriod is --endpointslice-updates-batch-period: how long after a
	// change of a pod its services are synced. Zero, the default, is at once.
	UpdatesBatchPeriod time.Duration
}

// Controller is the EndpointSlice controller. writing is set while a request of
// the controller's own is carried out, whose change of a slice is not another's. The hook runs
// within the write, so a flag that is set around it tells own changes from others' exactly.
// Upstream's tracker compares generations that it expects.
type Controller struct {
	api      *apiserver.Component
	store    *apiserver.Store
	max      int
	batch    time.Duration
	queue    *controller.Queue
	recorder *record.Recorder
	index    index
	writing  bool
	// topology looks, after a change of the nodes, for services whose hints no
	// longer suit them: there are auto that have hints by the zones' CPUs. A key without a name:
	// there is one check for all services.
	topology *controller.Queue
	auto     int
}

// New starts a controller. The default batch period is 0.
func New(opts Options) *Controller {
	c := &Controller{api: opts.API, store: opts.API.Server().Store(), max: opts.MaxEndpointsPerSlice, batch: opts.UpdatesBatchPeriod, index: newIndex()}
	c.max = cmp.Or(c.max, MaxEndpointsPerSlice)
	c.recorder = controller.NewRecorder(opts.Group, opts.API, "endpoint-slice-controller")
	c.queue = controller.NewQueue(controller.QueueOptions{
		Group: opts.Group, Name: "endpoint slices", Workers: ConcurrentServiceEndpointSyncs, Delay: opts.API.Delivery,
		Sync: c.sync, BaseDelay: defaultSyncBackOff, MaxDelay: maxSyncBackOff, MaxRetries: maxRetries,
	})
	// Several changes of nodes until the check runs are one.
	c.topology = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "topology of nodes", Delay: opts.API.Delivery, Sync: c.checkTopology})
	opts.API.Server().OnChange(c.onChange, apiserver.KindPod, apiserver.KindService, apiserver.KindEndpointSlice, apiserver.KindNode)
	return c
}

// onChange sorts changes by kind. A cluster without services that select pays for
// a pod's change with one comparison. Endpoints are written through the API like anybody's
// requests; only hearing is direct.
func (c *Controller) onChange(ch apiserver.Change) {
	switch ch.Kind {
	case apiserver.KindPod:
		if len(c.index.byLabel) > 0 {
			c.podChanged(ch)
		}
	case apiserver.KindService:
		c.serviceChanged(ch)
	case apiserver.KindEndpointSlice:
		c.sliceChanged(ch)
	case apiserver.KindNode:
		if c.auto > 0 && topologyDiffers(ch) {
			c.topology.Add(controller.Key{})
		}
	}
}

// serviceChanged keeps the index and queues the service. A service whose selector changed keeps
// its triggers and hints (was).
func (c *Controller) serviceChanged(ch apiserver.Change) {
	svc := ch.New.(*v1.Service)
	key := controller.KeyOf(svc)
	old, _ := ch.Old.(*v1.Service)
	if old != nil && autoTopology(old) {
		c.auto--
	}
	if ch.Type == watch.Deleted {
		if selects(svc) {
			c.index.drop(svc)
		}
		c.queue.Add(key)
		return
	}
	if autoTopology(svc) {
		c.auto++
	}
	var was *service
	if selects(old) && (!selects(svc) || !maps.Equal(old.Spec.Selector, svc.Spec.Selector)) {
		was = c.index.drop(old)
	}
	if selects(svc) && c.index.services[key] == nil {
		c.index.put(svc, c.store.PodsInNamespace(svc.Namespace), was)
	}
	c.queue.Add(key)
}

// topologyDiffers reports whether a change of a node can change what zones there are
// and how large they are (updateNode). CPU capacities are not looked at here, as upstream does
// not.
func topologyDiffers(ch apiserver.Change) bool {
	if ch.Type != watch.Modified {
		return true
	}
	old, node := ch.Old.(*v1.Node), ch.New.(*v1.Node)
	return nodeReady(old) != nodeReady(node) || old.Labels[v1.LabelTopologyZone] != node.Labels[v1.LabelTopologyZone]
}

// checkTopology has the services synced whose hints leave a zone with too few
// endpoints (checkNodeTopologyDistribution). It takes the place of upstream's
// pass over its cache after each change of a node. Services are walked in the order of their keys
// after sorting: the map's order must not decide that of the queue.
func (c *Controller) checkTopology(context.Context, controller.Key) error {
	ratios := zoneRatios(c.store.Nodes())
	var keys []controller.Key
	for key, s := range c.index.services { //drydock:unordered sorted below
		if s.hints.overloaded(ratios) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b controller.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		c.queue.Add(key)
	}
	return nil
}

// podChanged is AddPod, UpdatePod and DeletePod. A pod whose labels changed
// concerns the services that took it and those that take it now. The index holds names only; the
// sync reads the pods.
func (c *Controller) podChanged(ch apiserver.Change) {
	pod := ch.New.(*v1.Pod)
	old, _ := ch.Old.(*v1.Pod)
	switch ch.Type {
	case watch.Added:
		for _, s := range c.index.of(pod) {
			s.pods[pod.Name] = struct{}{}
			c.addForPod(s)
		}
	case watch.Deleted:
		for _, s := range c.index.of(pod) {
			delete(s.pods, pod.Name)
			c.addForPod(s)
		}
	default:
		relabelled := !maps.Equal(old.Labels, pod.Labels)
		// Most changes of pods end here: statuses without a change of readiness or address.
		if !relabelled && !podMatters(old, pod) {
			return
		}
		if relabelled {
			for _, s := range c.index.of(old) {
				delete(s.pods, pod.Name)
				c.addForPod(s)
			}
		}
		for _, s := range c.index.of(pod) {
			s.pods[pod.Name] = struct{}{}
			c.addForPod(s)
		}
	}
}

// addForPod queues a service at once, or with others of the batch period.
func (c *Controller) addForPod(s *service) {
	if c.batch > 0 {
		c.queue.AddAfter(s.key, c.batch)
		return
	}
	c.queue.Add(s.key)
}

// podMatters reports whether a change of a pod changes its endpoint
// (util/controller_utils.go podEndpointsChanged). Conditions other than Ready, and everything
// about containers, are of no interest.
func podMatters(old, pod *v1.Pod) bool {
	return (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		controller.PodReady(old) != controller.PodReady(pod) ||
		controller.PodTerminated(old) != controller.PodTerminated(pod) ||
		old.Status.PodIP != pod.Status.PodIP || !slices.Equal(old.Status.PodIPs, pod.Status.PodIPs) ||
		old.Spec.NodeName != pod.Spec.NodeName ||
		old.Spec.Hostname != pod.Spec.Hostname || old.Spec.Subdomain != pod.Spec.Subdomain
}

// sliceChanged keeps the index; what somebody else did to a slice has the service synced. Whoever
// edits a slice by hand finds it mended, as in a real cluster, but for annotations, which a generation
// doesn't count.
func (c *Controller) sliceChanged(ch apiserver.Change) {
	es := ch.New.(*discoveryv1.EndpointSlice)
	var was, is controller.Key
	var managed, manages bool
	if old, ok := ch.Old.(*discoveryv1.EndpointSlice); ok {
		if was, managed = serviceOf(old); managed {
			c.index.dropSlice(was, old.Name)
		}
	}
	if ch.Type != watch.Deleted {
		if is, manages = serviceOf(es); manages {
			c.index.addSlice(is, es.Name)
		}
	}
	if c.writing || ch.Type == watch.Modified && managed == manages && was == is && ch.Old.GetGeneration() == es.Generation {
		return
	}
	if managed {
		c.mendLater(was)
	}
	if manages && is != was {
		c.mendLater(is)
	}
}

// mendLater has a service looked at whose slices somebody else has changed.
func (c *Controller) mendLater(svc controller.Key) {
	c.queue.AddAfter(svc, max(sliceChangeDelay, c.batch))
}

// sync is syncService. The plan is made without waiting, so all of it is of one
// state of the store; carrying it out takes requests.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	svc, _ := c.store.Lookup(apiserver.KindService, key.Namespace, key.Name).(*v1.Service)
	s := c.index.services[key]
	if svc == nil || s == nil {
		return nil // the garbage collector deletes the slices of a service that is gone
	}
	pods := c.pods(s)
	p := planner{svc: svc, max: c.max, trigger: s.triggers.next(svc, pods), node: c.store.Node, nodes: c.store.Nodes, hints: &s.hints}
	plan := p.reconcile(pods, c.slices(key))
	// Events come after the requests, whether or not these succeeded.
	err := c.carryOut(ctx, svc, plan)
	for _, e := range plan.events {
		c.recorder.Event(controller.Reference(svc), e.typ, e.reason, e.message)
	}
	if err == nil {
		return nil
	}
	c.recorder.Eventf(controller.Reference(svc), v1.EventTypeWarning, "FailedToUpdateEndpointSlices",
		"Error updating Endpoint Slices for Service %s/%s: %v", svc.Namespace, svc.Name, err)
	return fmt.Errorf("service %s: %w", key, err)
}

// pods returns the service's pods by name. Upstream's order is that of its
// cache's map; here it is by name, so that a run repeats.
func (c *Controller) pods(s *service) []*v1.Pod {
	out := make([]*v1.Pod, 0, len(s.pods))
	for name := range s.pods { //drydock:unordered sorted below
		if pod := c.store.Pod(s.key.Namespace, name); pod != nil {
			out = append(out, pod)
		}
	}
	// The order decides which pods share a slice.
	slices.SortFunc(out, comparePods)
	return out
}

// slices returns the service's slices that are not being deleted, oldest first. A slice that is
// being deleted is none to be filled.
func (c *Controller) slices(key controller.Key) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for _, name := range c.index.slices[key] {
		es, _ := c.store.Lookup(apiserver.KindEndpointSlice, key.Namespace, name).(*discoveryv1.EndpointSlice)
		if es != nil && es.DeletionTimestamp == nil {
			out = append(out, es)
		}
	}
	slices.SortStableFunc(out, func(a, b *discoveryv1.EndpointSlice) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return out
}

// carryOut makes a plan's requests: it creates, updates, then deletes. Creating
// comes first, so that an endpoint that moves is never in no slice. The first error ends it; the
// next sync computes a new plan from what has been done. p.err is what the plan itself could not
// do, such as a pod on an unknown node.
func (c *Controller) carryOut(ctx context.Context, svc *v1.Service, p plan) error {
	for _, es := range p.create {
		if err := c.write(ctx, "create", es, func(s *apiserver.Server) error {
			_, err := s.Create(es)
			return err
		}); err != nil {
			if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
				return nil
			}
			return fmt.Errorf("failed to create EndpointSlice for Service %s/%s: %w", svc.Namespace, svc.Name, err)
		}
	}
	for _, es := range p.update {
		if err := c.write(ctx, "update", es, func(s *apiserver.Server) error {
			_, err := s.Update(es, "")
			return err
		}); err != nil {
			return fmt.Errorf("failed to update %s EndpointSlice for Service %s/%s: %w", es.Name, svc.Namespace, svc.Name, err)
		}
	}
	for _, es := range p.remove {
		if err := c.write(ctx, "delete", es, func(s *apiserver.Server) error {
			return s.Delete(apiserver.KindEndpointSlice, es.Namespace, es.Name, metav1.DeleteOptions{})
		}); err != nil {
			return fmt.Errorf("failed to delete %s EndpointSlice for Service %s/%s: %w", es.Name, svc.Namespace, svc.Name, err)
		}
	}
	return p.err
}

// write makes one request whose change of the slice does not count as another's. Do calls the
// function when the request has arrived at the server, possibly long after; the flag must be set
// only then.
func (c *Controller) write(ctx context.Context, verb string, es *discoveryv1.EndpointSlice, fn func(*apiserver.Server) error) error {
	req := apiserver.Request{Verb: verb, Resource: "endpointslices", Namespace: es.Namespace, Name: es.Name}
	return c.api.Do(ctx, req, func(s *apiserver.Server) error {
		c.writing = true
		defer func() { c.writing = false }()
		return fn(s)
	})
}
