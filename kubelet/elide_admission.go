package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/lifecycle"
)

// elidedAdmission keeps the sum of what the pods take of the node, so that an
// admission that it has room for need not look at each of them.
type elidedAdmission struct {
	known *knownPods
	// sum is of all pods that the pod manager has, but for those that were rejected
	// and the one that is yet to be judged: at least what the active pods take. It
	// is good while nothing but the status of pods has changed.
	sum  lifecycle.Usage
	good bool
	// unjudged is the pod that came last, which sum doesn't have; "": there is none.
	unjudged types.UID
}

// admission is what admits pods.
func (e *elision) admission(known *knownPods) admitter {
	if !e.kl.l.Elides() {
		return known.allocation
	}
	a := &elidedAdmission{known: known}
	known.pods.OnChange(a.changed)
	return a
}

// changed is told of each pod that is another than before; nil: there was none,
// or is none any more.
func (a *elidedAdmission) changed(old, pod *v1.Pod) {
	switch {
	case old == nil:
		a.good = a.good && a.unjudged == ""
		a.unjudged = pod.UID
	case pod == nil || !lifecycle.SameRequests(old, pod):
		a.good = false
	}
}

// AddPod implements admitter.
func (a *elidedAdmission) AddPod(ctx context.Context, others func() []*v1.Pod, pod *v1.Pod) lifecycle.PodAdmitResult {
	usage := a.usage(pod.UID)
	r := a.known.allocation.AddPodTo(ctx, func() []*v1.Pod {
		// Whoever looks at each pod may find that some have ended.
		a.good = false
		return others()
	}, usage, pod)
	if r.Admit {
		a.sum.Add(pod)
	}
	a.unjudged = ""
	return r
}

// usage is what the pods beside the one take at most; nil: pods may use other than
// they request.
func (a *elidedAdmission) usage(beside types.UID) *lifecycle.Usage {
	if a.known.allocation.State().Len() > 0 {
		return nil
	}
	if !a.good || a.unjudged != beside {
		a.good, a.sum = true, lifecycle.Usage{}
		a.known.pods.Each(func(pod *v1.Pod) {
			if pod.UID != beside && !a.known.rejected[pod.UID] {
				a.sum.Add(pod)
			}
		})
	}
	return &a.sum
}
