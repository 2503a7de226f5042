package metrics

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// shape is what a family says of itself, and the names of its labels.
type shape struct {
	kind, help string
	labels     []string
}

// recorded reads the shapes of a recording of the real kubelet.
func recorded(t *testing.T, file string) map[string]shape {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]shape{}
	sample := regexp.MustCompile(`^(\w+?)(?:_sum|_count|_bucket)?(?:\{(.*)\})?(?: .*)?$`)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if f := strings.SplitN(line, " ", 4); f[0] == "#" {
			s := out[f[2]]
			if f[1] == "HELP" {
				s.help = f[3]
			} else {
				s.kind = strings.ToUpper(f[3])
			}
			out[f[2]] = s
			continue
		}
		m := sample.FindStringSubmatch(line)
		name := m[1]
		if _, ok := out[name]; !ok {
			name, _, _ = strings.Cut(line, "{")
			name, _, _ = strings.Cut(name, " ")
		}
		s := out[name]
		s.labels = nil
		for l := range strings.SplitSeq(m[2], ",") {
			if l, _, _ = strings.Cut(l, "="); l != "" && l != "le" {
				s.labels = append(s.labels, l)
			}
		}
		out[name] = s
	}
	return out
}

// TestShapes holds that families have the real kubelet's types, help and labels.
func TestShapes(t *testing.T) {
	k := &Kubelet{}
	for o := range operations {
		k.Call(o, 1e6, errors.New("down"))
	}
	k.Sandbox("", 1e9, true, errors.New("down"))
	k.Started(Container)
	k.StartFailed(Container, "ErrImagePull")
	k.Relist(1e6, 1e9)
	k.Worker(Create, 1e6)
	k.PodCreated(2, 1e6)
	k.PodRuns(1e9)
	k.Rejected("OutOfcpu")
	k.Image("always", nil, nil)
	k.Ended(Container, 1, "Error")
	k.StatusSent(1e6)
	s := &State{NodeName: "n", CgroupVersion: 2, Containers: map[string]int{"running": 1}, Evictions: map[string]uint64{"memory.available": 1}}
	n := uint64(1)
	pod := statsapi.PodStats{PodRef: statsapi.PodReference{Name: "p", Namespace: "d"}}
	pod.CPU, pod.Memory, pod.Swap = &statsapi.CPUStats{UsageCoreNanoSeconds: &n}, &statsapi.MemoryStats{WorkingSetBytes: &n}, &statsapi.SwapStats{SwapUsageBytes: &n, SwapAvailableBytes: &n}
	pod.Containers = []statsapi.ContainerStats{{Name: "c", StartTime: metav1.Unix(1, 0), CPU: pod.CPU, Memory: pod.Memory, Swap: pod.Swap}}
	summary := &statsapi.Summary{Node: statsapi.NodeStats{CPU: pod.CPU, Memory: pod.Memory, Swap: pod.Swap}, Pods: []statsapi.PodStats{pod}}
	compare := func(file string, got []*dto.MetricFamily, all bool) {
		want := recorded(t, file)
		for i, f := range got {
			if i > 0 && f.GetName() <= got[i-1].GetName() {
				t.Errorf("%s comes after %s", f.GetName(), got[i-1].GetName())
			}
			w, ok := want[f.GetName()]
			delete(want, f.GetName())
			if !ok && f.GetName() != "kubelet_evictions" { // nothing was evicted
				t.Errorf("%s is in no recording", f.GetName())
			}
			if !ok {
				continue
			}
			var labels []string
			for _, l := range f.Metric[0].Label {
				labels = append(labels, l.GetName())
			}
			if f.GetType().String() != w.kind || f.GetHelp() != w.help || !slices.Equal(labels, w.labels) {
				t.Errorf("%s is %s %v %q, recorded %s %v %q", f.GetName(), f.GetType(), labels, f.GetHelp(), w.kind, w.labels, w.help)
			}
		}
		for name := range want {
			if all {
				t.Errorf("%s is missing", name)
			}
		}
	}
	compare("kubelet.txt", k.Gather(s), false)
	compare("resource.txt", Resources(summary), true)
}

