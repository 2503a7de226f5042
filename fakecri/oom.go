package fakecri

import (
	"path"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/trace"
)

// OOMKill is a record of the kernel's: it took a process for want of memory.
type OOMKill struct {
	// Process is its name (at most 15 bytes, as in the kernel), PID its number
	// on the node.
	Process string
	PID     int
	// Cgroup is the one whose limit was passed, "/" for the machine; Victim is
	// that of the process.
	Cgroup, Victim string
}

// WatchOOM is Runtime.WatchOOM.
func (r *accounts) WatchOOM(g *loop.Group, fn func(OOMKill)) { r.oomWatchers.add(g, fn) }

func (r *accounts) tellOOM(c *container, process string, pid int, cgroup string) {
	if !r.oomWatchers.any() {
		return
	}
	r.oomWatchers.tell(OOMKill{Process: process, PID: pid, Cgroup: cgroup, Victim: r.kern.cgroupPath(c)})
}

// task is a process as the OOM killer sees it; p is nil if it is a stated
// program's.
type task struct {
	c *container
	p *kernel.Process
	n int64 // its badness
}

// oomKill has the OOM killer take the worst of the containers in a cgroup that
// has run out of total bytes of memory; false if there is none that it may take.
func (r *accounts) oomKill(cgroup string, total int64, in func(*container) bool) bool {
	var worst task
	now := r.l.UnixNano()
	consider := func(t task, memory int64, adj int16) {
		n, ok := kernel.Badness(memory, adj, total)
		if t.n = n; ok && (worst.c == nil || n >= worst.n) {
			worst = t
		}
	}
	for _, c := range r.recs.containers {
		if c.process == nil || !in(c) {
			continue
		}
		adj := oomScoreAdj(c)
		if c.process.in == nil {
			consider(task{c: c}, c.process.usageOf(r.l, c.process.b.memory(), now), adj)
			continue
		}
		for _, p := range c.process.in.kc.Processes() {
			consider(task{c: c, p: p}, p.Memory(), adj)
		}
	}
	if worst.c == nil {
		return false
	}
	c, name, pid := worst.c, "", 0
	if worst.p != nil {
		name, pid = processName(worst.p.Argv), worst.p.PIDIn(r.kern.machine.HostPIDs())
	} else {
		name, pid = processName(c.argv()), r.statedPID(c)
	}
	if r.rec != nil {
		sub := c.subject()
		r.rec.RecordObject(trace.KindProcess, sub.object(), "oom-kill", trace.Str("cgroup", cgroup), trace.Str("process", name), trace.Int("pid", int64(pid)))
	}
	if worst.p != nil {
		c.process.in.oomCgroup = cgroup
		worst.p.OOMKill()
		if in := c.process; in != nil && in.in != nil {
			in.in.oomCgroup = ""
		}
		return true
	}
	r.tellOOM(c, name, pid, cgroup)
	r.exit(c, exitByOOM)
	return true
}

func oomScoreAdj(c *container) int16 {
	return int16(max(-1000, min(1000, c.linuxResources().GetOomScoreAdj())))
}

// processName is what the kernel shows of a command line.
func processName(argv []string) string {
	if len(argv) == 0 {
		return "entrypoint"
	}
	name := path.Base(argv[0])
	return name[:min(len(name), 15)]
}

// statedPID is the number of a stated program's process, which no process is
// there to have.
func (r *accounts) statedPID(c *container) int {
	sub := c.subject()
	return 2000 + int(r.l.Uint64("pid", sub.pod, sub.key())%30000)
}

// nodeOOM is the machine's memory running out.
func (r *accounts) nodeOOM() bool {
	return r.oomKill("/", r.node.limit, func(*container) bool { return true })
}

// podsOOM is the memory of all pods together passing its limit.
func (r *accounts) podsOOM() bool {
	root := "/kubepods"
	if r.kern.opts.CgroupDriver == "systemd" {
		root = "/kubepods.slice"
	}
	return r.oomKill(root, r.pods.limit, func(*container) bool { return true })
}

// innerOOM acts on the limits of containers, of pods and, for the machine, of all
// pods that are passed at this instant; false if none is. s, if not nil, is the
// pod that is looked at.
func (r *accounts) innerOOM(s *sandbox, machine bool) bool {
	now := r.l.UnixNano()
	for _, c := range r.recs.containers {
		if s != nil && c.sandbox != s {
			continue
		}
		if p := c.process; p != nil && p.in == nil && p.oomAt != 0 && p.oomAt <= now {
			if r.ends(p); c.process != p {
				return true
			}
		}
		if g := r.podGuards[c.sandbox]; s == nil && g != nil && g.over(now) && g.act() {
			return true
		}
	}
	g := &r.pods
	return machine && g.over(now) && g.act()
}

