// Package devicetainteviction deletes pods whose claims have devices with a NoExecute taint that
// they don't tolerate, at once or when the time for which they tolerate it is over. It mirrors
// upstream's pkg/controller/devicetainteviction without DeviceTaintRules, whose feature gate is
// off in v1.36.
//
// A cluster without such taints costs a comparison of lengths per change. Where upstream keeps
// when each claim's pods are to go, it is worked out of the API's objects when a pod is looked at.
package devicetainteviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// workers is ConcurrentSyncs.
const workers = 8

// Controller is the device taint eviction controller.
type Controller struct {
	api      *apiserver.Component
	l        *loop.Loop
	recorder *record.Recorder
	queue    *controller.Queue // of pods
	// tainted are the slices with NoExecute taints, by name.
	tainted map[string]bool
	// due are the pods that are to be deleted, until they are gone; evicted those of them that were.
	due     map[controller.Key]time.Time
	evicted map[types.UID]bool
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{
		api: opts.API, l: opts.Group.Loop(),
		tainted: map[string]bool{}, due: map[controller.Key]time.Time{}, evicted: map[types.UID]bool{},
	}
	c.recorder = controller.NewRecorder(opts.Group, c.api, "device-taint-eviction-controller")
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "device taint eviction", Workers: workers, Delay: c.api.Delivery, Sync: c.sync})
	srv := c.api.Server()
	srv.OnChange(c.sliceChanged, apiserver.KindResourceSlice)
	srv.OnChange(c.claimChanged, apiserver.KindResourceClaim)
	srv.OnChange(c.podChanged, apiserver.KindPod)
	for _, s := range apiserver.Objects[*resourcev1.ResourceSlice](srv.Store(), apiserver.KindResourceSlice) {
		c.sliceChanged(apiserver.Change{Type: watch.Added, New: s})
	}
	return c
}

// idle: there is nothing that a change of a claim or a pod could matter for.
func (c *Controller) idle() bool { return len(c.tainted)+len(c.due) == 0 }

// sliceChanged is handleSliceChange.
func (c *Controller) sliceChanged(ch apiserver.Change) {
	slice := ch.New.(*resourcev1.ResourceSlice)
	was := c.tainted[slice.Name]
	is := ch.Type != watch.Deleted && slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return slices.ContainsFunc(d.Taints, executes) })
	delete(c.tainted, slice.Name)
	if is {
		c.tainted[slice.Name] = true
	}
	// A slice without such taints may still put an earlier one of its pool out of date.
	if !was && !is && c.idle() {
		return
	}
	for _, claim := range apiserver.Objects[*resourcev1.ResourceClaim](c.api.Server().Store(), apiserver.KindResourceClaim) {
		if a := claim.Status.Allocation; a != nil && slices.ContainsFunc(a.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
			return r.Driver == slice.Spec.Driver && r.Pool == slice.Spec.Pool.Name
		}) {
			c.addPods(claim)
		}
	}
}

// executes reports whether a taint has those go that are there.
func executes(t resourcev1.DeviceTaint) bool {
	return t.Effect == resourcev1.DeviceTaintEffectNoExecute
}

// claimChanged is handleClaimChange.
func (c *Controller) claimChanged(ch apiserver.Change) {
	if c.idle() {
		return
	}
	if old, ok := ch.Old.(*resourcev1.ResourceClaim); ok && old != nil {
		c.addPods(old)
	}
	c.addPods(ch.New.(*resourcev1.ResourceClaim))
}

// addPods is handlePods.
func (c *Controller) addPods(claim *resourcev1.ResourceClaim) {
	for _, r := range claim.Status.ReservedFor {
		if r.APIGroup == "" && r.Resource == "pods" {
			c.queue.Add(controller.Key{Namespace: claim.Namespace, Name: r.Name})
		}
	}
}

// podChanged is handlePodChange: what matters of a pod is its node and its claims.
func (c *Controller) podChanged(ch apiserver.Change) {
	if c.idle() {
		return
	}
	pod := ch.New.(*v1.Pod)
	switch old, _ := ch.Old.(*v1.Pod); {
	case ch.Type == watch.Deleted:
		delete(c.evicted, pod.UID)
		delete(c.due, controller.KeyOf(pod)) // nobody is told
	case len(pod.Spec.ResourceClaims) == 0:
	case old != nil && old.Spec.NodeName == pod.Spec.NodeName && equality.Semantic.DeepEqual(old.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses):
	default:
		c.queue.Add(controller.KeyOf(pod))
	}
}

