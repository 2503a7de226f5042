package fakecri

import (
	"time"

	"github.com/drydock-sim/drydock/ground/usage"
)

// SystemUsage is what the machine itself uses, outside containers, by the time
// since the run's start.
type SystemUsage struct {
	// Memory is in bytes, CPU in millicores; PIDs counts processes.
	Memory, CPU, PIDs *usage.Curve
}

// What a stated program uses that says nothing of it.
var (
	defaultMemoryCurve    = usage.Constant(defaultMemory)
	defaultProcessesCurve = usage.Constant(1)
)

func (b *Behaviour) memory() *usage.Curve {
	if b.Memory == nil {
		return defaultMemoryCurve
	}
	return b.Memory
}

func (b *Behaviour) processes() *usage.Curve {
	if b.Processes == nil {
		return defaultProcessesCurve
	}
	return b.Processes
}

// ledger sums what the stated programs that run use of one thing. What always
// stays the same is one number, so that most containers cost nothing.
type ledger struct {
	fixed  int64
	peak   int64 // fixed, and the peaks of users
	users  []usage.User
	owners []*process // of the users
}

func (l *ledger) add(r *Runtime, p *process, c *usage.Curve) {
	l.peak += c.Peak()
	if v, ok := c.Constant(); ok {
		l.fixed += v
		return
	}
	l.users, l.owners = append(l.users, r.user(p, c)), append(l.owners, p)
}

func (l *ledger) remove(p *process, c *usage.Curve) {
	l.peak -= c.Peak()
	if v, ok := c.Constant(); ok {
		l.fixed -= v
		return
	}
	for i, o := range l.owners {
		if o == p {
			last := len(l.owners) - 1
			copy(l.owners[i:], l.owners[i+1:])
			copy(l.users[i:], l.users[i+1:])
			l.owners[last], l.users[last] = nil, usage.User{}
			l.owners, l.users = l.owners[:last], l.users[:last]
			return
		}
	}
}

func (l *ledger) now(at time.Duration) int64 {
	sum := l.fixed
	for _, u := range l.users {
		sum += u.At(at)
	}
	return sum
}

// user is a process as a user of a curve.
func (r *Runtime) user(p *process, c *usage.Curve) usage.User {
	return usage.User{Curve: c, Start: time.Duration(p.startedAt), Key: r.noiseKey(p.c)}
}

// noiseKey is the seed of the noise of all that a run of a container uses.
func (r *Runtime) noiseKey(c *container) uint64 {
	sub := c.subject()
	return r.l.Uint64("usage", sub.pod, sub.key())
}

// usageOf is what a curve says for a stated process; the key is drawn only if
// there may be noise.
func (r *Runtime) usageOf(p *process, c *usage.Curve, now int64) int64 {
	if v, ok := c.Constant(); ok {
		return v
	}
	return r.user(p, c).At(time.Duration(now))
}

// accounts are what the node's processes use, as sums that are kept as processes
// come and go.
type accounts struct {
	memory, cpu, pids ledger
	// cpuDone is the processor time of the programs that have ended, and of
	// those of cpu.fixed up to cpuAt.
	cpuDone, cpuAt int64
	capped         map[*process]cappedCPU // by a quota, now or before
	// pauses are the processes of the sandboxes.
	pauses int64
	system SystemUsage
	// Since when the machine's own use is what system says, and what processor
	// time it had used before.
	memorySince, cpuSince, pidsSince int64
	systemCPU                        int64

	node, pods                         guard // the OOM killer's
	lowMemory, lowPodsMemory, lowPIDs  guard // a watch's
	podGuards                          map[*sandbox]*guard
	podLimits                          map[*sandbox]int64 // that are not the sandbox's request's
	maxPIDs, podsPIDLimit, podPIDLimit int64
	oomWatchers                        []oomWatcher
}

// account books a stated process that starts (1) or ends (-1).
func (r *Runtime) account(p *process, n int) {
	a := &r.use
	r.accountCPU(p, n)
	if n < 0 {
		a.memory.remove(p, p.b.memory())
		a.pids.remove(p, r.cappedPIDs(p.b))
		return
	}
	a.memory.add(r, p, p.b.memory())
	a.pids.add(r, p, r.cappedPIDs(p.b))
	r.grown(true)
	r.guardPod(p.c.sandbox)
}

