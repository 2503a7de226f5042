package podautoscaler

import (
	"errors"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
)

// computed is what all metrics say together. -1 and not 0: nothing could be said, and nothing is
// to be changed.
type computed struct {
	replicas int32 // -1: nothing
	metric   string
	statuses []autoscalingv2.MetricStatus
}

// metricError is a metric that says nothing, and what the condition ScalingActive
// is to tell of it. The error and the message differ in their prefixes, as upstream.
type metricError struct {
	reason, message string
	err             error
}

// compute takes the highest of what the metrics propose. An error together with
// replicas means that some metrics failed, and that the others want more replicas
// (computeReplicasForMetrics). The highest proposal wins. If a metric failed,
// what is left may scale up but not down: the one that failed might have wanted
// more. The checks that come before the metrics are about the target's selector. Statuses are by
// position, as kubectl reads them: one that failed is empty, without even its type.
func (r *evaluation) compute(scale *autoscalingv1.Scale) (computed, error) {
	none := computed{replicas: -1}
	if scale.Status.Selector == "" {
		const text = "selector is required"
		r.event(v1.EventTypeWarning, "SelectorRequired", text)
		r.condition(autoscalingv2.ScalingActive, v1.ConditionFalse, "InvalidSelector", "the HPA target's scale is missing a selector")
		return none, errors.New(text)
	}
	selector, err := labels.Parse(scale.Status.Selector)
	if err != nil {
		text := fmt.Sprintf("couldn't convert selector into a corresponding internal selector object: %v", err)
		r.event(v1.EventTypeWarning, "InvalidSelector", text)
		r.condition(autoscalingv2.ScalingActive, v1.ConditionFalse, "InvalidSelector", text)
		return none, errors.New(text)
	}
	r.h.selects = selector
	r.c.track(r.key, r.h, scale.Status.Selector, selector)
	pods := r.c.podsOf(r.hpa.Namespace, selector)
	if all := r.c.selecting(r.hpa.Namespace, pods); len(all) > 1 {
		text := fmt.Sprintf("pods by selector %v are controlled by multiple HPAs: %v", scale.Status.Selector, all)
		r.event(v1.EventTypeWarning, "AmbiguousSelector", text)
		r.condition(autoscalingv2.ScalingActive, v1.ConditionFalse, "AmbiguousSelector", text)
		return none, errors.New(text)
	}
	out := computed{statuses: make([]autoscalingv2.MetricStatus, len(r.hpa.Spec.Metrics))}
	var first *metricError
	var failed int
	for i := range r.hpa.Spec.Metrics {
		n, name, status, bad := r.metric(&r.hpa.Spec.Metrics[i], scale, pods)
		if bad != nil {
			if failed++; first == nil {
				first = bad
			}
			continue
		}
		out.statuses[i] = status
		if out.replicas == 0 || n > out.replicas {
			out.replicas, out.metric = n, name
		}
	}
	if first != nil {
		err = fmt.Errorf("invalid metrics (%v invalid out of %v), first error is: %w", failed, len(r.hpa.Spec.Metrics), first.err)
	}
	if failed >= len(r.hpa.Spec.Metrics) || failed > 0 && out.replicas < scale.Spec.Replicas {
		r.condition(autoscalingv2.ScalingActive, v1.ConditionFalse, first.reason, first.message)
		return computed{replicas: -1, statuses: out.statuses}, err
	}
	r.condition(autoscalingv2.ScalingActive, v1.ConditionTrue, "ValidMetricFound", fmt.Sprintf("the HPA was able to successfully calculate a replica count from %s", out.metric))
	return out, err
}

// unable is getUnableComputeReplicaCountCondition. It tells of the failure in an
// event at once; the condition is set by compute, for the first only. Every failing metric has
// its event.
func (r *evaluation) unable(reason string, err error) *metricError {
	r.event(v1.EventTypeWarning, reason, err.Error())
	return &metricError{reason: reason, message: fmt.Sprintf("the HPA was unable to compute the replica count: %v", err), err: err}
}

