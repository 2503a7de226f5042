package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	"github.com/drydock-sim/drydock/kubelet/internal/events"
	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
)

const preemptionMessage = "Preempted in order to admit critical pod"

// preempt ends a pod in favour of a critical one. The sync loop, which admits
// pods, stands still until it has ended.
func (kl *Kubelet) preempt(ctx context.Context, victim *v1.Pod) error {
	kl.recorder.Event(kubecontainer.PodRef(victim), v1.EventTypeWarning, events.PreemptContainer, preemptionMessage)
	return kl.workers.KillPodNow(ctx, victim, true, nil, func(s *v1.PodStatus) {
		s.Phase, s.Reason, s.Message = v1.PodFailed, events.PreemptContainer, preemptionMessage
		lifecycle.SetDisruptionTarget(s, victim, "Pod was preempted by Kubelet to accommodate a critical pod.", kl.l.Now())
	})
}
