package server

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// hostGatherer gathers the host's families for one request.
type hostGatherer struct {
	ctx  context.Context
	host Host
	of   MetricsPath
}

// Gather implements prometheus.Gatherer.
func (g hostGatherer) Gather() ([]*dto.MetricFamily, error) { return g.host.Metrics(g.ctx, g.of) }

// metricsHandler serves one of the paths of metrics. What could be gathered is
// served although something could not.
func (s *Server) metricsHandler(of MetricsPath) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := prometheus.Gatherers{hostGatherer{r.Context(), s.o.Host, of}}
		if of == Metrics && s.o.Process != nil {
			g = append(g, s.o.Process)
		}
		promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
	})
}

// serveSLIs serves how the health checks went: kubernetes_healthcheck, which is 1 for
// each that passes now. Only the process counts how often (component-base's slis).
func (s *Server) serveSLIs(w http.ResponseWriter, r *http.Request) {
	family := gauge("kubernetes_healthcheck", "[STABLE] This metric records the result of a single healthcheck.")
	for _, c := range s.o.Checks {
		value := 1.0
		if c.Check() != nil {
			value = 0
		}
		family.Metric = append(family.Metric, &dto.Metric{
			Label: []*dto.LabelPair{label("name", c.Name), label("type", "healthz")}, Gauge: &dto.Gauge{Value: &value},
		})
	}
	var all []*dto.MetricFamily
	if len(family.Metric) > 0 {
		all = append(all, family)
	}
	g := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return all, nil })
	promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
}

func gauge(name, help string) *dto.MetricFamily {
	t := dto.MetricType_GAUGE
	return &dto.MetricFamily{Name: &name, Help: &help, Type: &t}
}

func label(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
