package fakecri

import (
	"cmp"
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/calls"
	"github.com/drydock-sim/drydock/fakecri/internal/disk"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/memfs"
)

// This file is the metrics that a kubelet takes from its runtime in the place
// of cadvisor's, under cadvisor's names.

const (
	counter = runtimeapi.MetricType_COUNTER
	gauge   = runtimeapi.MetricType_GAUGE
)

// metricLabels are the labels that every metric has, in this order, before its
// own.
var metricLabels = []string{"id", "name", "container", "pod", "namespace", "image"}

// metric is a metric of containers or, with pod, of sandboxes. It has a value
// for each list of values of its own labels.
type metric struct {
	name, help string
	kind       runtimeapi.MetricType
	pod        bool
	keys       []string
	values     [][]string
	value      func(m *measured, own []string) int64
}

// measured is what a container, or a whole sandbox, comes to.
type measured struct {
	now, startedAt           int64
	memory, milli, coreNanos int64
	layer, inodes            int64
	disk                     memfs.Space // that the layer is on
	inodesFree               int64
	processes                int64
	lin                      *runtimeapi.LinuxContainerResources
	oom                      bool
}

// What metrics with labels of their own have values for.
var (
	devices    = []string{"device", "major", "minor", "operation"}
	diskLabel  = []string{"device"}
	diskValues = [][]string{{"/dev/vda1"}}
	blkio      = [][]string{{"/dev/vda", "254", "0", "Read"}, {"/dev/vda", "254", "0", "Write"}}
	interfaces = []string{"interface"}
	eth0       = [][]string{{"eth0"}}
	hugepages  = [][]string{{"2Mi"}, {"1Gi"}}
	failures   = [][]string{{"pgfault", "container"}, {"pgmajfault", "container"}, {"pgfault", "hierarchy"}, {"pgmajfault", "hierarchy"}}
)

// diskSize is what a disk of writable layers that has no end is taken to hold, in
// bytes, and diskInodes how many files.
const (
	diskSize   = 100 << 30
	diskInodes = 6_553_600
)

func none(*measured, []string) int64 { return 0 }

func seconds(ns int64) int64 { return ns / int64(time.Second) }

