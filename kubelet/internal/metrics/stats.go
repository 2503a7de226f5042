package metrics

import (
	"cmp"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Resources are the families of /metrics/resource (upstream's collectors of that
// name); nil: the statistics could not be had.
func Resources(s *statsapi.Summary) []*dto.MetricFamily {
	b := &builder{}
	failed := 0.0
	if s == nil {
		failed = 1
	} else {
		b.usage("node", &s.Node, nil)
		for i := range s.Pods {
			b.pod(&s.Pods[i])
		}
	}
	b.gauge("scrape_error", failed)
	b.gauge("resource_scrape_error", failed)
	slices.SortFunc(b.out, func(a, c *dto.MetricFamily) int { return cmp.Compare(a.GetName(), c.GetName()) })
	return b.out
}

// pod adds a pod's and its containers'.
func (b *builder) pod(p *statsapi.PodStats) {
	labels := []string{"namespace", p.PodRef.Namespace, "pod", p.PodRef.Name}
	b.usage("pod", &statsapi.NodeStats{CPU: p.CPU, Memory: p.Memory, Swap: p.Swap}, labels)
	for i := range p.Containers {
		c := &p.Containers[i]
		of := append([]string{"container", c.Name}, labels...)
		if !c.StartTime.IsZero() {
			b.gauge("container_start_time_seconds", float64(c.StartTime.UnixNano())/float64(time.Second), of...)
		}
		b.usage("container", &statsapi.NodeStats{CPU: c.CPU, Memory: c.Memory, Swap: c.Swap}, of)
		if c.Swap != nil && c.Swap.SwapAvailableBytes != nil && c.Swap.SwapUsageBytes != nil {
			limit := float64(*c.Swap.SwapAvailableBytes + *c.Swap.SwapUsageBytes)
			b.add("container_swap_limit_bytes", &dto.Metric{Gauge: &dto.Gauge{Value: &limit}, TimestampMs: stamp(c.Swap.Time)}, of...)
		}
	}
}

// usage adds what a node, a pod or a container uses, with the times of the statistics.
func (b *builder) usage(of string, s *statsapi.NodeStats, labels []string) {
	if c := s.CPU; c != nil && c.UsageCoreNanoSeconds != nil {
		v := float64(*c.UsageCoreNanoSeconds) / float64(time.Second)
		b.add(of+"_cpu_usage_seconds_total", &dto.Metric{Counter: &dto.Counter{Value: &v}, TimestampMs: stamp(c.Time)}, labels...)
	}
	if m := s.Memory; m != nil && m.WorkingSetBytes != nil {
		v := float64(*m.WorkingSetBytes)
		b.add(of+"_memory_working_set_bytes", &dto.Metric{Gauge: &dto.Gauge{Value: &v}, TimestampMs: stamp(m.Time)}, labels...)
	}
	if w := s.Swap; w != nil && w.SwapUsageBytes != nil {
		v := float64(*w.SwapUsageBytes)
		b.add(of+"_swap_usage_bytes", &dto.Metric{Gauge: &dto.Gauge{Value: &v}, TimestampMs: stamp(w.Time)}, labels...)
	}
}

// claims adds how much there is in the volumes of claims (pkg/kubelet/metrics/collectors).
func (b *builder) claims(list []statsapi.VolumeStats) {
	for i := range list {
		v := &list[i]
		labels := []string{"namespace", v.PVCRef.Namespace, "persistentvolumeclaim", v.PVCRef.Name}
		b.gauge("kubelet_volume_stats_available_bytes", float64(*v.AvailableBytes), labels...)
		b.gauge("kubelet_volume_stats_capacity_bytes", float64(*v.CapacityBytes), labels...)
		b.gauge("kubelet_volume_stats_inodes", float64(*v.Inodes), labels...)
		b.gauge("kubelet_volume_stats_inodes_free", float64(*v.InodesFree), labels...)
		b.gauge("kubelet_volume_stats_inodes_used", float64(*v.InodesUsed), labels...)
		b.gauge("kubelet_volume_stats_used_bytes", float64(*v.UsedBytes), labels...)
		if h := v.VolumeHealthStats; h != nil {
			abnormal := 0.0
			if h.Abnormal {
				abnormal = 1
			}
			b.gauge("kubelet_volume_stats_health_status_abnormal", abnormal, labels...)
		}
	}
}

// stamp is a time of statistics in ms.
func stamp(t metav1.Time) *int64 {
	ms := t.UnixMilli()
	return &ms
}

// Probe is how often a probe of a container came to each result.
type Probe struct {
	Namespace, Pod, UID, Container, Type string
	Successful, Failed, Unknown          uint64
}

// Probes are the families of /metrics/probes. started is when the kubelet was, in s
// since the Unix epoch.
func Probes(list []Probe, started float64) []*dto.MetricFamily {
	b := &builder{}
	for i := range list {
		p := &list[i]
		for _, r := range [...]struct {
			name string
			n    uint64
		}{{"failed", p.Failed}, {"successful", p.Successful}, {"unknown", p.Unknown}} {
			if r.n > 0 {
				b.counter("prober_probe_total", r.n,
					"container", p.Container, "namespace", p.Namespace, "pod", p.Pod, "pod_uid", p.UID, "probe_type", p.Type, "result", r.name)
			}
		}
	}
	b.gauge("process_start_time_seconds", started)
	return b.out
}
