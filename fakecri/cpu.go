package fakecri

import (
	"cmp"
	"time"

	"github.com/drydock-sim/drydock/ground/usage"
)

// cappedCPU is the processor use of a program that its quota holds back.
type cappedCPU struct {
	curve *usage.Curve
	// before is added to the curve's total: what was used under other quotas,
	// less what the curve says for that time.
	before int64
}

// cpuOf is what a stated process uses of processors, in millicores.
func (r *accounts) cpuOf(p *process) cappedCPU {
	if c, ok := r.capped[p]; ok {
		return c
	}
	return cappedCPU{curve: p.b.CPU}
}

// cpuTotal is what it has used, in nanoseconds of a core.
func (r *accounts) cpuTotal(p *process, now int64) int64 {
	c := r.cpuOf(p)
	if c.curve == nil {
		return 0
	}
	return c.before + c.curve.Total(time.Duration(now-p.startedAt), p.c.noiseKey(r.l), 1000)
}

// quota is a container's, in millicores; 0 for none.
func (c *container) quota() int64 {
	lin := c.linuxResources()
	if lin.GetCpuQuota() <= 0 {
		return 0
	}
	return lin.GetCpuQuota() * 1000 / cmp.Or(lin.GetCpuPeriod(), 100_000)
}

// accountCPU books the processor use of a stated process that starts (1), ends
// (-1) or has another quota (0).
func (r *accounts) accountCPU(p *process, n int) {
	if p.b.CPU == nil {
		return
	}
	a, now := r, r.l.UnixNano()
	a.cpuDone, a.cpuAt = a.podsCPUFixed(now), now
	at, key := time.Duration(now-p.startedAt), p.c.noiseKey(r.l)
	varies := func(c *usage.Curve) bool { _, ok := c.Constant(); return !ok }
	before := r.cpuTotal(p, now)
	if n <= 0 {
		c := r.cpuOf(p).curve
		a.cpu.remove(p, c)
		if varies(c) {
			a.cpuDone += c.Total(at, key, 1000)
		}
		delete(a.capped, p)
	}
	if n < 0 {
		return
	}
	curve := p.b.CPU
	if quota := p.c.quota(); quota > 0 {
		curve = curve.Capped(quota)
	}
	total := curve.Total(at, key, 1000)
	if curve != p.b.CPU || before != total {
		if a.capped == nil {
			a.capped = map[*process]cappedCPU{}
		}
		a.capped[p] = cappedCPU{curve: curve, before: before - total}
	}
	a.cpu.add(r.l, p, curve)
	if varies(curve) {
		a.cpuDone -= total
	}
}
