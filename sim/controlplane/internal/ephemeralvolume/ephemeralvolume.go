// Package ephemeralvolume makes the claims of generic ephemeral volumes, which go with their
// pods. It mirrors upstream's pkg/controller/volume/ephemeral.
package ephemeralvolume

import (
	"context"
	"fmt"

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
	// claimed are the pods by the claims that were made for them, so that one that is deleted
	// is made again.
	claimed map[controller.Key]controller.Key
}

// New starts the controller, also on the pods that are there.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API, recorder: controller.NewRecorder(opts.Group, opts.API, "ephemeral_volume"), claimed: map[controller.Key]controller.Key{}}
	c.pods = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "ephemeral volumes", Delay: c.api.Delivery, Sync: c.sync})
	srv := c.api.Server()
	srv.OnChange(func(ch apiserver.Change) {
		if ch.Type == watch.Added {
			c.add(ch.New.(*v1.Pod))
		}
	}, apiserver.KindPod)
	srv.OnChange(func(ch apiserver.Change) {
		if ch.Type != watch.Deleted {
			return
		}
		key := controller.KeyOf(ch.New)
		if pod, ok := c.claimed[key]; ok {
			delete(c.claimed, key)
			c.pods.Add(pod)
		}
	}, apiserver.KindPersistentVolumeClaim)
	for _, p := range srv.Pods() {
		c.add(p)
	}
	return c
}

// add queues a pod that has such volumes.
func (c *Controller) add(pod *v1.Pod) {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Ephemeral != nil {
			c.pods.Add(controller.KeyOf(pod))
			return
		}
	}
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
	key := controller.Key{Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, v)}
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
	c.claimed[key] = controller.KeyOf(pod)
	return nil
}
