package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/ground/lists"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
	"github.com/drydock-sim/drydock/kubelet/qos"
)

// Preemption makes room for critical pods
// (pkg/kubelet/preemption/preemption.go).
type Preemption struct {
	// Kill ends a pod with its own grace period and waits for its end.
	Kill func(ctx context.Context, victim *v1.Pod) error
	// Log takes a line about a kill that failed; nil means none.
	Log func(format string, args ...any)
}

// shortage is how much of a resource is missing; cpu in millicores.
type shortage struct {
	resource v1.ResourceName
	missing  int64
}

// admit ends what of others must go for the critical pod and returns the
// failures that remain: those that no room would help, or none. An error means
// that there are not enough pods to end.
func (p *Preemption) admit(ctx context.Context, pod *v1.Pod, others []*v1.Pod, failures []Failure) ([]Failure, error) {
	if others := slices.DeleteFunc(slices.Clone(failures), func(f Failure) bool { return f.Resource != "" }); len(others) > 0 {
		return others, nil
	}
	short := lists.Map(failures, func(f Failure) shortage {
		return shortage{f.Resource, f.Requested - (f.Capacity - f.Used)}
	})
	victims, err := victims(pod, others, short)
	if err != nil {
		return nil, fmt.Errorf("preemption: error finding a set of pods to preempt: %w", err)
	}
	for _, v := range victims {
		if err := p.Kill(ctx, v); err != nil && p.Log != nil {
			p.Log("preemption: pod failed to evict pod=%s/%s: %v", v.Namespace, v.Name, err)
		}
	}
	return nil, nil
}

// victims returns the pods to end, in the order of their killing.
func victims(pod *v1.Pod, others []*v1.Pod, short []shortage) ([]*v1.Pod, error) {
	var bestEffort, burstable, guaranteed []*v1.Pod
	for _, o := range others {
		if !preemptable(pod, o) {
			continue
		}
		switch qos.Class(o) {
		case v1.PodQOSBestEffort:
			bestEffort = append(bestEffort, o)
		case v1.PodQOSBurstable:
			burstable = append(burstable, o)
		case v1.PodQOSGuaranteed:
			guaranteed = append(guaranteed, o)
		}
	}
	if left := without(short, bestEffort, burstable, guaranteed); len(left) > 0 {
		var b strings.Builder
		for _, s := range left {
			fmt.Fprintf(&b, "(res: %s, q: %d), ", s.resource, s.missing)
		}
		return nil, fmt.Errorf("no set of running pods found to reclaim resources: [%s]", b.String())
	}
	// Of the better classes only what the lesser ones cannot give.
	guaranteed = nearest(guaranteed, without(short, bestEffort, burstable))
	burstable = nearest(burstable, without(short, bestEffort, guaranteed))
	bestEffort = nearest(bestEffort, without(short, burstable, guaranteed))
	return slices.Concat(bestEffort, burstable, guaranteed), nil
}

// preemptable reports whether the pod may take the other's place.
func preemptable(pod, other *v1.Pod) bool {
	if kubetypes.IsCriticalPod(pod) && !kubetypes.IsCriticalPod(other) {
		return true
	}
	return pod.Spec.Priority != nil && other.Spec.Priority != nil && *pod.Spec.Priority > *other.Spec.Priority
}

// nearest takes pods until nothing is short, each time the one that leaves the
// least: of equals the one that asks for less memory, then for less cpu, then
// the later one.
func nearest(pods []*v1.Pod, short []shortage) []*v1.Pod {
	pods = slices.Clone(pods)
	var out []*v1.Pod
	for len(short) > 0 && len(pods) > 0 {
		best := 0
		for i := 1; i < len(pods); i++ {
			a, b := distance(pods[i], short), distance(pods[best], short)
			if a < b || a == b && !asksMore(pods[i], pods[best]) {
				best = i
			}
		}
		out = append(out, pods[best])
		short = without(short, pods[best:best+1])
		pods[best] = pods[len(pods)-1]
		pods = pods[:len(pods)-1]
	}
	return out
}

// distance is how far the pod's end leaves a shortage: the sum of the squares
// of what part of each remains.
func distance(pod *v1.Pod, short []shortage) float64 {
	sum := 0.0
	for _, s := range short {
		if left := float64(s.missing - asks(pod, s.resource)); left > 0 {
			sum += left / float64(s.missing) * (left / float64(s.missing))
		}
	}
	return sum
}

// asksMore reports whether a asks for more than b: memory first, then cpu.
func asksMore(a, b *v1.Pod) bool {
	if x, y := asks(a, v1.ResourceMemory), asks(b, v1.ResourceMemory); x != y {
		return x > y
	}
	return asks(a, v1.ResourceCPU) > asks(b, v1.ResourceCPU)
}

// without is what is still short when the pods are gone.
func without(short []shortage, gone ...[]*v1.Pod) []shortage {
	var out []shortage
	for _, s := range short {
		for _, pods := range gone {
			for _, pod := range pods {
				s.missing -= asks(pod, s.resource)
			}
		}
		if s.missing > 0 {
			out = append(out, s)
		}
	}
	return out
}

// asks is how much of a resource a pod requests.
func asks(pod *v1.Pod, name v1.ResourceName) int64 {
	r := podRequests(pod)
	switch name {
	case v1.ResourcePods:
		return 1
	case v1.ResourceCPU:
		return r.milliCPU
	case v1.ResourceMemory:
		return r.memory
	case v1.ResourceEphemeralStorage:
		return r.storage
	}
	return r.scalar(name)
}