// cappedPIDs is how many processes a stated program gets to have: at its pod's
// limit its forks fail.
func (r *Runtime) cappedPIDs(b *Behaviour) *usage.Curve {
	if limit := r.use.podPIDLimit; limit > 0 {
		return b.processes().Capped(limit)
	}
	return b.processes()
}

func (a *accounts) podsCPUFixed(now int64) int64 {
	d := now - a.cpuAt
	return a.cpuDone + d/1000*a.cpu.fixed + d%1000*a.cpu.fixed/1000
}

// initUse sets what is watched from the start.
func (r *Runtime) initUse() {
	a := &r.use
	now := r.l.UnixNano()
	a.system = r.opts.System
	a.memorySince, a.cpuSince, a.pidsSince, a.cpuAt = now, now, now, now
	a.maxPIDs, a.podPIDLimit = r.opts.MaxPIDs, r.opts.PodPIDs
	a.node = guard{r: r, name: "memory", limit: noLimit, demand: r.memoryDemand, passed: r.nodeOOM, inner: func() bool { return r.innerOOM(nil, true) }, slack: memorySlack}
	if r.opts.Memory > 0 {
		a.node.limit = r.opts.Memory
	}
	a.pods = guard{r: r, name: "pods memory", limit: noLimit, demand: r.podsMemoryDemand, passed: r.podsOOM, inner: func() bool { return r.innerOOM(nil, false) }, slack: memorySlack}
	a.lowMemory = guard{r: r, name: "low memory", limit: noLimit, demand: r.memoryDemand, slack: memorySlack}
	a.lowPodsMemory = guard{r: r, name: "low pods memory", limit: noLimit, demand: r.podsMemoryDemand, slack: memorySlack}
	a.lowPIDs = guard{r: r, name: "low pids", limit: noLimit, demand: r.pidsDemand, slack: pidSlack}
	r.grown(true)
}

// grown is called when processes have come to use more than before, or differently.
func (r *Runtime) grown(started bool) {
	a := &r.use
	a.node.grown(started)
	a.pods.grown(started)
	a.lowMemory.grown(started)
	a.lowPodsMemory.grown(started)
	a.lowPIDs.grown(started)
}

func (r *Runtime) kernelMemory() int64 {
	if r.machine == nil {
		return 0
	}
	return r.machine.MemoryUsage()
}

func (r *Runtime) memoryDemand() demand {
	a := &r.use
	return demand{&a.memory, r.kernelMemory(), usage.User{Curve: a.system.Memory, Start: time.Duration(a.memorySince), Key: r.systemKey()}}
}

func (r *Runtime) podsMemoryDemand() demand {
	return demand{ledger: &r.use.memory, extra: r.kernelMemory()}
}

func (r *Runtime) pidsDemand() demand {
	a := &r.use
	return demand{&a.pids, r.otherPIDs(), usage.User{Curve: a.system.PIDs, Start: time.Duration(a.pidsSince), Key: r.systemKey()}}
}

// otherPIDs are the processes of pods that are not stated programs'.
func (r *Runtime) otherPIDs() int64 {
	n := r.use.pauses
	if r.machine != nil {
		n += int64(r.machine.ProcessCount())
	}
	return n
}

// systemKey is the seed of the noise of the machine's own use.
func (r *Runtime) systemKey() uint64 { return r.l.Seed() ^ 0x5afe }

// NodeUsage is what the machine uses at an instant.
type NodeUsage struct {
	// Memory is in bytes; Pods is the containers' part.
	Memory, PodsMemory int64
	// PIDs are the processes, PodsPIDs those of pods, and MaxPIDs how many there
	// can be, 0 if nobody knows.
	PIDs, PodsPIDs, MaxPIDs int64
	// MilliCPU is the use of processors in thousandths of a core, CPU the time
	// used since the run's start in nanoseconds of a core.
	MilliCPU, PodsMilliCPU, CPU, PodsCPU int64
	// PodsMemoryLimit is that of the pods' cgroup, 0 for none.
	PodsMemoryLimit int64
}