// metric is what one metric proposes, its name in messages, and its status
// (computeReplicasForMetric).
func (r *evaluation) metric(m *autoscalingv2.MetricSpec, scale *autoscalingv1.Scale, pods []*v1.Pod) (int32, string, autoscalingv2.MetricStatus, *metricError) {
	current, status := scale.Spec.Replicas, autoscalingv2.MetricStatus{Type: m.Type}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType:
		n, name, value, err := r.resource(m.Resource.Name, "", &m.Resource.Target, current, pods)
		if err != nil {
			bad := r.unable("FailedGetResourceMetric", err)
			bad.err = fmt.Errorf("failed to get %s resource metric value: %w", m.Resource.Name, err)
			return 0, "", status, bad
		}
		status.Resource = &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name, Current: value}
		return n, name, status, nil
	case autoscalingv2.ContainerResourceMetricSourceType:
		s := m.ContainerResource
		n, name, value, err := r.resource(s.Name, s.Container, &s.Target, current, pods)
		if err != nil {
			bad := r.unable("FailedGetContainerResourceMetric", err)
			bad.err = fmt.Errorf("failed to get %s container metric value: %w", s.Container, err)
			return 0, "", status, bad
		}
		status.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: s.Name, Container: s.Container, Current: value}
		return n, name, status, nil
	case autoscalingv2.PodsMetricSourceType:
		n, st, err := r.pods(m.Pods, current, pods)
		if err != nil {
			bad := r.unable("FailedGetPodsMetric", err)
			bad.err = fmt.Errorf("failed to get pods metric value: %w", err)
			return 0, "", status, bad
		}
		status.Pods = st
		return n, "pods metric " + m.Pods.Metric.Name, status, nil
	case autoscalingv2.ObjectMetricSourceType:
		n, name, st, err := r.object(m.Object, scale, pods)
		if err != nil {
			bad := r.unable("FailedGetObjectMetric", err)
			if m.Object.Target.Type == autoscalingv2.AverageValueMetricType {
				err = fmt.Errorf("failed to get %s object metric: %w", m.Object.Metric.Name, err)
			}
			bad.err = fmt.Errorf("failed to get object metric value: %w", err)
			return 0, "", status, bad
		}
		status.Object = st
		return n, name, status, nil
	case autoscalingv2.ExternalMetricSourceType:
		n, name, st, err := r.external(m.External, scale, pods)
		if err != nil {
			bad := r.unable("FailedGetExternalMetric", err)
			if metric := m.External.Metric.Name; m.External.Target.AverageValue != nil {
				err = fmt.Errorf("failed to get %s external metric: %w", metric, err)
			} else {
				err = fmt.Errorf("failed to get external metric %s: %w", metric, err)
			}
			bad.err = fmt.Errorf("failed to get %s external metric value: %w", m.External.Metric.Name, err)
			return 0, "", status, bad
		}
		status.External = st
		return n, name, status, nil
	}
	err := fmt.Errorf("unknown metric source type %q", string(m.Type))
	return 0, "", status, &metricError{reason: "InvalidMetricSourceType", message: fmt.Sprintf("the HPA was unable to compute the replica count: %v", err), err: err}
}

// resource is computeStatusForResourceMetricGeneric. It compares with a value per
// pod or with a share of what pods request; without requests there is no share,
// and that is an error. Values are in thousandths, so that memory and CPU go the same way.
func (r *evaluation) resource(name v1.ResourceName, container string, target *autoscalingv2.MetricTarget, current int32, pods []*v1.Pod) (int32, string, autoscalingv2.MetricValueStatus, error) {
	// Upstream names the container's only for a utilization.
	what, share := fmt.Sprintf("%s resource", name), fmt.Sprintf("%s resource utilization (percentage of request)", name)
	if container != "" {
		share = fmt.Sprintf("%s container resource utilization (percentage of request)", name)
	}
	var value autoscalingv2.MetricValueStatus
	s, err := r.sample(name, container, pods)
	if err != nil {
		err = fmt.Errorf("unable to get metrics for resource %s: %w", name, err)
	}
	tol := r.tolerances()
	if target.AverageValue != nil {
		if err == nil {
			var p proposal
			if p, err = s.replicasFor(current, target.AverageValue.MilliValue(), tol); err == nil {
				value.AverageValue = quantity(name, p.value)
				return p.replicas, what, value, nil
			}
		}
		return 0, "", value, fmt.Errorf("failed to get %s usage: %w", name, err)
	}
	if target.AverageUtilization == nil {
		return 0, "", value, errors.New("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")
	}
	if err != nil {
		return 0, "", value, fmt.Errorf("failed to get %s utilization: %w", name, err)
	}
	s.share, s.container = true, container
	p, err := s.replicasFor(current, int64(*target.AverageUtilization), tol)
	if err != nil {
		return 0, "", value, fmt.Errorf("failed to get %s utilization: %w", name, err)
	}
	value.AverageUtilization = &p.utilization
	value.AverageValue = quantity(name, p.value)
	return p.replicas, share, value, nil
}

// quantity is a mean as a status has it: memory in powers of two, as metrics-server serves it.
func quantity(name v1.ResourceName, milli int64) *resource.Quantity {
	if name == v1.ResourceMemory {
		return resource.NewMilliQuantity(milli, resource.BinarySI)
	}
	return resource.NewMilliQuantity(milli, resource.DecimalSI)
}

// sample asks the metrics API for the pods' metrics (metrics/client.go
// GetResourceMetric). Pods without metrics yet are left out; that no pod has any
// is an error. A pod without metrics, or without those of the container, stays out of the map;
// group decides what that means.
func (r *evaluation) sample(name v1.ResourceName, container string, pods []*v1.Pod) (*sample, error) {
	s := &sample{metrics: make(map[string]podMetric, len(pods)), pods: pods, resource: name, now: r.now}
	if r.c.metrics == nil {
		return nil, errors.New("unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)")
	}
	any := false
	for _, pod := range pods {
		pm, ok := r.c.metrics.PodMetrics(pod)
		if !ok {
			continue
		}
		any = true
		m := podMetric{timestamp: pm.Timestamp, window: pm.Window}
		found := container == ""
		for _, c := range pm.Containers {
			if container != "" && c.Name != container {
				continue
			}
			found = true
			switch name {
			case v1.ResourceCPU:
				m.value += c.MilliCPU
			case v1.ResourceMemory:
				// Quantities count in thousandths (MilliValue).
				m.value += c.Memory * 1000
			default:
				found = false
			}
		}
		if found {
			s.metrics[pod.Name] = m
		}
	}
	if !any {
		return nil, errors.New("no metrics returned from resource metrics API")
	}
	return s, nil
}

// tolerances are the flag's, unless the rules have their own. Within them nothing
// moves, which keeps a target from swinging (HPAConfigurableTolerance). A tolerance of 0 has the
// target follow every change.
func (r *evaluation) tolerances() tolerances {
	t := tolerances{Tolerance, Tolerance}
	if b := r.hpa.Spec.Behavior; b != nil {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			t.down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			t.up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return t
}
