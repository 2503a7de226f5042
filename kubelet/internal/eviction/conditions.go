package eviction

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// conditions are the pressures that a node can be under, in the order in which
// they are told.
var conditions = [...]v1.NodeConditionType{v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure}

// pressure keeps the node's conditions.
type pressure struct {
	// last is when each of conditions was last seen, in ns; 0: never.
	last [len(conditions)]int64
	// reported are those that the node reports.
	reported []v1.NodeConditionType
}

// update notes that thresholds are met now, and reports the conditions of which
// that was so less than a period ago. It reports whether these are others.
func (p *pressure) update(met []Threshold, now int64, period time.Duration) (changed bool) {
	for i := range met {
		f := met[i].Signal.facts()
		for k, c := range conditions {
			if f != nil && f.condition == c {
				p.last[k] = now
			}
		}
	}
	var reported []v1.NodeConditionType
	for k, c := range conditions {
		if p.last[k] != 0 && now-p.last[k]+instant < int64(period) {
			reported = append(reported, c)
		}
	}
	changed = !slices.Equal(reported, p.reported)
	p.reported = reported
	return changed
}

// Under reports whether the node reports a condition.
func (m *Manager) Under(c v1.NodeConditionType) bool {
	return slices.Contains(m.pressure.reported, c)
}
