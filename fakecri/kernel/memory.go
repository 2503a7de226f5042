package kernel

import (
	"context"
	"math"
	"slices"
)

// Cgroup is a memory cgroup above containers: a pod's.
type Cgroup struct {
	limit, used int64
	list        []*Container
}

// NewCgroup returns a cgroup with a memory limit in bytes; 0 means none.
func (m *Machine) NewCgroup(limit int64) *Cgroup { return &Cgroup{limit: limit} }

// SetLimit changes the limit; if more is in use the OOM killer goes to work at
// once.
func (g *Cgroup) SetLimit(n int64) {
	g.limit = n
	g.enforce()
}

// Limit returns the limit, 0 for none.
func (g *Cgroup) Limit() int64 { return g.limit }

// Usage returns what the containers in it use, in bytes.
func (g *Cgroup) Usage() int64 { return g.used }

func (g *Cgroup) remove(c *Container) {
	g.list = slices.DeleteFunc(g.list, func(o *Container) bool { return o == c })
}

func (g *Cgroup) over() bool { return g != nil && g.limit > 0 && g.used > g.limit }

func (g *Cgroup) enforce() {
	for g.over() {
		var victim *Process
		for _, c := range g.list {
			victim = biggest(victim, c.procs)
		}
		if victim == nil {
			return
		}
		victim.c.oomKill(victim)
	}
}

// charge books memory of a process.
func (c *Container) charge(p *Process, n int64) {
	p.mem += n
	c.book(n)
}

func (c *Container) book(n int64) {
	c.used += n
	c.peak = max(c.peak, c.used)
	if g := c.opts.Cgroup; g != nil {
		g.used += n
	}
}

// enforce has the OOM killer act while a limit is passed.
func (c *Container) enforce() {
	for c.opts.MemoryLimit > 0 && c.used > c.opts.MemoryLimit {
		victim := biggest(nil, c.procs)
		if victim == nil {
			break
		}
		c.oomKill(victim)
	}
	if g := c.opts.Cgroup; g.over() {
		g.enforce()
	}
}

// room returns how much memory can be taken without passing a limit.
func (c *Container) room() int64 {
	room := int64(math.MaxInt64)
	if c.opts.MemoryLimit > 0 {
		room = c.opts.MemoryLimit - c.used
	}
	if g := c.opts.Cgroup; g != nil && g.limit > 0 {
		room = min(room, g.limit-g.used)
	}
	return max(room, 0)
}

// makeRoom has the OOM killer take one process, because a file on a tmpfs needs
// memory.
func (c *Container) makeRoom() bool {
	victim := biggest(nil, c.procs)
	if victim == nil {
		return false
	}
	c.oomKill(victim)
	return true
}

// removed takes what files on a tmpfs no longer take off the container's memory.
func (c *Container) removed(n int64) {
	n = min(n, c.files)
	if n > 0 {
		c.files -= n
		c.book(-n)
	}
}

// biggest returns the process with the most memory, of equals the youngest.
func biggest(best *Process, list []*Process) *Process {
	for _, p := range list {
		if best == nil || p.mem >= best.mem {
			best = p
		}
	}
	return best
}

// oomKill kills a process, or with OOMGroup all of the container's.
func (c *Container) oomKill(victim *Process) {
	victims := []*Process{victim}
	if c.opts.OOMGroup {
		for _, p := range c.procs {
			if p != victim {
				victims = append(victims, p)
			}
		}
	}
	c.oomKills++
	for _, p := range victims {
		if p.dead {
			continue
		}
		if c.opts.OOM != nil {
			c.opts.OOM(p)
		}
		p.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL, OOM: true})
	}
}

// Alloc takes memory, charged to the container's cgroup. Over a limit the OOM
// killer kills the biggest process of the cgroup, or all of them; if that is
// the caller it does not return.
func (p *Process) Alloc(ctx context.Context, n int64) error {
	if p.dead || n <= 0 {
		p.checkAlive()
		return nil
	}
	p.c.charge(p, n)
	p.c.enforce()
	p.checkAlive()
	return nil
}

// Free gives memory back.
func (p *Process) Free(n int64) {
	if !p.dead {
		p.c.charge(p, -min(n, p.mem))
	}
}

// Memory returns what the process has taken, in bytes.
func (p *Process) Memory() int64 { return p.mem }

// MemoryUsage returns what its processes have taken, in bytes.
func (c *Container) MemoryUsage() int64 { return c.used }

// SetMemoryLimit changes the limit, 0 for none; if more is in use the OOM killer
// goes to work at once.
func (c *Container) SetMemoryLimit(n int64) {
	c.opts.MemoryLimit = n
	c.enforce()
}
