package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/drydock-sim/drydock/kubelet/server"
)

// HistogramSeries is the type of series that count values by size.
const HistogramSeries = "histogram"

// KubeletSeries is one series of the metrics that kubelets show (/metrics and
// /metrics/probes), taken together over all nodes.
type KubeletSeries struct {
	// Name is the family's, such as kubelet_runtime_operations_total.
	Name string
	// Labels are as the text format writes them, `operation_type="list_images"`; "" for none.
	Labels string
	// Type is counter, gauge or HistogramSeries.
	Type string
	// Value is the sum of the nodes' values; of a histogram, how many values there were.
	Value float64
	// Sum, P50 and P99 are of a histogram's values, in its unit. Percentiles are at most the
	// upper bound of the bucket that they fall in, as Prometheus' histogram_quantile has them;
	// what lies beyond the last bound is that bound.
	Sum, P50, P99 float64
}

// KubeletSeries are the series of all kubelets that run, in the order of names and labels,
// without those that are 0 on every node. Labels that name a pod, a container or a claim are left
// out: a series is the sum over them. What a kubelet counted before its last start is gone,
// as it is with the real one. It is for use between runs: it asks every node.
func (c *Cluster) KubeletSeries() []KubeletSeries {
	sums := map[[2]string]*seriesSum{}
	for _, n := range c.nodes {
		if n.kubelet == nil || n.group == nil {
			continue
		}
		for _, of := range [...]server.MetricsPath{server.Metrics, server.ProbeMetrics} {
			// A kubelet that is not up yet has none.
			families, err := n.kubelet.Host().Metrics(context.Background(), of)
			if err != nil {
				continue
			}
			for _, f := range families {
				if !adds(f.GetName()) {
					continue
				}
				for _, m := range f.Metric {
					key := [2]string{f.GetName(), seriesLabels(m)}
					if sums[key] == nil {
						sums[key] = &seriesSum{KubeletSeries: KubeletSeries{Name: key[0], Labels: key[1], Type: strings.ToLower(f.GetType().String())}}
					}
					sums[key].add(m)
				}
			}
		}
	}
	var out []KubeletSeries
	for _, s := range sums { //drydock:unordered sorted below
		if s.Value != 0 {
			out = append(out, s.done())
		}
	}
	slices.SortFunc(out, func(a, b KubeletSeries) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Labels, b.Labels))
	})
	return out
}

// adds reports whether the sum of a family over nodes says something: not of what the process has
// (such as which features are on), and not of what a node is.
func adds(family string) bool {
	switch family {
	case "kubelet_node_name", "kubelet_cgroup_version", "kubelet_metrics_provider", "kubelet_pleg_last_seen_seconds":
		return false
	}
	return strings.HasPrefix(family, "kubelet_") || strings.HasPrefix(family, "prober_")
}

// seriesLabels writes labels as the text format does, without those that name one object.
func seriesLabels(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label {
		switch l.GetName() {
		case "namespace", "pod", "pod_uid", "container", "persistentvolumeclaim":
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(l.GetName() + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(l.GetValue()) + `"`)
	}
	return b.String()
}

// seriesSum is a series while nodes are added to it.
type seriesSum struct {
	KubeletSeries
	buckets map[float64]uint64 // by upper bound, cumulative
}

func (s *seriesSum) add(m *dto.Metric) {
	h := m.GetHistogram()
	s.Value += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(h.GetSampleCount())
	s.Sum += h.GetSampleSum()
	for _, b := range h.GetBucket() {
		if s.buckets == nil {
			s.buckets = map[float64]uint64{}
		}
		s.buckets[b.GetUpperBound()] += b.GetCumulativeCount()
	}
}

func (s *seriesSum) done() KubeletSeries {
	bounds := slices.Sorted(maps.Keys(s.buckets)) //drydock:unordered sorted
	s.P50, s.P99 = s.quantile(bounds, 0.5), s.quantile(bounds, 0.99)
	return s.KubeletSeries
}

// quantile takes values as spread evenly over their bucket.
func (s *seriesSum) quantile(bounds []float64, q float64) float64 {
	rank := q * s.Value
	low, below := 0.0, 0.0
	for _, bound := range bounds {
		n := float64(s.buckets[bound])
		if n >= rank {
			if n == below {
				return low
			}
			return low + (bound-low)*(rank-below)/(n-below)
		}
		low, below = bound, n
	}
	return low
}
