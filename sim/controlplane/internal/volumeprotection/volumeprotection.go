// Package volumeprotection takes the finalizers off volumes and claims that are being
// deleted when nothing uses them any more. It mirrors upstream's
// pkg/controller/volume/pvcprotection and pvprotection.
//
// A pod's change costs a comparison while no claim waits for its pods.
package volumeprotection

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Controller protects the objects of one kind.
type Controller struct {
	api       *apiserver.Component
	queue     *controller.Queue
	kind      apiserver.Kind
	finalizer string
	// used reports whether something uses an object that is being deleted.
	used func(ctx context.Context, obj apiserver.Object) (bool, error)
	// waiting are the claims that were used when they were looked at last.
	waiting map[controller.Key]struct{}
}

// NewVolumes starts the protection of volumes: one that is bound stays.
func NewVolumes(opts controller.Options) *Controller {
	return start(opts, apiserver.KindPersistentVolume, apiserver.VolumeProtection, func(_ context.Context, obj apiserver.Object) (bool, error) {
		return obj.(*v1.PersistentVolume).Status.Phase == v1.VolumeBound, nil
	})
}

// NewClaims starts the protection of claims: one that a pod on a node names stays.
func NewClaims(opts controller.Options) *Controller {
	c := start(opts, apiserver.KindPersistentVolumeClaim, apiserver.ClaimProtection, nil)
	c.waiting = map[controller.Key]struct{}{}
	c.used = c.claimUsed
	c.api.Server().OnChange(c.podChanged, apiserver.KindPod)
	return c
}

func start(opts controller.Options, kind apiserver.Kind, finalizer string, used func(context.Context, apiserver.Object) (bool, error)) *Controller {
	c := &Controller{api: opts.API, kind: kind, finalizer: finalizer, used: used}
	c.queue = controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: string(kind) + " protection", Workers: 1, Delay: c.api.Delivery, Sync: c.sync})
	c.api.Server().OnChange(func(ch apiserver.Change) {
		switch {
		case ch.Type == watch.Deleted:
			delete(c.waiting, controller.KeyOf(ch.New))
		case c.candidate(ch.New) || c.unprotected(ch.New):
			c.queue.Add(controller.KeyOf(ch.New))
		}
	}, kind)
	return c
}

// candidate reports whether an object is held by the finalizer alone or among others.
func (c *Controller) candidate(obj apiserver.Object) bool {
	return obj.GetDeletionTimestamp() != nil && slices.Contains(obj.GetFinalizers(), c.finalizer)
}

// unprotected reports whether somebody took the finalizer off an object that lives.
func (c *Controller) unprotected(obj apiserver.Object) bool {
	return obj.GetDeletionTimestamp() == nil && !slices.Contains(obj.GetFinalizers(), c.finalizer)
}

// sync is processPV and processPVC.
func (c *Controller) sync(ctx context.Context, key controller.Key) error {
	obj, ok := controller.Lookup[apiserver.Object](c.api, c.kind, key)
	if !ok {
		return nil
	}
	switch {
	case c.unprotected(obj):
		return c.write(ctx, obj, append(slices.Clone(obj.GetFinalizers()), c.finalizer))
	case !c.candidate(obj):
		return nil
	}
	used, err := c.used(ctx, obj)
	if err != nil || used {
		return err
	}
	return c.write(ctx, obj, slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == c.finalizer }))
}

// write gives an object other finalizers.
func (c *Controller) write(ctx context.Context, obj apiserver.Object, finalizers []string) error {
	next := obj.DeepCopyObject().(apiserver.Object)
	next.SetFinalizers(finalizers)
	if _, err := controller.Update(ctx, c.api, next, ""); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s: %w", c.kind, controller.KeyOf(obj), err)
	}
	return nil
}

// claimUsed looks at the pods that are known, and asks the API before it says that
// there are none: a pod that came just now counts.
func (c *Controller) claimUsed(ctx context.Context, obj apiserver.Object) (bool, error) {
	claim := obj.(*v1.PersistentVolumeClaim)
	key := controller.KeyOf(claim)
	uses := func(p *v1.Pod) bool { return usesClaim(p, claim) }
	if slices.ContainsFunc(c.api.Server().Store().PodsInNamespace(claim.Namespace), uses) {
		c.waiting[key] = struct{}{}
		return true, nil
	}
	used := false
	err := c.api.Do(ctx, apiserver.Request{Verb: "list", Resource: "pods", Namespace: claim.Namespace}, func(s *apiserver.Server) error {
		used = slices.ContainsFunc(s.Store().PodsInNamespace(claim.Namespace), uses)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("pods of claim %s: %w", key, err)
	}
	if used {
		c.waiting[key] = struct{}{}
	} else {
		delete(c.waiting, key)
	}
	return used, nil
}

// usesClaim reports whether a pod that a kubelet has seen names a claim
// (podUsesPVCForDeletion).
func usesClaim(pod *v1.Pod, claim *v1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	done := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool {
		return controller.ClaimOf(pod, &v) == claim.Name && (v.Ephemeral == nil || !done && metav1.IsControlledBy(claim, pod))
	})
}

// podChanged queues the claims that may have waited for a pod.
func (c *Controller) podChanged(ch apiserver.Change) {
	if len(c.waiting) == 0 {
		return
	}
	pod := ch.New.(*v1.Pod)
	if ch.Type != watch.Deleted && !controller.PodTerminated(pod) && pod.Spec.NodeName != "" {
		return
	}
	for i := range pod.Spec.Volumes {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: controller.ClaimOf(pod, &pod.Spec.Volumes[i])}
		if _, ok := c.waiting[key]; ok {
			c.queue.Add(key)
		}
	}
}
