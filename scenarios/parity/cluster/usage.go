package cluster

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
)

const (
	// metricsFrom is from when on the recorded metrics API told of a pod, and the window that it
	// said.
	metricsFrom   = 15 * time.Second
	metricsWindow = 15 * time.Second
)

// usages is the metrics API of the recordings: it tells of each running pod, as of this moment, what
// was stated for its label app.
type usages struct {
	now func() time.Time
	of  map[string]podautoscaler.ContainerMetrics
}

func newUsages() *usages { return &usages{of: map[string]podautoscaler.ContainerMetrics{}} }

// set states what pods use from now on.
func (u *usages) set(app, cpu, memory string) error {
	m := podautoscaler.ContainerMetrics{}
	for _, f := range []struct {
		text string
		set  func(q resource.Quantity)
	}{
		{cpu, func(q resource.Quantity) { m.MilliCPU = q.MilliValue() }},
		{memory, func(q resource.Quantity) { m.Memory = q.Value() }},
	} {
		if f.text == "" {
			continue
		}
		q, err := resource.ParseQuantity(f.text)
		if err != nil {
			return fmt.Errorf("%q is no quantity", f.text)
		}
		f.set(q)
	}
	u.of[app] = m
	return nil
}

// Watch implements podautoscaler.Metrics. There is nothing to be begun.
func (u *usages) Watch(string, func(*v1.Pod) bool) (stop func()) { return func() {} }

// PodMetrics implements podautoscaler.Metrics.
func (u *usages) PodMetrics(pod *v1.Pod) (podautoscaler.PodMetrics, bool) {
	m, stated := u.of[pod.Labels["app"]]
	if !stated || pod.Status.Phase != v1.PodRunning || len(pod.Spec.Containers) == 0 {
		return podautoscaler.PodMetrics{}, false
	}
	for i := range pod.Status.ContainerStatuses {
		if r := pod.Status.ContainerStatuses[i].State.Running; r == nil || u.now().Sub(r.StartedAt.Time) < metricsFrom {
			return podautoscaler.PodMetrics{}, false
		}
	}
	m.Name = pod.Spec.Containers[0].Name
	return podautoscaler.PodMetrics{Timestamp: u.now(), Window: metricsWindow, Containers: []podautoscaler.ContainerMetrics{m}}, true
}
