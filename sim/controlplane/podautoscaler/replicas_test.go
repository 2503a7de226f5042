package podautoscaler

import (
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// podState is a pod of a test: its usage (-1: no metrics), its readiness, and how long
// ago it started and its readiness changed.
type podState struct {
	usage          int64
	ready          bool
	started, since time.Duration
	phase          v1.PodPhase
}

func samples(requests bool, states ...podState) *sample {
	s := &sample{metrics: map[string]podMetric{}, resource: v1.ResourceCPU, now: t0}
	if requests {
		s.requests = map[string]int64{}
	}
	for i, st := range states {
		start := metav1.Time{Time: t0.Add(-st.started)}
		status := v1.ConditionFalse
		if st.ready {
			status = v1.ConditionTrue
		}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}
		pod.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &start, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: status, LastTransitionTime: metav1.Time{Time: t0.Add(-st.since)}}}}
		if st.phase != "" {
			pod.Status.Phase = st.phase
		}
		s.pods = append(s.pods, pod)
		if st.usage >= 0 {
			s.metrics[pod.Name] = podMetric{timestamp: t0, window: 15 * time.Second, value: st.usage}
		}
		if requests {
			s.requests[pod.Name] = 1000
		}
	}
	return s
}

func TestReplicas(t *testing.T) {
	old := func(usage int64) podState {
		return podState{usage: usage, ready: true, started: time.Hour, since: time.Hour}
	}
	fresh := func(usage int64, ready bool, ago time.Duration) podState {
		return podState{usage: usage, ready: ready, started: ago, since: ago}
	}
	for _, c := range []struct {
		name        string
		pods        []podState
		target      int64
		raw         bool
		replicas    int32
		utilization int32
		err         string
	}{
		{name: "scale up", pods: []podState{old(900), old(900)}, target: 60, replicas: 3, utilization: 90},
		{name: "within the tolerance", pods: []podState{old(650), old(650)}, target: 60, replicas: 2, utilization: 65},
		{name: "scale down", pods: []podState{old(100), old(100), old(100)}, target: 50, replicas: 1, utilization: 10},
		{name: "a fresh pod counts nothing when others want more", pods: []podState{old(900), old(900), fresh(5000, false, time.Minute)}, target: 50, replicas: 4, utilization: 90},
		{name: "a fresh pod that was ready for a window counts", pods: []podState{old(900), fresh(900, true, 20*time.Second)}, target: 50, replicas: 4, utilization: 90},
		{name: "one that was not does not", pods: []podState{old(900), fresh(900, true, 10*time.Second)}, target: 50, replicas: 2, utilization: 90},
		{name: "an old pod that became unready counts", pods: []podState{old(900), {usage: 900, started: time.Hour, since: time.Minute}}, target: 50, replicas: 4, utilization: 90},
		{name: "an old pod that never was ready does not", pods: []podState{old(300), {usage: 900, started: time.Hour, since: time.Hour - 5*time.Second}}, target: 50, replicas: 1, utilization: 30},
		{name: "missing metrics count as the request when less is wanted", pods: []podState{old(100), old(100), old(-1)}, target: 50, replicas: 3, utilization: 10},
		{name: "and as the target if that is more", pods: []podState{old(400), old(400), old(-1)}, target: 200, replicas: 2, utilization: 40},
		{name: "missing metrics count as nothing when more is wanted", pods: []podState{old(900), old(900), old(-1)}, target: 50, replicas: 4, utilization: 90},
		{name: "failed pods do not count", pods: []podState{old(900), {usage: 900, phase: v1.PodFailed}}, target: 50, replicas: 2, utilization: 90},
		{name: "nothing to go by", pods: []podState{fresh(900, false, time.Minute)}, target: 50, err: "did not receive metrics for targeted pods (pods might be unready)"},
		{name: "no pods", target: 50, err: "no pods returned by selector while calculating replica count"},
		{name: "missing metrics count as nothing at all where the others are just right", pods: []podState{old(200), old(200), old(-1)}, target: 200, raw: true, replicas: 3},
		{name: "plain value", pods: []podState{old(300), old(500)}, target: 200, raw: true, replicas: 4},
	} {
		s := samples(!c.raw, c.pods...)
		p, err := s.replicasFor(int32(len(c.pods)), c.target, tolerances{Tolerance, Tolerance})
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got error %v, want %s", c.name, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case p.replicas != c.replicas || p.utilization != c.utilization:
			t.Errorf("%s: %d replicas at %d %%, want %d at %d %%", c.name, p.replicas, p.utilization, c.replicas, c.utilization)
		}
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		current, desired, least, most, want int32
		why                                 limited
	}{
		{3, 5, 1, 10, 5, withinRange},
		{1, 9, 1, 10, 4, scaleUpLimit},
		{3, 9, 1, 10, 6, scaleUpLimit},
		{3, 9, 1, 5, 5, tooMany},
		{3, 1, 2, 5, 2, tooFew},
	} {
		if got, why := bound(c.current, c.desired, c.least, c.most); got != c.want || why != c.why {
			t.Errorf("%d to %d in %d..%d: %d %s, want %d %s", c.current, c.desired, c.least, c.most, got, why.reason, c.want, c.why.reason)
		}
	}
}

