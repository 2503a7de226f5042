// Package ephemeralvolume makes the claims of generic ephemeral volumes, which go with their
// pods. It mirrors upstream's pkg/controller/volume/ephemeral.
package ephemeralvolume

import (
	"context"
	"fmt"
	"iter"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Controller makes claims.
type Controller struct {
	api      *apiserver.Component
	recorder *record.Recorder
	pods     *controller.Queue
	// byClaim has the pods by the claims that their volumes name, so that a claim that is deleted
	// is made again, or for the first time if it was somebody else's.
	byClaim map[controller.Key][]controller.Key
}

// New starts the controller, also on the pods that are there.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API, recorder: controller.NewRecorder(opts.Group, opts.API, "ephemeral_volume"), byClaim: map[controller.Key][]controller.Key{}}
	c.pods = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "ephemeral volumes", Delay: c.api.Delivery, Sync: c.sync})
	srv := c.api.Server()
	srv.OnChange(func(ch apiserver.Change) {
		switch ch.Type {
		case watch.Added:
			c.add(ch.New.(*v1.Pod))
		case watch.Deleted:
			c.remove(ch.New.(*v1.Pod))
		}
	}, apiserver.KindPod)
	srv.OnChange(func(ch apiserver.Change) {
		if ch.Type == watch.Deleted {
			for _, pod := range c.byClaim[controller.KeyOf(ch.New)] {
				c.pods.Add(pod)
			}
		}
	}, apiserver.KindPersistentVolumeClaim)
	for _, p := range srv.Pods() {
		c.add(p)
	}
	return c
}

// add queues a pod that has such volumes.
func (c *Controller) add(pod *v1.Pod) {
	key := controller.KeyOf(pod)
	for claim := range claimsOf(pod) {
		c.byClaim[claim] = append(c.byClaim[claim], key)
		c.pods.Add(key)
	}
}

// remove forgets a pod.
func (c *Controller) remove(pod *v1.Pod) {
	key := controller.KeyOf(pod)
	for claim := range claimsOf(pod) {
		left := slices.DeleteFunc(c.byClaim[claim], func(k controller.Key) bool { return k == key })
		if c.byClaim[claim] = left; len(left) == 0 {
			delete(c.byClaim, claim)
		}
	}
}

// claimsOf are the claims that a pod's ephemeral volumes name.
func claimsOf(pod *v1.Pod) iter.Seq[controller.Key] {
	return func(yield func(controller.Key) bool) {
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil && !yield(claimOf(pod, v)) {
				return
			}
		}
	}
}

// claimOf is the claim that an ephemeral volume names.
func claimOf(pod *v1.Pod, v *v1.Volume) controller.Key {
	return controller.Key{Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, v)}
}

func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	pod, ok := controller.Lookup[*v1.Pod](c.api, apiserver.KindPod, key)
	if !ok || pod.DeletionTimestamp != nil {
		return nil
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral == nil {
			continue
		}
		if err := c.claim(ctx, pod, v); err != nil {
			c.recorder.Event(controller.Reference(pod), v1.EventTypeWarning, "FailedBinding", fmt.Sprintf("ephemeral volume %s: %v", v.Name, err))
			return err
		}
	}
	return nil
}

// claim makes the claim of a volume, unless it is there.
func (c *Controller) claim(ctx context.Context, pod *v1.Pod, v *v1.Volume) error {
	key := claimOf(pod, v)
	if claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key); ok {
		return ephemeral.VolumeIsForPod(pod, claim) //nolint:wrapcheck // It names both.
	}
	t := v.Ephemeral.VolumeClaimTemplate
	made := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: t.Labels, Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, v1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: t.Spec,
	}
	if _, err := controller.Create(ctx, c.api, made); err != nil {
		return fmt.Errorf("create PVC %s: %w", key.Name, err)
	}
	return nil
}
