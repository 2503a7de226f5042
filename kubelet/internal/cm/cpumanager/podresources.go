package cpumanager

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
)

// ExclusiveCPUs are those that a container has for itself, for the pod resources API; none
// with policy none.
func (m *Manager) ExclusiveCPUs(uid types.UID, name string) []int64 {
	if m.policy == nil {
		return nil
	}
	set, _ := m.state.Get(uid, name)
	return ids(set)
}

// AllocatableCPUs are those that containers can have for themselves, given out or not;
// none with policy none.
func (m *Manager) AllocatableCPUs() []int64 {
	if m.policy == nil {
		return nil
	}
	return ids(m.policy.m.all.cpus.Difference(m.policy.reserved))
}

func ids(set cpuset.CPUSet) []int64 {
	out := make([]int64, 0, set.Size())
	for _, id := range set.List() {
		out = append(out, int64(id))
	}
	return out
}
