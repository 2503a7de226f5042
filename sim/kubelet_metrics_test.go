package sim

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/server"
)

// TestKubeletMetrics holds that a kubelet counts what it does, and passes that are
// elided as if they had been made.
func TestKubeletMetrics(t *testing.T) {
	counts := func(elision loop.ElisionMode) map[string]float64 {
		c, err := New(Options{Seed: 1, Workers: 1, Elision: elision})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		n, err := c.AddNode(NodeOptions{Name: "worker"})
		if err != nil {
			t.Fatal(err)
		}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1.PodSpec{NodeName: "worker", Containers: []v1.Container{{
			Name: "app", Image: "app:1", ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(80)}}, PeriodSeconds: 10},
		}}}}
		c.At(time.Second, func() {
			if _, err := c.API().Create(pod); err != nil {
				t.Error(err)
			}
		})
		if err := c.RunUntil(2 * time.Minute); err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		host := n.Kubelet().Host()
		for _, path := range []server.MetricsPath{server.Metrics, server.ProbeMetrics} {
			families, err := host.Metrics(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				for _, m := range f.Metric {
					out[f.GetName()+labels(m)] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
		h := server.New(server.Options{Host: host, Config: &kubeletconfig.KubeletConfiguration{}})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if w.Code != 200 || !strings.Contains(w.Body.String(), "\nkubelet_running_pods 1\n") {
			t.Errorf("/metrics: %d %s", w.Code, w.Body)
		}
		return out
	}
	seen := counts(loop.Elide)
	for name, want := range map[string]float64{
		`kubelet_running_pods{}`: 1, `kubelet_running_containers{container_state="running"}`: 1, `kubelet_desired_pods{static=""}`: 1,
		`kubelet_active_pods{static=""}`: 1, `kubelet_started_pods_total{}`: 1, `kubelet_started_containers_total{container_type="container"}`: 1,
		`kubelet_pod_start_duration_seconds{}`: 1, `kubelet_containers_per_pod_count{}`: 1,
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"}`: 1, `kubelet_runtime_operations_total{operation_type="pull_image"}`: 1,
		`kubelet_node_name{node="worker"}`: 1, `kubelet_working_pods{config="desired",lifecycle="sync",static=""}`: 1,
		`kubelet_image_manager_ensure_image_requests_total{present_locally="false",pull_policy="ifnotpresent",pull_required="true"}`: 1,
	} {
		if seen[name] != want {
			t.Errorf("%s: %v, want %v", name, seen[name], want)
		}
	}
	all := counts(loop.NoElide)
	for _, name := range []string{
		`kubelet_pleg_relist_duration_seconds{}`, `kubelet_pleg_relist_interval_seconds{}`, `kubelet_pod_worker_duration_seconds{operation_type="sync"}`,
		`prober_probe_total{container="app",namespace="default",pod="web",probe_type="Readiness",result="successful"}`,
	} {
		if seen[name] != all[name] || seen[name] == 0 {
			t.Errorf("%s: %v, without elision %v", name, seen[name], all[name])
		}
	}
}

// labels are a metric's but for UIDs, as text.
func labels(m *dto.Metric) string {
	var out []string
	for _, l := range m.Label {
		if l.GetName() != "pod_uid" {
			out = append(out, l.GetName()+`="`+l.GetValue()+`"`)
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

// TestKubeletSeries holds what becomes of two nodes' metrics: sums, percentiles of all values, no
// labels of single pods, nothing of what a node is.
func TestKubeletSeries(t *testing.T) {
	c, err := New(Options{Seed: 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, node := range []string{"a", "b"} {
		if _, err := c.AddNode(NodeOptions{Name: node}); err != nil {
			t.Fatal(err)
		}
		c.At(time.Second, func() {
			if _, err := c.API().Create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-" + node}, Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{
				Name: "app", Image: "app:1", ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(80)}}, PeriodSeconds: 10},
			}}}}); err != nil {
				t.Error(err)
			}
		})
	}
	if err := c.RunUntil(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	got := map[string]KubeletSeries{}
	for _, s := range c.KubeletSeries() {
		if _, twice := got[s.Name+s.Labels]; twice || s.Value == 0 || strings.Contains(s.Labels, "pod=") || s.Name == "kubelet_node_name" {
			t.Errorf("unexpected series: %+v", s)
		}
		got[s.Name+s.Labels] = s
	}
	for name, want := range map[string]float64{
		"kubelet_running_pods": 2,
		`kubelet_started_containers_total` + `container_type="container"`:      2,
		`prober_probe_total` + `probe_type="Readiness",result="successful"`:    26,
		`kubelet_runtime_operations_total` + `operation_type="run_podsandbox"`: 2,
	} {
		if got[name].Value != want {
			t.Errorf("%s is %v, want %v", name, got[name].Value, want)
		}
	}
	if s := got["kubelet_pod_start_duration_seconds"]; s.Type != HistogramSeries || s.Value != 2 || s.P50 <= 0 || s.P99 < s.P50 || s.Sum/2 > s.P99 {
		t.Errorf("starts of pods: %+v", s)
	}
}
