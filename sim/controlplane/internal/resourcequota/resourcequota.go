// Package resourcequota counts what namespaces use of their ResourceQuotas: what
// admission charged for objects that are gone, or never came, is given back. It mirrors
// upstream's pkg/controller/resourcequota. Without quotas it listens to nothing else.
package resourcequota

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

const (
	// workers is --concurrent-resource-quota-syncs.
	workers = 5
	// resync is --resource-quota-sync-period: everything is counted anew.
	resync = 5 * time.Minute
)

// Controller is the resource quota controller.
type Controller struct {
	api     *apiserver.Component
	queue   *controller.Queue
	again   *loop.Timer
	listens bool // to all kinds
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API}
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "resource quota", Workers: workers, Delay: c.api.Delivery, Sync: c.sync})
	c.again = opts.Group.NewTimer("resource quota resync", c.resync)
	c.api.Server().OnChange(c.onQuota, apiserver.KindResourceQuota)
	return c
}

// onQuota counts for a quota that is new, or of which others limits count now.
func (c *Controller) onQuota(ch apiserver.Change) {
	if !c.listens {
		c.listens = true
		c.api.Server().OnChange(c.onChange)
	}
	if !c.again.Set() {
		c.again.Reset(resync)
	}
	q := ch.New.(*v1.ResourceQuota)
	if ch.Type != watch.Deleted && !equality.Semantic.DeepEqual(q.Spec.Hard, q.Status.Hard) {
		c.queue.Add(controller.KeyOf(q))
	}
}

// onChange counts for the quotas of a namespace in which something is used no more.
func (c *Controller) onChange(ch apiserver.Change) {
	namespace := ch.New.GetNamespace()
	if namespace == "" || ch.Kind == apiserver.KindEvent || ch.Kind == apiserver.KindLease {
		return
	}
	switch ch.Type {
	case watch.Deleted:
	case watch.Modified:
		if !frees(ch) {
			return
		}
	default:
		return
	}
	for _, q := range c.quotas() {
		if q.Namespace == namespace {
			c.queue.Add(controller.KeyOf(q))
		}
	}
}

// frees reports whether an update may have something used less: a pod has ended, or
// asks for less, a service or a claim has changed.
func frees(ch apiserver.Change) bool {
	switch is := ch.New.(type) {
	case *v1.Pod:
		was, ok := ch.Old.(*v1.Pod)
		ended := is.Status.Phase == v1.PodSucceeded || is.Status.Phase == v1.PodFailed
		return ok && (ended && was.Status.Phase != is.Status.Phase || ch.Subresource == "resize")
	case *v1.Service, *v1.PersistentVolumeClaim:
		return true
	}
	return false
}

// quotas are all there are.
func (c *Controller) quotas() []*v1.ResourceQuota {
	return apiserver.Objects[*v1.ResourceQuota](c.api.Server().Store(), apiserver.KindResourceQuota)
}

// resync counts for all quotas, while there are any.
func (c *Controller) resync() {
	list := c.quotas()
	for _, q := range list {
		c.queue.Add(controller.KeyOf(q))
	}
	if len(list) > 0 {
		c.again.Reset(resync)
	}
}

// sync writes what is used of a quota into its status.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	q, ok := controller.Lookup[*v1.ResourceQuota](c.api, apiserver.KindResourceQuota, key)
	if !ok {
		return nil
	}
	srv := c.api.Server()
	status := v1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: srv.Store().QuotaUsage(q, srv.Loop().Now())}
	if equality.Semantic.DeepEqual(q.Status, status) {
		return nil
	}
	next := *q
	next.Status = status
	if _, err := controller.Update(ctx, c.api, &next, "status"); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("status of quota %s: %w", key, err)
	}
	return nil
}
