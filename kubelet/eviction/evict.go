package eviction

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubetypes "github.com/drydock-sim/drydock/kubelet/types"
)

// evict ends a pod unless it is critical; it tells whether it did. disruption
// says that the pod is told so by a condition.
func (m *Manager) evict(ctx context.Context, pod *v1.Pod, grace int64, message string, annotations map[string]string, disruption bool) bool {
	if kubetypes.IsCriticalPod(pod) {
		m.log("Eviction manager: cannot evict a critical pod pod=%s/%s", pod.Namespace, pod.Name)
		return false
	}
	m.o.Event(pod, annotations, v1.EventTypeWarning, Reason, message)
	now := metav1.NewTime(m.o.Loop.Now()).Rfc3339Copy()
	err := m.o.Kill(ctx, pod, grace, func(s *v1.PodStatus) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, Reason, message
		if disruption {
			setCondition(s, v1.PodCondition{
				Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation,
				Reason: v1.PodReasonTerminationByKubelet, Message: message, LastTransitionTime: now,
			})
		}
	})
	if err != nil {
		m.log("Eviction manager: pod failed to evict pod=%s/%s: %v", pod.Namespace, pod.Name, err)
	} else {
		m.log("Eviction manager: pod is evicted successfully pod=%s/%s", pod.Namespace, pod.Name)
	}
	return true
}

// setCondition puts a condition in the place of that of its type, whose time
// stays if the status does. The slice is the status's own.
func setCondition(s *v1.PodStatus, c v1.PodCondition) {
	for i := range s.Conditions {
		if old := &s.Conditions[i]; old.Type == c.Type {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}
