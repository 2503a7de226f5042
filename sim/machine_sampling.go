package sim

import (
	"strings"
	"time"

	"github.com/drydock-sim/drydock/kubelet/stats"
)

// uncounted returns the statistics of a pod's cgroup as long as it was not
// counted since it was made (NodeOptions.StatsDelay): there is nothing in it. It
// returns nil for any other cgroup.
func (m machineStats) uncounted(cgroup string) *stats.Cgroup {
	delay := m.n.opts.StatsDelay
	if delay <= 0 {
		return nil
	}
	i := strings.LastIndex(cgroup, "pod")
	if i < 0 {
		return nil
	}
	uid := strings.ReplaceAll(strings.TrimSuffix(cgroup[i+len("pod"):], ".slice"), "_", "-")
	first := int64(0)
	for _, c := range m.n.rt.Containers() {
		if strings.ReplaceAll(c.UID, "_", "-") == uid && (first == 0 || c.CreatedAt < first) {
			first = c.CreatedAt
		}
	}
	if first == 0 || time.Duration(m.n.l.UnixNano()-first) >= delay {
		return nil
	}
	return &stats.Cgroup{CPU: m.cpuStats(0, 0), Memory: m.memoryStats(0, 0), Processes: amount(0)}
}
