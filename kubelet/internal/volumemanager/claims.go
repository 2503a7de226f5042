package volumemanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/nodestorage"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// claimAnswer is what the API said of a claim of a pod, or of a driver's volume: a volume or
// an error; neither as long as it is asked.
type claimAnswer struct {
	volume *v1.Volume
	err    error
	pv     *v1.PersistentVolume // that the claim is bound to; nil of a pod's own
	// Of a volume of a DeviceMounter, besides; claim is nil of a pod's own.
	driver   volume.DeviceMounter
	claim    *v1.PersistentVolumeClaim
	readOnly bool
	facts    volume.Facts
}

// claimed is what the API says of a claim of a pod, or of a driver's volume. It is asked
// once for each time that a pod is looked at; of one that is wanted already it is asked
// again only if a driver has it.
func (m *Manager) claimed(p *podVolumes, v *v1.Volume) *claimAnswer {
	if is := p.volume(v.Name); is != nil && is.desired && is.driver == nil {
		return &claimAnswer{volume: is.spec, pv: is.pv}
	}
	if a := p.claims[v.Name]; a != nil {
		return a
	}
	a, pod := &claimAnswer{}, p.pod
	if p.claims == nil {
		p.claims = map[string]*claimAnswer{}
	}
	p.claims[v.Name] = a
	if m.o.Claims == nil && v.CSI == nil {
		a.err = fmt.Errorf("volume %q: there is no API that has claims", v.Name)
		return a
	}
	m.o.Group.Go("volume claim", func(ctx context.Context) {
		*a = *m.ask(ctx, pod, v)
		m.populating.wake(0)
	})
	return a
}

// ask asks the API for what there is to know of a claim or a driver's volume.
func (m *Manager) ask(ctx context.Context, pod *v1.Pod, v *v1.Volume) *claimAnswer {
	a := &claimAnswer{volume: v}
	if v.CSI == nil {
		a.volume, a.err = m.askClaim(ctx, pod, v, a)
	} else if plugin, err := m.pluginOf(v); err != nil {
		a.err = err
	} else {
		a.driver, _ = plugin.(volume.DeviceMounter)
		a.readOnly = v.CSI.ReadOnly != nil && *v.CSI.ReadOnly
	}
	if a.err != nil || a.driver == nil {
		return a
	}
	if a.facts, a.err = a.driver.Facts(ctx, v, a.pv); a.err != nil {
		a.err = fmt.Errorf("volume %q: %w", v.Name, a.err)
	}
	return a
}

// askClaim asks the API for the volume of a claim, under the name that the pod has for
// it. The errors are upstream's (getPVCExtractPV, getPVSpec).
func (m *Manager) askClaim(ctx context.Context, pod *v1.Pod, v *v1.Volume, a *claimAnswer) (*v1.Volume, error) {
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
	for _, plugin := range m.o.Plugins {
		d, ok := plugin.(volume.DeviceMounter)
		if !ok || !d.HasVolume(pv) {
			continue
		}
		if err := fitsMode(pod, v.Name, pv); err != nil {
			return nil, err
		}
		a.driver, a.pv, a.claim = d, pv, claim
		a.readOnly = v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
		return v, nil
	}
	return plainVolume(v, pv, a), nil
}

// plainVolume is a PersistentVolume that is mounted as a pod's own would be: one that somebody
// made, a directory of the node or an export of NFS.
func plainVolume(v *v1.Volume, pv *v1.PersistentVolume, a *claimAnswer) *v1.Volume {
	out := &v1.Volume{Name: v.Name, VolumeSource: v1.VolumeSource{HostPath: pv.Spec.HostPath}}
	switch {
	case pv.Spec.Local != nil:
		out.HostPath = &v1.HostPathVolumeSource{Path: pv.Spec.Local.Path}
	case pv.Spec.NFS != nil:
		source := *pv.Spec.NFS
		source.ReadOnly = v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
		out.NFS, a.pv = &source, pv
	}
	return out
}

// fitsMode is the error of a block device that a container mounts, or of files that one has
// as a device (createVolumeSpec).
func fitsMode(pod *v1.Pod, name string, pv *v1.PersistentVolume) error {
	block := util.IsBlock(pv)
	for c := range kubecontainer.Containers(&pod.Spec) {
		switch {
		case block && slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == name }):
			return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeMounts", name, v1.PersistentVolumeBlock)
		case !block && slices.ContainsFunc(c.VolumeDevices, func(d v1.VolumeDevice) bool { return d.Name == name }):
			return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeDevices", name, v1.PersistentVolumeFilesystem)
		}
	}
	return nil
}
