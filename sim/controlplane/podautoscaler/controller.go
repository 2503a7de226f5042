package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Upstream's defaults (pkg/controller/podautoscaler/config/v1alpha1/defaults.go).
const (
	// SyncPeriod is --horizontal-pod-autoscaler-sync-period. They are flags of
	// kube-controller-manager and fixed here.
	SyncPeriod = 15 * time.Second
	// DownscaleStabilization is --horizontal-pod-autoscaler-downscale-stabilization.
	DownscaleStabilization = 5 * time.Minute
	// Tolerance is --horizontal-pod-autoscaler-tolerance.
	Tolerance = 0.1
	// ConcurrentSyncs is --concurrent-horizontal-pod-autoscaler-syncs.
	ConcurrentSyncs = 5
)

// Options configure a Controller.
type Options struct {
	controller.Options
	// Metrics is what pods use. Nil is a cluster without metrics-server.
	Metrics Metrics
	// Figures are the metrics with names; nil: nobody serves any.
	Figures *Figures
}

// Controller is the HorizontalPodAutoscaler controller. histories are of the
// autoscalers that there are, and hold what outlives a look: recommendations,
// scalings, and the watch of a target's metrics. An autoscaler has a key in the queue all the
// time, due a period after its last look.
type Controller struct {
	api             *apiserver.Component
	store           *apiserver.Store
	l               *loop.Loop
	metrics         Metrics
	figures         *Figures
	queue           *controller.Queue
	recorder        *record.Recorder
	histories       map[controller.Key]*history
	downscaleWindow time.Duration
}

// New starts a controller. The end of its group ends the watches, which are
// metrics-server's. Without Metrics every look fails as in a cluster without metrics-server.
func New(opts Options) *Controller {
	c := &Controller{
		api: opts.API, store: opts.API.Server().Store(), l: opts.Group.Loop(), metrics: opts.Metrics, figures: opts.Figures,
		histories: map[controller.Key]*history{}, downscaleWindow: DownscaleStabilization,
	}
	c.recorder = controller.NewRecorder(opts.Group, opts.API, "horizontal-pod-autoscaler")
	c.queue = controller.NewQueue(controller.QueueOptions{
		Group: opts.Group, Name: "horizontal pod autoscalers", Workers: ConcurrentSyncs, Sync: c.sync, PerKeyOnly: true,
	})
	opts.API.Server().OnChange(c.onChange, apiserver.KindHorizontalPodAutoscaler)
	opts.Group.OnKill(func() {
		for _, h := range c.histories { //drydock:unordered each ends its own watch
			h.end()
		}
	})
	return c
}

// onChange has every autoscaler wait in the queue for the next period. So a new
// autoscaler first looks after SyncPeriod, and a change of its spec is seen with
// the next look, as upstream. The rate limit of the queue is the period itself.
func (c *Controller) onChange(ch apiserver.Change) {
	hpa := ch.New.(*autoscalingv2.HorizontalPodAutoscaler)
	key := controller.KeyOf(hpa)
	if ch.Type == watch.Deleted {
		if h := c.histories[key]; h != nil {
			h.end()
			delete(c.histories, key)
		}
		return
	}
	c.queue.AddAfter(key, SyncPeriod)
	if ch.Type == watch.Added {
		// metrics-server has known the pods all along.
		ref := hpa.Spec.ScaleTargetRef
		if _, err := scaleOf(c.store.Kinds(), ref); err != nil {
			return
		}
		if scale, err := c.store.GetScale(apiserver.Kind(ref.Kind), hpa.Namespace, ref.Name); err == nil {
			if selector, err := labels.Parse(scale.Status.Selector); err == nil {
				// So the first look, a period later, finds samples.
				c.track(key, c.history(key), scale.Status.Selector, selector)
			}
		}
	}
}

// history returns what is kept of an autoscaler.
func (c *Controller) history(key controller.Key) *history {
	h := c.histories[key]
	if h == nil {
		h = &history{}
		c.histories[key] = h
	}
	return h
}

// track has the metrics of a target's pods kept. A selector that stays the same
// keeps its watch. The watch costs: metrics of pods that nobody asks for are not kept.
func (c *Controller) track(key controller.Key, h *history, text string, selector labels.Selector) {
	if c.metrics == nil || h.stop != nil && h.selector == text || c.histories[key] != h {
		return // the last: the autoscaler has gone during a wait
	}
	h.end()
	h.selector = text
	h.stop = c.metrics.Watch(key.Namespace, func(pod *v1.Pod) bool { return selector.Matches(labels.Set(pod.Labels)) })
}