// metrics are all there are.
var metrics = []metric{
	{name: "container_blkio_device_usage_total", help: "Blkio device bytes usage.", kind: counter, keys: devices, values: blkio, value: none},
	{name: "container_cpu_cfs_periods_total", help: "Number of elapsed enforcement period intervals.", kind: counter, value: func(m *measured, _ []string) int64 {
		if m.lin.GetCpuQuota() <= 0 {
			return 0
		}
		return (m.now - m.startedAt) / 1000 / cmp.Or(m.lin.GetCpuPeriod(), 100_000)
	}},
	{name: "container_cpu_cfs_throttled_periods_total", help: "Number of throttled period intervals.", kind: counter, value: none},
	{name: "container_cpu_cfs_throttled_seconds_total", help: "Total time the container has been throttled, in seconds.", kind: counter, value: none},
	{name: "container_cpu_system_seconds_total", help: "Cumulative system CPU time consumed, in seconds.", kind: counter, value: func(m *measured, _ []string) int64 { return seconds(m.coreNanos / 4) }},
	{name: "container_cpu_usage_seconds_total", help: "Cumulative CPU time consumed, in seconds.", kind: counter, value: func(m *measured, _ []string) int64 { return seconds(m.coreNanos) }},
	{name: "container_cpu_user_seconds_total", help: "Cumulative user CPU time consumed, in seconds.", kind: counter, value: func(m *measured, _ []string) int64 { return seconds(m.coreNanos) - seconds(m.coreNanos/4) }},
	{name: "container_file_descriptors", help: "Number of open file descriptors of the container.", kind: gauge, value: func(m *measured, _ []string) int64 { return 3 * m.processes }},
	{name: "container_fs_inodes_free", help: "Number of available inodes.", kind: gauge, keys: diskLabel, values: diskValues, value: func(m *measured, _ []string) int64 { return m.inodesFree }},
	{name: "container_fs_inodes_total", help: "Number of inodes.", kind: gauge, keys: diskLabel, values: diskValues, value: func(m *measured, _ []string) int64 { return m.disk.Inodes }},
	{name: "container_fs_limit_bytes", help: "Number of bytes that the container can have on this filesystem.", kind: gauge, keys: diskLabel, values: diskValues, value: func(m *measured, _ []string) int64 { return m.disk.Bytes }},
	{name: "container_fs_reads_bytes_total", help: "Cumulative count of bytes read.", kind: counter, keys: diskLabel, values: diskValues, value: none},
	{name: "container_fs_reads_total", help: "Cumulative count of reads completed.", kind: counter, keys: diskLabel, values: diskValues, value: none},
	{name: "container_fs_usage_bytes", help: "Number of bytes that the container has on this filesystem.", kind: gauge, keys: diskLabel, values: diskValues, value: func(m *measured, _ []string) int64 { return m.layer }},
	{name: "container_fs_writes_bytes_total", help: "Cumulative count of bytes written.", kind: counter, keys: diskLabel, values: diskValues, value: func(m *measured, _ []string) int64 { return m.layer }},
	{name: "container_fs_writes_total", help: "Cumulative count of writes completed.", kind: counter, keys: diskLabel, values: diskValues, value: func(m *measured, _ []string) int64 { return m.inodes }},
	{name: "container_hugetlb_max_usage_bytes", help: "Maximum hugepage usage recorded, in bytes.", kind: gauge, keys: []string{"pagesize"}, values: hugepages, value: none},
	{name: "container_hugetlb_usage_bytes", help: "Current hugepage usage, in bytes.", kind: gauge, keys: []string{"pagesize"}, values: hugepages, value: none},
	{name: "container_last_seen", help: "Last time the container was seen, in seconds since the Unix epoch.", kind: gauge, value: func(m *measured, _ []string) int64 { return seconds(m.now) }},
	{name: "container_memory_cache", help: "Number of bytes of page cache memory.", kind: gauge, value: none},
	{name: "container_memory_failcnt", help: "Number of times that memory usage hit its limit.", kind: counter, value: func(m *measured, _ []string) int64 { return m.ooms() }},
	{name: "container_memory_failures_total", help: "Cumulative count of memory allocation failures.", kind: counter, keys: []string{"failure_type", "scope"}, values: failures, value: func(m *measured, own []string) int64 {
		if own[0] == "pgfault" {
			return m.memory / disk.PageSize
		}
		return 0
	}},
	{name: "container_memory_kernel_usage", help: "Kernel memory allocated, in bytes.", kind: gauge, value: none},
	{name: "container_memory_mapped_file", help: "Size of memory mapped files, in bytes.", kind: gauge, value: none},
	{name: "container_memory_max_usage_bytes", help: "Maximum memory usage recorded, in bytes.", kind: gauge, value: usedMemory},
	{name: "container_memory_rss", help: "Size of RSS, in bytes.", kind: gauge, value: usedMemory},
	{name: "container_memory_swap", help: "Swap usage, in bytes.", kind: gauge, value: none},
	{name: "container_memory_usage_bytes", help: "Current memory usage, all of it, in bytes.", kind: gauge, value: usedMemory},
	{name: "container_memory_working_set_bytes", help: "Current working set, in bytes.", kind: gauge, value: usedMemory},
	{name: "container_network_receive_bytes_total", help: "Cumulative count of bytes received.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_network_receive_errors_total", help: "Cumulative count of errors while receiving.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_network_receive_packets_dropped_total", help: "Cumulative count of packets dropped while receiving.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_network_receive_packets_total", help: "Cumulative count of packets received.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_network_transmit_bytes_total", help: "Cumulative count of bytes transmitted.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_network_transmit_errors_total", help: "Cumulative count of errors while transmitting.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_network_transmit_packets_dropped_total", help: "Cumulative count of packets dropped while transmitting.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_network_transmit_packets_total", help: "Cumulative count of packets transmitted.", kind: counter, pod: true, keys: interfaces, values: eth0, value: none},
	{name: "container_oom_events_total", help: "Count of out of memory events.", kind: counter, value: func(m *measured, _ []string) int64 { return m.ooms() }},
	{name: "container_pressure_cpu_stalled_seconds_total", help: "Time that all processes waited for CPU, in seconds.", kind: counter, value: none},
	{name: "container_pressure_cpu_waiting_seconds_total", help: "Time that some process waited for CPU, in seconds.", kind: counter, value: none},
	{name: "container_pressure_io_stalled_seconds_total", help: "Time that all processes waited for I/O, in seconds.", kind: counter, value: none},
	{name: "container_pressure_io_waiting_seconds_total", help: "Time that some process waited for I/O, in seconds.", kind: counter, value: none},
	{name: "container_pressure_memory_stalled_seconds_total", help: "Time that all processes waited for memory, in seconds.", kind: counter, value: none},
	{name: "container_pressure_memory_waiting_seconds_total", help: "Time that some process waited for memory, in seconds.", kind: counter, value: none},
	{name: "container_processes", help: "Number of processes in the container.", kind: gauge, value: func(m *measured, _ []string) int64 { return m.processes }},
	{name: "container_sockets", help: "Number of open sockets of the container.", kind: gauge, value: none},
	{name: "container_spec_cpu_period", help: "CPU period of the container.", kind: gauge, value: func(m *measured, _ []string) int64 { return m.lin.GetCpuPeriod() }},
	{name: "container_spec_cpu_quota", help: "CPU quota of the container.", kind: gauge, value: func(m *measured, _ []string) int64 { return m.lin.GetCpuQuota() }},
	{name: "container_spec_cpu_shares", help: "CPU share of the container.", kind: gauge, value: func(m *measured, _ []string) int64 { return m.lin.GetCpuShares() }},
	{name: "container_spec_memory_limit_bytes", help: "Memory limit of the container, in bytes.", kind: gauge, value: func(m *measured, _ []string) int64 { return m.lin.GetMemoryLimitInBytes() }},
	{name: "container_spec_memory_reservation_limit_bytes", help: "Memory reservation limit of the container, in bytes.", kind: gauge, value: none},
	{name: "container_spec_memory_swap_limit_bytes", help: "Memory and swap limit of the container, in bytes.", kind: gauge, value: func(m *measured, _ []string) int64 { return m.lin.GetMemorySwapLimitInBytes() }},
	{name: "container_start_time_seconds", help: "Start time of the container, in seconds since the Unix epoch.", kind: gauge, value: func(m *measured, _ []string) int64 { return seconds(m.startedAt) }},
	{name: "container_threads", help: "Number of threads in the container.", kind: gauge, value: func(m *measured, _ []string) int64 { return m.processes }},
	{name: "container_threads_max", help: "Maximum number of threads in the container, 0 for no limit.", kind: gauge, value: none},
	{name: "container_ulimits_soft", help: "Soft limits of the container's first process.", kind: gauge, keys: []string{"ulimit"}, values: [][]string{{"max_open_files"}}, value: func(*measured, []string) int64 { return 1_048_576 }},
}