func TestStabilization(t *testing.T) {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	h := &history{}
	for _, c := range []struct {
		at            int
		desired, want int32
	}{{0, 10, 10}, {15, 4, 10}, {290, 3, 10}, {300, 3, 4}, {316, 3, 3}, {330, 8, 8}} {
		if got := h.stabilizeDown(at(c.at), c.desired); got != c.want {
			t.Errorf("down after %d s: %d, want %d", c.at, got, c.want)
		}
	}
	h = &history{}
	for _, c := range []struct {
		at                     int
		current, desired, want int32
		why                    limited
	}{
		{0, 5, 5, 5, upStabilized},
		{15, 5, 9, 5, upStabilized},
		{70, 5, 9, 9, upStabilized},
		{80, 9, 2, 9, downStabilized},
		{400, 9, 2, 2, downStabilized},
	} {
		got, why := h.stabilize(at(c.at), c.current, c.desired, time.Minute, 5*time.Minute)
		if got != c.want || why != c.why {
			t.Errorf("after %d s from %d to %d: %d %s, want %d", c.at, c.current, c.desired, got, why.reason, c.want)
		}
	}
}

func TestPolicies(t *testing.T) {
	disabled, least := autoscalingv2.DisabledPolicySelect, autoscalingv2.MinChangePolicySelect
	two := []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 60}, {Type: autoscalingv2.PercentScalingPolicy, Value: 10, PeriodSeconds: 60}}
	for _, c := range []struct {
		name         string
		rules        autoscalingv2.HPAScalingRules
		ups, downs   []scaleEvent
		current      int32
		upTo, downTo int32
	}{
		{name: "the more of two", rules: autoscalingv2.HPAScalingRules{Policies: two}, current: 20, upTo: 24, downTo: 16},
		{name: "the less of two", rules: autoscalingv2.HPAScalingRules{Policies: two, SelectPolicy: &least}, current: 20, upTo: 22, downTo: 18},
		{name: "disabled", rules: autoscalingv2.HPAScalingRules{SelectPolicy: &disabled}, current: 20, upTo: 20, downTo: 20},
		{name: "what was added in the period counts", rules: autoscalingv2.HPAScalingRules{Policies: two[:1]}, ups: []scaleEvent{{3, t0.Add(-30 * time.Second)}, {9, t0.Add(-61 * time.Second)}}, current: 20, upTo: 21, downTo: 13},
		{name: "what no policy of its own direction reaches is still counted by the other's", rules: autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 600}}},
			downs: noted(noted([]scaleEvent{{5, t0.Add(-3 * time.Minute)}, {2, t0.Add(-2 * time.Minute)}}, &autoscalingv2.HPAScalingRules{Policies: two}, scaleEvent{1, t0}), &autoscalingv2.HPAScalingRules{Policies: two}, scaleEvent{1, t0}), current: 20, upTo: 26, downTo: 18},
		{name: "one such is replaced", rules: autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 600}}},
			downs: noted([]scaleEvent{{5, t0.Add(-3 * time.Minute)}, {2, t0.Add(-2 * time.Minute)}}, &autoscalingv2.HPAScalingRules{Policies: two}, scaleEvent{1, t0}), current: 20, upTo: 30, downTo: 22},
		{name: "and what was taken away", rules: autoscalingv2.HPAScalingRules{Policies: two[:1]}, downs: []scaleEvent{{3, t0.Add(-30 * time.Second)}}, current: 20, upTo: 27, downTo: 19},
	} {
		h := &history{ups: c.ups, downs: c.downs}
		if got := h.limit(t0, apiserver.ScaleUpRules(&c.rules), c.current, true); got != c.upTo {
			t.Errorf("%s: up to %d, want %d", c.name, got, c.upTo)
		}
		if got := h.limit(t0, apiserver.ScaleDownRules(&c.rules), c.current, false); got != c.downTo {
			t.Errorf("%s: down to %d, want %d", c.name, got, c.downTo)
		}
	}
}
