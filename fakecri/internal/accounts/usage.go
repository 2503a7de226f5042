package accounts

import (
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/program"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
	"github.com/drydock-sim/drydock/fakecri/internal/watch"
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

// ledger sums what the stated programs that run use of one thing. What always
// stays the same is one number, so that most containers cost nothing.
type ledger struct {
	fixed  int64
	peak   int64 // fixed, and the peaks of users
	Users  []usage.User
	Owners []*records.Process // of the users
}

// add books a process as a user of a curve.
func (l *ledger) add(lp *loop.Loop, p *records.Process, c *usage.Curve) {
	l.peak += c.Peak()
	if v, ok := c.Constant(); ok {
		l.fixed += v
		return
	}
	l.Users, l.Owners = append(l.Users, p.User(lp, c)), append(l.Owners, p)
}

// remove takes it out again. The order of the others stays, which sums of noise
// depend on.
func (l *ledger) remove(p *records.Process, c *usage.Curve) {
	l.peak -= c.Peak()
	if v, ok := c.Constant(); ok {
		l.fixed -= v
		return
	}
	for i, o := range l.Owners {
		if o == p {
			last := len(l.Owners) - 1
			copy(l.Owners[i:], l.Owners[i+1:])
			copy(l.Users[i:], l.Users[i+1:])
			l.Owners[last], l.Users[last] = nil, usage.User{}
			l.Owners, l.Users = l.Owners[:last], l.Users[:last]
			return
		}
	}
}

// now is the sum at an instant.
func (l *ledger) now(at time.Duration) int64 {
	sum := l.fixed
	for _, u := range l.Users {
		sum += u.At(at)
	}
	return sum
}

// Node are what the node's processes use, as sums that are kept as processes
// come and go.
type Node struct {
	l    *loop.Loop
	rec  *trace.Recorder
	recs *records.Store
	kern *podkernel.Node
	// Runner ends what the OOM killer takes.
	Runner interface {
		Exit(*records.Container, records.ExitStatus)
		Ends(*records.Process) // what a process's own limit says has come
	}

	Memory, cpu, pids ledger
	// cpuDone is the processor time of the programs that have ended, and of
	// those of cpu.fixed up to cpuAt.
	cpuDone, cpuAt int64
	capped         map[*records.Process]cappedCPU // by a quota, now or before
	// pauses are the processes of the sandboxes.
	pauses int64
	system SystemUsage
	// Since when the machine's own use is what system says, and what processor
	// time it had used before.
	memorySince, cpuSince, pidsSince int64
	systemCPU                        int64

	node, pods                         guard    // the OOM killer's
	low                                [3]guard // a watch's, of lowGuards
	changed                            func()   // is told by the watch
	podGuards                          map[*records.Sandbox]*guard
	podLimits                          map[*records.Sandbox]int64 // that are not the sandbox's request's
	maxPIDs, podsPIDLimit, podPIDLimit int64
	oomWatchers                        watch.Watchers[OOMKill]
}

// Account books a stated process that starts (1) or ends (-1).
func (r *Node) Account(p *records.Process, n int) {
	a := r
	r.AccountCPU(p, n)
	if n < 0 {
		a.Memory.remove(p, p.Behaviour.MemoryCurve())
		a.pids.remove(p, r.cappedPIDs(p.Behaviour))
		return
	}
	a.Memory.add(r.l, p, p.Behaviour.MemoryCurve())
	a.pids.add(r.l, p, r.cappedPIDs(p.Behaviour))
	r.Grown(true)
	r.guardPod(p.Container.Sandbox)
}

// cappedPIDs is how many processes a stated program gets to have: at its pod's
// limit its forks fail.
func (r *Node) cappedPIDs(b *program.Behaviour) *usage.Curve {
	if limit := r.podPIDLimit; limit > 0 {
		return b.ProcessesCurve().Capped(limit)
	}
	return b.ProcessesCurve()
}

// Limits are those of Options; 0 means none.
type Limits struct{ Memory, MaxPIDs, PodPIDs int64 }

// New returns sums of nothing but the machine's own use, with its guards.
func New(l *loop.Loop, rec *trace.Recorder, recs *records.Store, kern *podkernel.Node, system SystemUsage, limits Limits) *Node {
	a, now := &Node{l: l, rec: rec, recs: recs, kern: kern, system: system, maxPIDs: limits.MaxPIDs, podPIDLimit: limits.PodPIDs}, l.UnixNano()
	a.memorySince, a.cpuSince, a.pidsSince, a.cpuAt = now, now, now, now
	a.node, a.pods = guard{r: a, kind: &nodeGuard, limit: NoLimit}, guard{r: a, kind: &podsGuard, limit: NoLimit}
	if limits.Memory > 0 {
		a.node.limit = limits.Memory
	}
	for i := range a.low {
		a.low[i] = guard{r: a, kind: &lowGuards[i], limit: NoLimit}
	}
	a.Grown(true)
	return a
}

// podsCPUFixed is the processor time of programs that ended or use the same all the
// time, in nanoseconds of a core, multiplied so that it can't overflow.
func (a *Node) podsCPUFixed(now int64) int64 {
	d := now - a.cpuAt
	return a.cpuDone + d/1000*a.cpu.fixed + d%1000*a.cpu.fixed/1000
}

// Grown is called when processes have come to use more than before, or differently.
func (r *Node) Grown(started bool) {
	r.node.Grown(started)
	r.pods.Grown(started)
	for i := range r.low {
		r.low[i].Grown(started)
	}
}

// kernelMemory is what interpreted processes use, in bytes.
func (r *Node) kernelMemory() int64 {
	if r.kern.Machine == nil {
		return 0
	}
	return r.kern.Machine.MemoryUsage()
}

// memoryDemand is the memory of the whole machine.
func (r *Node) memoryDemand(*records.Sandbox) demand {
	return demand{&r.Memory, r.kernelMemory(), r.systemUser(r.system.Memory, r.memorySince)}
}

// podsMemoryDemand is the memory of all pods.
func (r *Node) podsMemoryDemand(*records.Sandbox) demand {
	return demand{ledger: &r.Memory, extra: r.kernelMemory()}
}

// pidsDemand is how many processes there are.
func (r *Node) pidsDemand(*records.Sandbox) demand {
	return demand{&r.pids, r.otherPIDs(), r.systemUser(r.system.PIDs, r.pidsSince)}
}

// otherPIDs are the processes of pods that are not stated programs'.
func (r *Node) otherPIDs() int64 {
	n := r.pauses
	if r.kern.Machine != nil {
		n += int64(r.kern.Machine.ProcessCount())
	}
	return n
}

// systemUser is the machine as the user of a curve since a time.
func (r *Node) systemUser(c *usage.Curve, since int64) usage.User {
	return usage.User{Curve: c, Start: time.Duration(since), Key: r.systemKey()}
}

// systemKey is the seed of the noise of the machine's own use.
func (r *Node) systemKey() uint64 { return r.l.Seed() ^ 0x5afe }

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

// NodeMemory is the memory that the machine uses now.
func (r *Node) NodeMemory() int64 { return r.NodeUsage().Memory }

// NodeUsage is Runtime.NodeUsage.
func (r *Node) NodeUsage() NodeUsage {
	a := r
	at := r.l.UnixNano()
	now := time.Duration(at)
	u := NodeUsage{MaxPIDs: a.maxPIDs}
	u.PodsMemory = a.Memory.now(now) + r.kernelMemory()
	u.Memory = u.PodsMemory + r.systemUser(r.system.Memory, r.memorySince).At(now)
	u.PodsPIDs = a.pids.now(now) + r.otherPIDs()
	if a.podsPIDLimit > 0 {
		u.PodsPIDs = min(u.PodsPIDs, a.podsPIDLimit)
	}
	u.PIDs = u.PodsPIDs + r.systemUser(r.system.PIDs, r.pidsSince).At(now)
	if u.MaxPIDs > 0 {
		u.PIDs = min(u.PIDs, u.MaxPIDs)
	}
	u.PodsMilliCPU, u.PodsCPU = a.cpu.now(now), a.podsCPUFixed(at)
	for _, user := range a.cpu.Users {
		u.PodsCPU += user.Curve.Total(now-user.Start, user.Key, 1000)
	}
	if r.kern.Machine != nil {
		u.PodsCPU += r.kern.Machine.CPU()
	}
	system := r.systemUser(a.system.CPU, a.cpuSince)
	u.MilliCPU = u.PodsMilliCPU + system.At(now)
	u.CPU = u.PodsCPU + a.systemCPU + system.Curve.Total(now-system.Start, system.Key, 1000)
	if a.pods.limit != NoLimit {
		u.PodsMemoryLimit = a.pods.limit
	}
	return u
}

// SetSystemMemory is Runtime.SetSystemMemory.
func (r *Node) SetSystemMemory(c *usage.Curve) {
	r.system.Memory, r.memorySince = c, r.l.UnixNano()
	r.Grown(true)
}

// SetSystemPIDs is Runtime.SetSystemPIDs.
func (r *Node) SetSystemPIDs(c *usage.Curve) {
	r.system.PIDs, r.pidsSince = c, r.l.UnixNano()
	r.Grown(true)
}

// SetSystemCPU is Runtime.SetSystemCPU.
func (r *Node) SetSystemCPU(c *usage.Curve) {
	a, now := r, r.l.UnixNano()
	a.systemCPU += a.system.CPU.Total(time.Duration(now-a.cpuSince), r.systemKey(), 1000)
	a.system.CPU, a.cpuSince = c, now
}

// SetPodsMemoryLimit is Runtime.SetPodsMemoryLimit.
func (r *Node) SetPodsMemoryLimit(n int64) {
	r.pods.limit = NoLimit
	if n > 0 {
		r.pods.limit = n
	}
	r.pods.Grown(true)
}

// SetPodsPIDLimit is Runtime.SetPodsPIDLimit.
func (r *Node) SetPodsPIDLimit(n int64) { r.podsPIDLimit = max(n, 0) }

// MayFork reports whether there can be one more process in an interpreted container.
func (r *Node) MayFork(c *records.Container) bool {
	a, now := r, time.Duration(r.l.UnixNano())
	if a.podPIDLimit > 0 && r.podProcesses(c.Sandbox) >= a.podPIDLimit {
		return false
	}
	if a.maxPIDs <= 0 && a.podsPIDLimit <= 0 {
		return true
	}
	pods := a.pids.now(now) + r.otherPIDs()
	if a.podsPIDLimit > 0 && pods >= a.podsPIDLimit {
		return false
	}
	return a.maxPIDs <= 0 || pods+r.systemUser(r.system.PIDs, r.pidsSince).At(now) < a.maxPIDs
}

// podProcesses are the processes of a pod, its sandbox's included.
func (r *Node) podProcesses(s *records.Sandbox) int64 {
	n := int64(1)
	for _, c := range s.Containers {
		n += r.ProcessesOf(c)
	}
	return n
}
