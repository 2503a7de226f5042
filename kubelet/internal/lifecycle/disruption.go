package lifecycle

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDisruptionTarget says in a pod's status that the kubelet ends it to keep
// its node going: by eviction, preemption or a shutdown. The slice of conditions
// is the status's own. The condition's time stays if it was true before
// (pkg/api/v1/pod/util.go).
func SetDisruptionTarget(s *v1.PodStatus, pod *v1.Pod, message string, now time.Time) {
	c := v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: pod.Generation,
		Reason: v1.PodReasonTerminationByKubelet, Message: message,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
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
