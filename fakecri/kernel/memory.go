package kernel

import (
	"context"
	"math"
	"slices"
)

// Cgroup is a memory cgroup above containers: a pod's. Its limit is the sum of the containers' if
// all have one (the kubelet's pod level cgroup), or a limit of the pod itself. Containers enforce
// theirs first.
type Cgroup struct {
	// used is what the containers in list are charged, with those that have ended and left files.
	limit, used int64
	list        []*Container
	outside     *Outside
}

// Outside are those in a cgroup that the kernel does not run.
//
// A pod can have stated containers beside interpreted ones, and both count against its limit; who
// keeps those says so by these functions, each of which is called on the loop and must not wait.
type Outside struct {
	// Used is how much memory they take, in bytes.
	Used func() int64
	// Kill takes one of all in the cgroup when its limit is passed; false: there
	// was nobody to take.
	Kill func() bool
	// Grown is told that the kernel's processes take more.
	Grown func()
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

// remove takes a container off that has ended: it holds nothing any more.
func (g *Cgroup) remove(c *Container) {
	g.list = slices.DeleteFunc(g.list, func(o *Container) bool { return o == c })
}

// SetOutside tells of who else is in the cgroup.
func (g *Cgroup) SetOutside(o Outside) { g.outside = &o }

// over reports whether the limit is passed; a nil cgroup has none.
func (g *Cgroup) over() bool {
	if g == nil || g.limit <= 0 {
		return false
	}
	used := g.used
	if g.outside != nil {
		used += g.outside.Used()
	}
	return used > g.limit
}

// enforce kills until the limit holds or nobody is left. With an Outside the choice is the other
// side's, which knows all candidates.
func (g *Cgroup) enforce() {
	for g.over() {
		if g.outside != nil {
			if !g.outside.Kill() {
				return
			}
			continue
		}
		var victim *Process
		for _, c := range g.list {
			victim = worst(victim, c.procs, g.limit)
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

// book adds to the container, its pod's cgroup and the machine, which must never differ. Growth
// is reported up after it is counted; shrinking needs nobody.
func (c *Container) book(n int64) {
	c.used += n
	c.peak = max(c.peak, c.used)
	c.m.memory += n
	if g := c.opts.Cgroup; g != nil {
		g.used += n
		if n > 0 && g.outside != nil {
			g.outside.Grown()
		}
	}
	if n > 0 && c.m.opts.Grown != nil {
		c.m.opts.Grown()
	}
}

// enforce has the OOM killer act while a limit is passed. The container's own limit comes first,
// since reaching it spares the other containers of the pod.
func (c *Container) enforce() {
	for c.opts.MemoryLimit > 0 && c.used > c.opts.MemoryLimit {
		victim := worst(nil, c.procs, c.opts.MemoryLimit)
		if victim == nil {
			break
		}
		c.oomKill(victim)
	}
	if g := c.opts.Cgroup; g.over() {
		g.enforce()
	}
}

// room returns how much memory can be taken without passing a limit. It leaves out what is
// outside: a write there is cut short by memory that the kernel knows of.
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
// memory. The process that writes may be the victim: the caller looks, by checkAlive.
func (c *Container) makeRoom() bool {
	victim := worst(nil, c.procs, c.opts.MemoryLimit)
	if victim == nil {
		return false
	}
	c.oomKill(victim)
	return true
}

// removed takes what files on a tmpfs no longer take off the container's memory. At most what was
// booked for files: a file may have been there before anybody was charged.
func (c *Container) removed(n int64) {
	n = min(n, c.files)
	if n > 0 {
		c.files -= n
		c.book(-n)
	}
}

// pageSize is that of the machine's memory.
const pageSize = 4096

// unkillable is the oom_score_adj of what the OOM killer never takes.
const unkillable = -1000

// Badness is how the OOM killer ranks a process: its memory and the page tables
// for it in pages, and a thousandth of all memory there is (the machine's, or
// the limit of the cgroup that has run out) for each point of oom_score_adj
// (mm/oom_kill.c, oom_badness). false: it is never taken. What is more comes
// first, and of equals the youngest. Both the page tables' share and the order of the divisions
// are the kernel's, so that ties come out alike.
func Badness(memory int64, adj int16, total int64) (int64, bool) {
	if adj <= unkillable {
		return 0, false
	}
	pages := (memory + pageSize - 1) / pageSize
	// A page of page tables has entries of 8 bytes, each for one page.
	tables := (pages + pageSize/8 - 1) / (pageSize / 8)
	return pages + tables + int64(adj)*(total/pageSize/1000), true
}

// worst returns the process that the OOM killer takes, out of best and a list;
// nil if it may take none. Of equals the later one in the list wins, which is the younger.
func worst(best *Process, list []*Process, total int64) *Process {
	var most int64
	if best != nil {
		most, _ = Badness(best.mem, best.c.opts.OOMScoreAdj, total)
	}
	for _, p := range list {
		if n, ok := Badness(p.mem, p.c.opts.OOMScoreAdj, total); ok && (best == nil || n >= most) {
			best, most = p, n
		}
	}
	return best
}

// OOMKill is the OOM killer's work on a process: it dies, and with OOMGroup all
// of its container. The runtime calls it when the whole machine is out of memory, and the victim
// is one of these.
func (p *Process) OOMKill() {
	if !p.dead {
		p.c.oomKill(p)
	}
}

// MemoryUsage returns what all processes and the files on their tmpfs take, in
// bytes.
func (m *Machine) MemoryUsage() int64 { return m.memory }

// oomKill kills a process, or with OOMGroup all of the container's. OOM is told first, while the
// victim is still in the lists. Processes with oom_score_adj -1000 are not spared in a group, as
// opposed to Linux's memory.oom.group, which spares them.
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
	if c.opts.OOM != nil {
		c.opts.OOM(victim)
	}
	for _, p := range victims {
		if p.dead {
			continue
		}
		p.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL, OOM: true})
	}
}

// Alloc takes memory, charged to the container's cgroup. Over a limit the OOM
// killer kills the biggest process of the cgroup, or all of them; if that is
// the caller it does not return. There is no swap and no reclaim: what does not fit kills at
// once, as it does for anonymous memory on a node without swap. n <= 0 takes nothing.
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

// Free gives memory back. At most what it has, so that double frees do no harm.
func (p *Process) Free(n int64) {
	if !p.dead {
		p.c.charge(p, -min(n, p.mem))
	}
}

// Memory returns what the process has taken, in bytes.
func (p *Process) Memory() int64 { return p.mem }

// MemoryUsage returns what its processes have taken, in bytes. Files on its tmpfs are in it as
// well.
func (c *Container) MemoryUsage() int64 { return c.used }

// SetMemoryLimit changes the limit, 0 for none; if more is in use the OOM killer
// goes to work at once.
func (c *Container) SetMemoryLimit(n int64) {
	c.opts.MemoryLimit = n
	c.enforce()
}
