package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelper "k8s.io/component-helpers/storage/volume"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// volumeBindPoll is how often a pod that was placed looks whether it has its volumes.
const volumeBindPoll = time.Second

// reserveVolumes is Reserve: volumes are given to the pod's claims from now on, and nodes to
// those that are to be provisioned, though no object says so yet. Nil: there is nothing to do.
func (cy *cycle) reserveVolumes(n *nodeInfo) *volumePlan {
	if cy.volumes == nil {
		return nil
	}
	plan := cy.volumes.plans[n]
	if plan == nil || len(plan.bindings)+len(plan.provision) == 0 {
		return nil
	}
	for _, b := range plan.bindings {
		cy.s.volumes.taken[b.pv.Name] = b.claim.UID
	}
	for _, c := range plan.provision {
		cy.s.volumes.selected[c.UID] = n.name
	}
	return plan
}

// unreserveVolumes is Unreserve.
func (t *volumeTable) unreserveVolumes(plan *volumePlan) {
	if plan == nil {
		return
	}
	for _, b := range plan.bindings {
		delete(t.taken, b.pv.Name)
	}
	for _, c := range plan.provision {
		delete(t.selected, c.UID)
	}
	t.s.version++
}

// preBindVolumes is PreBind: what was decided is written, and the pod waits until its claims
// are bound.
func (t *volumeTable) preBindVolumes(ctx context.Context, a *assumption) error {
	if err := t.writeVolumes(ctx, a); err != nil {
		return err
	}
	end := t.s.l.Now().Add(t.s.classes.profiles.of(a.pod).volumeBindTimeout)
	for {
		if err := t.s.l.Sleep(ctx, volumeBindPoll); err != nil {
			return fmt.Errorf("binding volumes: %w", err)
		}
		if t.s.l.Now().After(end) {
			return fmt.Errorf("binding volumes: %w", context.DeadlineExceeded)
		}
		switch done, err := t.volumesBound(a); {
		case err != nil:
			return fmt.Errorf("binding volumes: %w", err)
		case done:
			return nil
		}
	}
}

// writeVolumes is bindAPIUpdate.
func (t *volumeTable) writeVolumes(ctx context.Context, a *assumption) error {
	for i := range a.volumes.bindings {
		b := &a.volumes.bindings[i]
		next, _, err := volumehelper.GetBindVolumeToClaim(b.pv, b.claim)
		if err == nil {
			next, err = controller.Update(ctx, t.s.opts.API, next, "")
		}
		if err != nil {
			return err //nolint:wrapcheck // Its text goes into an event.
		}
		b.pv = next
	}
	for i, c := range a.volumes.provision {
		next := c.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, volumehelper.AnnSelectedNode, a.node.name)
		is, err := controller.Update(ctx, t.s.opts.API, next, "")
		if err != nil {
			return err //nolint:wrapcheck // Its text goes into an event.
		}
		a.volumes.provision[i] = is
	}
	return nil
}

// volumesBound reports whether all claims of a pod are bound, or why they won't be
// (checkBindings).
func (t *volumeTable) volumesBound(a *assumption) (bool, error) {
	switch {
	case a.node.node == nil:
		return false, fmt.Errorf("failed to get node %q: node %q not found", a.node.name, a.node.name)
	case t.s.server.Pod(a.pod.Namespace, a.pod.Name) == nil:
		return false, fmt.Errorf("pod does not exist any more: pod %q not found", a.pod.Name)
	}
	for _, b := range a.volumes.bindings {
		pv, _ := t.s.store.Lookup(apiserver.KindPersistentVolume, "", b.pv.Name).(*v1.PersistentVolume)
		if pv == nil {
			return false, fmt.Errorf("failed to check binding: could not find v1.PersistentVolume %q", b.pv.Name)
		}
		if err := volumehelper.CheckNodeAffinity(pv, a.node.node.Labels); err != nil {
			return false, fmt.Errorf("pv %q node affinity doesn't match node %q: %w", pv.Name, a.node.name, err)
		}
		if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
			return false, fmt.Errorf("ClaimRef got reset for pv %q", pv.Name)
		}
		if done, _, err := t.fullyBound(b.claim); !done {
			return false, err
		}
	}
	for _, c := range a.volumes.provision {
		done, claim, err := t.fullyBound(c)
		switch {
		case err != nil:
			return false, err
		case claim.Annotations == nil:
			return false, fmt.Errorf("selectedNode annotation reset for PVC %q", c.Name)
		case claim.Annotations[volumehelper.AnnSelectedNode] != a.node.name:
			return false, fmt.Errorf("provisioning failed for PVC %q", c.Name)
		}
		if pv, _ := t.s.store.Lookup(apiserver.KindPersistentVolume, "", claim.Spec.VolumeName).(*v1.PersistentVolume); pv != nil {
			if err := volumehelper.CheckNodeAffinity(pv, a.node.node.Labels); err != nil {
				return false, fmt.Errorf("pv %q node affinity doesn't match node %q: %w", pv.Name, a.node.name, err)
			}
		}
		if !done {
			return false, nil
		}
	}
	return true, nil
}

// fullyBound reports whether a claim is bound, as it is now.
func (t *volumeTable) fullyBound(c *v1.PersistentVolumeClaim) (bool, *v1.PersistentVolumeClaim, error) {
	claim, _ := t.s.store.Lookup(apiserver.KindPersistentVolumeClaim, c.Namespace, c.Name).(*v1.PersistentVolumeClaim)
	if claim == nil || claim.UID != c.UID {
		return false, nil, errors.New("failed to check binding: could not find v1.PersistentVolumeClaim " + fmt.Sprintf("%q", controller.KeyOf(c)))
	}
	return claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, volumehelper.AnnBindCompleted), claim, nil
}

// usesClaim reports whether a pod names a claim.
func usesClaim(p *v1.Pod, claim *v1.PersistentVolumeClaim) bool {
	return p.Namespace == claim.Namespace && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return controller.ClaimOf(p, &v) == claim.Name })
}
