// Package nodestorage is the volume that a simulated cluster binds claims to: a
// directory on the disk of whatever node a pod runs on. It stands for a CSI driver
// that is registered with each kubelet, until drivers are simulated. What a pod wrote
// is there again for the next pod of the claim on that node; on another node the
// directory is empty.
package nodestorage

import (
	"context"
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// Driver is the name that volumes are known by (spec.csi.driver).
const Driver = "node-storage.drydock.dev"

// handle is the key of a volume's attributes under which its handle is.
const handle = "volumeHandle"

// Plugin is the plugin.
type Plugin struct{ host *volume.Host }

// New returns the plugin.
func New(host *volume.Host) *Plugin { return &Plugin{host} }

// Volume returns a pod's volume of that name for a PersistentVolume; nil if that is
// of another driver.
func Volume(name string, pv *v1.PersistentVolume) *v1.Volume {
	csi := pv.Spec.CSI
	if csi == nil || csi.Driver != Driver {
		return nil
	}
	return &v1.Volume{Name: name, VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{
		Driver: Driver, VolumeAttributes: map[string]string{handle: csi.VolumeHandle},
	}}}
}

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return Driver }

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool {
	return v.CSI != nil && v.CSI.Driver == Driver && v.CSI.VolumeAttributes[handle] != ""
}

// Path implements volume.Plugin.
func (p *Plugin) Path(_ types.UID, v *v1.Volume) string {
	return path.Join(path.Dir(p.host.PodsDir), "plugins", Driver, v.CSI.VolumeAttributes[handle])
}

// ReadOnly implements volume.Plugin.
func (p *Plugin) ReadOnly(*v1.Volume) bool { return false }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return false }

// SetUp implements volume.Plugin. Everybody may write, as in what simple provisioners
// of local directories make: pods of images with users of their own rely on it.
func (p *Plugin) SetUp(_ context.Context, r *volume.Request) error {
	if _, err := p.host.FS.Stat(r.Dir); err != nil {
		if err := p.host.FS.MkdirAll(r.Dir, 0o777); err != nil {
			return fmt.Errorf("%s: %w", Driver, err)
		}
		if err := p.host.FS.Chmod(r.Dir, 0o777); err != nil {
			return fmt.Errorf("%s: %w", Driver, err)
		}
	}
	return util.SetVolumeOwnership(p.host.FS, r.Dir, false, r.FSGroup)
}

// TearDown implements volume.Plugin: what is in the directory outlives pods.
func (p *Plugin) TearDown(context.Context, types.UID, string) error { return nil }
