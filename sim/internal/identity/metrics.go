package identity

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/utils/ptr"
)

// Families are what /metrics tells of the certificates that the running kubelet rotates, by
// upstream's names and in their order.
func (i *Identity) Families() []*dto.MetricFamily {
	p := i.now
	var out []*dto.MetricFamily
	if p == nil {
		return nil
	}
	if m := p.client; m != nil {
		out = append(out,
			counter("kubelet_certificate_manager_client_expiration_renew_errors", "[ALPHA] Counter of certificate renewal errors.", m.failures),
			m.ttl("kubelet_certificate_manager_client_ttl_seconds", "[ALPHA] Gauge of the TTL (time-to-live) of the Kubelet's client certificate. "+
				"The value is in seconds until certificate expiry (negative if already expired). If client certificate is invalid or unused, the value will be +INF."))
	}
	if m := p.serving; m != nil {
		out = append(out,
			rotations("kubelet_certificate_manager_server_rotation_seconds", "[ALPHA] Histogram of the number of seconds the previous certificate lived before being rotated.", m.lived),
			m.ttl("kubelet_certificate_manager_server_ttl_seconds", "[ALPHA] Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. "+
				"The value is in seconds until certificate expiry (negative if already expired). If serving certificate is invalid or unused, the value will be +INF."),
			counter("kubelet_server_expiration_renew_errors", "[ALPHA] Counter of certificate renewal errors.", m.failures))
	}
	return out
}

func counter(name, help string, n int) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Counter: &dto.Counter{Value: ptr.To(float64(n))}}}}
}

// ttl is for how many whole seconds the certificate is good. As upstream's managers hand out none
// that has expired, it never is below 0.
func (m *manager) ttl(name, help string) *dto.MetricFamily {
	left, now := math.Inf(1), m.p.i.opts.Loop.Now()
	if m.cert.good(now) {
		left = math.Trunc(m.cert.until.Sub(now).Seconds())
	}
	return &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &left}}}}
}

// rotations is a histogram of how long certificates were used.
func rotations(name, help string, lived []time.Duration) *dto.MetricFamily {
	h := &dto.Histogram{SampleCount: ptr.To(uint64(len(lived))), SampleSum: ptr.To(0.0)}
	for _, d := range lived {
		*h.SampleSum += d.Seconds()
	}
	// A minute, an hour, 4 hours, a day, a week, 1, 3, 6 and 12 months, 4 years.
	for _, bound := range []float64{60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000} {
		b := &dto.Bucket{UpperBound: ptr.To(bound), CumulativeCount: ptr.To(uint64(0))}
		for _, d := range lived {
			if d.Seconds() <= bound {
				*b.CumulativeCount++
			}
		}
		h.Bucket = append(h.Bucket, b)
	}
	return &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: h}}}
}
