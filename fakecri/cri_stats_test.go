package fakecri

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
)

func TestStatsFilters(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		e.pull("busybox:1")
		ids := map[string]string{} // names by id
		sandboxes := map[string]string{}
		for _, pod := range []string{"web", "db"} {
			sb := e.sandbox(pod, 0)
			sandboxes[pod] = sb
			for _, name := range []string{"a", "b", "c"} {
				cfg := shellConfig(name)
				cfg.Labels = map[string]string{records.LabelPodUID: "uid-" + pod, "c": name}
				id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
				e.ok(err)
				e.ok(e.c.StartContainer(e.ctx, id))
				ids[id] = pod + name
			}
		}
		stopped := ""
		for id, name := range ids {
			if name == "dbc" {
				stopped = id
			}
		}
		e.ok(e.c.StopContainer(e.ctx, stopped, 0))
		for _, tc := range []struct {
			f    *runtimeapi.ContainerStatsFilter
			want string
		}{
			{nil, "dba dbb weba webb webc"},
			{&runtimeapi.ContainerStatsFilter{}, "dba dbb weba webb webc"},
			{&runtimeapi.ContainerStatsFilter{PodSandboxId: sandboxes["web"]}, "weba webb webc"},
			{&runtimeapi.ContainerStatsFilter{PodSandboxId: "none"}, ""},
			{&runtimeapi.ContainerStatsFilter{Id: stopped}, ""},
			{&runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{"c": "a"}}, "dba weba"},
			{&runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{"c": "z"}}, ""},
			{&runtimeapi.ContainerStatsFilter{LabelSelector: map[string]string{records.LabelPodUID: "uid-db", "c": "b"}}, "dbb"},
		} {
			list, err := e.c.ListContainerStats(e.ctx, tc.f)
			e.ok(err)
			var got []string
			for _, s := range list {
				got = append(got, ids[s.Attributes.Id])
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%v: %q, want %q", tc.f, got, tc.want)
			}
		}
		e.ok(e.c.StopPodSandbox(e.ctx, sandboxes["db"]))
		for _, tc := range []struct {
			f    *runtimeapi.PodSandboxStatsFilter
			want int
		}{
			{nil, 1},
			{&runtimeapi.PodSandboxStatsFilter{Id: sandboxes["web"]}, 1},
			{&runtimeapi.PodSandboxStatsFilter{Id: sandboxes["db"]}, 0},
			{&runtimeapi.PodSandboxStatsFilter{LabelSelector: map[string]string{"app": "web"}}, 1},
			{&runtimeapi.PodSandboxStatsFilter{LabelSelector: map[string]string{"app": "x"}}, 0},
		} {
			if list, err := e.c.ListPodSandboxStats(e.ctx, tc.f); err != nil || len(list) != tc.want {
				t.Errorf("%v: %v, %v", tc.f, list, err)
			}
		}
	})
}

