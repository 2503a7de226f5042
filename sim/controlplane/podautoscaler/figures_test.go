package podautoscaler

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFigures holds what metrics with names call for, of two pods of which one is ready, to what
// upstream's replica_calculator.go makes of them, and its words where there are none.
func TestFigures(t *testing.T) {
	q := func(s string) *resource.Quantity { v := resource.MustParse(s); return &v }
	jobs := &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "jobs"}}
	figures := &Figures{}
	figures.Set(Figure{Namespace: "x", Name: "queue", Labels: map[string]string{"queue": "jobs"}, Value: 1})
	figures.Set(Figure{Namespace: "x", Name: "queue", Labels: map[string]string{"queue": "jobs"}, Value: 35_000})
	figures.Set(Figure{Namespace: "x", Name: "queue", Labels: map[string]string{"queue": "jobs", "shard": "b"}, Value: 5_000})
	figures.Set(Figure{Namespace: "x", Name: "queue", Labels: map[string]string{"queue": "mail"}, Value: 900_000})
	figures.Set(Figure{Namespace: "y", Name: "queue", Labels: map[string]string{"queue": "jobs"}, Value: 900_000})
	figures.Set(Figure{Namespace: "x", Name: "served", Kind: "Pod", Object: "web-*", Value: 150_000})
	figures.Set(Figure{Namespace: "x", Name: "latency", Kind: "Ingress", Object: "main", Value: 450})
	external := func(selector *metav1.LabelSelector, target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "queue", Selector: selector}, Target: target}}
	}
	object := func(name string, target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Ingress", Name: name}, Metric: autoscalingv2.MetricIdentifier{Name: "latency"}, Target: target}}
	}
	average := func(v string) autoscalingv2.MetricTarget {
		return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: q(v)}
	}
	value := func(v string) autoscalingv2.MetricTarget {
		return autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: q(v)}
	}
	served := autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "served"}, Target: average("100")}}
	for _, c := range []struct {
		name      string
		figures   *Figures
		metric    autoscalingv2.MetricSpec
		want      int32
		says, err string
	}{
		{name: "the sum of the series by the target per pod", metric: external(jobs, average("10")), want: 4, says: "external metric queue(&LabelSelector{MatchLabels:map[string]string{queue: jobs,},MatchExpressions:[]LabelSelectorRequirement{},})"},
		{name: "within the tolerance", metric: external(jobs, average("21")), want: 2, says: "external metric queue(&LabelSelector{MatchLabels:map[string]string{queue: jobs,},MatchExpressions:[]LabelSelectorRequirement{},})"},
		{name: "against a target for all: of the ready pods", metric: external(jobs, value("10")), want: 4, says: "external metric queue(&LabelSelector{MatchLabels:map[string]string{queue: jobs,},MatchExpressions:[]LabelSelectorRequirement{},})"},
		{name: "pods", metric: served, want: 3, says: "pods metric served"},
		{name: "an object", metric: object("main", value("200m")), want: 3, says: "Ingress metric latency"},
		{name: "an object, per pod", metric: object("main", average("50m")), want: 9, says: "external metric latency(nil)"},
		{name: "another object", metric: object("other", value("1")), err: "unable to get metric latency: Ingress on x other/unable to fetch metrics from custom metrics API: the server could not find the metric latency for Ingress other"},
		{name: "a series that is not there", metric: external(&metav1.LabelSelector{MatchLabels: map[string]string{"queue": "none"}}, average("1")),
			err: "unable to get external metric x/queue/&LabelSelector{MatchLabels:map[string]string{queue: none,},MatchExpressions:[]LabelSelectorRequirement{},}: no metrics returned from external metrics API"},
		{name: "nobody serves any", figures: &Figures{}, metric: served, err: "unable to get metric served: unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"},
	} {
		f := c.figures
		if f == nil {
			f = figures
		}
		pods := samples(false, podState{ready: true}, podState{}).pods
		for i := range pods {
			pods[i].Name = "web-" + pods[i].Name
		}
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}, Status: autoscalingv1.ScaleStatus{Replicas: 2}}
		hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web"}}
		r := &evaluation{c: &Controller{figures: f}, hpa: hpa, now: t0}
		var n int32
		var says string
		var err error
		switch {
		case c.metric.Pods != nil:
			says = "pods metric served"
			n, _, err = r.pods(c.metric.Pods, 2, pods)
		case c.metric.Object != nil:
			n, says, _, err = r.object(c.metric.Object, scale, pods)
		default:
			n, says, _, err = r.external(c.metric.External, scale, pods)
		}
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != c.err || err == nil && (n != c.want || says != c.says) {
			t.Errorf("%s: %d by %q, error %q; want %d by %q, error %q", c.name, n, says, said, c.want, c.says, c.err)
		}
	}
}
