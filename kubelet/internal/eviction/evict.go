package eviction

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// evict ends a pod unless it is critical; it reports whether it did. disruption
// says that the pod is told so by a condition.
func (m *Manager) evict(ctx context.Context, pod *v1.Pod, grace int64, message string, annotations map[string]string, disruption bool) bool {
	if kubetypes.IsCriticalPod(pod) {
		m.log("Eviction manager: cannot evict a critical pod pod=%s/%s", pod.Namespace, pod.Name)
		return false
	}
	m.o.Event(pod, annotations, v1.EventTypeWarning, Reason, message)
	err := m.o.Kill(ctx, pod, grace, func(s *v1.PodStatus) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, Reason, message
		if disruption {
			lifecycle.SetDisruptionTarget(s, pod, message, m.o.Loop.Now())
		}
	})
	if err != nil {
		m.log("Eviction manager: pod failed to evict pod=%s/%s: %v", pod.Namespace, pod.Name, err)
	} else {
		m.log("Eviction manager: pod is evicted successfully pod=%s/%s", pod.Namespace, pod.Name)
	}
	return true
}
