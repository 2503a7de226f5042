package csi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// PluginName is the plugin's name.
const PluginName = "kubernetes.io/csi"

// Plugin is the volumes of drivers: PersistentVolumes, and pods' own (inline).
type Plugin struct {
	host    *volume.Host
	drivers *Handler
}

// New returns the plugin of the volumes of the drivers that a handler has.
func New(host *volume.Host, drivers *Handler) *Plugin { return &Plugin{host, drivers} }

// Name implements volume.Plugin.
func (p *Plugin) Name() string { return PluginName }

// Waits implements volume.Waiter.
func (p *Plugin) Waits() {}

// CanSupport implements volume.Plugin.
func (p *Plugin) CanSupport(v *v1.Volume) bool { return v.CSI != nil }

// HasVolume implements volume.DeviceMounter.
func (p *Plugin) HasVolume(pv *v1.PersistentVolume) bool { return pv.Spec.CSI != nil }

// ReadOnly implements volume.Plugin: the volume manager knows it by the claim.
func (p *Plugin) ReadOnly(*v1.Volume) bool { return false }

// InPodDir implements volume.Plugin.
func (p *Plugin) InPodDir() bool { return true }

// Path implements volume.Plugin.
func (p *Plugin) Path(uid types.UID, v *v1.Volume) string { return p.mounted(uid, v.Name) }

// MountedPath implements volume.DeviceMounter.
func (p *Plugin) MountedPath(uid types.UID, pv *v1.PersistentVolume) string {
	if isBlock(pv) {
		return path.Join(p.podDevices(uid), pv.Name)
	}
	return p.mounted(uid, pv.Name)
}

func (p *Plugin) mounted(uid types.UID, name string) string {
	return path.Join(p.host.VolumeDir(uid, PluginName, name), "mount")
}

// VolumeName implements volume.DeviceMounter.
func (p *Plugin) VolumeName(pv *v1.PersistentVolume) v1.UniqueVolumeName {
	return uniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
}

// separator is between driver and handle (volNameSep).
const separator = "^"

func uniqueName(driver, handle string) v1.UniqueVolumeName {
	return v1.UniqueVolumeName(PluginName + "/" + driver + separator + handle)
}

// Facts implements volume.DeviceMounter. A driver without a CSIDriver object has its
// volumes attached (CanAttach).
func (p *Plugin) Facts(ctx context.Context, v *v1.Volume, pv *v1.PersistentVolume) (volume.Facts, error) {
	name := ""
	if pv != nil {
		name = pv.Spec.CSI.Driver
	} else {
		name = v.CSI.Driver
	}
	d, err := p.driver(ctx, name)
	if err != nil {
		return volume.Facts{}, err
	}
	if d == nil {
		return volume.Facts{Attaches: pv != nil}, nil
	}
	return volume.Facts{
		Attaches:  pv != nil && (d.Spec.AttachRequired == nil || *d.Spec.AttachRequired),
		Republish: d.Spec.RequiresRepublish != nil && *d.Spec.RequiresRepublish,
	}, nil
}

// driver asks the API what a driver wants; nil: it did not say.
func (p *Plugin) driver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	if p.drivers.o.Client == nil {
		return nil, nil
	}
	d, err := p.drivers.o.Client.GetCSIDriver(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return d, err
}

// volumeData is what is noted beside a volume, for the next kubelet (vol_data.json).
// Its JSON's order is that of the keys, as upstream writes a map.
type volumeData struct {
	AttachmentID string `json:"attachmentID,omitempty"`
	Driver       string `json:"driverName"`
	Node         string `json:"nodeName,omitempty"`
	SpecVolume   string `json:"specVolID,omitempty"`
	Handle       string `json:"volumeHandle"`
	Mode         string `json:"volumeLifecycleMode,omitempty"`
}

const dataFile = "vol_data.json"

