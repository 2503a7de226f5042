package fakecri

import (
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
	"github.com/drydock-sim/drydock/ground/usage"
)

// SystemUsage is what the machine itself uses, outside containers, by the time
// since the run's start.
type SystemUsage struct {
	// Memory is in bytes, CPU in millicores; PIDs counts processes.
	Memory, CPU, PIDs *usage.Curve
}

// defaultMemory is in bytes.
const defaultMemory = 1 << 20

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

func (l *ledger) add(lp *loop.Loop, p *process, c *usage.Curve) {
	l.peak += c.Peak()
	if v, ok := c.Constant(); ok {
		l.fixed += v
		return
	}
	l.users, l.owners = append(l.users, p.user(lp, c)), append(l.owners, p)
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
func (p *process) user(l *loop.Loop, c *usage.Curve) usage.User {
	return usage.User{Curve: c, Start: time.Duration(p.startedAt), Key: p.c.noiseKey(l)}
}

// noiseKey is the seed of the noise of all that a run of a container uses.
func (c *container) noiseKey(l *loop.Loop) uint64 {
	sub := c.subject()
	return l.Uint64("usage", sub.pod, sub.key())
}

// usageOf is what a curve says for a stated process; the key is drawn only if
// there may be noise.
func (p *process) usageOf(l *loop.Loop, c *usage.Curve, now int64) int64 {
	if v, ok := c.Constant(); ok {
		return v
	}
	return p.user(l, c).At(time.Duration(now))
}

// accounts are what the node's processes use, as sums that are kept as processes
// come and go.
type accounts struct {
	l    *loop.Loop
	rec  *trace.Recorder
	recs *recordStore
	kern *nodeKernel
	exit func(*container, exitStatus)
	ends func(*process) // what a process's own limit says has come

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
	oomWatchers                        watchers[OOMKill]
}

// account books a stated process that starts (1) or ends (-1).
func (r *accounts) account(p *process, n int) {
	a := r
	r.accountCPU(p, n)
	if n < 0 {
		a.memory.remove(p, p.b.memory())
		a.pids.remove(p, r.cappedPIDs(p.b))
		return
	}
	a.memory.add(r.l, p, p.b.memory())
	a.pids.add(r.l, p, r.cappedPIDs(p.b))
	r.grown(true)
	r.guardPod(p.c.sandbox)
}

// cappedPIDs is how many processes a stated program gets to have: at its pod's
// limit its forks fail.
func (r *accounts) cappedPIDs(b *Behaviour) *usage.Curve {
	if limit := r.podPIDLimit; limit > 0 {
		return b.processes().Capped(limit)
	}
	return b.processes()
}

// usageLimits are those of Options; 0 means none.
type usageLimits struct{ Memory, MaxPIDs, PodPIDs int64 }

func newAccounts(l *loop.Loop, rec *trace.Recorder, recs *recordStore, kern *nodeKernel, system SystemUsage, limits usageLimits) *accounts {
	a, now := &accounts{l: l, rec: rec, recs: recs, kern: kern, system: system, maxPIDs: limits.MaxPIDs, podPIDLimit: limits.PodPIDs}, l.UnixNano()
	a.memorySince, a.cpuSince, a.pidsSince, a.cpuAt = now, now, now, now
	a.node = guard{r: a, name: "memory", limit: noLimit, demand: a.memoryDemand, passed: a.nodeOOM, inner: func() bool { return a.innerOOM(nil, true) }, slack: memorySlack}
	if limits.Memory > 0 {
		a.node.limit = limits.Memory
	}
	a.pods = guard{r: a, name: "pods memory", limit: noLimit, demand: a.podsMemoryDemand, passed: a.podsOOM, inner: func() bool { return a.innerOOM(nil, false) }, slack: memorySlack}
	a.lowMemory = guard{r: a, name: "low memory", limit: noLimit, demand: a.memoryDemand, slack: memorySlack}
	a.lowPodsMemory = guard{r: a, name: "low pods memory", limit: noLimit, demand: a.podsMemoryDemand, slack: memorySlack}
	a.lowPIDs = guard{r: a, name: "low pids", limit: noLimit, demand: a.pidsDemand, slack: pidSlack}
	a.grown(true)
	return a
}

func (a *accounts) podsCPUFixed(now int64) int64 {
	d := now - a.cpuAt
	return a.cpuDone + d/1000*a.cpu.fixed + d%1000*a.cpu.fixed/1000
}

// grown is called when processes have come to use more than before, or differently.
func (r *accounts) grown(started bool) {
	a := r
	a.node.grown(started)
	a.pods.grown(started)
	a.lowMemory.grown(started)
	a.lowPodsMemory.grown(started)
	a.lowPIDs.grown(started)
}

func (r *accounts) kernelMemory() int64 {
	if r.kern.machine == nil {
		return 0
	}
	return r.kern.machine.MemoryUsage()
}

func (r *accounts) memoryDemand() demand {
	a := r
	return demand{&a.memory, r.kernelMemory(), usage.User{Curve: a.system.Memory, Start: time.Duration(a.memorySince), Key: r.systemKey()}}
}

func (r *accounts) podsMemoryDemand() demand {
	return demand{ledger: &r.memory, extra: r.kernelMemory()}
}

func (r *accounts) pidsDemand() demand {
	a := r
	return demand{&a.pids, r.otherPIDs(), usage.User{Curve: a.system.PIDs, Start: time.Duration(a.pidsSince), Key: r.systemKey()}}
}

// otherPIDs are the processes of pods that are not stated programs'.
func (r *accounts) otherPIDs() int64 {
	n := r.pauses
	if r.kern.machine != nil {
		n += int64(r.kern.machine.ProcessCount())
	}
	return n
}

// systemKey is the seed of the noise of the machine's own use.
func (r *accounts) systemKey() uint64 { return r.l.Seed() ^ 0x5afe }

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

// NodeUsage is Runtime.NodeUsage.
func (r *accounts) NodeUsage() NodeUsage {
	a := r
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
	if r.kern.machine != nil {
		u.PodsCPU += r.kern.machine.CPU()
	}
	system := usage.User{Curve: a.system.CPU, Start: time.Duration(a.cpuSince), Key: r.systemKey()}
	u.MilliCPU = u.PodsMilliCPU + system.At(now)
	u.CPU = u.PodsCPU + a.systemCPU + system.Curve.Total(now-system.Start, system.Key, 1000)
	if a.pods.limit != noLimit {
		u.PodsMemoryLimit = a.pods.limit
	}
	return u
}

// SetSystemMemory is Runtime.SetSystemMemory.
func (r *accounts) SetSystemMemory(c *usage.Curve) {
	r.system.Memory, r.memorySince = c, r.l.UnixNano()
	r.grown(true)
}

// SetSystemPIDs is Runtime.SetSystemPIDs.
func (r *accounts) SetSystemPIDs(c *usage.Curve) {
	r.system.PIDs, r.pidsSince = c, r.l.UnixNano()
	r.grown(true)
}

// SetSystemCPU is Runtime.SetSystemCPU.
func (r *accounts) SetSystemCPU(c *usage.Curve) {
	a, now := r, r.l.UnixNano()
	a.systemCPU += a.system.CPU.Total(time.Duration(now-a.cpuSince), r.systemKey(), 1000)
	a.system.CPU, a.cpuSince = c, now
}

// SetPodsMemoryLimit is Runtime.SetPodsMemoryLimit.
func (r *accounts) SetPodsMemoryLimit(n int64) {
	r.pods.limit = noLimit
	if n > 0 {
		r.pods.limit = n
	}
	r.pods.grown(true)
}

// SetPodsPIDLimit is Runtime.SetPodsPIDLimit.
func (r *accounts) SetPodsPIDLimit(n int64) { r.podsPIDLimit = max(n, 0) }

// mayFork tells whether there can be one more process in an interpreted container.
func (r *accounts) mayFork(c *container) bool {
	a, now := r, time.Duration(r.l.UnixNano())
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
func (r *accounts) podProcesses(s *sandbox) int64 {
	n := int64(1)
	for _, c := range s.containers {
		n += r.processesOf(c)
	}
	return n
}
