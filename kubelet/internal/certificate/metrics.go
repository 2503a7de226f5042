package certificate

import (
	"crypto/tls"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/certificate"
)

// Metrics are what a process tells of its certificates, by upstream's names.
type Metrics struct {
	clientErrors, serverErrors prometheus.Counter
	serverRotation             prometheus.Histogram
	// client and server are the rotations there are; a family without one is not told.
	client, server atomic.Pointer[current]
}

// NewMetrics returns metrics without a rotation.
func NewMetrics() *Metrics {
	return &Metrics{
		clientErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kubelet_certificate_manager_client_expiration_renew_errors", Help: "[ALPHA] Counter of certificate renewal errors."}),
		serverErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kubelet_server_expiration_renew_errors", Help: "[ALPHA] Counter of certificate renewal errors."}),
		serverRotation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kubelet_certificate_manager_server_rotation_seconds",
			Help: "[ALPHA] Histogram of the number of seconds the previous certificate lived before being rotated.",
			// A minute, an hour, 4 hours, a day, a week, 1, 3, 6 and 12 months, 4 years.
			Buckets: []float64{60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000},
		}),
	}
}

// Gatherer returns what gathers the metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	return r
}

// Describe implements prometheus.Collector. Which families there are is not known before.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	if left, ok := ttl(&m.client); ok {
		m.clientErrors.Collect(out)
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("kubelet_certificate_manager_client_ttl_seconds",
			"[ALPHA] Gauge of the TTL (time-to-live) of the Kubelet's client certificate. "+
				"The value is in seconds until certificate expiry (negative if already expired). "+
				"If client certificate is invalid or unused, the value will be +INF.", nil, nil), prometheus.GaugeValue, left)
	}
	if left, ok := ttl(&m.server); ok {
		m.serverErrors.Collect(out)
		m.serverRotation.Collect(out)
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("kubelet_certificate_manager_server_ttl_seconds",
			"[ALPHA] Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. "+
				"The value is in seconds until certificate expiry (negative if already expired). "+
				"If serving certificate is invalid or unused, the value will be +INF.", nil, nil), prometheus.GaugeValue, left)
	}
}

// current is a manager whose certificate is looked at.
type current struct{ certificate.Manager }

// ttl is what is left of a rotation's certificate; false: there is no rotation.
func ttl(of *atomic.Pointer[current]) (float64, bool) {
	m := of.Load()
	if m == nil {
		return 0, false
	}
	return secondsLeft(m.Current(), time.Now()), true
}

// secondsLeft is for how many whole seconds a certificate is good; +Inf: there is none.
func secondsLeft(c *tls.Certificate, now time.Time) float64 {
	if c == nil || c.Leaf == nil {
		return math.Inf(1)
	}
	return math.Trunc(c.Leaf.NotAfter.Sub(now).Seconds())
}
