package disruption

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// noteStale has a pod looked at again that was marked as disrupted but may not
// be deleted after all. It is called for each change of a pod; lists that share their memory are
// equal, which is nearly always so.
func (c *Controller) noteStale(old, pod *v1.Pod) {
	if a, b := old.Status.Conditions, pod.Status.Conditions; len(b) == 0 || len(a) == len(b) && &a[0] == &b[0] {
		return
	}
	if wait, ok := c.staleAfter(pod); ok {
		c.stale.AddAfter(controller.KeyOf(pod), max(wait, c.api.Delivery()))
	}
}

// staleAfter returns how long a pod keeps its condition DisruptionTarget; false
// for one that has none, or whose condition is right
// (nonTerminatingPodHasStaleDisruptionCondition). The kubelet's own terminations are for good;
// their condition stays with the failed pod.
func (c *Controller) staleAfter(pod *v1.Pod) (time.Duration, bool) {
	if pod.DeletionTimestamp != nil || controller.PodTerminated(pod) {
		return 0, false
	}
	for i := range pod.Status.Conditions {
		cond := &pod.Status.Conditions[i]
		if cond.Type == v1.DisruptionTarget && cond.Status == v1.ConditionTrue && cond.Reason != v1.PodReasonTerminationByKubelet {
			return max(StalePodDisruptionTimeout-c.l.Since(cond.LastTransitionTime.Time), 0), true
		}
	}
	return 0, false
}

// syncStale sets the condition of a pod that was not deleted to False. It looks again rather than
// trusting the timer: the condition may have been renewed.
func (c *Controller) syncStale(ctx context.Context, key controller.Key) error {
	pod := c.api.Server().Pod(key.Namespace, key.Name)
	if pod == nil {
		return nil
	}
	wait, ok := c.staleAfter(pod)
	if !ok {
		return nil
	}
	if wait > 0 {
		c.stale.AddAfter(key, wait)
		return nil
	}
	st, changed := controller.WithPodCondition(&pod.Status, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionFalse, ObservedGeneration: pod.Generation}, c.l.Now())
	if !changed {
		return nil
	}
	update := *pod
	update.Status = st
	_, err := controller.Update(ctx, c.api, &update, "status")
	return err
}