func TestStatsAreComplete(t *testing.T) {
	opts := socketOptions
	opts.ImageFilesystem = "/srv"
	run(t, opts, func(e *env) {
		e.pull("busybox:1")
		sb := e.sandbox("web", 0)
		cfg := shellConfig("main")
		cfg.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 96 << 20}
		id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
		e.ok(err)
		e.ok(e.c.StartContainer(e.ctx, id))
		_, _, err = e.c.ExecSync(e.ctx, id, []string{"sh", "-c", "mkdir -p /d && echo hi > /d/f"}, 0)
		e.ok(err)
		st, err := e.c.ContainerStats(e.ctx, id)
		e.ok(err)
		if st.Attributes.Id != id || st.Attributes.Metadata.Name != "main" || !equalMaps(st.Attributes.Labels, cfg.Labels) || !equalMaps(st.Attributes.Annotations, cfg.Annotations) {
			t.Errorf("attributes %v", st.Attributes)
		}
		if st.WritableLayer.GetTimestamp() == 0 || st.WritableLayer.FsId.GetMountpoint() != "/srv" || st.WritableLayer.UsedBytes.GetValue() == 0 || st.WritableLayer.InodesUsed.GetValue() == 0 {
			t.Errorf("layer %v", st.WritableLayer)
		}
		if st.Swap.GetTimestamp() == 0 || st.Swap.SwapUsageBytes == nil || st.Swap.SwapAvailableBytes.GetValue() != 32<<20 {
			t.Errorf("swap %v", st.Swap)
		}
		checkUsage(t, "container", st.Cpu, st.Memory, st.Io)
		if st.Cpu.UsageCoreNanoSeconds.Value == 0 {
			t.Errorf("cpu %v", st.Cpu)
		}
		if st.Memory.WorkingSetBytes.Value == 0 || st.Memory.AvailableBytes.Value != 64<<20-st.Memory.WorkingSetBytes.Value {
			t.Errorf("memory %v", st.Memory)
		}
		pod, err := e.c.PodSandboxStats(e.ctx, sb)
		e.ok(err)
		lin := pod.Linux
		checkUsage(t, "pod", lin.Cpu, lin.Memory, lin.Io)
		if pod.Attributes.Id != sb || pod.Attributes.Metadata.Name != "web" || len(lin.Containers) != 1 || lin.Process.GetTimestamp() == 0 || lin.Process.ProcessCount.GetValue() < 2 ||
			lin.Network.GetTimestamp() == 0 || lin.Network.DefaultInterface.GetName() != "eth0" || lin.Network.DefaultInterface.RxBytes == nil || len(lin.Network.Interfaces) != 1 {
			t.Errorf("pod %v", pod)
		}
		if lin.Memory.WorkingSetBytes.Value < st.Memory.WorkingSetBytes.Value {
			t.Errorf("a pod of %v has a container of %v", lin.Memory, st.Memory)
		}
	})
}

func checkUsage(t *testing.T, what string, cpu *runtimeapi.CpuUsage, mem *runtimeapi.MemoryUsage, io *runtimeapi.IoUsage) {
	t.Helper()
	if cpu.GetTimestamp() == 0 || cpu.UsageCoreNanoSeconds == nil || cpu.UsageNanoCores == nil || cpu.Psi.GetFull() == nil || cpu.Psi.Some == nil {
		t.Errorf("%s: cpu %v", what, cpu)
	}
	if mem.GetTimestamp() == 0 || mem.UsageBytes == nil || mem.RssBytes == nil || mem.AvailableBytes == nil || mem.PageFaults == nil || mem.MajorPageFaults == nil || mem.Psi.GetFull() == nil || mem.Psi.Some == nil {
		t.Errorf("%s: memory %v", what, mem)
	}
	if io.GetTimestamp() == 0 || io.Psi.GetFull() == nil || io.Psi.Some == nil {
		t.Errorf("%s: io %v", what, io)
	}
}

// The names that a kubelet and clients that verify a runtime look for.
const metricNames = `blkio_device_usage_total
cpu_cfs_periods_total cpu_cfs_throttled_periods_total cpu_cfs_throttled_seconds_total cpu_system_seconds_total cpu_usage_seconds_total cpu_user_seconds_total
file_descriptors
fs_inodes_free fs_inodes_total fs_limit_bytes fs_reads_bytes_total fs_reads_total fs_usage_bytes fs_writes_bytes_total fs_writes_total
hugetlb_max_usage_bytes hugetlb_usage_bytes
last_seen
memory_cache memory_failcnt memory_failures_total memory_kernel_usage memory_mapped_file memory_max_usage_bytes memory_rss memory_swap memory_usage_bytes memory_working_set_bytes
network_receive_bytes_total network_receive_errors_total network_receive_packets_total network_receive_packets_dropped_total
network_transmit_bytes_total network_transmit_errors_total network_transmit_packets_total network_transmit_packets_dropped_total
oom_events_total
pressure_cpu_stalled_seconds_total pressure_cpu_waiting_seconds_total pressure_io_stalled_seconds_total pressure_io_waiting_seconds_total pressure_memory_stalled_seconds_total pressure_memory_waiting_seconds_total
processes sockets
spec_cpu_period spec_cpu_quota spec_cpu_shares
spec_memory_limit_bytes spec_memory_reservation_limit_bytes spec_memory_swap_limit_bytes
start_time_seconds threads threads_max ulimits_soft`

