package eviction

import (
	v1 "k8s.io/api/core/v1"
)

// watchVolumes has the volumes of all pods looked at, and puts what was found
// into their statistics. Upstream looks at them all the time; here those that
// nobody has looked at are looked at now, if upstream had by now.
func (m *Manager) watchVolumes(pods []*v1.Pod, stats podStats) {
	if m.o.AllVolumes {
		return
	}
	for _, pod := range pods {
		if m.o.Volumes.Watched(pod.UID) {
			continue
		}
		m.o.Volumes.Add(pod, m.o.Came(pod.UID))
		if _, limited := m.limited[pod.UID]; !limited {
			m.lent = append(m.lent, pod.UID)
		}
		if s := stats(pod); s != nil {
			s.VolumeStats = m.o.Volumes.Get(pod.UID)
		}
	}
}

// forgetVolumes has only the volumes looked at that somebody always wants to
// know of.
func (m *Manager) forgetVolumes() {
	for _, uid := range m.lent {
		m.o.Volumes.Remove(uid)
	}
	m.lent = nil
}
