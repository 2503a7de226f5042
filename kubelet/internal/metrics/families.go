package metrics

import (
	"cmp"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// State is what a kubelet is at the moment, beside what it has done.
type State struct {
	NodeName string
	// CgroupVersion is 1 or 2.
	CgroupVersion int
	// The pods by whether they are static: those that it was told to run, and those of
	// them that use the node.
	Desired, Active map[bool]int
	Mirrors         int
	Ephemeral       int
	// RunningPods have a sandbox that is ready; Containers are the runtime's, by state.
	RunningPods int
	Containers  map[string]int
	// LastRelist is in s since the Unix epoch; 0: there was none.
	LastRelist    float64
	DroppedEvents uint64
	// Relists and Syncs are passes that were left out since they would have found
	// nothing new; relists come RelistPeriod, in s, apart.
	Relists, Syncs uint64
	RelistPeriod   float64
	// Evictions are pods by signal.
	Evictions map[string]uint64
	// Working are the pods' workers.
	Working map[Working]int
	// SharedCPUs are left to containers without CPUs of their own, ExclusiveCPUs are
	// given out.
	SharedCPUs, ExclusiveCPUs int
	// CPUPinnings and MemoryPinnings are containers that asked for CPUs or memory of
	// their own.
	CPUPinnings, CPUPinningErrors, MemoryPinnings, MemoryPinningErrors uint64
	Gates                                                              []Gate
	// Claims is what there is in the volumes of claims, one of each.
	Claims []statsapi.VolumeStats
	// PodCertificates are sources of volumes, by signer and state.
	PodCertificates map[PodCertificate]int
	// CredentialProviderHash is that of the plugins' configuration; "": there is none.
	CredentialProviderHash string
	// Started is when the kubelet did, in s since the Unix epoch.
	Started float64
}

// Gate is a feature gate with its stage: ALPHA, BETA, "" for GA, or DEPRECATED.
type Gate struct {
	Name, Stage string
	On          bool
}

// PodCertificate is what sources of kind podCertificate are counted by.
type PodCertificate struct{ Signer, State string }

// podCertificates adds their states.
func (b *builder) podCertificates(states map[PodCertificate]int) {
	list := make([]PodCertificate, 0, len(states))
	for s := range states { //drydock:unordered sorted below
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, c PodCertificate) int {
		return cmp.Or(strings.Compare(a.Signer, c.Signer), strings.Compare(a.State, c.State))
	})
	for _, s := range list {
		b.gauge("kubelet_podcertificate_states", float64(states[s]), "signer_name", s.Signer, "state", s.State)
	}
}

// Gather makes the families, by name.
func (k *Kubelet) Gather(s *State) []*dto.MetricFamily {
	b := &builder{}
	b.gauge("kubelet_node_name", 1, "node", s.NodeName)
	b.gauge("kubelet_metrics_provider", 1, "provider", "cadvisor")
	b.gauge("kubelet_cgroup_version", float64(s.CgroupVersion))
	for _, static := range [...]bool{false, true} {
		label := map[bool]string{false: "", true: "true"}[static]
		b.gauge("kubelet_desired_pods", float64(s.Desired[static]), "static", label)
		b.gauge("kubelet_active_pods", float64(s.Active[static]), "static", label)
	}
	b.gauge("kubelet_mirror_pods", float64(s.Mirrors))
	b.gauge("kubelet_managed_ephemeral_containers", float64(s.Ephemeral))
	b.gauge("kubelet_running_pods", float64(s.RunningPods))
	for _, state := range sorted(s.Containers) {
		b.gauge("kubelet_running_containers", float64(s.Containers[state]), "container_state", state)
	}
	b.gauge("kubelet_pleg_last_seen_seconds", s.LastRelist)
	b.counter("kubelet_pleg_discard_events", s.DroppedEvents)
	for _, signal := range sorted(s.Evictions) {
		b.counter("kubelet_evictions", s.Evictions[signal], "eviction_signal", signal)
	}
	b.claims(s.Claims)
	b.podCertificates(s.PodCertificates)
	k.counted(b, s)
	k.labelled(b, s)
	k.evented(b)
	k.plain(b, s)
	slices.SortFunc(b.out, func(a, c *dto.MetricFamily) int { return cmp.Compare(a.GetName(), c.GetName()) })
	return b.out
}

