// Package volumeexpand says of claims that want to grow that somebody else has to see to it:
// volumes of drivers are expanded by their own sidecars. It mirrors upstream's
// pkg/controller/volume/expand, which has no plugin of its own left that could expand one.
package volumeexpand

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/kubelet/record"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Controller tells of claims.
type Controller struct {
	api      *apiserver.Component
	recorder *record.Recorder
	claims   *controller.Queue
}

// New starts the controller.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API, recorder: controller.NewRecorder(opts.Group, opts.API, "volume_expand")}
	c.claims = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "claims to expand", Delay: c.api.Delivery, Sync: c.sync})
	c.api.Server().OnChange(func(ch apiserver.Change) {
		claim := ch.New.(*v1.PersistentVolumeClaim)
		old, ok := ch.Old.(*v1.PersistentVolumeClaim)
		if !ok || ch.Type != watch.Modified || claim.Status.Phase != v1.ClaimBound {
			return
		}
		if larger(claim.Spec.Resources.Requests, old.Spec.Resources.Requests) || larger(claim.Status.Capacity, old.Status.Capacity) {
			c.claims.Add(controller.KeyOf(claim))
		}
	}, apiserver.KindPersistentVolumeClaim)
	return c
}

func larger(a, b v1.ResourceList) bool { return a.Storage().Cmp(*b.Storage()) > 0 }

func (c *Controller) sync(_ context.Context, key controller.Key) error {
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key)
	if ok && larger(claim.Spec.Resources.Requests, claim.Status.Capacity) {
		c.recorder.Event(controller.Reference(claim), v1.EventTypeNormal, "ExternalExpanding", "waiting for an external controller to expand this PVC")
	}
	return nil
}
