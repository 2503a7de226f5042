package eviction

import (
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// notifierRefreshInterval is how often the levels of notifiers are computed
// anew.
const notifierRefreshInterval = 10 * time.Second

// memcg has the kernel tell when memory becomes low between passes
// (kernelMemcgNotification).
type memcg struct {
	last  int64 // ns
	stops []func()
}

// refreshNotifiers registers for each threshold on memory at which usage it is
// met: the pages that could be dropped count as usage, but not as in use.
func (m *Manager) refreshNotifiers(s *statsapi.Summary) {
	now := m.o.Loop.UnixNano()
	if !m.o.Config.MemcgNotification || m.o.Memcg == nil || m.memcg.last != 0 && now-m.memcg.last <= int64(notifierRefreshInterval) {
		return
	}
	m.memcg.last = now
	for _, stop := range m.memcg.stops {
		stop()
	}
	m.memcg.stops = nil
	for i := range m.thresholds {
		t := &m.thresholds[i]
		cgroup, usage := "/", s.Node.Memory
		switch {
		case t.Inert:
			continue
		case t.Signal == AllocatableMemoryAvailable:
			cgroup, usage = m.o.PodsCgroup, podsMemory(s)
		case t.Signal != MemoryAvailable:
			continue
		}
		if usage == nil || usage.AvailableBytes == nil || usage.WorkingSetBytes == nil || usage.UsageBytes == nil {
			m.log("Eviction manager: memory usage of %s is not known", cgroup)
			continue
		}
		capacity := int64(*usage.AvailableBytes + *usage.WorkingSetBytes)
		quantity := t.Value.Of(capacity)
		level := capacity - quantity.Value() + int64(*usage.UsageBytes) - int64(*usage.WorkingSetBytes)
		stop, err := m.o.Memcg.NotifyMemory(cgroup, level, m.notified)
		if err != nil {
			m.log("Eviction manager: failed to start notifier of %s: %v", cgroup, err)
			continue
		}
		m.memcg.stops = append(m.memcg.stops, stop)
	}
}

// podsMemory is the memory of the pods' cgroup; nil where there is none.
func podsMemory(s *statsapi.Summary) *statsapi.MemoryStats {
	for i := range s.Node.SystemContainers {
		if c := &s.Node.SystemContainers[i]; c.Name == statsapi.SystemContainerPods {
			return c.Memory
		}
	}
	return nil
}

// notified has a pass made at once, besides those of the loop.
func (m *Manager) notified() {
	m.quiet = false
	if m.busy {
		return
	}
	m.timer.Reset(0)
}