func (p *Plugin) saveData(dir string, d volumeData) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return filesystem.Replace(p.host.FS, path.Join(dir, dataFile), append(data, '\n'), 0o644)
}

func (p *Plugin) loadData(dir string) (volumeData, error) {
	var d volumeData
	data, err := p.host.FS.ReadFile(path.Join(dir, dataFile))
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		return d, fmt.Errorf("failed to open volume data file [%s]: %w", path.Join(dir, dataFile), err)
	}
	return d, nil
}

// discard removes what a kubelet left that was killed while it noted a volume: the beginning of
// a note beside the place where it would have been put (filesystem.Replacer).
func (p *Plugin) discard(dir string) {
	entries, err := p.host.FS.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), "."+dataFile) {
			if err := p.host.FS.Remove(path.Join(dir, e.Name())); err != nil {
				p.host.Logf("%s", text("%v", err))
			}
		}
	}
}

// Reconstruct implements volume.DeviceMounter (ConstructVolumeSpec).
func (p *Plugin) Reconstruct(uid types.UID, name string, block bool) (v1.UniqueVolumeName, error) {
	dir := p.host.VolumeDir(uid, PluginName, name)
	if block {
		b := p.blockPaths(name)
		dir = b.data()
	}
	d, err := p.loadData(dir)
	if errors.Is(err, fs.ErrNotExist) {
		p.discard(dir) // nothing is mounted before it is noted
	}
	if err != nil || d.Mode == string(storagev1.VolumeLifecycleEphemeral) {
		return "", err
	}
	return uniqueName(d.Driver, d.Handle), nil
}

// Staged implements volume.DeviceMounter.
func (p *Plugin) Staged() []volume.Device {
	var out []volume.Device
	top := path.Join(path.Dir(p.host.PodsDir), "plugins", PluginName)
	const block = "volumeDevices"
	for driver := range filesystem.Names(p.host.FS, top) {
		for name := range filesystem.Names(p.host.FS, path.Join(top, driver)) {
			dir := path.Join(top, driver, name)
			if driver == block {
				b := p.blockPaths(name)
				dir = b.data()
			}
			p.discard(dir)
			d, err := p.loadData(dir)
			if err != nil {
				continue // it was not noted before anything was done
			}
			is := volume.Device{Name: uniqueName(d.Driver, d.Handle)}
			if driver == block {
				is.Volume, is.Block = name, true
			}
			out = append(out, is)
		}
	}
	return out
}

// split is driver and handle of a volume's name.
func split(name v1.UniqueVolumeName) (driver, handle string) {
	driver, handle, _ = strings.Cut(strings.TrimPrefix(string(name), PluginName+"/"), separator)
	return driver, handle
}

// deviceDir is where a volume is noted and mounted for the node (makeDeviceMountPath).
func (p *Plugin) deviceDir(driver, handle string) string {
	return path.Join(path.Dir(p.host.PodsDir), "plugins", PluginName, driver, fmt.Sprintf("%x", sha256.Sum256([]byte(handle))))
}

// attachmentName is that of the VolumeAttachment of a volume and a node
// (getAttachmentName).
func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// inlineHandle is what a driver knows a pod's own volume by (makeVolumeHandle).
func inlineHandle(pod types.UID, name string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(string(pod)+name)))
}

// readWriteOnce reports whether a volume can be mounted for writing by one node.
func readWriteOnce(pv *v1.PersistentVolume) bool {
	return pv != nil && slices.Contains(pv.Spec.AccessModes, v1.ReadWriteOnce)
}

// secret reads what a driver is given besides; nil of none.
func (p *Plugin) secret(ctx context.Context, ref *v1.SecretReference) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	s, err := p.drivers.o.Client.GetSecret(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("failed to find the secret %s in the namespace %s with error: %w", ref.Name, ref.Namespace, err)
	}
	out := make(map[string]string, len(s.Data))
	for k, v := range s.Data { //drydock:unordered fills a map
		out[k] = string(v)
	}
	return out, nil
}
