package metrics

import (
	"time"

	"github.com/google/cadvisor/container"
	cadvisorapi "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/clock"

	"github.com/drydock-sim/drydock/kubelet/stats"
)

// CAdvisor are the families of /metrics/cadvisor, made by cAdvisor's own collectors, with
// the labels that upstream's server has them make.
func CAdvisor(of *stats.Cgroups, now time.Time) ([]*dto.MetricFamily, error) {
	included := container.MetricSet{}
	for _, kind := range [...]container.MetricKind{
		container.CpuUsageMetrics, container.MemoryUsageMetrics, container.CpuLoadMetrics, container.DiskIOMetrics, container.DiskUsageMetrics,
		container.NetworkUsageMetrics, container.AppMetrics, container.ProcessMetrics, container.OOMMetrics,
	} {
		included[kind] = struct{}{}
	}
	if of.Pressure {
		included[container.PressureMetrics] = struct{}{}
	}
	r := prometheus.NewRegistry()
	r.MustRegister(metrics.NewPrometheusMachineCollector(cgroups{of}, included),
		metrics.NewPrometheusCollector(cgroups{of}, cgroupLabels, included, still{now: now}, v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true}))
	return r.Gather()
}

// cgroups answers the collectors.
type cgroups struct{ of *stats.Cgroups }

// GetRequestedContainersInfo returns all cgroups.
func (c cgroups) GetRequestedContainersInfo(string, v2.RequestOptions) (map[string]*cadvisorapi.ContainerInfo, error) {
	out := make(map[string]*cadvisorapi.ContainerInfo, len(c.of.List))
	for _, g := range c.of.List {
		out[g.Name] = g
	}
	return out, nil
}

// GetVersionInfo returns the machine's versions.
func (c cgroups) GetVersionInfo() (*cadvisorapi.VersionInfo, error) { return c.of.Version, nil }

// GetMachineInfo returns what the machine is.
func (c cgroups) GetMachineInfo() (*cadvisorapi.MachineInfo, error) { return c.of.Machine, nil }

// cgroupLabels are the labels of a cgroup's metrics; all have all of them.
func cgroupLabels(c *cadvisorapi.ContainerInfo) map[string]string {
	name := ""
	if len(c.Aliases) > 0 {
		name = c.Aliases[0]
	}
	return map[string]string{
		metrics.LabelID: c.Name, metrics.LabelName: name, metrics.LabelImage: c.Spec.Image, "pod": c.Spec.Labels["io.kubernetes.pod.name"],
		"namespace": c.Spec.Labels["io.kubernetes.pod.namespace"], "container": c.Spec.Labels["io.kubernetes.container.name"],
	}
}

// still is a clock that stands at the time of the question.
type still struct {
	clock.Clock
	now time.Time
}

// Now implements clock.Clock.
func (s still) Now() time.Time { return s.now }
