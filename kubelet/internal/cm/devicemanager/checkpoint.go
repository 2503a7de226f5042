package devicemanager

import (
	"encoding/json"
	"fmt"
	"path"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/drydock-sim/drydock/kubelet/internal/checkpointmanager/checksum"
	"github.com/drydock-sim/drydock/kubelet/internal/cm/devicemanager/checkpoint"
	"github.com/drydock-sim/drydock/kubelet/util/filesystem"
)

// checkpointName is upstream's name of the file.
const checkpointName = "kubelet_internal_checkpoint"

func (m *Manager) checkpointFile() string { return path.Join(m.c.Dir, checkpointName) }

// writeCheckpoint keeps what was given out for the next kubelet. An error is logged as
// well.
func (m *Manager) writeCheckpoint() error {
	if m.c.FS == nil {
		return nil
	}
	d := checkpoint.Data{}
	d.Data.RegisteredDevices = map[string][]string{}
	for name, r := range m.resources { //drydock:unordered fills a map
		d.Data.RegisteredDevices[name] = sets.List(r.healthy)
	}
	m.pods.each(func(pod types.UID, container, name string, a *allocation) {
		resp, err := proto.MarshalOptions{Deterministic: true}.Marshal(a.response)
		if err != nil {
			m.log("Can't marshal allocResp podUID=%s containerName=%s resourceName=%s: %v", pod, container, name, err)
			return
		}
		d.Data.PodDeviceEntries = append(d.Data.PodDeviceEntries, checkpoint.PodDevicesEntry{
			PodUID: string(pod), ContainerName: container, ResourceName: name, DeviceIDs: a.byNode, AllocResp: resp})
	})
	d.Checksum = d.Sum()
	data, err := json.Marshal(d)
	if err == nil {
		err = filesystem.Replace(m.c.FS, m.checkpointFile(), data, 0o600)
	}
	if err != nil {
		err = fmt.Errorf("failed to write checkpoint file %q: %w", checkpointName, err)
		m.log("%v", err)
	}
	return err
}

// readCheckpoint takes over what an earlier kubelet gave out. Of its plugins only the
// names are known until they register again.
func (m *Manager) readCheckpoint() error {
	if m.c.FS == nil {
		return nil
	}
	var d checkpoint.Data
	data, err := m.c.FS.ReadFile(m.checkpointFile())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	if d.Checksum != d.Sum() {
		return checksum.ErrCorrupt
	}
	for i := range d.Data.PodDeviceEntries {
		e := &d.Data.PodDeviceEntries[i]
		resp := &pluginapi.ContainerAllocateResponse{}
		if err := proto.Unmarshal(e.AllocResp, resp); err != nil {
			m.log("Can't unmarshal allocResp podUID=%s containerName=%s resourceName=%s: %v", e.PodUID, e.ContainerName, e.ResourceName, err)
			continue
		}
		m.pods.insert(types.UID(e.PodUID), e.ContainerName, e.ResourceName, &allocation{byNode: e.DeviceIDs, response: resp})
	}
	m.allocated = m.pods.devices()
	for name := range d.Data.RegisteredDevices { //drydock:unordered fills a map
		r := newResource()
		r.stopped = m.c.Group.Loop().Now()
		m.resources[name] = r
	}
	if len(d.Data.RegisteredDevices) > 0 {
		m.c.Group.After(stopGrace, func() { m.c.Changed(nil) })
	}
	return nil
}
