package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// surfPod is the pod that the recordings of the real kubelet's answers were made with.
func surfPod() *v1.Pod {
	amount := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	off := false
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "surf"}, Spec: v1.PodSpec{
		NodeName: "node-0", AutomountServiceAccountToken: &off, EnableServiceLinks: &off,
		Volumes: []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
		Containers: []v1.Container{{
			Name: "main", Image: "registry.local/busybox:1.35", Command: []string{"sh", "-c", "echo line one; echo line two; sleep 3600"},
			Resources:      v1.ResourceRequirements{Limits: amount("200m", "64Mi"), Requests: amount("100m", "32Mi")},
			ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 5},
		}},
	}}
}

// surface runs the recordings' pod on a node and asks its kubelet, by path.
func surface(t *testing.T, after time.Duration, paths ...string) map[string]*httptest.ResponseRecorder {
	t.Helper()
	c, err := New(Options{Seed: 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n, err := c.AddNode(NodeOptions{Name: "node-0"})
	if err != nil {
		t.Fatal(err)
	}
	c.At(time.Second, func() {
		if _, err := c.API().Create(surfPod()); err != nil {
			t.Error(err)
		}
	})
	out := map[string]*httptest.ResponseRecorder{}
	n.Loop().Root().NewTimer("ask", func() {
		for _, path := range paths {
			w := httptest.NewRecorder()
			out[path] = w
			n.Serve(w, httptest.NewRequest(http.MethodGet, path, nil), nil, func(err error) {
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
			})
		}
	}).Reset(after)
	if err := c.RunUntil(after + time.Minute); err != nil {
		t.Fatal(err)
	}
	return out
}

// fields are the paths of a JSON document's fields, with their types. Lists count by
// their first item.
func fields(t *testing.T, b []byte) []string {
	t.Helper()
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatalf("%v in %.100s", err, b)
	}
	var out []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				walk(path+"."+key, item)
			}
		case []any:
			if len(v) > 0 {
				walk(path+"[]", v[0])
			}
		default:
			out = append(out, fmt.Sprintf("%s %T", path, v))
		}
	}
	walk("", doc)
	slices.Sort(out)
	return out
}

// pressure are the fields of pressure below others.
func pressure(below ...string) (out []string) {
	for _, b := range below {
		for _, kind := range [...]string{"full", "some"} {
			for _, v := range [...]string{"avg10", "avg60", "avg300", "total"} {
				out = append(out, b+".psi."+kind+"."+v+" float64")
			}
		}
	}
	return out
}

// TestSurface compares the fields of the kubelet's answers with those of recordings of
// the real one.
func TestSurface(t *testing.T) {
	const field = ".items[].metadata.managedFields[]."
	managed := []string{field + "apiVersion string", field + "fieldsType string", field + "manager string", field + "operation string", field + "time string"}
	answers := surface(t, 90*time.Second, "/stats/summary", "/pods", "/configz")
	for _, tc := range []struct {
		path, file string
		// less and more are fields that are not there here, or only here.
		less, more []string
	}{
		// The simulated runtime tells of pressure, containerd 1.7 did not. The recordings'
		// cAdvisor did not know containers, whose processes it adds up.
		{path: "/stats/summary", file: "stats-summary.json", more: append(pressure(".pods[].containers[].cpu", ".pods[].containers[].memory", ".pods[].containers[].io"),
			".pods[].process_stats.process_count float64")},
		// The pod was made by no client here, and there by an API without service accounts.
		{path: "/pods", file: "pods.json", less: managed, more: []string{".items[].spec.serviceAccount string", ".items[].spec.serviceAccountName string"}},
		// What the configuration said: other evictions and manifests; a simulation has no
		// certificate.
		{path: "/configz", file: "configz.json", less: []string{".kubeletconfig.tlsCertFile string", ".kubeletconfig.tlsPrivateKeyFile string"},
			more: []string{".kubeletconfig.evictionHard.imagefs.inodesFree string", ".kubeletconfig.evictionHard.nodefs.inodesFree string", ".kubeletconfig.staticPodPath string"}},
	} {
		b, err := os.ReadFile("testdata/surface/" + tc.file)
		if err != nil {
			t.Fatal(err)
		}
		want, got := fields(t, b), fields(t, answers[tc.path].Body.Bytes())
		for _, f := range want {
			if !slices.Contains(got, f) && !slices.Contains(tc.less, f) {
				t.Errorf("%s: %s is missing", tc.path, f)
			}
		}
		for _, f := range got {
			if !slices.Contains(want, f) && !slices.Contains(tc.more, f) {
				t.Errorf("%s: %s is not in the recording", tc.path, f)
			}
		}
	}
}

// TestCAdvisor holds that cgroups have cAdvisor's metrics, with the labels of pods and
// containers.
func TestCAdvisor(t *testing.T) {
	body := surface(t, 90*time.Second, "/metrics/cadvisor")["/metrics/cadvisor"].Body.String()
	for _, want := range []string{
		`container_memory_working_set_bytes{container="",id="/",image="",name="",namespace="",pod=""} `,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods",image="",name="",namespace="",pod=""} `,
		`container_spec_memory_limit_bytes{container="main",id="/kubepods/burstable/pod`,
		`image="registry.local/busybox:1.35",name="`,
		`container_fs_usage_bytes{container="",device="/dev/vda1",id="/"`,
		`container_network_receive_bytes_total{container="",id="/",image="",interface="eth0"`,
		"\nmachine_memory_bytes{", "\ncadvisor_version_info{", "\ncontainer_pressure_cpu_waiting_seconds_total{", "\ncontainer_scrape_error 0\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%.3000s", body)
	}
}

// TestOnlyCPUAndMemory: a summary of CPU and memory has all that the whole one says of them, and nothing
// of disks, network, processes and input and output.
func TestOnlyCPUAndMemory(t *testing.T) {
	const only = "/stats/summary?only_cpu_and_memory=true"
	answers := surface(t, 90*time.Second, "/stats/summary", only)
	all, got := fields(t, answers["/stats/summary"].Body.Bytes()), fields(t, answers[only].Body.Bytes())
	for _, other := range []string{
		".node.fs.", ".node.runtime.", ".node.rlimit.", ".node.network.", ".node.io.", ".node.systemContainers[].io.",
		".pods[].ephemeral-storage.", ".pods[].process_stats.", ".pods[].io.",
		".pods[].containers[].rootfs.", ".pods[].containers[].logs.", ".pods[].containers[].io.",
	} {
		of := func(field string) bool { return strings.HasPrefix(field, other) }
		if !slices.ContainsFunc(all, of) {
			t.Errorf("the whole summary has no %s", other)
		}
		all = slices.DeleteFunc(all, of)
	}
	if !slices.Equal(got, all) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(all, "\n"))
	}
}