func TestMetrics(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		e.pull("busybox:1")
		sb := e.sandbox("web", 0)
		cfg := shellConfig("main")
		cfg.Linux.Resources = &runtimeapi.LinuxContainerResources{CpuShares: 1024, CpuPeriod: 100_000, CpuQuota: 20_000, MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 64 << 20}
		id, err := e.c.CreateContainer(e.ctx, sb, cfg, nil)
		e.ok(err)
		e.ok(e.c.StartContainer(e.ctx, id))
		e.sleep(10 * time.Second)
		descriptors, err := e.c.ListMetricDescriptors(e.ctx)
		e.ok(err)
		keys := map[string]int{}
		for _, d := range descriptors {
			if d.Help == "" || len(d.LabelKeys) == 0 {
				t.Errorf("descriptor %v", d)
			}
			keys[d.Name] = len(d.LabelKeys)
		}
		all, err := e.c.ListPodSandboxMetrics(e.ctx)
		e.ok(err)
		if len(all) != 1 || all[0].PodSandboxId != sb || len(all[0].ContainerMetrics) != 1 || all[0].ContainerMetrics[0].ContainerId != id {
			t.Fatalf("metrics %v", all)
		}
		values := map[string]uint64{}
		for _, m := range slices.Concat(all[0].Metrics, all[0].ContainerMetrics[0].Metrics) {
			if len(m.LabelValues) != keys[m.Name] || m.Timestamp == 0 || m.Value == nil {
				t.Errorf("metric %v has not %d labels", m, keys[m.Name])
			}
			values[m.Name] = m.Value.GetValue()
		}
		for _, name := range strings.Fields(metricNames) {
			name = "container_" + name
			if _, ok := values[name]; !ok || keys[name] == 0 {
				t.Errorf("there is no %s", name)
			}
		}
		for name, want := range map[string]uint64{
			"container_spec_cpu_shares": 1024, "container_spec_cpu_quota": 20_000, "container_spec_memory_limit_bytes": 64 << 20, "container_cpu_cfs_periods_total": 100,
			"container_start_time_seconds": uint64(e.rt.recs.Containers[0].StartedAt / 1e9),
		} {
			if values[name] != want {
				t.Errorf("%s is %d, want %d", name, values[name], want)
			}
		}
		if values["container_processes"] == 0 || values["container_memory_usage_bytes"] == 0 {
			t.Errorf("values %v", values)
		}
		e.ok(e.c.StopPodSandbox(e.ctx, sb))
		if all, err = e.c.ListPodSandboxMetrics(e.ctx); err != nil || len(all) != 0 {
			t.Errorf("after the stop: %v, %v", all, err)
		}
	})
}

func TestServiceAnswers(t *testing.T) {
	run(t, socketOptions, func(e *env) {
		v, err := e.c.Version(e.ctx, "0.1.0")
		e.ok(err)
		if v.Version != "0.1.0" || v.RuntimeName == "" || v.RuntimeVersion == "" || v.RuntimeApiVersion == "" {
			t.Errorf("version %v", v)
		}
		for _, verbose := range []bool{false, true} {
			st, err := e.c.Status(e.ctx, verbose)
			e.ok(err)
			got := ""
			for _, c := range st.Status.Conditions {
				got += fmt.Sprint(c.Type, c.Status, " ")
			}
			if got != "RuntimeReadytrue NetworkReadytrue " || len(st.RuntimeHandlers) != 2 || st.Features == nil {
				t.Errorf("status %v", st)
			}
			for _, h := range st.RuntimeHandlers {
				if !h.Features.GetRecursiveReadOnlyMounts() || !h.Features.GetUserNamespaces() {
					t.Errorf("handler %v", h)
				}
			}
			if verbose != json.Valid([]byte(st.Info["config"])) {
				t.Errorf("info %v", st.Info)
			}
		}
		rc, err := e.c.RuntimeConfig(e.ctx)
		e.ok(err)
		if rc.Linux.GetCgroupDriver() != runtimeapi.CgroupDriver_CGROUPFS {
			t.Errorf("config %v", rc)
		}
		e.ok(e.c.UpdateRuntimeConfig(e.ctx, &runtimeapi.RuntimeConfig{NetworkConfig: &runtimeapi.NetworkConfig{PodCidr: "10.0.0.0/16"}}))
	})
}
