//go:build linux

package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/ground/lists"
)

// statsChecks are about usage. Eviction, the summary API and kubectl top stand on
// these numbers. Times are looked at as well: a value without one is dropped by kubelets.
func statsChecks() []*check {
	return []*check{
		{name: "cri/stats/container", level: Required, run: checkContainerStats,
			expect: "ContainerStats of a running container has its id, metadata and labels, and cpu and memory with their times; memory that is used shows."},
		{name: "cri/stats/list", level: Required, run: checkListStats,
			expect: "ListContainerStats has all running containers, and honours the filters id, pod_sandbox_id and label_selector."},
		{name: "cri/stats/unknown", level: Required, run: checkStatsUnknown,
			expect: "ContainerStats of an unknown container fails."},
		{name: "cri/stats/sandbox", level: Optional, run: checkSandboxStats,
			expect: "PodSandboxStats and ListPodSandboxStats tell of a running pod: its metadata, cpu, memory and containers."},
		{name: "cri/stats/image-fs", level: Required, run: checkImageFS,
			expect: "ImageFsInfo names at least one file system with its mount point, and used bytes with a time."},
		{name: "cri/stats/metrics", level: Optional, run: checkMetrics,
			expect: "ListMetricDescriptors have names, helps and label keys, and ListPodSandboxMetrics values with as many label values."},
		{name: "cri/resources/update", level: Required, run: checkUpdateResources,
			expect: "UpdateContainerResources of a running container succeeds, of an unknown one it fails."},
		{name: "cri/resources/status", level: Optional, run: checkResourcesStatus,
			expect: "The status has a container's resources, after an update the new ones."},
	}
}

// checkContainerStats: the working set shows what the container holds, within
// bounds that any accounting meets. The working set is memory less what can be reclaimed, so what
// the actor holds is the least.
func checkContainerStats(ctx context.Context, t *T) {
	const used = 24 << 20
	c := t.start(ctx, t.pod(ctx, nil), nil, "run", "--memory=24Mi")
	t.eventually(ctx, 20*time.Second, func() string {
		r, err := t.rt.ContainerStats(ctx, &runtimeapi.ContainerStatsRequest{ContainerId: c.id})
		if err != nil {
			return "ContainerStats: " + describe(err)
		}
		return t.wrongStats(c, r.GetStats(), used)
	})
}

// wrongStats says what is missing in the statistics of a container. A text and no
// failure: usage is sampled, so it may be right a moment later. "" means that nothing is missing.
func (t *T) wrongStats(c *container, s *runtimeapi.ContainerStats, memory uint64) string {
	a := s.GetAttributes()
	switch {
	case a.GetId() != c.id:
		return fmt.Sprintf("attributes.id is %q, not %q", a.GetId(), c.id)
	case a.GetMetadata().GetName() != c.config.Metadata.Name:
		return fmt.Sprintf("attributes.metadata.name is %q, not %q", a.GetMetadata().GetName(), c.config.Metadata.Name)
	case a.GetLabels()[LabelRun] != t.scope.run:
		return "attributes.labels are not the container's"
	case s.GetCpu().GetTimestamp() <= 0:
		return "cpu.timestamp is not set"
	case s.GetMemory().GetTimestamp() <= 0:
		return "memory.timestamp is not set"
	case s.GetCpu().GetUsageCoreNanoSeconds() == nil:
		return "cpu.usage_core_nano_seconds is not set"
	case s.GetMemory().GetWorkingSetBytes().GetValue() < memory:
		return fmt.Sprintf("memory.working_set_bytes is %d, and the process uses %d", s.GetMemory().GetWorkingSetBytes().GetValue(), memory)
	}
	return ""
}

