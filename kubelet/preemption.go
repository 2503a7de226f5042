package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/container"
	"github.com/drydock-sim/drydock/kubelet/events"
)

const preemptionMessage = "Preempted in order to admit critical pod"

// preempt ends a pod in favour of a critical one. The sync loop, which admits
// pods, stands still until it has ended.
func (kl *Kubelet) preempt(ctx context.Context, victim *v1.Pod) error {
	kl.recorder.Event(kubecontainer.PodRef(victim), v1.EventTypeWarning, events.PreemptContainer, preemptionMessage)
	return kl.workers.KillPodNow(ctx, victim, true, nil, func(s *v1.PodStatus) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, events.PreemptContainer, preemptionMessage
		setCondition(s, v1.PodCondition{
			Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: victim.Generation,
			Reason: v1.PodReasonTerminationByKubelet, Message: "Pod was preempted by Kubelet to accommodate a critical pod.",
			LastTransitionTime: metav1.NewTime(kl.l.Now()).Rfc3339Copy(),
		})
	})
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
