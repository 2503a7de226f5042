package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// markPodsNotReady sets the condition Ready of a node's pods to False, one after
// the other (pkg/controller/util/node MarkPodsNotReady). Pods that are gone meanwhile are no
// error; other failures have the node tried again.
func (c *Controller) markPodsNotReady(ctx context.Context, node string) error {
	var errs []error
	for _, listed := range slices.Clone(c.api.Server().Store().PodsOnNode(node)) {
		pod := c.api.Server().Pod(listed.Namespace, listed.Name)
		if pod == nil || pod.UID != listed.UID || pod.Spec.NodeName != node {
			continue
		}
		unready := notReady(pod, c.l.Now())
		if unready == nil {
			continue
		}
		req := apiserver.Request{Verb: "update", Resource: "pods/status", Namespace: pod.Namespace, Name: pod.Name}
		err := c.api.Do(ctx, req, func(s *apiserver.Server) error { _, err := s.Update(unready, "status"); return err })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("updating the status of pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
		c.recorder.Event(controller.Reference(pod), v1.EventTypeWarning, "NodeNotReady", "Node is not ready")
	}
	return errors.Join(errs...)
}

// notReady returns the pod with its condition Ready False; nil when it is, or
// when there is none. Endpoints drop the pod by this condition, long before it is evicted.
func notReady(pod *v1.Pod, now time.Time) *v1.Pod {
	i := slices.IndexFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady })
	if i < 0 || pod.Status.Conditions[i].Status == v1.ConditionFalse {
		return nil
	}
	c := *pod
	c.Status.Conditions = slices.Clone(pod.Status.Conditions)
	cond := &c.Status.Conditions[i]
	cond.Status, cond.ObservedGeneration = v1.ConditionFalse, pod.Generation
	cond.LastTransitionTime = controller.WireTime(now)
	return &c
}