// checkListStats: the filters are those of ListContainers. They are held against all three
// containers, like those of lists.
func checkListStats(ctx context.Context, t *T) {
	value := t.unknownID()[:40]
	p, q := t.pod(ctx, nil), t.pod(ctx, nil)
	a := t.start(ctx, p, func(c *runtimeapi.ContainerConfig) { c.Labels["group"] = value }, "run")
	b, c := t.start(ctx, p, nil, "run"), t.start(ctx, q, nil, "run")
	all := []string{a.id, b.id, c.id}
	for _, x := range []struct {
		what string
		f    *runtimeapi.ContainerStatsFilter
		want []string
	}{
		{"nothing", nil, all},
		{"id", &runtimeapi.ContainerStatsFilter{Id: a.id}, []string{a.id}},
		{"sandbox", &runtimeapi.ContainerStatsFilter{PodSandboxId: p.id}, []string{a.id, b.id}},
		{"a label", &runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{"group": value}}, []string{a.id}},
		{"a label that none has", &runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{"group": value + "x"}}, nil},
	} {
		r, err := t.rt.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{Filter: x.f})
		t.must(err, "ListContainerStats")
		got := lists.Map(r.Stats, func(s *runtimeapi.ContainerStats) string { return s.GetAttributes().GetId() })
		t.sameAmong("a list of statistics filtered by "+x.what, all, x.want, got)
	}
}

// checkStatsUnknown: usage of nothing is an error and not zero.
func checkStatsUnknown(ctx context.Context, t *T) {
	_, err := t.rt.ContainerStats(ctx, &runtimeapi.ContainerStatsRequest{ContainerId: t.unknownID()})
	t.wantError(err, "ContainerStats of an unknown container")
}

// checkSandboxStats: optional, since kubelets take cgroups' own numbers unless
// told otherwise. The feature is PodAndContainerStatsFromCRI (KEP-2371).
func checkSandboxStats(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, func(c *runtimeapi.PodSandboxConfig) { c.Linux.CgroupParent = t.cgroup(ctx) }), nil, "run")
	r, err := t.rt.PodSandboxStats(ctx, &runtimeapi.PodSandboxStatsRequest{PodSandboxId: c.pod.id})
	t.orSkip(err, "PodSandboxStats")
	s := r.GetStats()
	if s.GetAttributes().GetId() != c.pod.id || s.GetAttributes().GetMetadata().GetUid() != c.pod.config.Metadata.Uid {
		t.Errorf("attributes are %v", s.GetAttributes())
	}
	if s.GetLinux().GetCpu().GetTimestamp() <= 0 || s.GetLinux().GetMemory().GetTimestamp() <= 0 {
		t.Errorf("cpu.timestamp is %d and memory.timestamp %d", s.GetLinux().GetCpu().GetTimestamp(), s.GetLinux().GetMemory().GetTimestamp())
	}
	found := false
	for _, x := range s.GetLinux().GetContainers() {
		found = found || x.GetAttributes().GetId() == c.id
	}
	if !found {
		t.Errorf("the pod's container is not among its containers")
	}
	list, err := t.rt.ListPodSandboxStats(ctx, &runtimeapi.ListPodSandboxStatsRequest{Filter: &runtimeapi.PodSandboxStatsFilter{Id: c.pod.id}})
	t.must(err, "ListPodSandboxStats")
	if len(list.Stats) != 1 || list.Stats[0].GetAttributes().GetId() != c.pod.id {
		t.Errorf("a list filtered by the sandbox' id has %d items", len(list.Stats))
	}
}

// cgroup is a parent for a sandbox' cgroups, as kubelets give one: without it
// some runtimes have no statistics of sandboxes. What the runtime makes of it is
// taken away again, where the run may do that. The form of a parent depends on
// the driver, which the runtime tells if it can. systemd has slices with underscores, as a dash
// there means nesting.
func (t *T) cgroup(ctx context.Context) string {
	name := "drydock-conformance-" + t.id
	if r, err := t.rt.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{}); err == nil && r.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD {
		return strings.ReplaceAll(name, "-", "_") + ".slice"
	}
	t.cleanup(func(ctx context.Context) {
		sandboxes, containers := t.rec.made()
		t.suite.remove(ctx, sandboxes, containers)
		for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
			// Version 2 has one directory, version 1 one for each controller.
			dirs, _ := filepath.Glob(pattern)
			for _, d := range dirs {
				_ = os.Remove(d)
			}
		}
	})
	return "/" + name
}