func usedMemory(m *measured, _ []string) int64 { return m.memory }

func (m *measured) ooms() int64 {
	if m.oom {
		return 1
	}
	return 0
}

// ListMetricDescriptors returns what metrics there are, which never changes.
func (c *Client) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	if err := c.by.Read(ctx, calls.ListMetricDescriptors, calls.Subject{Timeout: -1}); err != nil {
		return nil, err
	}
	out := make([]*runtimeapi.MetricDescriptor, len(metrics))
	for i := range metrics {
		m := &metrics[i]
		out[i] = &runtimeapi.MetricDescriptor{Name: m.name, Help: m.help, LabelKeys: append(metricLabels[:len(metricLabels):len(metricLabels)], m.keys...)}
	}
	return out, nil
}

// ListPodSandboxMetrics returns the metrics of the READY sandboxes and of what
// runs in them.
func (c *Client) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	if err := c.by.Read(ctx, calls.ListPodSandboxMetrics, calls.Subject{Timeout: -1}); err != nil {
		return nil, err
	}
	var out []*runtimeapi.PodSandboxMetrics
	for _, s := range c.r.recs.Sandboxes {
		if s.State == records.SandboxReady {
			out = append(out, c.r.view.sandboxMetrics(s))
		}
	}
	return out, nil
}

func (r *viewer) sandboxMetrics(s *records.Sandbox) *runtimeapi.PodSandboxMetrics {
	now := r.l.UnixNano()
	md := s.Metadata
	labels := []string{s.ID, s.ID, "", md.Name, md.Namespace, r.opts.SandboxImage}
	out := &runtimeapi.PodSandboxMetrics{PodSandboxId: s.ID}
	if !s.HostNetwork() {
		out.Metrics = (&measured{now: now, startedAt: s.CreatedAt}).list(true, labels)
	}
	for _, c := range s.Containers {
		if !c.Listed || c.State != records.StateRunning {
			continue
		}
		m := &measured{now: now, startedAt: c.StartedAt, lin: c.LinuxResources(), processes: r.use.ProcessesOf(c)}
		m.memory, m.milli, m.coreNanos = r.use.UsageNow(c, now)
		written := r.disks.Used(c)
		m.layer, m.inodes = written.Bytes, written.Inodes
		d := r.disks.Share.Disk()
		m.disk = memfs.Space{Bytes: cmp.Or(d.Size().Bytes, diskSize), Inodes: cmp.Or(d.Size().Inodes, diskInodes)}
		m.inodesFree = min(d.Free().Inodes, m.disk.Inodes-written.Inodes)
		m.oom = c.Process != nil && c.Process.Interpreted != nil && c.Process.Interpreted.OOM
		labels := []string{r.kern.CgroupPath(c), c.ID, c.Config.Metadata.Name, md.Name, md.Namespace, c.Image.Spec.Image}
		out.ContainerMetrics = append(out.ContainerMetrics, &runtimeapi.ContainerMetrics{ContainerId: c.ID, Metrics: m.list(false, labels)})
	}
	return out
}

// list returns the values of the metrics of containers, or of sandboxes.
func (m *measured) list(pod bool, labels []string) []*runtimeapi.Metric {
	var out []*runtimeapi.Metric
	add := func(d *metric, own []string) {
		out = append(out, &runtimeapi.Metric{
			Name: d.name, Timestamp: m.now, MetricType: d.kind,
			LabelValues: append(labels[:len(labels):len(labels)], own...), Value: uint64Value(d.value(m, own)),
		})
	}
	for i := range metrics {
		d := &metrics[i]
		switch {
		case d.pod != pod:
		case d.keys == nil:
			add(d, nil)
		default:
			for _, own := range d.values {
				add(d, own)
			}
		}
	}
	return out
}
