package resourceclaim

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// syncClaim takes the reservations from pods that are done. With the last one the
// claim gives its devices back, and one that was made for a pod that is done goes.
func (c *Controller) syncClaim(ctx context.Context, key controller.Key) error {
	claim, ok := controller.Lookup[*resourcev1.ResourceClaim](c.api, apiserver.KindResourceClaim, key)
	if !ok {
		return nil
	}
	remaining := slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool {
		return r.APIGroup == "" && r.Resource == "pods" && c.gone(claim.Namespace, &r)
	})
	held := slices.Contains(claim.Finalizers, resourcev1.Finalizer)
	switch {
	case len(remaining) < len(claim.Status.ReservedFor):
		next := claim.DeepCopy()
		next.Status.ReservedFor = remaining
		if len(remaining) == 0 && held {
			next.Status.Allocation = nil
		}
		if err := c.release(ctx, next, true); err != nil {
			return fmt.Errorf("claim %s: %w", key, err)
		}
	case held && claim.DeletionTimestamp != nil && len(remaining) == 0:
		next := claim.DeepCopy()
		next.Status.Allocation = nil
		if err := c.release(ctx, next, claim.Status.Allocation != nil); err != nil {
			return fmt.Errorf("claim %s: %w", key, err)
		}
	}
	if len(remaining) > 0 || !c.ownerDone(claim) {
		return nil
	}
	if err := controller.Delete(ctx, c.api, claim, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete unused generated claim %s: %w", key, err)
	}
	return nil
}

// release writes a claim's status, if that has changed, and takes the finalizer off one
// that has no devices.
func (c *Controller) release(ctx context.Context, claim *resourcev1.ResourceClaim, changed bool) error {
	if changed {
		is, err := controller.Update(ctx, c.api, claim, "status")
		if err != nil {
			return fmt.Errorf("status: %w", err)
		}
		claim = is.DeepCopy()
	}
	if claim.Status.Allocation != nil || !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
		return nil
	}
	claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
	if _, err := controller.Update(ctx, c.api, claim, ""); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("finalizer: %w", err)
	}
	return nil
}

// gone reports whether the pod that a claim is reserved for will not run any more.
func (c *Controller) gone(namespace string, r *resourcev1.ResourceClaimConsumerReference) bool {
	p := c.api.Server().Pod(namespace, r.Name)
	return p == nil || p.UID != r.UID || done(p)
}

// ownerDone reports whether the pod that a claim was made for will not run any more.
// Claims of pods that are gone are the garbage collector's.
func (c *Controller) ownerDone(claim *resourcev1.ResourceClaim) bool {
	for _, o := range claim.OwnerReferences {
		if o.Controller == nil || !*o.Controller || o.APIVersion != "v1" || o.Kind != "Pod" {
			continue
		}
		p := c.api.Server().Pod(claim.Namespace, o.Name)
		return p != nil && (p.UID != o.UID || done(p))
	}
	return false
}