// checkImageFS: image garbage collection goes by the use of this file system. The first is the
// one that kubelets take.
func checkImageFS(ctx context.Context, t *T) {
	r, err := t.im.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	t.must(err, "ImageFsInfo")
	if len(r.ImageFilesystems) == 0 {
		t.Fatalf("there is no image file system")
	}
	fs := r.ImageFilesystems[0]
	if fs.GetFsId().GetMountpoint() == "" || fs.GetTimestamp() <= 0 || fs.GetUsedBytes() == nil {
		t.Errorf("its mount point is %q, its timestamp %d, and used_bytes %v", fs.GetFsId().GetMountpoint(), fs.GetTimestamp(), fs.GetUsedBytes())
	}
}

// checkMetrics: each sample has as many labels as its descriptor says (KEP-2371).
func checkMetrics(ctx context.Context, t *T) {
	d, err := t.rt.ListMetricDescriptors(ctx, &runtimeapi.ListMetricDescriptorsRequest{})
	t.orSkip(err, "ListMetricDescriptors")
	keys := map[string]int{}
	for _, x := range d.Descriptors {
		if x.Name == "" || x.Help == "" {
			t.Errorf("a descriptor has the name %q and the help %q", x.Name, x.Help)
		}
		keys[x.Name] = len(x.LabelKeys)
	}
	c := t.running(ctx)
	// Metrics may be collected in periods.
	t.eventually(ctx, 30*time.Second, func() string {
		m, err := t.rt.ListPodSandboxMetrics(ctx, &runtimeapi.ListPodSandboxMetricsRequest{})
		t.orSkip(err, "ListPodSandboxMetrics")
		for _, p := range m.PodMetrics {
			if p.PodSandboxId != c.pod.id {
				continue
			}
			n := 0
			for _, cm := range p.ContainerMetrics {
				for _, x := range cm.Metrics {
					n++
					if want, ok := keys[x.Name]; !ok || want != len(x.LabelValues) {
						t.Fatalf("metric %s has %d label values; described: %v, with %d keys", x.Name, len(x.LabelValues), ok, want)
					}
				}
			}
			if n > 0 {
				return ""
			}
		}
		return "there is no metric of the container"
	})
}

// checkUpdateResources: new limits reach a container that goes on running, which
// in-place resize needs. That the limits act is not looked at: it depends on the machine's
// cgroups.
func checkUpdateResources(ctx context.Context, t *T) {
	c := t.running(ctx)
	res := &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 50_000, CpuShares: 512, MemoryLimitInBytes: 256 << 20}
	_, err := t.rt.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.id, Linux: res})
	t.must(err, "UpdateContainerResources")
	if s := t.status(ctx, c.id); s.State != runs {
		t.Errorf("after it the container is %s", s.State)
	}
	_, err = t.rt.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: t.unknownID(), Linux: res})
	t.wantError(err, "UpdateContainerResources of an unknown container")
}

// checkResourcesStatus: what is in force is told in the status; a kubelet waits
// for it to end a resize. InPlacePodVerticalScaling takes the actual resources from there
// (KEP-1287).
func checkResourcesStatus(ctx context.Context, t *T) {
	c := t.start(ctx, t.pod(ctx, nil), func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources = &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 20_000, CpuShares: 204, MemoryLimitInBytes: 128 << 20}
	}, "run")
	got := func() *runtimeapi.LinuxContainerResources { return t.status(ctx, c.id).GetResources().GetLinux() }
	r := got()
	if r == nil {
		t.Skipf("the runtime's status has no resources")
	}
	same := func(quota, memory int64) {
		if r := got(); r.CpuQuota != quota || r.MemoryLimitInBytes != memory {
			t.Errorf("cpu_quota is %d and memory_limit_in_bytes %d, not %d and %d", r.CpuQuota, r.MemoryLimitInBytes, quota, memory)
		}
	}
	same(20_000, 128<<20)
	_, err := t.rt.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.id, Linux: &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 40_000, CpuShares: 409, MemoryLimitInBytes: 192 << 20}})
	t.must(err, "UpdateContainerResources")
	same(40_000, 192<<20)
}
