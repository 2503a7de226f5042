package action

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
)

// Metric says the value of a custom or external metric.
//
// In the timeline: says the value of a metric that a HorizontalPodAutoscaler asks for by name, from now on.
type Metric struct {
	// The metric's name.
	Name string `json:"name" required:""`
	// Its namespace. default unless said.
	Namespace string `json:"namespace,omitempty"`
	// Labels by which the metric's selector chooses.
	Labels map[string]string `json:"labels,omitempty"`
	// What it tells of: Pod for metrics of type Pods, another kind for those of type Object. Without a kind it is an
	// external one.
	Kind string `json:"kind,omitempty"`
	// The name of what it tells of; of pods a pattern with * and ?.
	Object string `json:"object,omitempty"`
	// The value, as a quantity: 30, 100m, 2k.
	Value string `json:"value" required:""`
}

// OnlySimulated is because on a machine no autoscaler runs.
func (*Metric) OnlySimulated() {}

// Check wants a quantity, and an object where there is a kind.
func (a *Metric) Check(at Place) {
	a.Namespace = cmp.Or(a.Namespace, "default")
	if a.Value != "" {
		if _, err := resource.ParseQuantity(a.Value); err != nil {
			at.Field("value").Errorf("%q is no quantity", a.Value)
		}
	}
	if (a.Kind == "") != (a.Object == "") {
		at.Errorf("kind and object go together: without both it is an external metric")
	}
}

// Do states the value; autoscalers find it with their next look.
func (a *Metric) Do(s Stage) error {
	q, err := resource.ParseQuantity(a.Value)
	if err != nil {
		return fmt.Errorf("metric %s: %w", a.Name, err)
	}
	note(s, "metric "+a.Namespace+"/"+a.Name, "set", trace.Str("value", a.Value))
	s.Cluster().Figures().Set(podautoscaler.Figure{Namespace: a.Namespace, Name: a.Name, Labels: a.Labels, Kind: a.Kind, Object: a.Object, Value: q.MilliValue()})
	return nil
}
