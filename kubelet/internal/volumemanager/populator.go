package volumemanager

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
	"github.com/drydock-sim/drydock/kubelet/internal/volume/util"
)

// maxErrors bounds the distinct errors kept of a pod.
const maxErrors = 11

// populate is one run of the populator: it works out what is wanted of the pods
// that came or asked, and what is wanted no more
// (populator/desired_state_of_world_populator.go).
func (m *Manager) populate() {
	m.populating.begin()
	ready := m.o.SourcesReady()
	asking := false
	for _, p := range slices.Clone(m.order) {
		if !m.addVolumes(p) {
			asking = true
		}
	}
	for _, p := range slices.Clone(m.order) {
		m.removeVolumes(p)
	}
	// Upstream asks the API before a pass is over.
	if ready && !asking {
		m.populated = true
	}
	m.reconciling.wake(0)
	m.populating.end()
}

// addVolumes works out what is wanted of a pod, if somebody asked; it returns false while
// the API is asked for that.
func (m *Manager) addVolumes(p *podVolumes) bool {
	pod, ok := m.o.Pods.GetPodByUID(p.uid)
	switch {
	case !ok, p.processed, m.populated && m.o.States.ShouldPodContainersBeTerminating(p.uid):
		return true
	case m.o.States.ShouldPodRuntimeBeRemoved(p.uid):
		return true
	}
	p.pod = pod
	used := util.UsedVolumes(pod)
	failed, asking := false, false
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !used[v.Name] {
			continue
		}
		switch wanted, err := m.wantVolume(p, v); {
		case err != nil:
			p.addError(err.Error())
			failed = true
		case !wanted:
			asking = true
		}
	}
	if asking && !failed {
		return false // the answer comes back here
	}
	// Upstream tries what failed again with each run until a sync asks; what
	// fails here fails again.
	p.processed, p.claims = true, nil
	if failed {
		p.notify()
		return true
	}
	p.errs = nil
	for _, v := range p.volumes {
		_, remounts := v.plugin.(volume.Remounter)
		if (remounts || v.driver != nil && v.driver.republish) && v.desired && v.state == mounted {
			v.remount = true
		}
	}
	return true
}

// wantVolume finds the plugin of a volume, and what it is to mount: of a claim the volume
// that the claim is bound to (createVolumeSpec); and notes that it is wanted. It is not yet
// while the API is asked: then it returns false without an error.
func (m *Manager) wantVolume(p *podVolumes, v *v1.Volume) (bool, error) {
	if v.PersistentVolumeClaim == nil && v.Ephemeral == nil && v.CSI == nil {
		plugin, err := m.pluginOf(v)
		if err == nil {
			m.want(p, v, plugin, nil)
		}
		return err == nil, err
	}
	a := m.claimed(p, v)
	if a.err != nil || a.volume == nil {
		return false, a.err
	}
	if a.driver != nil {
		m.wantDriven(p, a.volume, a.driver, a)
		return true, nil
	}
	plugin, err := m.pluginOf(a.volume)
	if err == nil {
		m.want(p, a.volume, plugin, a.pv)
	}
	return err == nil, err
}

// pluginOf is the plugin of a volume.
func (m *Manager) pluginOf(v *v1.Volume) (volume.Plugin, error) {
	for _, p := range m.o.Plugins {
		if p.CanSupport(v) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("failed to get Plugin from volumeSpec for volume %q err=no volume plugin matched", v.Name)
}

// want notes that a volume is wanted; pv is what the pod's claim is bound to, if it names one.
func (m *Manager) want(p *podVolumes, spec *v1.Volume, plugin volume.Plugin, pv *v1.PersistentVolume) {
	v := p.volume(spec.Name)
	named := spec // as it is in the pod's directory
	if pv != nil && plugin.InPodDir() {
		copied := *spec
		copied.Name = pv.Name
		named = &copied
		if found := p.volume(pv.Name); v == nil && found != nil && found.spec == nil && found.plugin == plugin {
			found.name = spec.Name // an earlier kubelet's, by the name of its directory
			v = found
		}
	}
	if v != nil && v.plugin != plugin {
		// What is on the disk under that name is of another kind; it goes
		// first.
		return
	}
	if v == nil {
		v = &podVolume{name: spec.Name, plugin: plugin}
		p.volumes = append(p.volumes, v)
	}
	v.spec, v.path, v.desired, v.pv = spec, plugin.Path(p.uid, named), true, pv
}

func (p *podVolumes) addError(text string) {
	if !slices.Contains(p.errs, text) && len(p.errs) < maxErrors {
		p.errs = append(p.errs, text)
	}
}

// removeVolumes notes what is wanted no more of a pod that is gone or has
// ended, and forgets the pod when nothing is left.
func (m *Manager) removeVolumes(p *podVolumes) {
	if !m.o.States.ShouldPodRuntimeBeRemoved(p.uid) {
		return
	}
	_, exists := m.o.Pods.GetPodByUID(p.uid)
	for _, v := range p.volumes {
		if v.desired && (v.state != notMounted || !exists) {
			v.desired, v.remount = false, false
			p.processed = false
		}
	}
	m.prune(p)
}

// prune drops the volumes that are neither wanted nor there, and the pod with
// the last of them.
func (m *Manager) prune(p *podVolumes) {
	p.volumes = slices.DeleteFunc(p.volumes, func(v *podVolume) bool {
		gone := !v.desired && v.state == notMounted && !v.running
		if gone {
			v.leave()
		}
		return gone
	})
	if len(p.volumes) == 0 && len(p.waiters) == 0 && m.o.States.ShouldPodRuntimeBeRemoved(p.uid) {
		m.forget(p)
	}
}