// sync is handlePod and maybeDeletePod.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	pod := c.api.Server().Pod(key.Namespace, key.Name)
	if pod == nil || c.evicted[pod.UID] {
		return nil
	}
	when, ok := c.podEvictionTime(pod)
	if !ok {
		if _, ok := c.due[key]; ok {
			delete(c.due, key)
			c.recorder.Eventf(controller.Reference(pod), v1.EventTypeNormal, "DeviceTaintManagerEviction", "Cancelling deletion")
		}
		return nil
	}
	c.due[key] = when
	if wait := when.Sub(c.l.Now()); wait > 0 {
		c.queue.AddAfter(key, wait)
		return nil
	}
	if err := c.evict(ctx, key, pod.UID); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if p := c.api.Server().Pod(key.Namespace, key.Name); p != nil && p.UID == pod.UID {
		c.evicted[pod.UID] = true
	}
	return nil
}

// podEvictionTime is when a pod is to be deleted: when the first of its claims says so.
func (c *Controller) podEvictionTime(pod *v1.Pod) (first time.Time, found bool) {
	if pod.Spec.NodeName == "" {
		return time.Time{}, false
	}
	for i := range pod.Spec.ResourceClaims {
		name, own, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue // not made yet, or not needed
		}
		claim, ok := controller.Lookup[*resourcev1.ResourceClaim](c.api, apiserver.KindResourceClaim, controller.Key{Namespace: pod.Namespace, Name: *name})
		if !ok || claim.Status.Allocation == nil || own && resourceclaim.IsForPod(pod, claim, false) != nil || !resourceclaim.IsReservedForPod(pod, claim, false) {
			continue
		}
		if when, ok := c.claimEvictionTime(claim); ok && (!found || when.Before(first)) {
			first, found = when, true
		}
	}
	return first, found
}

// claimEvictionTime is when the pods of an allocated claim are to be deleted: with the first taint
// of one of its devices that is not tolerated, or no longer.
func (c *Controller) claimEvictionTime(claim *resourcev1.ResourceClaim) (first time.Time, found bool) {
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		for _, taint := range c.taints(r) {
			wait, forever := toleratedFor(r.Tolerations, taint)
			if !executes(taint) || taint.TimeAdded == nil || forever {
				continue
			}
			if when := taint.TimeAdded.Add(wait); !found || when.Before(first) {
				first, found = when, true
			}
		}
	}
	return first, found
}

// taints are those of a device, as the newest slices of its pool say.
func (c *Controller) taints(r *resourcev1.DeviceRequestAllocationResult) []resourcev1.DeviceTaint {
	var out []resourcev1.DeviceTaint
	newest := int64(-1)
	for _, s := range apiserver.Objects[*resourcev1.ResourceSlice](c.api.Server().Store(), apiserver.KindResourceSlice) {
		if s.Spec.Driver != r.Driver || s.Spec.Pool.Name != r.Pool || s.Spec.Pool.Generation < newest {
			continue
		}
		if s.Spec.Pool.Generation > newest {
			newest, out = s.Spec.Pool.Generation, nil
		}
		if i := slices.IndexFunc(s.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == r.Device }); i >= 0 {
			out = s.Spec.Devices[i].Taints
		}
	}
	return out
}

// toleratedFor is how long a taint is tolerated: for the least time that a toleration of it gives.
func toleratedFor(list []resourcev1.DeviceToleration, taint resourcev1.DeviceTaint) (wait time.Duration, forever bool) {
	found := false
	for _, t := range list {
		if t.Effect != resourcev1.DeviceTaintEffectNoExecute || !resourceclaim.ToleratesTaint(t, taint) {
			continue
		}
		if t.TolerationSeconds == nil {
			return 0, true
		}
		if d := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second; !found || d < wait {
			wait, found = d, true
		}
	}
	return wait, false
}

// evict marks a pod as disrupted and deletes it (addConditionAndDeletePod). Errors: NotFound, also
// of a pod in whose place there is another one.
func (c *Controller) evict(ctx context.Context, key controller.Key, uid types.UID) error {
	pod, err := controller.Get[*v1.Pod](ctx, c.api, apiserver.KindPod, key)
	switch {
	case err != nil:
		return fmt.Errorf("deleting pod %s: %w", key, err)
	case pod.UID != uid:
		return apierrors.NewNotFound(v1.Resource("pods"), pod.Name)
	case pod.DeletionTimestamp != nil:
		return nil
	}
	c.recorder.Eventf(controller.Reference(pod), v1.EventTypeNormal, "DeviceTaintManagerEviction", "Marking for deletion")
	status, changed := controller.WithPodCondition(&pod.Status, v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
		Reason: "DeletionByDeviceTaintManager", Message: "Device Taint manager: deleting due to NoExecute taint",
	}, c.l.Now())
	if changed {
		if err := controller.PatchPodStatus(ctx, c.api, pod, &status); err != nil {
			return err
		}
	}
	if err := controller.Delete(ctx, c.api, pod, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		return fmt.Errorf("deleting pod %s: %w", key, err)
	}
	return nil
}