// NodeUsage returns what the machine uses now. It is no call.
func (r *Runtime) NodeUsage() NodeUsage {
	a := &r.use
	at := r.l.UnixNano()
	now := time.Duration(at)
	u := NodeUsage{MaxPIDs: a.maxPIDs}
	u.PodsMemory = a.memory.now(now) + r.kernelMemory()
	u.Memory = u.PodsMemory + r.memoryDemand().own.At(now)
	u.PodsPIDs = a.pids.now(now) + r.otherPIDs()
	if a.podsPIDLimit > 0 {
		u.PodsPIDs = min(u.PodsPIDs, a.podsPIDLimit)
	}
	u.PIDs = u.PodsPIDs + r.pidsDemand().own.At(now)
	if u.MaxPIDs > 0 {
		u.PIDs = min(u.PIDs, u.MaxPIDs)
	}
	u.PodsMilliCPU, u.PodsCPU = a.cpu.now(now), a.podsCPUFixed(at)
	for _, user := range a.cpu.users {
		u.PodsCPU += user.Curve.Total(now-user.Start, user.Key, 1000)
	}
	if r.machine != nil {
		u.PodsCPU += r.machine.CPU()
	}
	system := usage.User{Curve: a.system.CPU, Start: time.Duration(a.cpuSince), Key: r.systemKey()}
	u.MilliCPU = u.PodsMilliCPU + system.At(now)
	u.CPU = u.PodsCPU + a.systemCPU + system.Curve.Total(now-system.Start, system.Key, 1000)
	if a.pods.limit != noLimit {
		u.PodsMemoryLimit = a.pods.limit
	}
	return u
}

// SetSystemMemory changes what the machine itself uses of memory, in bytes; the
// curve begins now.
func (r *Runtime) SetSystemMemory(c *usage.Curve) {
	r.use.system.Memory, r.use.memorySince = c, r.l.UnixNano()
	r.grown(true)
}

// SetSystemPIDs changes how many processes the machine has itself; the curve
// begins now.
func (r *Runtime) SetSystemPIDs(c *usage.Curve) {
	r.use.system.PIDs, r.use.pidsSince = c, r.l.UnixNano()
	r.grown(true)
}

// SetSystemCPU changes what the machine itself uses of its processors, in
// millicores; the curve begins now.
func (r *Runtime) SetSystemCPU(c *usage.Curve) {
	a, now := &r.use, r.l.UnixNano()
	a.systemCPU += a.system.CPU.Total(time.Duration(now-a.cpuSince), r.systemKey(), 1000)
	a.system.CPU, a.cpuSince = c, now
}

// SetPodsMemoryLimit sets the memory limit of the cgroup of all pods in bytes; 0
// or less for none. If more is in use the OOM killer goes to work.
func (r *Runtime) SetPodsMemoryLimit(n int64) {
	r.use.pods.limit = noLimit
	if n > 0 {
		r.use.pods.limit = n
	}
	r.use.pods.grown(true)
}

// SetPodsPIDLimit sets how many processes all pods can have; 0 or less for any
// number.
func (r *Runtime) SetPodsPIDLimit(n int64) { r.use.podsPIDLimit = max(n, 0) }

// mayFork tells whether there can be one more process in an interpreted container.
func (r *Runtime) mayFork(c *container) bool {
	a, now := &r.use, time.Duration(r.l.UnixNano())
	if a.podPIDLimit > 0 && r.podProcesses(c.sandbox) >= a.podPIDLimit {
		return false
	}
	if a.maxPIDs <= 0 && a.podsPIDLimit <= 0 {
		return true
	}
	pods := a.pids.now(now) + r.otherPIDs()
	if a.podsPIDLimit > 0 && pods >= a.podsPIDLimit {
		return false
	}
	return a.maxPIDs <= 0 || pods+r.pidsDemand().own.At(now) < a.maxPIDs
}

// podProcesses are the processes of a pod, its sandbox's included.
func (r *Runtime) podProcesses(s *sandbox) int64 {
	n := int64(1)
	for _, c := range s.containers {
		n += c.processes(r)
	}
	return n
}
