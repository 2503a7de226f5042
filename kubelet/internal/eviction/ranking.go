package eviction

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// measured says what of a pod's disk counts for a signal.
type measured struct{ layer, logs, volumes bool }

// rank sorts pods: what is evicted first comes first. Upstream's sort is not
// stable; what ties goes by later creation, then by namespace and name.
func rank(pods []*v1.Pod, s Signal, layout Layout, stats podStats) {
	var compare func(a, b *candidate) int
	list := make([]candidate, 0, len(pods))
	facts := s.facts()
	for _, p := range pods {
		c := candidate{pod: p, stats: stats(p), priority: priorityOf(p)}
		switch facts.resource {
		case v1.ResourceMemory:
			c.measureMemory()
		case resourcePids:
			c.measureProcesses()
		default:
			c.measureDisk(facts.resource, layout.measured(s))
		}
		list = append(list, c)
	}
	if compare = compareUsage; facts.resource == resourcePids {
		compare = compareProcesses
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(compare(&a, &b), compareAge(a.pod, b.pod))
	})
	for i := range list {
		pods[i] = list[i].pod
	}
}

// candidate is a pod with what its rank depends on.
type candidate struct {
	pod      *v1.Pod
	stats    *statsapi.PodStats
	priority int32
	exceeds  bool
	// over is the usage, less what was asked for.
	over int64
}

// measureMemory measures by how much a pod exceeds its request. One without
// statistics has no measure: compareUsage puts it first.
func (c *candidate) measureMemory() {
	if c.stats == nil {
		return
	}
	used, request := memoryUsage(c.stats.Memory), memoryRequest(c.pod)
	c.exceeds, c.over = request.CmpInt64(used) < 0, used-request.Value()
}

// measureProcesses counts a pod's processes, for which there are no requests.
func (c *candidate) measureProcesses() {
	if c.stats != nil && c.stats.ProcessStats != nil && c.stats.ProcessStats.ProcessCount != nil {
		c.over = int64(*c.stats.ProcessStats.ProcessCount)
	}
}

// measureDisk compares with the request for the resource whether there is too
// much, and how much with that for bytes, also if inodes are counted.
func (c *candidate) measureDisk(name v1.ResourceName, what measured) {
	if c.stats == nil {
		return
	}
	bytes, inodes := diskUsage(c.pod, c.stats, what)
	used := bytes
	if name == resourceInodes {
		used = inodes
	}
	request, storage := requestOf(c.pod, name), requestOf(c.pod, v1.ResourceEphemeralStorage)
	c.exceeds, c.over = request.CmpInt64(used) < 0, used-storage.Value()
}

// compareUsage is by: no statistics, exceeding what was asked for, priority,
// how much more is used.
func compareUsage(a, b *candidate) int {
	if a.stats == nil || b.stats == nil {
		return cmp.Or(truthFirst(a.stats == nil, b.stats == nil), cmp.Compare(a.priority, b.priority))
	}
	return cmp.Or(truthFirst(a.exceeds, b.exceeds), cmp.Compare(a.priority, b.priority), cmp.Compare(b.over, a.over))
}

// compareProcesses is by priority, no statistics, the number of processes.
func compareProcesses(a, b *candidate) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), truthFirst(a.stats == nil, b.stats == nil), cmp.Compare(b.over, a.over))
}

// compareAge puts the youngest first: the one that has the least to lose. The
// names make the order complete; upstream leaves it open.
func compareAge(a, b *v1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// truthFirst orders true before false.
func truthFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// priorityOf is 0 for a pod that admission has not given any.
func priorityOf(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// memoryUsage is the working set, as the kernel judges what is in use.
func memoryUsage(m *statsapi.MemoryStats) int64 {
	if m == nil || m.WorkingSetBytes == nil {
		return 0
	}
	return int64(*m.WorkingSetBytes)
}

// memoryRequest is what a pod asks for: with resources of its own only these.
func memoryRequest(p *v1.Pod) resource.Quantity {
	if resourcehelper.IsPodLevelResourcesSet(p) {
		return p.Spec.Resources.Requests[v1.ResourceMemory]
	}
	return requestOf(p, v1.ResourceMemory)
}

// requestOf is what a pod asks for: overhead counts on top of something only
// (upstream GetResourceRequestQuantity).
func requestOf(p *v1.Pod, name v1.ResourceName) resource.Quantity {
	q := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})[name]
	if overhead, ok := p.Spec.Overhead[name]; ok && !q.IsZero() {
		q = q.DeepCopy()
		q.Add(overhead)
	}
	return q
}

// diskUsage sums the bytes and inodes of a pod on its disk.
func diskUsage(p *v1.Pod, s *statsapi.PodStats, what measured) (bytes, inodes int64) {
	add := func(fs *statsapi.FsStats) {
		if fs == nil {
			return
		}
		if fs.UsedBytes != nil {
			bytes += int64(*fs.UsedBytes)
		}
		if fs.InodesUsed != nil {
			inodes += int64(*fs.InodesUsed)
		}
	}
	for i := range s.Containers {
		if what.layer {
			add(s.Containers[i].Rootfs)
		}
		if what.logs {
			add(s.Containers[i].Logs)
		}
	}
	if !what.volumes {
		return bytes, inodes
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if !local(v) {
			continue
		}
		for k := range s.VolumeStats {
			if s.VolumeStats[k].Name == v.Name {
				add(&s.VolumeStats[k].FsStats)
				break
			}
		}
	}
	return bytes, inodes
}

// local reports whether a volume counts as on the node's disk (localVolumeNames).
func local(v *v1.Volume) bool {
	return v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != v1.StorageMediumMemory || v.ConfigMap != nil || v.GitRepo != nil
}
