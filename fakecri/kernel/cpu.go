package kernel

// cpuTime is the time that processes have computed: in steps, and at a rate. Rates let a program
// burn a core for days without a step: usage is computed when it is asked for.
type cpuTime struct {
	done, at int64 // ns of a core, up to at (ns since the epoch)
	rate     int64 // millicores since then
}

// now is the time computed up to an instant. Microseconds are multiplied first,
// so that days at many cores don't overflow.
func (t *cpuTime) now(at int64) int64 {
	if t.rate == 0 {
		return t.done
	}
	d := at - t.at
	// d is in ns and rate in thousandths, so the product is divided by 1000; the remainder apart,
	// for precision.
	return t.done + d/1000*t.rate + d%1000*t.rate/1000
}

// add changes the rate from an instant on.
func (t *cpuTime) add(rate, at int64) {
	t.done, t.at = t.now(at), at
	t.rate += rate
}

// Burn has the process compute from now on with so many millicores more, until
// it ends, beside whatever else it does. What a container may use at most (cpu.max) is not
// enforced here: who asks for a rate knows it.
func (p *Process) Burn(milli int64) {
	if !p.dead && milli > 0 {
		p.burn(milli)
	}
}

// BurnAt has the process compute from now on with so many millicores.
func (p *Process) BurnAt(milli int64) {
	if !p.dead {
		p.burn(milli - p.burns)
	}
}

// burn changes the rate of the process, and of its container and machine.
func (p *Process) burn(milli int64) {
	if milli == 0 {
		return
	}
	now := p.c.m.l.UnixNano()
	p.burns += milli
	p.c.cpu.add(milli, now)
	p.c.m.cpu.add(milli, now)
}

// CPU returns what the container's processes have computed, in nanoseconds of a
// core, those that have ended included.
func (c *Container) CPU() int64 { return c.cpu.now(c.m.l.UnixNano()) }

// CPU returns what all containers' processes have computed, in nanoseconds of a
// core, those that have ended included.
func (m *Machine) CPU() int64 { return m.cpu.now(m.l.UnixNano()) }