// TestCredentialPlugins counts runs of plugins by name (upstream's
// pkg/credentialprovider/plugin/metrics.go; no recording has them).
func TestCredentialPlugins(t *testing.T) {
	k := &Kubelet{}
	k.CredentialPlugin("login", 3*time.Second, false)
	k.CredentialPlugin("login", time.Minute, true)
	k.CredentialPlugin("other", 0, false)
	var got []string
	for _, f := range k.Gather(&State{CredentialProviderHash: "sha256:0"}) {
		for _, m := range f.Metric {
			if strings.HasPrefix(f.GetName(), "kubelet_credential_provider_") {
				got = append(got, fmt.Sprintf("%s %s=%s %v %v %d", strings.TrimPrefix(f.GetName(), "kubelet_credential_provider_"), m.Label[0].GetName(), m.Label[0].GetValue(),
					m.GetGauge().GetValue()+m.GetCounter().GetValue(), m.GetHistogram().GetSampleSum(), m.GetHistogram().GetSampleCount()))
			}
		}
	}
	want := []string{"config_info hash=sha256:0 1 0 0", "plugin_duration plugin_name=login 0 63 2", "plugin_duration plugin_name=other 0 0 1", "plugin_errors_total plugin_name=login 1 0 0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	(*Kubelet)(nil).CredentialPlugin("login", 0, true)
}

// TestClaims shows what there is in the volume of a claim, and its condition if that is known.
func TestClaims(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	v := statsapi.VolumeStats{PVCRef: &statsapi.PVCReference{Namespace: "shop", Name: "data"}, FsStats: statsapi.FsStats{
		CapacityBytes: number(10), UsedBytes: number(3), AvailableBytes: number(7), Inodes: number(6), InodesUsed: number(4), InodesFree: number(2),
	}}
	other := v
	other.PVCRef = &statsapi.PVCReference{Namespace: "shop", Name: "more"}
	other.VolumeHealthStats = &statsapi.VolumeHealthStats{Abnormal: true}
	b := &builder{}
	b.claims([]statsapi.VolumeStats{v, other})
	want := map[string]float64{"capacity_bytes": 10, "used_bytes": 3, "available_bytes": 7, "inodes": 6, "inodes_used": 4, "inodes_free": 2, "health_status_abnormal": 1}
	for _, f := range b.out {
		name := strings.TrimPrefix(f.GetName(), "kubelet_volume_stats_")
		samples := 2
		if name == "health_status_abnormal" {
			samples = 1
		}
		m := f.Metric[len(f.Metric)-1]
		if len(f.Metric) != samples || m.GetGauge().GetValue() != want[name] || m.Label[1].GetValue() != "more" || f.GetHelp() == "" {
			t.Errorf("%v", f)
		}
		delete(want, name)
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestHistogram counts values on bounds, between and beyond them, and those left out.
func TestHistogram(t *testing.T) {
	h := &Histogram{}
	for _, v := range []float64{1, 1.5, 2, 9} {
		h.Observe(v, []float64{1, 2, 4})
	}
	b := &builder{}
	b.histogram("kubelet_pod_start_duration_seconds", h, []float64{1, 2, 4}, 2, 2)
	got := b.out[0].Metric[0].Histogram
	if got.GetSampleCount() != 6 || got.GetSampleSum() != 17.5 {
		t.Errorf("%d samples of %v", got.GetSampleCount(), got.GetSampleSum())
	}
	for i, want := range []uint64{1, 5, 5} {
		if n := got.Bucket[i].GetCumulativeCount(); n != want {
			t.Errorf("bucket %d: %d, want %d", i, n, want)
		}
	}
}
