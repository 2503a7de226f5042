package podautoscaler

import (
	"errors"
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Metrics stands for the resource metrics API (metrics.k8s.io). The simulation's is sim's
// metrics-server; tests have fakes.
type Metrics interface {
	// Watch has the pods of a namespace that match kept track of, until the
	// function returned is called.
	Watch(namespace string, match func(*v1.Pod) bool) (stop func())
	// PodMetrics returns the last metrics of a pod; false when there are none.
	PodMetrics(pod *v1.Pod) (PodMetrics, bool)
}

// PodMetrics is what a pod's containers used at a time. Containers are those that ran when the
// sample was taken.
type PodMetrics struct {
	Timestamp  time.Time
	Window     time.Duration // what CPU is the mean of
	Containers []ContainerMetrics
}

// ContainerMetrics is what a container used.
type ContainerMetrics struct {
	Name     string
	MilliCPU int64
	Memory   int64 // bytes, the working set
}

// podMetric is a pod's sample, in thousandths. CPU is in millicores, memory in thousandths of
// bytes.
type podMetric struct {
	timestamp time.Time
	window    time.Duration
	value     int64
}

// sample is the metrics of the pods of one target. It is used up by counting: group and
// replicasFor take entries out and put some in.
type sample struct {
	metrics map[string]podMetric
	// requests: thousandths; nil for plain values.
	requests map[string]int64
	// share: usage is compared with what the pods request, of one container if it is named.
	share     bool
	container string
	pods      []*v1.Pod
	resource  v1.ResourceName
	now       time.Time
}

// tolerances say how far a ratio may be from 1. Each direction has its own.
type tolerances struct{ down, up float64 }

// within reports whether usage is near enough to its target to leave the
// replicas.
func (t tolerances) within(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// proposal is what one metric says. value and utilization go into the status.
type proposal struct {
	replicas    int32
	utilization int32 // percent of the requests
	value       int64 // mean per pod, in thousandths
}

// How long a pod's samples are doubted after its start
// (--horizontal-pod-autoscaler-cpu-initialization-period and
// -initial-readiness-delay).
const (
	CPUInitializationPeriod = 5 * time.Minute
	InitialReadinessDelay   = 30 * time.Second
)

// group sorts the pods (groupPods): those whose sample counts, those that have
// none yet, and those that are not ready. Samples of pods that don't count are
// taken out of the sample. A pod that is starting uses much CPU and serves
// nothing: its sample would scale the target up for no reason. A failed pod, or one that is being
// deleted, counts neither way.
func (s *sample) group() (ready int, unready, missing []string) {
	for _, pod := range s.pods {
		m, found := s.metrics[pod.Name]
		switch {
		case pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodFailed:
			delete(s.metrics, pod.Name)
		case pod.Status.Phase == v1.PodPending:
			unready = append(unready, pod.Name)
			delete(s.metrics, pod.Name)
		case !found:
			missing = append(missing, pod.Name)
		case s.resource == v1.ResourceCPU && s.unready(pod, m):
			unready = append(unready, pod.Name)
			delete(s.metrics, pod.Name)
		default:
			ready++
		}
	}
	return ready, unready, missing
}

// unready reports whether a sample of CPU is from a pod's start: in its first five
// minutes, unless it is ready and was for a whole window; later, only when it never
// was ready. Memory is believed from the start.
func (s *sample) unready(pod *v1.Pod, m podMetric) bool {
	var cond *v1.PodCondition
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == v1.PodReady {
			cond = &pod.Status.Conditions[i]
		}
	}
	if cond == nil || pod.Status.StartTime == nil {
		return true
	}
	start := pod.Status.StartTime.Time
	if start.Add(CPUInitializationPeriod).After(s.now) {
		return cond.Status == v1.ConditionFalse || m.timestamp.Before(cond.LastTransitionTime.Add(m.window))
	}
	return cond.Status == v1.ConditionFalse && start.Add(InitialReadinessDelay).After(cond.LastTransitionTime.Time)
}

// ratio returns the usage by the target; target is percent of the requests, or a
// value per pod in thousandths. Utilization is the pods' sum by the sum of their
// requests, not the mean of shares: a large pod counts for more. Callers have made sure that
// there is a sample.
func (s *sample) ratio(target int64) (float64, proposal, error) {
	var total, requested, n int64
	for name, m := range s.metrics { //drydock:unordered sums
		if s.requests != nil {
			request, ok := s.requests[name]
			if !ok {
				continue
			}
			requested += request
		}
		total += m.value
		n++
	}
	if s.requests == nil {
		p := proposal{value: total / n}
		return float64(p.value) / float64(target), p, nil
	}
	if requested == 0 {
		return 0, proposal{}, errors.New("no metrics returned matched known pods")
	}
	p := proposal{utilization: int32(total * 100 / requested), value: total / n}
	return float64(p.utilization) / float64(target), p, nil
}

// replicasFor counts the replicas that bring the usage to the target
// (GetResourceReplicas, calcPlainMetricReplicas). Pods without a sample are
// assumed to use what makes the change smaller: all that they request when
// scaling down, nothing when scaling up. If that turns the direction around,
// nothing is changed. ready, and not all pods, is what the ratio is of, where no assumption was
// needed.
func (s *sample) replicasFor(current int32, target int64, tol tolerances) (proposal, error) {
	if len(s.pods) == 0 {
		return proposal{}, errors.New("no pods returned by selector while calculating replica count")
	}
	ready, unready, missing := s.group()
	if len(s.metrics) == 0 {
		return proposal{}, errors.New("did not receive metrics for targeted pods (pods might be unready)")
	}
	// Only now: of pods that all are too young, that is told and not that they request nothing.
	if s.share {
		var err error
		if s.requests, err = podRequests(s.pods, s.container, s.resource); err != nil {
			return proposal{}, err
		}
	}
	ratio, p, err := s.ratio(target)
	if err != nil {
		return proposal{}, err
	}
	p.replicas = current
	up := ratio > 1
	if (len(unready) == 0 || !up) && len(missing) == 0 {
		if !tol.within(ratio) {
			p.replicas = ceil(ratio * float64(ready))
		}
		return p, nil
	}
	for _, name := range missing {
		switch {
		case ratio < 1 && s.requests != nil: // as if it used all that it asks for, or the target if that is more
			s.metrics[name] = podMetric{value: s.requests[name] * max(100, target) / 100}
		case ratio < 1:
			s.metrics[name] = podMetric{value: target}
		case up:
			s.metrics[name] = podMetric{}
		}
	}
	if up {
		for _, name := range unready {
			s.metrics[name] = podMetric{}
		}
	}
	again, _, err := s.ratio(target)
	if err != nil {
		return p, err
	}
	// A change that depends on the assumption about unknown pods is not made.
	if tol.within(again) || ratio < 1 && again > 1 || up && again < 1 {
		return p, nil
	}
	n := ceil(again * float64(len(s.metrics)))
	if again < 1 && n > current || again > 1 && n < current {
		return p, nil
	}
	p.replicas = n
	return p, nil
}

// ceil rounds up, within int32. So a target is rather below its usage than above.
func ceil(x float64) int32 { return int32(min(math.Ceil(x), math.MaxInt32)) }

// podRequests returns what the pods ask of a resource, in thousandths
// (calculateRequests): all containers, sidecars included, or the named one. One container
// without a request makes the share meaningless, so it is an error. Where the pod as a whole has
// requests (KEP-2837), those go before its containers'; of what it does not name, the sum of the
// containers' counts, with none missed.
func podRequests(pods []*v1.Pod, container string, name v1.ResourceName) (map[string]int64, error) {
	out := make(map[string]int64, len(pods))
	for _, pod := range pods {
		var n int64
		var err error
		if container == "" && resourcehelper.IsPodLevelRequestsSet(pod) {
			q, ok := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[name]
			if !ok {
				err = fmt.Errorf("missing pod-level request for %s in Pod %s", name, pod.Name)
			}
			n = q.MilliValue()
		} else {
			n, err = containerRequests(pod, container, name)
		}
		if err != nil {
			return nil, err
		}
		out[pod.Name] = n
	}
	return out, nil
}

// containerRequests adds up the requests of a pod's containers and sidecars, or is that of one.
func containerRequests(pod *v1.Pod, container string, name v1.ResourceName) (sum int64, err error) {
	found := container == ""
	add := func(c *v1.Container) {
		if err != nil || container != "" && c.Name != container {
			return
		}
		found = true
		q, ok := c.Resources.Requests[name]
		if !ok {
			err = fmt.Errorf("missing request for %s in container %s of Pod %s", name, c.Name, pod.Name)
			return
		}
		sum += q.MilliValue()
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	if !found {
		err = fmt.Errorf("container %s not found in Pod %s", container, pod.Name)
	}
	return sum, err
}
