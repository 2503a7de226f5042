package nodeshutdown

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/kubelet/internal/features"
)

// The priorities that shutdownGracePeriod and shutdownGracePeriodCriticalPods
// stand for (pkg/apis/scheduling/types.go).
const (
	defaultPriority        int32 = 0
	systemCriticalPriority int32 = 2000000000
)

// GracePeriods returns how long the pods from a priority on have, by ascending
// priority; none: the machine's shutdown is not held up. gates are those of the
// configuration.
func GracePeriods(cfg *kubeletconfig.KubeletConfiguration, gates features.Gates) []kubeletconfig.ShutdownGracePeriodByPodPriority {
	if !gates.Enabled(features.GracefulNodeShutdown) {
		return nil
	}
	out := cfg.ShutdownGracePeriodByPodPriority
	if len(out) == 0 || !gates.Enabled(features.GracefulNodeShutdownBasedOnPodPriority) {
		return fromTotal(cfg.ShutdownGracePeriod.Duration, cfg.ShutdownGracePeriodCriticalPods.Duration)
	}
	out = slices.Clone(out)
	slices.SortStableFunc(out, func(a, b kubeletconfig.ShutdownGracePeriodByPodPriority) int {
		return int(int64(a.Priority) - int64(b.Priority))
	})
	return out
}

// fromTotal splits the whole period in that of ordinary pods and the last part,
// that of critical ones. Each is cut to seconds.
func fromTotal(total, critical time.Duration) []kubeletconfig.ShutdownGracePeriodByPodPriority {
	if total == 0 || critical > total {
		return nil
	}
	return []kubeletconfig.ShutdownGracePeriodByPodPriority{
		{Priority: defaultPriority, ShutdownGracePeriodSeconds: int64((total - critical) / time.Second)},
		{Priority: systemCriticalPriority, ShutdownGracePeriodSeconds: int64(critical / time.Second)},
	}
}

// group are the pods that end together.
type group struct {
	priority int32
	period   time.Duration
	pods     []*v1.Pod
}

// groupByPriority puts each pod into the group with the highest priority that is
// not above the pod's; below all of them is the first. Groups without pods stay.
func groupByPriority(periods []kubeletconfig.ShutdownGracePeriodByPodPriority, pods []*v1.Pod) []group {
	out := make([]group, len(periods))
	for i, p := range periods {
		out[i] = group{priority: p.Priority, period: time.Duration(p.ShutdownGracePeriodSeconds) * time.Second}
	}
	for _, pod := range pods {
		priority := defaultPriority
		if pod.Spec.Priority != nil {
			priority = *pod.Spec.Priority
		}
		i, exact := slices.BinarySearchFunc(out, priority, func(g group, p int32) int { return int(int64(g.priority) - int64(p)) })
		if !exact && i > 0 {
			i--
		}
		out[i].pods = append(out[i].pods, pod)
	}
	return out
}

// grace is how long a pod of the group has: its own grace period, or the
// group's if that is shorter.
func (g *group) grace(pod *v1.Pod) int64 {
	seconds := int64(g.period / time.Second)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(*own, seconds)
	}
	return seconds
}

// total is how long the groups have together: what logind must grant.
func total(periods []kubeletconfig.ShutdownGracePeriodByPodPriority) time.Duration {
	sum := lists.Sum(periods, func(p kubeletconfig.ShutdownGracePeriodByPodPriority) int64 {
		return p.ShutdownGracePeriodSeconds
	})
	return time.Duration(sum) * time.Second
}
