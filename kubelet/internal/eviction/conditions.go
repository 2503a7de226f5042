package eviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
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

// Admit refuses pods while the node is under pressure: all but critical ones;
// under pressure of memory alone only those that ask for nothing and do not
// tolerate it.
func (m *Manager) Admit(_ context.Context, attrs *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	return admit(attrs.Pod, m.pressure.reported)
}

// admit judges a pod by the conditions that are reported. Under memory pressure
// alone a pod that requests memory is let in, since its request is accounted
// for; nothing is known of disk and processes.
func admit(pod *v1.Pod, conditions []v1.NodeConditionType) lifecycle.PodAdmitResult {
	admitted := lifecycle.PodAdmitResult{Admit: true}
	if len(conditions) == 0 || kubetypes.IsCriticalPod(pod) {
		return admitted
	}
	if len(conditions) == 1 && conditions[0] == v1.NodeMemoryPressure {
		if qos.Class(pod) != v1.PodQOSBestEffort || slices.ContainsFunc(pod.Spec.Tolerations, toleratesMemoryPressure) {
			return admitted
		}
	}
	return lifecycle.PodAdmitResult{Reason: Reason, Message: fmt.Sprintf(nodeConditionMessage, conditions)}
}

// toleratesMemoryPressure reports whether a toleration is for the taint that the
// node gets.
func toleratesMemoryPressure(t v1.Toleration) bool {
	return lifecycle.Tolerates(&t, &v1.Taint{Key: v1.TaintNodeMemoryPressure, Effect: v1.TaintEffectNoSchedule})
}
