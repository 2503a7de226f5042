package cm

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestShares(t *testing.T) {
	for milli, want := range map[int64]int64{0: 2, 1: 2, 100: 102, 250: 256, 750: 768, 1000: 1024, 256000: 262144, 1 << 62: 262144} {
		if got := MilliCPUToShares(milli); got != want {
			t.Errorf("%dm are %d shares, want %d", milli, got, want)
		}
	}
	for shares, want := range map[int64]int64{0: 0, 1: 0, 2: 2, 102: 100, 256: 250, 1024: 1000, 1025: 1001} {
		if got := SharesToMilliCPU(shares); got != want {
			t.Errorf("%d shares are %dm, want %d", shares, got, want)
		}
	}
	for shares, want := range map[int64]uint64{0: 1, 2: 1, 102: 4, 768: 30, 1024: 39, 262144: 10000, 1 << 40: 10000} {
		if got := CPUSharesToCPUWeight(shares); got != want {
			t.Errorf("%d shares are weight %d, want %d", shares, got, want)
		}
	}
}

func TestQuota(t *testing.T) {
	for _, tc := range []struct {
		milli  int64
		period time.Duration
		want   int64
	}{{250, DefaultCFSPeriod, 25000}, {5, DefaultCFSPeriod, 1000}, {0, DefaultCFSPeriod, 0}, {1000, 10 * time.Millisecond, 10000}, {100, time.Millisecond, 1000}} {
		if got := MilliCPUToQuota(tc.milli, tc.period); got != tc.want {
			t.Errorf("%dm in %v: quota %d, want %d", tc.milli, tc.period, got, tc.want)
		}
	}
}

func TestNames(t *testing.T) {
	const b, be, g = v1.PodQOSBurstable, v1.PodQOSBestEffort, v1.PodQOSGuaranteed
	for _, tc := range []struct {
		root    string
		systemd bool
		class   v1.PodQOSClass
		uid     types.UID
		want    string
	}{
		{"", false, "", "", "/kubepods"}, {"/", false, b, "", "/kubepods/burstable"}, {"/", false, be, "", "/kubepods/besteffort"}, {"/", false, g, "", "/kubepods"},
		{"/", false, g, "a-b", "/kubepods/poda-b"}, {"/", false, b, "a-b", "/kubepods/burstable/poda-b"}, {"/", false, be, "a-b", "/kubepods/besteffort/poda-b"},
		{"/a/b", false, b, "u", "/a/b/kubepods/burstable/podu"},
		{"", true, "", "", "/kubepods.slice"}, {"/", true, b, "", "/kubepods.slice/kubepods-burstable.slice"},
		{"/", true, be, "", "/kubepods.slice/kubepods-besteffort.slice"},
		{"/", true, g, "aaaa-bbbb", "/kubepods.slice/kubepods-podaaaa_bbbb.slice"},
		{"/", true, b, "aaaa-bbbb", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaaaa_bbbb.slice"},
		{"/", true, be, "aaaa-bbbb", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podaaaa_bbbb.slice"},
		{"/a/b", true, "", "", "/a.slice/a-b.slice/a-b-kubepods.slice"},
		{"/a-b", true, be, "u", "/a_b.slice/a_b-kubepods.slice/a_b-kubepods-besteffort.slice/a_b-kubepods-besteffort-podu.slice"},
	} {
		n := Names{Root: tc.root, Systemd: tc.systemd}
		got := n.Pod(tc.class, tc.uid)
		switch {
		case tc.class == "":
			got = n.Pods()
		case tc.uid == "":
			got = n.Class(tc.class)
		}
		if got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
	if got := fmt.Sprintf("%q", Names{Root: "/a", Systemd: true}.Components()); got != `["a" "kubepods"]` {
		t.Error(got)
	}
}

// resources reads "cpu memory" lists; - is not given.
func resources(cpu, memory string, more ...string) v1.ResourceList {
	m := map[v1.ResourceName]string{}
	if cpu != "-" {
		m["cpu"] = cpu
	}
	if memory != "-" {
		m["memory"] = memory
	}
	for i := 0; i < len(more); i += 2 {
		m[v1.ResourceName(more[i])] = more[i+1]
	}
	return list(m)
}

func podOf(containers ...v1.ResourceRequirements) *v1.Pod {
	pod := &v1.Pod{}
	for _, r := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Resources: r})
	}
	return pod
}

