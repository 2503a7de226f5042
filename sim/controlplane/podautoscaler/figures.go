package podautoscaler

import (
	"errors"
	"fmt"
	"math"
	"path"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Figure is a metric with a name, as adapters of monitoring systems serve them: one of an object or
// of pods (custom.metrics.k8s.io), or one of what is outside the cluster (external.metrics.k8s.io).
type Figure struct {
	Namespace, Name string
	// Labels are what a metric's selector chooses by.
	Labels map[string]string
	// Kind and Object are what it tells of; without a kind it is an external one. The object of kind
	// Pod is a pattern with * and ?.
	Kind, Object string
	// Value is in thousandths.
	Value int64
}

// same reports whether two figures differ in their values only.
func (f *Figure) same(o *Figure) bool {
	return f.Namespace == o.Namespace && f.Name == o.Name && f.Kind == o.Kind && f.Object == o.Object && labels.Equals(f.Labels, o.Labels)
}

// Figures are the metrics with names that there are, in the order in which they came. The zero value
// is a cluster in which nobody serves any. Both APIs are there from their first metric on.
type Figures struct{ list []Figure }

// Set says a figure's value from now on.
func (f *Figures) Set(is Figure) {
	for i := range f.list {
		if f.list[i].same(&is) {
			f.list[i] = is
			return
		}
	}
	f.list = append(f.list, is)
}

// find returns the figures of a name that a selector chooses, and whether there is an API that
// serves such: that of external ones, if kind is "".
func (f *Figures) find(namespace, kind, name string, selector *metav1.LabelSelector) (out []Figure, served bool, err error) {
	chosen := labels.Everything()
	if selector != nil {
		if chosen, err = metav1.LabelSelectorAsSelector(selector); err != nil {
			return nil, false, err
		}
	}
	if f == nil {
		return nil, false, nil
	}
	for _, is := range f.list {
		served = served || (is.Kind == "") == (kind == "")
		if is.Namespace == namespace && is.Kind == kind && is.Name == name && chosen.Matches(labels.Set(is.Labels)) {
			out = append(out, is)
		}
	}
	return out, served, nil
}

// What the clients of the two APIs say where nobody serves them (metrics/client.go).
var (
	errNoCustom   = errors.New("unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered")
	errNoExternal = errors.New("unable to fetch metrics from external metrics API: no external metrics API (external.metrics.k8s.io) registered")
)

// identifier is how a status names a metric.
func identifier(m *autoscalingv2.MetricIdentifier) autoscalingv2.MetricIdentifier {
	return autoscalingv2.MetricIdentifier{Name: m.Name, Selector: m.Selector}
}

// pods is computeStatusForPodsMetric: the mean of the pods' figures against a target per pod.
func (r *evaluation) pods(m *autoscalingv2.PodsMetricSource, current int32, pods []*v1.Pod) (int32, *autoscalingv2.PodsMetricStatus, error) {
	p, err := r.podFigures(m, current, pods)
	if err != nil {
		return 0, nil, err
	}
	value := autoscalingv2.MetricValueStatus{AverageValue: resource.NewMilliQuantity(p.value, resource.DecimalSI)}
	return p.replicas, &autoscalingv2.PodsMetricStatus{Metric: identifier(&m.Metric), Current: value}, nil
}

func (r *evaluation) podFigures(m *autoscalingv2.PodsMetricSource, current int32, pods []*v1.Pod) (proposal, error) {
	found, served, err := r.c.figures.find(r.hpa.Namespace, "Pod", m.Metric.Name, m.Metric.Selector)
	if err == nil && !served {
		err = errNoCustom
	}
	s := &sample{metrics: map[string]podMetric{}, pods: pods, now: r.now}
	for _, f := range found {
		for _, pod := range pods {
			if ok, _ := path.Match(f.Object, pod.Name); ok {
				s.metrics[pod.Name] = podMetric{timestamp: r.now, value: f.Value}
			}
		}
	}
	if err == nil && len(s.metrics) == 0 {
		err = errors.New("no metrics returned from custom metrics API")
	}
	if err != nil {
		return proposal{}, fmt.Errorf("unable to get metric %s: %w", m.Metric.Name, err)
	}
	return s.replicasFor(current, m.Target.AverageValue.MilliValue(), r.tolerances())
}

// object is computeStatusForObjectMetric: a figure of one object against a target for all pods, or
// per pod.
func (r *evaluation) object(m *autoscalingv2.ObjectMetricSource, scale *autoscalingv1.Scale, pods []*v1.Pod) (int32, string, *autoscalingv2.ObjectMetricStatus, error) {
	o := &m.DescribedObject
	found, served, err := r.c.figures.find(r.hpa.Namespace, o.Kind, m.Metric.Name, m.Metric.Selector)
	var usage *int64
	for i := range found {
		if found[i].Object == o.Name {
			usage = &found[i].Value
		}
	}
	switch {
	case err == nil && !served:
		err = errNoCustom
	case err == nil && usage == nil:
		err = fmt.Errorf("unable to fetch metrics from custom metrics API: the server could not find the metric %s for %s %s", m.Metric.Name, o.Kind, o.Name)
	}
	if err != nil {
		// The words are in upstream's order.
		return 0, "", nil, fmt.Errorf("unable to get metric %s: %s on %s %s/%w", m.Metric.Name, o.Kind, r.hpa.Namespace, o.Name, err)
	}
	status := &autoscalingv2.ObjectMetricStatus{DescribedObject: *o, Metric: identifier(&m.Metric)}
	n, value, err := r.whole(*usage, &m.Target, scale, pods, "object")
	status.Current = value
	if m.Target.Type == autoscalingv2.ValueMetricType {
		return n, fmt.Sprintf("%s metric %s", o.Kind, m.Metric.Name), status, err
	}
	return n, fmt.Sprintf("external metric %s(%+v)", m.Metric.Name, m.Metric.Selector), status, err
}

// external is computeStatusForExternalMetric: the sum of the figures that a selector chooses.
func (r *evaluation) external(m *autoscalingv2.ExternalMetricSource, scale *autoscalingv1.Scale, pods []*v1.Pod) (int32, string, *autoscalingv2.ExternalMetricStatus, error) {
	found, served, err := r.c.figures.find(r.hpa.Namespace, "", m.Metric.Name, m.Metric.Selector)
	switch {
	case err == nil && !served:
		err = errNoExternal
	case err == nil && len(found) == 0:
		err = errors.New("no metrics returned from external metrics API")
	}
	if err != nil {
		return 0, "", nil, fmt.Errorf("unable to get external metric %s/%s/%+v: %w", r.hpa.Namespace, m.Metric.Name, m.Metric.Selector, err)
	}
	var usage int64
	for _, f := range found {
		usage += f.Value
	}
	status := &autoscalingv2.ExternalMetricStatus{Metric: identifier(&m.Metric)}
	n, value, err := r.whole(usage, &m.Target, scale, pods, "external")
	status.Current = value
	return n, fmt.Sprintf("external metric %s(%+v)", m.Metric.Name, m.Metric.Selector), status, err
}

// whole is what a figure of all calls for: against a target per pod, of as many as the status has
// (GetExternalPerPodMetricReplicas), or against one for all, of the pods that are ready
// (getUsageRatioReplicaCount).
func (r *evaluation) whole(usage int64, target *autoscalingv2.MetricTarget, scale *autoscalingv1.Scale, pods []*v1.Pod, source string) (int32, autoscalingv2.MetricValueStatus, error) {
	var value autoscalingv2.MetricValueStatus
	tol := r.tolerances()
	switch {
	case target.AverageValue != nil:
		n, per := scale.Status.Replicas, float64(target.AverageValue.MilliValue())
		if !tol.within(float64(usage) / (per * float64(n))) {
			n = ceil(float64(usage) / per)
		}
		value.AverageValue = resource.NewMilliQuantity(int64(math.Ceil(float64(usage)/float64(max(scale.Status.Replicas, 1)))), resource.DecimalSI)
		return n, value, nil
	case target.Value != nil:
		value.Value = resource.NewMilliQuantity(usage, resource.DecimalSI)
		ratio := float64(usage) / float64(target.Value.MilliValue())
		if tol.within(ratio) {
			return scale.Spec.Replicas, value, nil
		}
		if len(pods) == 0 {
			return 0, value, errors.New("unable to calculate ready pods: no pods returned by selector while calculating replica count")
		}
		ready := 0
		for _, pod := range pods {
			for i := range pod.Status.Conditions {
				if c := &pod.Status.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionTrue && pod.Status.Phase == v1.PodRunning {
					ready++
				}
			}
		}
		return ceil(ratio * float64(ready)), value, nil
	}
	return 0, value, fmt.Errorf("invalid %s metric source: neither a value target nor an average value target was set", source)
}
