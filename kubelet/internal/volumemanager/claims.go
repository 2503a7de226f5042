package volumemanager

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/drydock-sim/drydock/kubelet/internal/volume/nodestorage"
)

// claimAnswer is what the API said of a claim of a pod: a volume or an error; neither
// as long as it is asked.
type claimAnswer struct {
	volume *v1.Volume
	err    error
}

// claimed is the volume that a claim of a pod is bound to; nil without an error while
// the API is asked. One that is wanted already stays as it is, an error is told once.
func (m *Manager) claimed(p *podVolumes, v *v1.Volume) (*v1.Volume, error) {
	if is := p.volume(v.Name); is != nil && is.desired {
		return is.spec, nil
	}
	if a := p.claims[v.Name]; a != nil {
		if a.volume != nil || a.err != nil {
			delete(p.claims, v.Name)
		}
		return a.volume, a.err
	}
	if m.o.Claims == nil {
		return nil, fmt.Errorf("volume %q: there is no API that has claims", v.Name)
	}
	if p.claims == nil {
		p.claims = map[string]*claimAnswer{}
	}
	a, pod := &claimAnswer{}, p.pod
	p.claims[v.Name] = a
	m.o.Group.Go("volume claim", func(ctx context.Context) {
		a.volume, a.err = m.askClaim(ctx, pod, v)
		m.populating.wake(0)
	})
	return nil, nil
}

// askClaim asks the API for the volume of a claim, under the name that the pod has for
// it. The errors are upstream's (getPVCExtractPV, getPVSpec).
func (m *Manager) askClaim(ctx context.Context, pod *v1.Pod, v *v1.Volume) (*v1.Volume, error) {
	name := ""
	if v.Ephemeral != nil {
		name = ephemeral.VolumeClaimName(pod, v)
	} else {
		name = v.PersistentVolumeClaim.ClaimName
	}
	fail := func(err error) (*v1.Volume, error) {
		return nil, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	claim, err := m.o.Claims.GetPersistentVolumeClaim(ctx, pod.Namespace, name)
	if err != nil {
		return fail(fmt.Errorf("failed to fetch PVC from API server: %w", err))
	}
	if v.Ephemeral != nil {
		if err := ephemeral.VolumeIsForPod(pod, claim); err != nil {
			return fail(err)
		}
	}
	switch {
	case claim.DeletionTimestamp != nil:
		return fail(errors.New("PVC is being deleted"))
	case claim.Status.Phase != v1.ClaimBound, claim.Spec.VolumeName == "":
		return fail(errors.New("PVC is not bound"))
	}
	pv, err := m.o.Claims.GetPersistentVolume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return fail(fmt.Errorf("failed to fetch PV %s from API server: %w", claim.Spec.VolumeName, err))
	}
	switch {
	case pv.Spec.ClaimRef == nil:
		return fail(fmt.Errorf("found PV object %s but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", pv.Name))
	case pv.Spec.ClaimRef.UID != claim.UID:
		return fail(fmt.Errorf("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", pv.Name, pv.Spec.ClaimRef.UID, claim.UID))
	}
	if own := nodestorage.Volume(v.Name, pv); own != nil {
		return own, nil
	}
	// Of volumes that somebody made, those that are directories of nodes are mounted.
	out := &v1.Volume{Name: v.Name, VolumeSource: v1.VolumeSource{HostPath: pv.Spec.HostPath}}
	if local := pv.Spec.Local; local != nil {
		out.HostPath = &v1.HostPathVolumeSource{Path: local.Path}
	}
	return out, nil
}
