package stats

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// defaultCachePeriod is how long a rate of CPU use is kept that was not
// computed anew.
const defaultCachePeriod = 10 * time.Minute

// nanoCores keeps rates of CPU use for runtimes that tell totals only.
type nanoCores struct{ last map[string]cpuSample }

// cpuSample is a container's use of CPU when it was asked for, and the rate
// that followed.
type cpuSample struct {
	at    int64 // ns
	total uint64
	rate  *uint64
	used  int64
}

// rate returns a container's rate in nanocores: with force from the total of
// now and that of the last time, else as it was.
func (n *nanoCores) rate(id string, s *runtimeapi.CpuUsage, force bool, now int64) *uint64 {
	before, known := n.last[id]
	if !force {
		return before.rate
	}
	next := cpuSample{at: s.Timestamp, total: s.GetUsageCoreNanoSeconds().GetValue(), used: now}
	switch period := next.at - before.at; {
	case !known:
	case period <= 0:
		return before.rate
	case next.total >= before.total:
		next.rate = new(uint64(float64(next.total-before.total) / float64(period) * float64(time.Second)))
	}
	if n.last == nil {
		n.last = map[string]cpuSample{}
	}
	n.last[id] = next
	return next.rate
}

// expire forgets what was not asked for.
func (n *nanoCores) expire(now int64) {
	for id, s := range n.last { //drydock:unordered forgets each by itself
		if now-s.used >= int64(defaultCachePeriod) {
			delete(n.last, id)
		}
	}
}

// cpu is a container's use of CPU; the rate is the runtime's, or made here of
// two answers. A runtime that says nothing stands for none used, as upstream
// has it.
func (p *Provider) cpu(s *runtimeapi.ContainerStats, force bool) *statsapi.CPUStats {
	c := s.Cpu
	if c == nil {
		zero := uint64(0)
		return &statsapi.CPUStats{Time: p.now(), UsageCoreNanoSeconds: &zero, UsageNanoCores: &zero}
	}
	out := &statsapi.CPUStats{Time: at(c.Timestamp), UsageCoreNanoSeconds: number(c.UsageCoreNanoSeconds), UsageNanoCores: number(c.UsageNanoCores), PSI: psi(c.Psi)}
	if out.UsageNanoCores == nil {
		out.UsageNanoCores = p.cores.rate(s.GetAttributes().GetId(), c, force, p.o.Loop.UnixNano())
	}
	return out
}

// sumCPU adds up a pod's containers; the time is the latest of theirs.
func sumCPU(list []statsapi.ContainerStats) *statsapi.CPUStats {
	out := &statsapi.CPUStats{}
	for i := range list {
		if c := list[i].CPU; c != nil {
			latest(&out.Time, c.Time)
			addTo(&out.UsageCoreNanoSeconds, c.UsageCoreNanoSeconds)
			addTo(&out.UsageNanoCores, c.UsageNanoCores)
		}
	}
	return out
}

// sumMemory does so for memory. What only some containers report is the sum of
// those.
func sumMemory(list []statsapi.ContainerStats) *statsapi.MemoryStats {
	out := &statsapi.MemoryStats{}
	for i := range list {
		if c := list[i].Memory; c != nil {
			latest(&out.Time, c.Time)
			addTo(&out.AvailableBytes, c.AvailableBytes)
			addTo(&out.UsageBytes, c.UsageBytes)
			addTo(&out.WorkingSetBytes, c.WorkingSetBytes)
			addTo(&out.RSSBytes, c.RSSBytes)
			addTo(&out.PageFaults, c.PageFaults)
			addTo(&out.MajorPageFaults, c.MajorPageFaults)
		}
	}
	return out
}

// latest sets t to the later of the two.
func latest(t *metav1.Time, o metav1.Time) {
	if t.Before(&o) {
		*t = o
	}
}

// addTo adds a number that may be missing to a sum that may be.
func addTo(sum **uint64, v *uint64) {
	if v == nil {
		return
	}
	n := *v
	if *sum != nil {
		n += **sum
	}
	*sum = &n
}
