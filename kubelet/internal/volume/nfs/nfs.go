// Package nfs is the volume that is an export of a server of NFS. It mirrors upstream's
// pkg/volume/nfs.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/nfs"

// dirMode is that of the directory on which an export is mounted.
const dirMode = 0o750

var errNoRemote = errors.New("this node can't mount what other machines export")

// Plugin is the plugin.
type Plugin struct{ host *volume.Host }

var _ volume.Waiter = (*Plugin)(nil)

// New returns the plugin.
func New(host *volume.Host) *Plugin { return &Plugin{host} }

// Waits implements volume.Waiter: a server may not answer.
func (*Plugin) Waits() {}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return PluginName }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(v *v1.Volume) bool { return v.NFS != nil }

// Path implements volume.Plugin.
func (p *Plugin) Path(uid types.UID, v *v1.Volume) string {
	return p.host.VolumeDir(uid, PluginName, v.Name)
}

// ReadOnly implements volume.Plugin.
func (*Plugin) ReadOnly(v *v1.Volume) bool { return v.NFS.ReadOnly }

// InPodDir implements volume.Plugin.
func (*Plugin) InPodDir() bool { return true }

// SetUp implements volume.Plugin. Who owns the files is the server's to say.
func (p *Plugin) SetUp(ctx context.Context, r *volume.Request) error {
	remote, ok := p.host.Mounter.(filesystem.RemoteMounter)
	if !ok {
		return errNoRemote
	}
	if remote.IsRemoteMountPoint(r.Dir) {
		return nil
	}
	if err := p.host.FS.MkdirAll(r.Dir, dirMode); err != nil {
		return err //nolint:wrapcheck // It names the directory.
	}
	source := r.Volume.NFS
	var options []string
	if r.PV != nil {
		options = slices.Clone(r.PV.Spec.MountOptions)
	}
	if source.ReadOnly {
		options = append(options, "ro")
	}
	slices.Sort(options) // as sets.List does (JoinMountOptions)
	err := remote.MountRemote(ctx, server(source)+":"+source.Path, r.Dir, "nfs", slices.Compact(options))
	if err == nil || remote.IsRemoteMountPoint(r.Dir) && remote.UnmountRemote(ctx, r.Dir) != nil {
		return err //nolint:wrapcheck // Its text is that of mount(8), which events show.
	}
	if rerr := p.host.FS.Remove(r.Dir); rerr != nil {
		p.host.Log("remove the mount point %s: %v", r.Dir, rerr)
	}
	return err //nolint:wrapcheck // As above.
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(ctx context.Context, uid types.UID, name string) error {
	dir := p.host.VolumeDir(uid, PluginName, name)
	remote, ok := p.host.Mounter.(filesystem.RemoteMounter)
	if !ok {
		return errNoRemote
	}
	if remote.IsRemoteMountPoint(dir) {
		if err := remote.UnmountRemote(ctx, dir); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	if _, err := p.host.FS.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return p.host.FS.Remove(dir) //nolint:wrapcheck // It names the directory.
}

// server is a source's server as mount(8) takes it.
func server(source *v1.NFSVolumeSource) string {
	if a, err := netip.ParseAddr(source.Server); err == nil && a.Is6() {
		return "[" + source.Server + "]"
	}
	return source.Server
}