// end stops having metrics kept.
func (h *history) end() {
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// podsOf are a target's pods, in the order of the API.
func (c *Controller) podsOf(namespace string, selector labels.Selector) []*v1.Pod {
	return lists.Filter(c.store.PodsInNamespace(namespace), func(pod *v1.Pod) bool {
		return selector.Matches(labels.Set(pod.Labels))
	})
}

// selecting returns the autoscalers that select one of the pods, by name
// (hpasControllingPodsUnderSelector). Two that scale one target would undo each
// other's work for ever, so neither does. Pods, not selectors, are compared: two selectors may
// differ in text and take the same pods.
func (c *Controller) selecting(namespace string, pods []*v1.Pod) []string {
	var out []string
	for key, h := range c.histories { //drydock:unordered is sorted
		if key.Namespace == namespace && h.selects != nil && slices.ContainsFunc(pods, func(p *v1.Pod) bool { return h.selects.Matches(labels.Set(p.Labels)) }) {
			out = append(out, key.String())
		}
	}
	slices.Sort(out)
	return out
}

// sync looks at one autoscaler, and again after a period whatever came of it. It
// never fails: a look that did not succeed has told so in the status. Requests wait within a
// look; now stays the time of its beginning, for samples and for conditions.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	hpa, _ := c.store.Lookup(apiserver.KindHorizontalPodAutoscaler, key.Namespace, key.Name).(*autoscalingv2.HorizontalPodAutoscaler)
	if hpa == nil {
		return nil
	}
	copied := *hpa
	copied.Status.Conditions = slices.Clone(hpa.Status.Conditions)
	r := &evaluation{c: c, key: key, hpa: &copied, was: hpa, h: c.history(key), now: c.l.Now()}
	r.reconcile(ctx)
	c.queue.AddAfter(key, SyncPeriod)
	return nil
}

// evaluation is one look at one autoscaler. hpa is a copy whose status is worked
// on, was the one that is stored, now the time at which the look began.
type evaluation struct {
	c        *Controller
	key      controller.Key
	hpa, was *autoscalingv2.HorizontalPodAutoscaler
	h        *history
	now      time.Time
}

// event records an event about the autoscaler.
func (r *evaluation) event(typ, reason, message string) {
	r.c.recorder.Event(controller.Reference(r.was), typ, reason, message)
}

// condition sets a condition; its time moves with its status (setCondition). The reason and
// message change with each look; only a changed status is a transition.
func (r *evaluation) condition(typ autoscalingv2.HorizontalPodAutoscalerConditionType, status v1.ConditionStatus, reason, message string) {
	conds := &r.hpa.Status.Conditions
	i := slices.IndexFunc(*conds, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool { return c.Type == typ })
	if i < 0 {
		*conds = append(*conds, autoscalingv2.HorizontalPodAutoscalerCondition{Type: typ})
		i = len(*conds) - 1
	}
	cond := &(*conds)[i]
	if cond.Status != status {
		cond.LastTransitionTime = r.time()
	}
	cond.Status, cond.Reason, cond.Message = status, reason, message
}

// time is now as objects have it.
func (r *evaluation) time() metav1.Time { return controller.WireTime(r.now) }

// reconcile is reconcileAutoscaler. It always ends with a status, since kubectl
// describe is where users look: conditions say at which point it stopped and why. Bounds come
// before metrics: a target outside of minReplicas and maxReplicas is brought back without asking.
func (r *evaluation) reconcile(ctx context.Context) {
	spec, ref := &r.hpa.Spec, r.hpa.Spec.ScaleTargetRef
	scale, err := r.getScale(ctx, ref)
	if err != nil {
		r.event(v1.EventTypeWarning, "FailedGetScale", err.Error())
		r.condition(autoscalingv2.AbleToScale, v1.ConditionFalse, "FailedGetScale", fmt.Sprintf("the HPA controller was unable to get the target's current scale: %v", err))
		r.updateStatus(ctx)
		return
	}
	r.condition(autoscalingv2.AbleToScale, v1.ConditionTrue, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	current := scale.Spec.Replicas
	if len(r.h.recommendations) == 0 {
		r.h.recommendations = append(r.h.recommendations, recommendation{current, r.now})
	}
	least := int32(1)
	if spec.MinReplicas != nil {
		least = *spec.MinReplicas
	}
	var desired int32
	var reason string
	var statuses []autoscalingv2.MetricStatus
	rescale := true
	switch {
	// A target at zero was switched off by hand, and stays so (HPAScaleToZero is off).
	case current == 0:
		rescale = false
		r.condition(autoscalingv2.ScalingActive, v1.ConditionFalse, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
	case current > spec.MaxReplicas:
		desired, reason = spec.MaxReplicas, "Current number of replicas above Spec.MaxReplicas"
	case current < least:
		desired, reason = least, "Current number of replicas below Spec.MinReplicas"
	default:
		out, err := r.compute(scale)
		if err != nil && out.replicas == -1 {
			r.setStatus(current, r.hpa.Status.DesiredReplicas, out.statuses, false)
			r.updateStatus(ctx)
			r.event(v1.EventTypeWarning, "FailedComputeMetricsReplicas", err.Error())
			return
		}
		statuses = out.statuses
		desired = out.replicas
		switch {
		case desired > current:
			reason = out.metric + " above target"
		case desired < current:
			reason = "All metrics below target"
		}
		desired = r.normalize(current, desired, least)
		rescale = desired != current
	}
	// No write to the target, and no event.
	if !rescale {
		r.setStatus(current, current, statuses, false)
		r.updateStatus(ctx)
		return
	}
	if err := r.updateScale(ctx, ref, scale, desired); err != nil {
		r.event(v1.EventTypeWarning, "FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", desired, reason, err))
		r.condition(autoscalingv2.AbleToScale, v1.ConditionFalse, "FailedUpdateScale", fmt.Sprintf("the HPA controller was unable to update the target scale: %v", err))
		r.setStatus(current, r.hpa.Status.DesiredReplicas, statuses, false)
		r.updateStatus(ctx)
		return
	}
	r.condition(autoscalingv2.AbleToScale, v1.ConditionTrue, "SucceededRescale", fmt.Sprintf("the HPA controller was able to update the target scale to %d", desired))
	r.event(v1.EventTypeNormal, "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: %s", desired, reason))
	r.h.scaled(r.now, spec.Behavior, current, desired)
	r.setStatus(current, desired, statuses, true)
	r.updateStatus(ctx)
}

