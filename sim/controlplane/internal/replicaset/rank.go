package replicaset

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// rank sorts active pods so that those come first that are deleted first
// (pkg/controller/controller_utils.go ActivePodsWithRanks). onNode says how many
// related pods are on each node.
func rank(pods []*v1.Pod, onNode map[string]int, now time.Time) {
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int {
		aReady, bReady := controller.PodReady(a), controller.PodReady(b)
		if c := cmp.Or(
			first(a.Spec.NodeName == "", b.Spec.NodeName == ""),
			cmp.Compare(phaseRank(a), phaseRank(b)),
			first(!aReady, !bReady),
			cmp.Compare(deletionCost(a), deletionCost(b)),
			cmp.Compare(onNode[b.Spec.NodeName], onNode[a.Spec.NodeName]),
		); c != 0 {
			return c
		}
		if aReady && bReady {
			if at, bt := controller.ReadySince(a), controller.ReadySince(b); !at.Equal(bt) {
				return youngest(at, bt, now, a, b)
			}
		}
		aRestarts, aSidecars := controller.MostRestarts(a)
		bRestarts, bSidecars := controller.MostRestarts(b)
		if c := cmp.Or(cmp.Compare(bRestarts, aRestarts), cmp.Compare(bSidecars, aSidecars)); c != 0 {
			return c
		}
		if at, bt := a.CreationTimestamp.Time, b.CreationTimestamp.Time; !at.Equal(bt) {
			return youngest(at, bt, now, a, b)
		}
		return 0
	})
}

// first orders what has a property before what does not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// phaseRank orders phases: what has got least far goes first.
func phaseRank(p *v1.Pod) int {
	switch p.Status.Phase {
	case v1.PodUnknown:
		return 1
	case v1.PodRunning:
		return 2
	}
	return 0
}

// deletionCost is the annotation controller.kubernetes.io/pod-deletion-cost; 0
// for none and for what is not a number in its plain form.
func deletionCost(p *v1.Pod) int32 {
	text, ok := p.Annotations[v1.PodDeletionCost]
	if !ok || strings.HasPrefix(text, "+") || len(text) > 1 && strings.HasPrefix(text, "0") {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// youngest orders by logarithmic age, youngest first, and pods of like age by
// their UID; what has no time comes before all (LogarithmicScaleDown).
func youngest(at, bt, now time.Time, a, b *v1.Pod) int {
	if at.IsZero() || bt.IsZero() {
		return first(at.IsZero(), bt.IsZero())
	}
	return cmp.Or(cmp.Compare(magnitude(now.Sub(at)), magnitude(now.Sub(bt))), cmp.Compare(a.UID, b.UID))
}

// magnitude is the power of two that an age in nanoseconds is between. Pods of
// one magnitude count as equally old, so that a scale-down does not take one
// rollout's pods zone by zone.
func magnitude(age time.Duration) int64 {
	if age <= 0 {
		return -1
	}
	return int64(math.Log2(float64(age)))
}
