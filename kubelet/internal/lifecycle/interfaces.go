// Package lifecycle decides which pods a kubelet admits. It mirrors
// upstream's pkg/kubelet/lifecycle and to the scheduler's AdmissionCheck, which
// upstream's predicate handler calls. Handlers are asked in order and the first
// refusal wins; those of eviction, the topology manager and the shutdown manager
// are in the packages of that name.
package lifecycle

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// PodAdmitAttributes are what a handler judges.
type PodAdmitAttributes struct {
	// Pod is the pod to admit.
	Pod *v1.Pod
	// OtherPods returns the active pods without Pod, with what they were allocated;
	// nil: there are none.
	OtherPods func() []*v1.Pod
	// Usage, if set, is no less than what OtherPods use: a pod that fits beside it
	// fits beside them, and nobody needs to look at them.
	Usage *Usage
}

// PodAdmitResult is a handler's verdict.
type PodAdmitResult struct {
	Admit bool
	// Reason is one word for the pod's status, if not admitted.
	Reason string
	// Message says more.
	Message string
}

// PodAdmitHandler judges pods. It may wait.
type PodAdmitHandler interface {
	Admit(ctx context.Context, attrs *PodAdmitAttributes) PodAdmitResult
}

// PodAdmitHandlers are asked in order.
type PodAdmitHandlers []PodAdmitHandler

// Admit returns the first refusal, if there is one.
func (h PodAdmitHandlers) Admit(ctx context.Context, attrs *PodAdmitAttributes) PodAdmitResult {
	for _, o := range h {
		if r := o.Admit(ctx, attrs); !r.Admit {
			return r
		}
	}
	return PodAdmitResult{Admit: true}
}
