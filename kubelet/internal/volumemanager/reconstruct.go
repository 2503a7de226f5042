package volumemanager

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// reconstruct notes the volumes that an earlier kubelet left in the pods'
// directories. Those that are wanted are set up again, the others taken away
// once all pods are known (reconciler/reconstruct.go).
func (m *Manager) reconstruct() {
	files := m.o.Host.FS
	pods, err := files.ReadDir(m.o.Host.PodsDir)
	if err != nil {
		return // there is none yet
	}
	byDir := map[string]volume.Plugin{}
	for _, p := range m.o.Plugins {
		byDir[volume.EscapeName(p.Name())] = p
	}
	for _, pod := range pods {
		m.reconstructBlock(types.UID(pod.Name()), byDir)
		dir := path.Join(m.o.Host.PodsDir, pod.Name(), "volumes")
		plugins, err := files.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, d := range plugins {
			plugin := byDir[d.Name()]
			volumes, err := files.ReadDir(path.Join(dir, d.Name()))
			if plugin == nil || err != nil {
				continue
			}
			for _, v := range volumes {
				p := m.record(types.UID(pod.Name()))
				if driven, ok := plugin.(volume.DeviceMounter); ok {
					m.reconstructDriven(p, driven, path.Join(dir, d.Name(), v.Name()), v.Name(), false)
					continue
				}
				p.volumes = append(p.volumes, &podVolume{
					name: v.Name(), plugin: plugin, path: path.Join(dir, d.Name(), v.Name()), state: uncertain,
				})
			}
		}
	}
}

// reconstructStaged notes what an earlier kubelet left that was killed after it took the last pod's
// volume away, or before it gave it to the first one: volumes that are mounted for the node
// alone. They are taken away, if nobody wants them, and kept from being detached before that.
// Upstream forgets them.
func (m *Manager) reconstructStaged(plugin volume.DeviceMounter) {
	for _, is := range plugin.Staged() {
		if slices.ContainsFunc(m.devices, func(d *device) bool { return d.Name == is.Name }) {
			continue // a pod has it
		}
		d := m.device(is, plugin, false)
		d.state, d.reconstructed, d.found = uncertain, true, true
	}
}

// reconstructBlock notes a pod's block devices.
func (m *Manager) reconstructBlock(uid types.UID, byDir map[string]volume.Plugin) {
	dir := path.Join(m.o.Host.PodDir(uid), "volumeDevices")
	plugins, err := m.o.Host.FS.ReadDir(dir)
	if err != nil {
		return // there is none
	}
	for _, d := range plugins {
		driven, ok := byDir[d.Name()].(volume.DeviceMounter)
		links, err := m.o.Host.FS.ReadDir(path.Join(dir, d.Name()))
		if !ok || err != nil {
			continue
		}
		for _, v := range links {
			m.reconstructDriven(m.record(uid), driven, path.Join(dir, d.Name(), v.Name()), v.Name(), true)
		}
	}
}
