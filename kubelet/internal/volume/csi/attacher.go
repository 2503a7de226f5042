package csi

import (
	"context"
	"errors"
	"fmt"
	"path"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// globalMount is the directory below a volume's where it is mounted for the node.
const globalMount = "globalmount"

// wrap puts words before an error, which stays what it is.
func wrap(words string, err error) error { return fmt.Errorf("%s: %w", text("%s", words), err) }

// publishContext is what the attacher said of a volume (csiAttacher.GetPublishInfo).
func (p *Plugin) publishContext(ctx context.Context, driver, handle string) (map[string]string, error) {
	name := attachmentName(handle, driver, p.drivers.o.NodeName)
	a, err := p.drivers.o.Client.GetVolumeAttachment(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, errors.New(text("attachment [%s] not found", name))
	}
	if err != nil {
		return nil, err
	}
	return a.Status.AttachmentMetadata, nil
}

// MountDevice implements volume.DeviceMounter: it stages a volume (csiAttacher.MountDevice).
func (p *Plugin) MountDevice(ctx context.Context, r *volume.Request, attached bool) error {
	source := r.PV.Spec.CSI
	c, err := p.drivers.client(ctx, source.Driver)
	if err != nil {
		return wrap("attacher.MountDevice failed to create newCsiDriverClient", err)
	}
	defer c.close()
	stages, err := c.can(ctx, csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	if err != nil {
		return err
	}
	secrets, err := p.secret(ctx, source.NodeStageSecretRef)
	if err != nil {
		return fmt.Errorf("fetching NodeStageSecretRef %s/%s failed: %w", source.NodeStageSecretRef.Namespace, source.NodeStageSecretRef.Name, err)
	}
	var said map[string]string
	if attached {
		if said, err = p.publishContext(ctx, source.Driver, source.VolumeHandle); err != nil {
			return err
		}
	}
	target, err := p.makeDevice(r.PV)
	if err != nil {
		return err
	}
	if !stages {
		return nil
	}
	group, err := c.mountGroup(ctx, r)
	if err != nil {
		return err
	}
	how, err := c.capability(ctx, r.PV, source.FSType, group)
	if err != nil {
		return err
	}
	_, err = within(ctx, func(ctx context.Context) (*csispec.NodeStageVolumeResponse, error) {
		return c.NodeStageVolume(ctx, &csispec.NodeStageVolumeRequest{
			VolumeId: source.VolumeHandle, PublishContext: said, StagingTargetPath: target, VolumeCapability: how,
			Secrets: secrets, VolumeContext: source.VolumeAttributes,
		})
	})
	err = progress(err)
	var uncertain *volume.UncertainError
	if err != nil && !errors.As(err, &uncertain) && !isBlock(r.PV) {
		p.removeDevice(path.Dir(target))
	}
	return err
}

// makeDevice notes a volume on the node, and returns where it is staged.
func (p *Plugin) makeDevice(pv *v1.PersistentVolume) (string, error) {
	if isBlock(pv) {
		return p.stageBlock(pv)
	}
	dir := p.deviceDir(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	target := path.Join(dir, globalMount)
	if err := p.host.FS.MkdirAll(target, 0o750); err != nil {
		return "", wrap(fmt.Sprintf("attacher.MountDevice failed to create dir %q", target), err)
	}
	if err := p.saveData(dir, volumeData{Driver: pv.Spec.CSI.Driver, Handle: pv.Spec.CSI.VolumeHandle}); err != nil {
		return "", wrap("failed to save volume info data", err)
	}
	return target, nil
}

// stagingPath is where a volume is staged.
func (p *Plugin) stagingPath(pv *v1.PersistentVolume) string {
	if isBlock(pv) {
		b := p.blockPaths(pv.Name)
		return b.staging
	}
	return path.Join(p.deviceDir(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle), globalMount)
}

// mountGroup is the pod's fsGroup, if it is the driver that gives the files to it.
func (c *client) mountGroup(ctx context.Context, r *volume.Request) (*int64, error) {
	can, err := c.can(ctx, csispec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP)
	if err != nil || !can {
		return nil, err
	}
	return r.FSGroup, nil
}

// removeDevice removes what MountDevice made. What is still mounted stays.
func (p *Plugin) removeDevice(dir string) {
	p.discard(dir)
	for _, name := range []string{globalMount, dataFile, ""} {
		if err := p.host.FS.Remove(path.Join(dir, name)); err != nil {
			p.host.Logf("%s", text("%v", err))
			return
		}
	}
}

// UnmountDevice implements volume.DeviceMounter: it undoes the staging
// (csiAttacher.UnmountDevice).
func (p *Plugin) UnmountDevice(ctx context.Context, d volume.Device) error {
	driver, handle := split(d.Name)
	c, err := p.drivers.client(ctx, driver)
	if err != nil {
		return wrap("attacher.UnmountDevice failed to create newCsiDriverClient", err)
	}
	defer c.close()
	stages, err := c.can(ctx, csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	if err != nil {
		return wrap("attacher.UnmountDevice failed to check whether STAGE_UNSTAGE_VOLUME set", err)
	}
	if d.Block {
		return p.unstageBlock(ctx, d.Volume, handle, c, stages)
	}
	dir := p.deviceDir(driver, handle)
	if stages {
		_, err = within(ctx, func(ctx context.Context) (*csispec.NodeUnstageVolumeResponse, error) {
			return c.NodeUnstageVolume(ctx, &csispec.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: path.Join(dir, globalMount)})
		})
		if err != nil {
			return wrap("attacher.UnmountDevice failed", err)
		}
	}
	p.removeDevice(dir)
	return nil
}
