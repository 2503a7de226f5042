package accounts

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/ground/usage"
)

// cappedCPU is the processor use of a program that its quota holds back.
type cappedCPU struct {
	Curve *usage.Curve
	// before is added to the curve's total: what was used under other quotas,
	// less what the curve says for that time.
	before int64
}

// CpuOf is what a stated process uses of processors, in millicores.
func (r *Node) CpuOf(p *records.Process) cappedCPU {
	if c, ok := r.capped[p]; ok {
		return c
	}
	return cappedCPU{Curve: p.Behaviour.CPU}
}

// CpuTotal is what it has used, in nanoseconds of a core.
func (r *Node) CpuTotal(p *records.Process, now int64) int64 {
	c := r.CpuOf(p)
	if c.Curve == nil {
		return 0
	}
	return c.before + c.Curve.Total(time.Duration(now-p.StartedAt), p.Container.NoiseKey(r.l), 1000)
}

// AccountCPU books the processor use of a stated process that starts (1), ends
// (-1) or has another quota (0).
func (r *Node) AccountCPU(p *records.Process, n int) {
	if p.Behaviour.CPU == nil {
		return
	}
	a, now := r, r.l.UnixNano()
	a.cpuDone, a.cpuAt = a.podsCPUFixed(now), now
	at, key := time.Duration(now-p.StartedAt), p.Container.NoiseKey(r.l)
	varies := func(c *usage.Curve) bool { _, ok := c.Constant(); return !ok }
	before := r.CpuTotal(p, now)
	if n <= 0 {
		c := r.CpuOf(p).Curve
		a.cpu.remove(p, c)
		if varies(c) {
			a.cpuDone += c.Total(at, key, 1000)
		}
		delete(a.capped, p)
	}
	if n < 0 {
		return
	}
	curve := p.Behaviour.CPU
	if quota := p.Container.Quota(); quota > 0 {
		curve = curve.Capped(quota)
	}
	total := curve.Total(at, key, 1000)
	if curve != p.Behaviour.CPU || before != total {
		if a.capped == nil {
			a.capped = map[*records.Process]cappedCPU{}
		}
		a.capped[p] = cappedCPU{Curve: curve, before: before - total}
	}
	a.cpu.add(r.l, p, curve)
	if varies(curve) {
		a.cpuDone -= total
	}
}