// scaleOf returns the resource whose scale a reference is about, with its
// subresource. Errors are those of a kind that the API does not serve, or that has
// no scale. The errors' texts are those of the discovery that upstream does by REST.
func scaleOf(kinds *apiserver.Kinds, ref autoscalingv2.CrossVersionObjectReference) (string, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return "", err
	}
	kind := kinds.Find(apiserver.Kind(ref.Kind))
	if kind == nil || kind.Group != gv.Group { // any version of the group will do
		return "", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gv.Group, Kind: ref.Kind}}
	}
	if _, ok := kind.Scale(kind.New()); ok {
		return kind.Resource + "/scale", nil
	}
	return "", errors.New("the server could not find the requested resource")
}

// getScale reads a target's scale; updateScale writes it.
func (r *evaluation) getScale(ctx context.Context, ref autoscalingv2.CrossVersionObjectReference) (scale *autoscalingv1.Scale, err error) {
	resource, err := scaleOf(r.c.store.Kinds(), ref)
	if err != nil {
		return nil, err
	}
	err = r.c.api.Do(ctx, apiserver.Request{Verb: "get", Resource: resource, Namespace: r.hpa.Namespace, Name: ref.Name}, func(s *apiserver.Server) error {
		scale, err = s.GetScale(apiserver.Kind(ref.Kind), r.hpa.Namespace, ref.Name)
		return err
	})
	return scale, err
}

// Whoever writes the target between the two makes it a conflict, which is tried again on a fresh
// scale, up to five times; upstream's back-off between them is too short to be seen.
func (r *evaluation) updateScale(ctx context.Context, ref autoscalingv2.CrossVersionObjectReference, scale *autoscalingv1.Scale, replicas int32) error {
	resource, err := scaleOf(r.c.store.Kinds(), ref)
	if err != nil {
		return err
	}
	for range 5 { // retry.RetryOnConflict
		next := *scale
		next.Spec.Replicas = replicas
		err = r.c.api.Do(ctx, apiserver.Request{Verb: "update", Resource: resource, Namespace: r.hpa.Namespace, Name: ref.Name}, func(s *apiserver.Server) error {
			_, err := s.UpdateScale(apiserver.Kind(ref.Kind), &next)
			return err
		})
		if err == nil {
			return nil
		}
		if fresh, e := r.getScale(ctx, ref); e == nil {
			scale = fresh
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// setStatus sets what is written of a look. Failed looks keep the former desired count.
func (r *evaluation) setStatus(current, desired int32, statuses []autoscalingv2.MetricStatus, rescaled bool) {
	st := &r.hpa.Status
	st.CurrentReplicas, st.DesiredReplicas, st.CurrentMetrics = current, desired, statuses
	if rescaled {
		st.LastScaleTime = new(r.time())
	}
}

// updateStatus writes the status if it has changed (updateStatusIfNeeded). A failed write is told
// in an event; the next look writes again.
func (r *evaluation) updateStatus(ctx context.Context) {
	if equality.Semantic.DeepEqual(r.was.Status, r.hpa.Status) {
		return
	}
	if _, err := controller.Update(ctx, r.c.api, r.hpa, "status"); err != nil {
		r.event(v1.EventTypeWarning, "FailedUpdateStatus", err.Error())
	}
}
