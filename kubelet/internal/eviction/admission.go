package eviction

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

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
