package stats

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// pressures has a cgroup's statistics say how long its processes waited, as cAdvisor's
// do: a kernel that does not count it stands for never. It returns those of I/O.
func (p *Provider) pressures(c *statsapi.CPUStats, m *statsapi.MemoryStats, io *statsapi.IOStats) *statsapi.IOStats {
	if c != nil && c.PSI == nil {
		c.PSI = &statsapi.PSIStats{}
	}
	if m != nil && m.PSI == nil {
		m.PSI = &statsapi.PSIStats{}
	}
	if io == nil {
		io = &statsapi.IOStats{Time: p.now()}
	}
	if io.PSI == nil {
		io.PSI = &statsapi.PSIStats{}
	}
	return io
}

// swapped is a cgroup's swap; none where it is not counted.
func (p *Provider) swapped(s *statsapi.SwapStats) *statsapi.SwapStats {
	if s == nil {
		s = &statsapi.SwapStats{Time: p.now(), SwapUsageBytes: new(uint64(0))}
	}
	return s
}

// psi is the runtime's pressure; nil: it tells none.
func psi(s *runtimeapi.PsiStats) *statsapi.PSIStats {
	if s == nil {
		return nil
	}
	data := func(d *runtimeapi.PsiData) statsapi.PSIData {
		return statsapi.PSIData{Total: d.GetTotal(), Avg10: d.GetAvg10(), Avg60: d.GetAvg60(), Avg300: d.GetAvg300()}
	}
	return &statsapi.PSIStats{Full: data(s.Full), Some: data(s.Some)}
}

// io is a container's I/O, of which only pressure is known.
func (p *Provider) io(s *runtimeapi.ContainerStats) *statsapi.IOStats {
	if s.Io == nil {
		return &statsapi.IOStats{Time: p.now()}
	}
	return &statsapi.IOStats{Time: at(s.Io.Timestamp), PSI: psi(s.Io.Psi)}
}