// counted adds what was counted.
func (k *Kubelet) counted(b *builder, s *State) {
	for o := range operations {
		if c := &k.calls[o]; c.took.counts != nil {
			b.histogram("kubelet_runtime_operations_duration_seconds", &c.took, runtimeBuckets, 0, 0, "operation_type", o.String())
			b.counter("kubelet_runtime_operations_total", c.took.count(), "operation_type", o.String())
			if c.errors > 0 {
				b.counter("kubelet_runtime_operations_errors_total", uint64(c.errors), "operation_type", o.String())
			}
		}
	}
	for _, handler := range sorted(k.sandboxes) {
		b.histogram("kubelet_run_podsandbox_duration_seconds", k.sandboxes[handler], defaultBuckets, 0, 0, "runtime_handler", handler)
	}
	b.counter("kubelet_started_pods_total", k.StartedPods)
	b.counter("kubelet_started_pods_errors_total", k.StartedPodErrors)
	for _, t := range sorted(k.started) {
		b.counter("kubelet_started_containers_total", k.started[t], "container_type", string(t))
	}
	failures := make([]failure, 0, len(k.failed))
	for f := range k.failed { //drydock:unordered sorted below
		failures = append(failures, f)
	}
	slices.SortFunc(failures, func(a, c failure) int {
		return cmp.Or(strings.Compare(string(a.of), string(c.of)), strings.Compare(a.code, c.code))
	})
	for _, f := range failures {
		b.counter("kubelet_started_containers_errors_total", k.failed[f], "code", f.code, "container_type", string(f.of))
	}
	// A relist is a period after the one before, whether or not it is made.
	b.histogram("kubelet_pleg_relist_duration_seconds", &k.relist, defaultBuckets, s.Relists, 0)
	b.histogram("kubelet_pleg_relist_interval_seconds", &k.relistInterval, defaultBuckets, s.Relists, s.RelistPeriod)
	for i, name := range workerOperations {
		left := uint64(0)
		if i == Sync {
			left = s.Syncs
		}
		if left > 0 || k.worker[i].counts != nil {
			b.histogram("kubelet_pod_worker_duration_seconds", &k.worker[i], defaultBuckets, left, 0, "operation_type", name)
		}
	}
	b.histogram("kubelet_pod_worker_start_duration_seconds", &k.workerStart, defaultBuckets, 0, 0)
	b.histogram("kubelet_pod_start_duration_seconds", &k.podStart, startupBuckets, 0, 0)
	b.histogram("kubelet_containers_per_pod_count", &k.containersPerPod, containersBuckets, 0, 0)
	for _, reason := range sorted(k.rejections) {
		b.counter("kubelet_admission_rejections_total", k.rejections[reason], "reason", reason)
	}
}

// plain adds what has no labels.
func (k *Kubelet) plain(b *builder, s *State) {
	for _, c := range [...]struct {
		name string
		n    uint64
	}{
		{"kubelet_sleep_action_terminated_early_total", k.SleepsEnded},
		{"kubelet_started_user_namespaced_pods_total", k.UserNamespaced},
		{"kubelet_started_user_namespaced_pods_errors_total", k.UserNamespacedErrors},
		{"kubelet_orphaned_runtime_pods_total", k.Orphaned},
		{"kubelet_cpu_manager_pinning_requests_total", s.CPUPinnings},
		{"kubelet_cpu_manager_pinning_errors_total", s.CPUPinningErrors},
		{"kubelet_memory_manager_pinning_requests_total", s.MemoryPinnings},
		{"kubelet_memory_manager_pinning_errors_total", s.MemoryPinningErrors},
	} {
		b.counter(c.name, c.n)
	}
	b.counter("kubelet_restarted_pods_total", k.Restarted[0], "static", "")
	b.counter("kubelet_restarted_pods_total", k.Restarted[1], "static", "true")
	b.gauge("kubelet_cpu_manager_shared_pool_size_millicores", float64(1000*s.SharedCPUs))
	b.gauge("kubelet_cpu_manager_exclusive_cpu_allocation_count", float64(s.ExclusiveCPUs))
	b.histogram("kubelet_pod_status_sync_duration_seconds", &k.statusSync, statusBuckets, 0, 0)
}

// sorted are a map's keys in order.
func sorted[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for key := range m { //drydock:unordered sorted below
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func (h *Histogram) count() (n uint64) {
	for _, c := range h.counts {
		n += uint64(c)
	}
	return n
}

// builder collects families.
type builder struct {
	out   []*dto.MetricFamily
	index map[string]*dto.MetricFamily
}

// add adds a sample to a family. labels are names and values, by name.
func (b *builder) add(name string, m *dto.Metric, labels ...string) {
	f := b.index[name]
	if f == nil {
		says := families[name]
		f = &dto.MetricFamily{Name: &name, Help: &says.help, Type: &says.kind}
		if b.index == nil {
			b.index = map[string]*dto.MetricFamily{}
		}
		b.index[name] = f
		b.out = append(b.out, f)
	}
	for i := 0; i < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	f.Metric = append(f.Metric, m)
}

func (b *builder) gauge(name string, v float64, labels ...string) {
	b.add(name, &dto.Metric{Gauge: &dto.Gauge{Value: &v}}, labels...)
}

func (b *builder) counter(name string, n uint64, labels ...string) {
	v := float64(n)
	b.add(name, &dto.Metric{Counter: &dto.Counter{Value: &v}}, labels...)
}

// histogram adds a histogram and, to what it has seen, n times the value left.
func (b *builder) histogram(name string, h *Histogram, bounds []float64, n uint64, left float64, labels ...string) {
	sum, total := h.sum+float64(n)*left, h.count()+n
	out := &dto.Histogram{SampleSum: &sum, SampleCount: &total}
	var below uint64
	for i := range bounds {
		if h.counts != nil {
			below += uint64(h.counts[i])
		}
		count := below
		if left <= bounds[i] {
			count += n
		}
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: &bounds[i], CumulativeCount: &count})
	}
	b.add(name, &dto.Metric{Histogram: out}, labels...)
}
