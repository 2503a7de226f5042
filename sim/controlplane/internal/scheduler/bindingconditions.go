package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// This file has devices' binding conditions (KEP-5007): a pod that was placed is bound when its
// devices' drivers say that they are ready for it.

// bindingPoll is how often a pod that was placed looks whether its devices are ready.
const bindingPoll = 5 * time.Second

var (
	errDeviceBindingTimeout = errors.New("device binding timeout")
	errDeviceBindingFailed  = errors.New("device binding failed")
)

// waitForDevices has a pod whose claims are reserved wait for its devices.
func waitForDevices(ctx context.Context, s *Scheduler, a *assumption) error {
	claims, err := claimsNow(s.store, a.reserved.claims)
	if err != nil || !slices.ContainsFunc(claims, hasBindingConditions) {
		return err
	}
	s.recorder.event(a.pod, v1.EventTypeNormal, "BindingConditionsPending", "Scheduling", "waiting for binding conditions for device on node "+a.node.name)
	timeout := s.classes.profiles.of(a.pod).deviceBindTimeout
	end := s.l.Now().Add(timeout)
	for {
		claims, err := claimsNow(s.store, a.reserved.claims)
		if err != nil {
			return err
		}
		if ready, err := devicesReady(claims, s.l.Now(), timeout); ready || err != nil {
			return err
		}
		if err := s.l.Sleep(ctx, min(bindingPoll, end.Sub(s.l.Now()))); err != nil {
			return fmt.Errorf("waiting for devices: %w", err)
		}
		if !s.l.Now().Before(end) {
			return fmt.Errorf("%w: %w", errDeviceBindingTimeout, context.DeadlineExceeded)
		}
	}
}

// claimsNow are claims as the API has them.
func claimsNow(store *apiserver.Store, claims []*resourcev1.ResourceClaim) ([]*resourcev1.ResourceClaim, error) {
	out := make([]*resourcev1.ResourceClaim, len(claims))
	for i, c := range claims {
		out[i], _ = store.Lookup(apiserver.KindResourceClaim, c.Namespace, c.Name).(*resourcev1.ResourceClaim)
		if out[i] == nil {
			return nil, fmt.Errorf("resourceclaim %q not found", c.Name)
		}
	}
	return out, nil
}

// devicesReady is isPodReadyForBinding.
func devicesReady(claims []*resourcev1.ResourceClaim, now time.Time, timeout time.Duration) (bool, error) {
	for _, c := range claims {
		switch ready, err := claimReady(c); {
		case err != nil:
			return false, err
		case !ready && claimTimedOut(c, now, timeout):
			return false, fmt.Errorf("%w: claim=%s", errDeviceBindingTimeout, c.Name)
		case !ready:
			return false, nil
		}
	}
	return true, nil
}

func hasBindingConditions(c *resourcev1.ResourceClaim) bool {
	return c.Status.Allocation != nil && slices.ContainsFunc(c.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return len(r.BindingConditions) > 0
	})
}

// claimReady reports whether all binding conditions of an allocated claim's devices are true. The
// error is that one has failed (isClaimReadyForBinding).
func claimReady(c *resourcev1.ResourceClaim) (bool, error) {
	if c.Status.Allocation == nil {
		return false, nil
	}
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if len(r.BindingConditions) == 0 {
			continue
		}
		j := slices.IndexFunc(c.Status.Devices, func(d resourcev1.AllocatedDeviceStatus) bool {
			return d.Driver == r.Driver && d.Pool == r.Pool && d.Device == r.Device && (d.ShareID == nil && r.ShareID == nil || d.ShareID != nil && r.ShareID != nil && *d.ShareID == string(*r.ShareID))
		})
		if j < 0 {
			return false, nil
		}
		is := c.Status.Devices[j].Conditions
		for _, name := range r.BindingFailureConditions {
			if f := meta.FindStatusCondition(is, name); f != nil && f.Status == metav1.ConditionTrue {
				return false, fmt.Errorf("%w: claim=%s, reason=%s, message=%q", errDeviceBindingFailed, c.Name, f.Reason, f.Message)
			}
		}
		if slices.ContainsFunc(r.BindingConditions, func(name string) bool { return !meta.IsStatusConditionTrue(is, name) }) {
			return false, nil
		}
	}
	return true, nil
}

// claimTimedOut reports whether a claim has waited too long for its devices (isClaimTimeout).
func claimTimedOut(c *resourcev1.ResourceClaim, now time.Time, timeout time.Duration) bool {
	a := c.Status.Allocation
	return a != nil && a.AllocationTimestamp != nil && hasBindingConditions(c) && a.AllocationTimestamp.Add(timeout).Before(now)
}

// givenUp reports whether the devices of an allocated claim will not be ready any more, so that
// others are to be tried.
func (cy *cycle) givenUp(c *resourcev1.ResourceClaim) bool {
	if !hasBindingConditions(c) {
		return false
	}
	ready, err := claimReady(c)
	return err != nil || !ready && claimTimedOut(c, cy.s.l.Now(), cy.c.profile.deviceBindTimeout)
}
