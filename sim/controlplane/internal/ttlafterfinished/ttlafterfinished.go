// Package ttlafterfinished deletes Jobs that have ended when their
// ttlSecondsAfterFinished are over. It mirrors upstream's
// pkg/controller/ttlafterfinished.
package ttlafterfinished

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// workers is --concurrent-ttl-after-finished-syncs.
const workers = 5

// Controller is the TTL-after-finished controller. A job that waits for its time
// is one timer of the queue.
type Controller struct {
	api   *apiserver.Component
	l     *loop.Loop
	queue *controller.Queue
}

// New starts a controller.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API, l: opts.Group.Loop()}
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: "job ttl", Workers: workers, Delay: c.api.Delivery, Sync: c.sync})
	c.api.Server().OnChange(func(ch apiserver.Change) {
		if ch.Type != watch.Deleted {
			c.add(ch.New.(*batchv1.Job))
		}
	}, apiserver.KindJob)
	return c
}

// add queues a job that has ended and has a time to live.
func (c *Controller) add(job *batchv1.Job) {
	if _, ok := expiry(job); ok && job.DeletionTimestamp == nil {
		c.queue.Add(controller.KeyOf(job))
	}
}

// sync deletes a job whose time is over; dependents go first.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	job, ok := controller.Lookup[*batchv1.Job](c.api, apiserver.KindJob, key)
	if !ok || !c.expired(job, key) {
		return nil
	}
	// A job may have been given a new time to live that the cache does not show.
	fresh, err := controller.Get[*batchv1.Job](ctx, c.api, apiserver.KindJob, key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting job %s: %w", key, err)
	}
	if !c.expired(fresh, key) {
		return nil
	}
	policy := metav1.DeletePropagationForeground
	err = controller.Delete(ctx, c.api, fresh, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &fresh.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting job %s: %w", key, err)
	}
	return nil
}

// expired reports whether a job is to be deleted now; one that is to be later is
// put into the queue.
func (c *Controller) expired(job *batchv1.Job, key controller.Key) bool {
	at, ok := expiry(job)
	if !ok || job.DeletionTimestamp != nil {
		return false
	}
	if left := at.Sub(c.l.Now()); left > 0 {
		c.queue.AddAfter(key, left)
		return false
	}
	return true
}

// expiry returns when a job is to be deleted; false for one that has not ended
// or has no time to live.
func expiry(job *batchv1.Job) (time.Time, bool) {
	if job.Spec.TTLSecondsAfterFinished == nil {
		return time.Time{}, false
	}
	for i := range job.Status.Conditions {
		cond := &job.Status.Conditions[i]
		if (cond.Type == batchv1.JobComplete || cond.Type == batchv1.JobFailed) && cond.Status == v1.ConditionTrue {
			return cond.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true
		}
	}
	return time.Time{}, false
}