func TestForPod(t *testing.T) {
	limited := v1.ResourceRequirements{Requests: resources("250m", "64Mi"), Limits: resources("500m", "128Mi")}
	whole := v1.ResourceRequirements{Requests: resources("1", "1Gi"), Limits: resources("1", "1Gi")}
	noMemory := v1.ResourceRequirements{Requests: resources("250m", "64Mi"), Limits: resources("500m", "-")}
	huge := v1.ResourceRequirements{Requests: resources("1", "1Gi", "hugepages-2Mi", "64Mi"), Limits: resources("1", "1Gi", "hugepages-2Mi", "64Mi")}
	initOf := podOf(limited)
	initOf.Spec.InitContainers = []v1.Container{{}}
	podLevel := podOf(v1.ResourceRequirements{Requests: resources("100m", "-")})
	podLevel.Spec.Resources = &v1.ResourceRequirements{Requests: resources("200m", "32Mi"), Limits: resources("-", "256Mi")}
	inits := podOf(v1.ResourceRequirements{Requests: resources("1", "-")})
	always := v1.ContainerRestartPolicyAlways
	inits.Spec.InitContainers = []v1.Container{
		{Resources: v1.ResourceRequirements{Requests: resources("2", "-")}},
		{Resources: v1.ResourceRequirements{Requests: resources("500m", "-")}, RestartPolicy: &always},
		{Resources: v1.ResourceRequirements{Requests: resources("1800m", "-")}},
	}
	over := podOf(limited)
	over.Spec.Overhead = resources("100m", "16Mi")
	for _, tc := range []struct {
		name                 string
		pod                  *v1.Pod
		milli, limit, memory int64
		pages                int64
	}{
		{"Guaranteed: from request and limits", podOf(whole), 1000, 1000, 1 << 30, 0},
		{"Burstable, all limited", podOf(limited, limited), 500, 1000, 256 << 20, 0},
		{"a container lacks a memory limit", podOf(limited, noMemory), 500, 1000, 0, 0},
		{"a container lacks limits", podOf(limited, v1.ResourceRequirements{}), 250, 0, 0, 0},
		{"an init container lacks limits", initOf, 250, 0, 0, 0},
		{"a limit of the pod", podLevel, 200, 0, 256 << 20, 0},
		{"an init container beside a sidecar asks for most", inits, 2300, 0, 0, 0},
		{"overhead", over, 350, 600, 144 << 20, 0},
		{"BestEffort", podOf(v1.ResourceRequirements{}), 0, 0, 0, 0},
		{"huge pages", podOf(huge, huge), 2000, 2000, 2 << 30, 128 << 20},
	} {
		g := ForPod(tc.pod)
		if g.MilliCPU != tc.milli || g.MilliCPULimit != tc.limit || g.MemoryLimit != tc.memory || g.Hugepages[2<<20] != tc.pages {
			t.Errorf("%s: %+v", tc.name, g)
		}
	}
}

func TestForNode(t *testing.T) {
	res := resources("3900m", "7392Mi", "pid", "32000", "hugepages-2Mi", "64Mi", "hugepages-1Gi", "2Gi")
	v := ForNode(res, false)
	if *v.CPUShares != 3993 || *v.MemoryLimit != 7392<<20 || *v.Pids != 32000 || len(v.Hugepages) != 2 || v.Hugepages[2<<20] != 64<<20 || v.Hugepages[1<<30] != 2<<30 {
		t.Errorf("got %+v", v)
	}
	if v = ForNode(res, true); *v.CPUShares != 3993 || v.MemoryLimit != nil || v.Pids != nil || v.Hugepages != nil {
		t.Errorf("compressible: %+v", v)
	}
	if v = ForNode(resources("-", "1Gi"), false); v.CPUShares != nil || v.Pids != nil {
		t.Errorf("memory only: %+v", v)
	}
}

func TestQOSPolicy(t *testing.T) {
	var r Requests
	for _, pod := range []*v1.Pod{
		podOf(v1.ResourceRequirements{Requests: resources("250m", "1Gi")}),
		podOf(v1.ResourceRequirements{Requests: resources("500m", "-")}),
		podOf(v1.ResourceRequirements{Requests: resources("1", "2Gi"), Limits: resources("1", "2Gi")}),
		podOf(v1.ResourceRequirements{}),
	} {
		r.Add(pod)
	}
	if r != (Requests{BurstableCPU: 750, GuaranteedMemory: 2 << 30, BurstableMemory: 1 << 30}) {
		t.Errorf("got %+v", r)
	}
	value := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p >> 20
	}
	for _, tc := range []struct {
		name                                               string
		p                                                  QOSPolicy
		burstLimit, burstLow, effortLimit, effortLow, root int64
	}{
		{"plain", QOSPolicy{ReservedMemory: -1, Allocatable: 8 << 30}, -1, -1, -1, -1, -1},
		{"half of memory reserved", QOSPolicy{ReservedMemory: 50, Allocatable: 8 << 30}, 7168, -1, 6656, -1, -1},
		{"all of memory reserved", QOSPolicy{ReservedMemory: 100, Allocatable: 8 << 30}, 6144, -1, 5120, -1, -1},
		{"nothing is known of the node", QOSPolicy{ReservedMemory: 100}, -1, -1, -1, -1, -1},
		{"MemoryQoS, None", QOSPolicy{ReservedMemory: -1, MemoryQoS: true}, -1, 0, -1, -1, 0},
		{"MemoryQoS, TieredReservation", QOSPolicy{ReservedMemory: -1, MemoryQoS: true, Tiered: true}, -1, 1024, -1, -1, 3072},
	} {
		b, e := tc.p.Burstable(&r), tc.p.BestEffort(&r)
		if b.CPUShares != 768 || e.CPUShares != 2 {
			t.Errorf("%s: shares %d and %d", tc.name, b.CPUShares, e.CPUShares)
		}
		if value(b.MemoryLimit) != tc.burstLimit || value(b.MemoryLow) != tc.burstLow || value(e.MemoryLimit) != tc.effortLimit || value(e.MemoryLow) != tc.effortLow || value(tc.p.RootMemoryMin(&r)) != tc.root {
			t.Errorf("%s: burstable %d %d, besteffort %d %d, root %d", tc.name, value(b.MemoryLimit), value(b.MemoryLow), value(e.MemoryLimit), value(e.MemoryLow), value(tc.p.RootMemoryMin(&r)))
		}
	}
}
