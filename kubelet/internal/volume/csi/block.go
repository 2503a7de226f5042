package csi

import (
	"context"
	"errors"
	"io/fs"
	"path"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// blockPaths are where a volume that is a block device is (csi_block.go describes them).
type blockPaths struct{ staging, publishDir, volume string }

func (p *Plugin) blockPaths(name string) blockPaths {
	dir := path.Join(path.Dir(p.host.PodsDir), "plugins", PluginName, "volumeDevices")
	return blockPaths{path.Join(dir, "staging", name), path.Join(dir, "publish", name), path.Join(dir, name)}
}

func (b *blockPaths) publish(pod types.UID) string { return path.Join(b.publishDir, string(pod)) }

// global is the directory that has an entry for each pod that uses the device.
func (b *blockPaths) global() string { return path.Join(b.volume, "dev") }
func (b *blockPaths) data() string   { return path.Join(b.volume, "data") }

// podDevices is the directory with links to a pod's block devices.
func (p *Plugin) podDevices(uid types.UID) string {
	return path.Join(p.host.PodDir(uid), "volumeDevices", volume.EscapeName(PluginName))
}

// MapPaths implements volume.DeviceMounter.
func (p *Plugin) MapPaths(uid types.UID, pv *v1.PersistentVolume) (global, pod string) {
	b := p.blockPaths(pv.Name)
	return b.global(), p.podDevices(uid)
}

// stageBlock prepares what a device is staged in, and returns where.
func (p *Plugin) stageBlock(pv *v1.PersistentVolume) (string, error) {
	b, source := p.blockPaths(pv.Name), pv.Spec.CSI
	if err := p.host.FS.MkdirAll(b.data(), 0o750); err != nil {
		return "", wrap("failed to create data dir", err)
	}
	data := volumeData{
		AttachmentID: attachmentName(source.VolumeHandle, source.Driver, p.drivers.o.NodeName), Driver: source.Driver,
		Node: p.drivers.o.NodeName, SpecVolume: pv.Name, Handle: source.VolumeHandle,
	}
	if err := p.saveData(b.data(), data); err != nil {
		return "", wrap("failed to save volume info data", err)
	}
	if err := p.host.FS.MkdirAll(b.staging, 0o750); err != nil {
		return "", wrap("blockMapper.stageVolumeForBlock failed to create dir", err)
	}
	return b.staging, nil
}

// mapDevice has a published device seen by the pod, and noted for the node (MapBlockVolume).
func (p *Plugin) mapDevice(uid types.UID, name string) error {
	b, dir := p.blockPaths(name), p.podDevices(uid)
	if err := p.host.FS.MkdirAll(b.global(), 0o750); err != nil {
		return err
	}
	if err := p.host.FS.WriteFile(path.Join(b.global(), string(uid)), nil, 0o600); err != nil {
		return err
	}
	if err := p.host.FS.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	link := path.Join(dir, name)
	if is, err := p.host.FS.Readlink(link); err == nil && is == b.publish(uid) {
		return nil
	}
	return p.host.FS.Symlink(b.publish(uid), link)
}

// unmapDevice undoes mapDevice, and has the driver take the device away
// (GenerateUnmapVolumeFunc, UnmapPodDevice).
func (p *Plugin) unmapDevice(ctx context.Context, uid types.UID, name string) error {
	b := p.blockPaths(name)
	for _, file := range []string{path.Join(p.podDevices(uid), name), path.Join(b.global(), string(uid))} {
		if err := p.host.FS.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	d, err := p.loadData(b.data())
	if err != nil {
		return err
	}
	c, err := p.drivers.client(ctx, d.Driver)
	if err != nil {
		return wrap("blockMapper.UnmapPodDevice failed to get CSI client", err)
	}
	defer c.close()
	_, err = within(ctx, func(ctx context.Context) (*csispec.NodeUnpublishVolumeResponse, error) {
		return c.NodeUnpublishVolume(ctx, &csispec.NodeUnpublishVolumeRequest{VolumeId: d.Handle, TargetPath: b.publish(uid)})
	})
	return err
}

// unstageBlock undoes the staging of a device (TearDownDevice).
func (p *Plugin) unstageBlock(ctx context.Context, name, handle string, c *client, stages bool) error {
	b := p.blockPaths(name)
	if _, err := p.host.FS.Stat(b.staging); err == nil && stages {
		_, err := within(ctx, func(ctx context.Context) (*csispec.NodeUnstageVolumeResponse, error) {
			return c.NodeUnstageVolume(ctx, &csispec.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: b.staging})
		})
		if err != nil {
			return wrap("blockMapper.unstageVolumeForBlock failed to unstage volume", err)
		}
	}
	for _, dir := range []string{b.publishDir, b.staging} {
		if err := p.host.FS.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.host.Logf("%s", text("%v", err))
			return nil
		}
	}
	if err := p.host.FS.RemoveAll(b.volume); err != nil {
		p.host.Logf("%s", text("%v", err))
	}
	return nil
}

// isBlock reports whether a volume is a block device.
func isBlock(pv *v1.PersistentVolume) bool { return pv != nil && util.IsBlock(pv) }
