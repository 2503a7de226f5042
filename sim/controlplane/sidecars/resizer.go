package sidecars

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// resizer makes volumes larger whose claims ask for more than they have.
type resizer struct {
	*sidecar
	claims *controller.Queue
	// slow says until when a claim waits whose size is infeasible (pkg/slowset).
	slow map[controller.Key]time.Time
}

func startResizer(s *sidecar) {
	r := &resizer{sidecar: s, slow: map[controller.Key]time.Time{}}
	r.claims = s.queue("claims to resize", r.sync)
	srv := s.api.Server()
	add := func(claim *v1.PersistentVolumeClaim) {
		if grows(claim) {
			r.claims.Add(controller.KeyOf(claim))
		}
	}
	srv.OnChange(func(ch apiserver.Change) {
		claim := ch.New.(*v1.PersistentVolumeClaim)
		if ch.Type == watch.Deleted {
			delete(r.slow, controller.KeyOf(claim))
			return
		}
		add(claim)
	}, apiserver.KindPersistentVolumeClaim)
	for _, claim := range apiserver.Objects[*v1.PersistentVolumeClaim](srv.Store(), apiserver.KindPersistentVolumeClaim) {
		add(claim)
	}
}

// grows reports whether a claim asks for more than it has (pvcNeedResize).
func grows(claim *v1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == v1.ClaimBound && storage(claim.Spec.Resources.Requests) > storage(claim.Status.Capacity)
}

// sync is expandAndRecover: the size that is being reached, and how far it got, stand in the
// claim, so that a user may ask for less again while the driver has not got there. A size that the
// driver called infeasible twice is tried again each retryMax.
func (r *resizer) sync(ctx context.Context, key controller.Key) error {
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](r.api, apiserver.KindPersistentVolumeClaim, key)
	if !ok || !grows(claim) {
		return nil
	}
	pv, ok := controller.Lookup[*v1.PersistentVolume](r.api, apiserver.KindPersistentVolume, controller.Key{Name: claim.Spec.VolumeName})
	if !ok || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != r.driver.DriverName() {
		return nil
	}
	want := claim.Spec.Resources.Requests[v1.ResourceStorage]
	state := claim.Status.AllocatedResourceStatuses[v1.ResourceStorage]
	if has := pv.Spec.Capacity[v1.ResourceStorage]; has.Cmp(want) >= 0 && (state == v1.PersistentVolumeClaimNodeResizePending ||
		state == v1.PersistentVolumeClaimNodeResizeInProgress || state == v1.PersistentVolumeClaimNodeResizeInfeasible) {
		return nil // it is the node's turn
	}
	failed := state == v1.PersistentVolumeClaimControllerResizeInfeasible
	tried := claim.Status.AllocatedResources[v1.ResourceStorage]
	same := tried.Cmp(want) == 0
	wait := r.slow[key].Sub(r.g.Loop().Now())
	switch {
	case wait > 0 && same:
		r.claims.AddAfter(key, wait)
		return nil
	case wait <= 0 && failed:
		r.slow[key] = r.g.Loop().Now().Add(retryMax)
	}
	// What failed is not said to be in progress again: the change would have it tried at once.
	if !failed || !same {
		if _, err := r.say(ctx, key, &want, v1.PersistentVolumeClaimControllerResizeInProgress, v1.PersistentVolumeClaimResizing, ""); err != nil {
			return err
		}
	}
	r.event(claim, v1.EventTypeNormal, "Resizing", "External resizer is resizing volume "+pv.Name)
	block := claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == v1.PersistentVolumeBlock
	onNode, err := r.driver.ExpandVolume(ctx, pv.Spec.CSI.VolumeHandle, block, want.Value())
	if !infeasible(err) {
		delete(r.slow, key)
	}
	if err != nil {
		r.event(claim, v1.EventTypeWarning, "VolumeResizeFailed", fmt.Sprintf("resize volume %q by resizer %q failed: %v", pv.Name, r.driver.DriverName(), err))
		if infeasible(err) {
			if _, err := r.say(ctx, key, &want, v1.PersistentVolumeClaimControllerResizeInfeasible, v1.PersistentVolumeClaimResizing, ""); err != nil {
				return err
			}
		}
		return fmt.Errorf("claim %s: %w", key, err)
	}
	if _, err := edit(ctx, r.sidecar, apiserver.KindPersistentVolume, controller.KeyOf(pv), "", func(pv *v1.PersistentVolume) bool {
		if has := pv.Spec.Capacity[v1.ResourceStorage]; has.Cmp(want) >= 0 {
			return false
		}
		pv.Spec.Capacity[v1.ResourceStorage] = want
		return true
	}); err != nil {
		return err
	}
	if onNode && !block {
		r.event(claim, v1.EventTypeNormal, "FileSystemResizeRequired", "Require file system resize of volume on node")
		_, err = r.say(ctx, key, &want, v1.PersistentVolumeClaimNodeResizePending, v1.PersistentVolumeClaimFileSystemResizePending,
			"Waiting for user to (re-)start a pod to finish file system resize of volume on node.")
		return err
	}
	_, err = edit(ctx, r.sidecar, apiserver.KindPersistentVolumeClaim, key, "status", func(c *v1.PersistentVolumeClaim) bool {
		c.Status.Capacity[v1.ResourceStorage] = want
		c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool { return resizing(c.Type) })
		delete(c.Status.AllocatedResourceStatuses, v1.ResourceStorage)
		return true
	})
	if err == nil {
		r.event(claim, v1.EventTypeNormal, "VolumeResizeSuccessful", "Resize volume succeeded")
	}
	return err
}

// say writes into a claim how far it got.
func (r *resizer) say(ctx context.Context, key controller.Key, size *resource.Quantity, state v1.ClaimResourceStatus, condition v1.PersistentVolumeClaimConditionType, message string) (*v1.PersistentVolumeClaim, error) {
	return edit(ctx, r.sidecar, apiserver.KindPersistentVolumeClaim, key, "status", func(c *v1.PersistentVolumeClaim) bool {
		was := c.Status.AllocatedResources[v1.ResourceStorage]
		if c.Status.AllocatedResourceStatuses[v1.ResourceStorage] == state && was.Cmp(*size) == 0 {
			return false
		}
		if c.Status.AllocatedResources == nil {
			c.Status.AllocatedResources = v1.ResourceList{}
		}
		if c.Status.AllocatedResourceStatuses == nil {
			c.Status.AllocatedResourceStatuses = map[v1.ResourceName]v1.ClaimResourceStatus{}
		}
		c.Status.AllocatedResources[v1.ResourceStorage] = *size
		c.Status.AllocatedResourceStatuses[v1.ResourceStorage] = state
		c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool { return resizing(c.Type) })
		c.Status.Conditions = append(c.Status.Conditions, v1.PersistentVolumeClaimCondition{
			Type: condition, Status: v1.ConditionTrue, LastTransitionTime: controller.WireTime(r.g.Loop().Now()), Message: message,
		})
		return true
	})
}

func resizing(t v1.PersistentVolumeClaimConditionType) bool {
	return t == v1.PersistentVolumeClaimResizing || t == v1.PersistentVolumeClaimFileSystemResizePending
}

// infeasible reports whether an expansion can't succeed by being tried again (isInfeasibleError).
func infeasible(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.InvalidArgument, codes.OutOfRange:
		return true
	}
	return false
}