// podLimit is the memory limit of a pod's cgroup, 0 for none.
func (r *accounts) podLimit(s *sandbox) int64 {
	if n, ok := r.podLimits[s]; ok {
		return n
	}
	lin := s.config.GetLinux()
	return podMemoryLimit(lin.GetResources(), lin.GetOverhead())
}

// podMemoryLimit is the limit of the pod's cgroup: what the pod may use and what
// its sandbox takes besides.
func podMemoryLimit(resources, overhead *runtimeapi.LinuxContainerResources) int64 {
	limit := resources.GetMemoryLimitInBytes()
	if limit > 0 {
		limit += overhead.GetMemoryLimitInBytes()
	}
	return limit
}

// setPodLimit changes the memory limit of a pod's cgroup.
func (r *accounts) setPodLimit(s *sandbox, resources, overhead *runtimeapi.LinuxContainerResources) {
	a := r
	if a.podLimits == nil {
		a.podLimits = map[*sandbox]int64{}
	}
	a.podLimits[s] = podMemoryLimit(resources, overhead)
	if pk := r.kern.podKernels[s]; pk != nil {
		r.setCgroupLimit(pk, s, a.podLimits[s])
	}
	if g := a.podGuards[s]; g != nil {
		g.stop()
		delete(a.podGuards, s)
	}
	r.guardPod(s)
}

// guardPod watches over the memory limit of a pod's cgroup, if its stated
// programs can pass it.
func (r *accounts) guardPod(s *sandbox) {
	limit := r.podLimit(s)
	if limit <= 0 {
		return
	}
	g := r.podGuards[s]
	if g == nil {
		if r.podPeak(s) <= limit {
			return
		}
		g = &guard{r: r, name: "pod memory", limit: limit, demand: func() demand { return r.podDemand(s) }, slack: memorySlack}
		g.passed, g.inner = func() bool { return r.podOOM(s) }, func() bool { return r.innerOOM(s, false) }
		if r.podGuards == nil {
			r.podGuards = map[*sandbox]*guard{}
		}
		r.podGuards[s] = g
	}
	g.grown(true)
}

// podOOM is a pod's memory passing the limit of its cgroup.
func (r *accounts) podOOM(s *sandbox) bool {
	parent := path.Join("/", s.whole().GetLinux().GetCgroupParent())
	return r.oomKill(parent, r.podLimit(s), func(c *container) bool { return c.sandbox == s })
}

// podPeak is an amount of memory that a pod's containers will not pass while its
// interpreted processes take no more.
func (r *accounts) podPeak(s *sandbox) int64 {
	var peak int64
	for _, c := range s.containers {
		if p := c.process; p != nil && p.in == nil {
			peak += p.b.memory().Peak()
		}
	}
	if pk := r.kern.podKernels[s]; pk != nil && pk.cgroup != nil {
		peak += pk.cgroup.Usage()
	}
	return peak
}

// podDemand is the memory that a pod's containers use.
func (r *accounts) podDemand(s *sandbox) demand {
	l := &ledger{}
	for _, c := range s.containers {
		if p := c.process; p != nil && p.in == nil {
			curve := p.b.memory()
			l.peak += curve.Peak()
			l.users = append(l.users, p.user(r.l, curve))
		}
	}
	d := demand{ledger: l}
	if pk := r.kern.podKernels[s]; pk != nil && pk.cgroup != nil {
		d.extra = pk.cgroup.Usage()
	}
	return d
}

// setCgroupLimit sets the limit of the cgroup that interpreted processes of a
// pod are in, in which stated programs count too.
func (r *accounts) setCgroupLimit(pk *podKernel, s *sandbox, limit int64) {
	if pk.cgroup != nil {
		pk.cgroup.SetLimit(limit)
		return
	}
	pk.cgroup = r.kern.machine.NewCgroup(limit)
	pk.cgroup.SetOutside(kernel.Outside{
		Used: func() int64 { return r.podDemand(s).ledger.now(time.Duration(r.l.UnixNano())) },
		Kill: func() bool { return r.podOOM(s) },
		Grown: func() {
			if g := r.podGuards[s]; g != nil {
				g.grown(false)
			} else if r.podPeak(s) > r.podLimit(s) {
				r.guardPod(s)
			}
		},
	})
}

// dropUse forgets what is watched of a sandbox.
func (r *accounts) dropUse(s *sandbox) {
	if g := r.podGuards[s]; g != nil {
		g.stop()
		delete(r.podGuards, s)
	}
	delete(r.podLimits, s)
}

// cutUse is the end of all processes.
func (r *accounts) cutUse() {
	a := r
	for _, g := range [...]*guard{&a.node, &a.pods, &a.lowMemory, &a.lowPodsMemory, &a.lowPIDs} {
		g.stop()
	}
	a.lowMemory.limit, a.lowPodsMemory.limit, a.lowPIDs.limit = noLimit, noLimit, noLimit
	a.podGuards = nil
}
