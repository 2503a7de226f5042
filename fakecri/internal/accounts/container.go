package accounts

import "github.com/drydock-sim/drydock/fakecri/internal/records"

// UsageNow is what a container uses: memory in bytes, CPU in millicores and,
// since its start, in core-nanoseconds. Nothing once it has ended.
func (r *Node) UsageNow(c *records.Container, now int64) (memory, milli, coreNanos int64) {
	p := c.Process
	if p == nil {
		return 0, 0, 0
	}
	memory = r.MemoryNow(c, now)
	if p.Interpreted != nil {
		return memory, p.Interpreted.MilliCPU(now), p.Interpreted.CoreNanos()
	}
	if p.Behaviour.CPU == nil {
		return memory, 0, 0
	}
	return memory, p.UsageOf(r.l, r.CpuOf(p).Curve, now), r.CpuTotal(p, now)
}

// MemoryNow is what a container that has started uses of memory, in bytes.
func (r *Node) MemoryNow(c *records.Container, now int64) int64 {
	if p := c.Process; p.Interpreted == nil {
		return p.UsageOf(r.l, p.Behaviour.MemoryCurve(), now)
	}
	return c.Process.Interpreted.Kernel.MemoryUsage()
}

// processes is how many processes a container has.
func (r *Node) ProcessesOf(c *records.Container) int64 {
	switch p := c.Process; {
	case p == nil:
		return 0
	case p.Interpreted != nil:
		return int64(p.Interpreted.Kernel.ProcessCount())
	default:
		return p.UsageOf(r.l, r.cappedPIDs(p.Behaviour), r.l.UnixNano())
	}
}
