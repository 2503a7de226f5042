package store

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/drydock-sim/drydock/kubelet/qos"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/features"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestPodDefaults compares created pods with files that show what kubectl get
// -o yaml shows; -update rewrites them.
func TestPodDefaults(t *testing.T) {
	for _, name := range []string{"minimal", "rich", "hostnetwork"} {
		t.Run(name, func(t *testing.T) {
			in, err := os.ReadFile(filepath.Join("testdata", "defaults", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			obj, err := kinds.New(features.Gates{}).Decode(in)
			if err != nil {
				t.Fatal(err)
			}
			s := New(Options{Seed: 7})
			got, err := yaml.Marshal(mustCreate(t, s, obj))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "defaults", name+".golden")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]v1.PullPolicy{
		"busybox":                   v1.PullAlways,
		"busybox:latest":            v1.PullAlways,
		"busybox:1":                 v1.PullIfNotPresent,
		"registry:5000/busybox":     v1.PullAlways,
		"registry:5000/a/busybox:2": v1.PullIfNotPresent,
		"busybox@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": v1.PullIfNotPresent,
		"UPPER!": v1.PullIfNotPresent,
	} {
		if got := podspec.PullPolicy(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestQOS(t *testing.T) {
	list := func(kv ...string) v1.ResourceList {
		out := v1.ResourceList{}
		for i := 0; i < len(kv); i += 2 {
			out[v1.ResourceName(kv[i])] = resource.MustParse(kv[i+1])
		}
		return out
	}
	res := func(req, lim v1.ResourceList) v1.ResourceRequirements {
		return v1.ResourceRequirements{Requests: req, Limits: lim}
	}
	full := list("cpu", "1", "memory", "1Gi")
	for _, tc := range []struct {
		name       string
		init, main []v1.ResourceRequirements
		pod        *v1.ResourceRequirements
		want       v1.PodQOSClass
	}{
		{"equal", nil, []v1.ResourceRequirements{res(full, full)}, nil, v1.PodQOSGuaranteed},
		{"one has nothing", nil, []v1.ResourceRequirements{res(full, full), {}}, nil, v1.PodQOSBurstable},
		{"cpu request only", nil, []v1.ResourceRequirements{res(list("cpu", "100m"), nil)}, nil, v1.PodQOSBurstable},
		{"ephemeral storage only", nil, []v1.ResourceRequirements{res(nil, list("ephemeral-storage", "1Gi"))}, nil, v1.PodQOSBestEffort},
		{"zeros", nil, []v1.ResourceRequirements{res(list("cpu", "0", "memory", "0"), nil)}, nil, v1.PodQOSBestEffort},
		{"init without", []v1.ResourceRequirements{{}}, []v1.ResourceRequirements{res(full, full)}, nil, v1.PodQOSBurstable},
		{"pod level", nil, []v1.ResourceRequirements{{}}, ptr(res(full, full)), v1.PodQOSGuaranteed},
		{"pod level, cpu only", nil, []v1.ResourceRequirements{res(full, full)}, ptr(res(list("cpu", "1"), list("cpu", "1"))), v1.PodQOSBurstable},
	} {
		p := &v1.Pod{}
		for _, r := range tc.init {
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Resources: r})
		}
		for _, r := range tc.main {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Resources: r})
		}
		p.Spec.Resources = tc.pod
		if got := qos.Compute(p); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
