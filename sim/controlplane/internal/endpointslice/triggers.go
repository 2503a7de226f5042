package endpointslice

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// triggers remembers when a service and its pods last gave a reason to change its
// slices (util/trigger_time_tracker.go). The annotation is what the network
// programming latency SLO is measured from. It is kept for as long as the service is in the
// index; a service whose selector changed keeps it.
type triggers struct {
	pods    map[string]time.Time
	service time.Time
}

// next returns the earliest reason that is new; zero when there is none. The earliest is taken
// since the SLO asks for the slowest change that a write brings out. A pod that has gone leaves
// no trigger, as in upstream's tracker.
func (t *triggers) next(svc *v1.Service, pods []*v1.Pod) time.Time {
	var first time.Time
	take := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	now := make(map[string]time.Time, len(pods))
	for _, pod := range pods {
		at := podTrigger(pod)
		if at.IsZero() {
			continue
		}
		now[pod.Name] = at
		if at.After(t.pods[pod.Name]) {
			take(at)
		}
	}
	if at := svc.CreationTimestamp.Time; at.After(t.service) {
		take(at)
		t.service = at
	}
	t.pods = now
	return first
}

// podTrigger is when the pod last became ready or ceased to be. A pod that never
// was ready gives none.
func podTrigger(pod *v1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
