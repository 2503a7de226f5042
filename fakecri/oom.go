package fakecri

import (
	"path"
	"slices"
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

type oomWatcher struct {
	g  *loop.Group
	fn func(OOMKill)
}

// WatchOOM has fn called for each kill from now on, while the group lives. fn
// must not wait.
func (r *Runtime) WatchOOM(g *loop.Group, fn func(OOMKill)) {
	if g.Dead() {
		return
	}
	r.use.oomWatchers = append(r.use.oomWatchers, oomWatcher{g, fn})
	g.OnKill(func() {
		r.use.oomWatchers = slices.DeleteFunc(slices.Clone(r.use.oomWatchers), func(w oomWatcher) bool { return w.g == g })
	})
}

func (r *Runtime) tellOOM(c *container, process string, pid int, cgroup string) {
	if len(r.use.oomWatchers) == 0 {
		return
	}
	k := OOMKill{Process: process, PID: pid, Cgroup: cgroup, Victim: r.cgroupPath(c)}
	for _, w := range r.use.oomWatchers {
		w.fn(k)
	}
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
func (r *Runtime) oomKill(cgroup string, total int64, in func(*container) bool) bool {
	var worst task
	now := r.l.UnixNano()
	consider := func(t task, memory int64, adj int16) {
		n, ok := kernel.Badness(memory, adj, total)
		if t.n = n; ok && (worst.c == nil || n >= worst.n) {
			worst = t
		}
	}
	for _, c := range r.containers {
		if c.process == nil || !in(c) {
			continue
		}
		adj := oomScoreAdj(c)
		if c.process.in == nil {
			consider(task{c: c}, r.usageOf(c.process, c.process.b.memory(), now), adj)
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
		name, pid = processName(worst.p.Argv), worst.p.PIDIn(r.machine.HostPIDs())
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
func (r *Runtime) statedPID(c *container) int {
	sub := c.subject()
	return 2000 + int(r.l.Uint64("pid", sub.pod, sub.key())%30000)
}

// nodeOOM is the machine's memory running out.
func (r *Runtime) nodeOOM() bool {
	return r.oomKill("/", r.use.node.limit, func(*container) bool { return true })
}

// podsOOM is the memory of all pods together passing its limit.
func (r *Runtime) podsOOM() bool {
	root := "/kubepods"
	if r.opts.CgroupDriver == "systemd" {
		root = "/kubepods.slice"
	}
	return r.oomKill(root, r.use.pods.limit, func(*container) bool { return true })
}

// innerOOM acts on the limits of containers, of pods and, for the machine, of all
// pods that are passed at this instant; false if none is. s, if not nil, is the
// pod that is looked at.
func (r *Runtime) innerOOM(s *sandbox, machine bool) bool {
	now := r.l.UnixNano()
	for _, c := range r.containers {
		if s != nil && c.sandbox != s {
			continue
		}
		if p := c.process; p != nil && p.in == nil && p.oomAt != 0 && p.oomAt <= now {
			if p.ends(r); c.process != p {
				return true
			}
		}
		if g := r.use.podGuards[c.sandbox]; s == nil && g != nil && g.over(now) && g.act() {
			return true
		}
	}
	g := &r.use.pods
	return machine && g.over(now) && g.act()
}

// podLimit is the memory limit of a pod's cgroup, 0 for none.
func (r *Runtime) podLimit(s *sandbox) int64 {
	if n, ok := r.use.podLimits[s]; ok {
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
func (r *Runtime) setPodLimit(s *sandbox, resources, overhead *runtimeapi.LinuxContainerResources) {
	a := &r.use
	if a.podLimits == nil {
		a.podLimits = map[*sandbox]int64{}
	}
	a.podLimits[s] = podMemoryLimit(resources, overhead)
	if pk := r.podKernels[s]; pk != nil {
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
func (r *Runtime) guardPod(s *sandbox) {
	limit := r.podLimit(s)
	if limit <= 0 {
		return
	}
	g := r.use.podGuards[s]
	if g == nil {
		if r.podPeak(s) <= limit {
			return
		}
		g = &guard{r: r, name: "pod memory", limit: limit, demand: func() demand { return r.podDemand(s) }, slack: memorySlack}
		g.passed, g.inner = func() bool { return r.podOOM(s) }, func() bool { return r.innerOOM(s, false) }
		if r.use.podGuards == nil {
			r.use.podGuards = map[*sandbox]*guard{}
		}
		r.use.podGuards[s] = g
	}
	g.grown(true)
}

// podOOM is a pod's memory passing the limit of its cgroup.
func (r *Runtime) podOOM(s *sandbox) bool {
	parent := path.Join("/", s.whole().GetLinux().GetCgroupParent())
	return r.oomKill(parent, r.podLimit(s), func(c *container) bool { return c.sandbox == s })
}

// podPeak is an amount of memory that a pod's containers will not pass while its
// interpreted processes take no more.
func (r *Runtime) podPeak(s *sandbox) int64 {
	var peak int64
	for _, c := range s.containers {
		if p := c.process; p != nil && p.in == nil {
			peak += p.b.memory().Peak()
		}
	}
	if pk := r.podKernels[s]; pk != nil && pk.cgroup != nil {
		peak += pk.cgroup.Usage()
	}
	return peak
}

// podDemand is the memory that a pod's containers use.
func (r *Runtime) podDemand(s *sandbox) demand {
	l := &ledger{}
	for _, c := range s.containers {
		if p := c.process; p != nil && p.in == nil {
			curve := p.b.memory()
			l.peak += curve.Peak()
			l.users = append(l.users, r.user(p, curve))
		}
	}
	d := demand{ledger: l}
	if pk := r.podKernels[s]; pk != nil && pk.cgroup != nil {
		d.extra = pk.cgroup.Usage()
	}
	return d
}

// setCgroupLimit sets the limit of the cgroup that interpreted processes of a
// pod are in, in which stated programs count too.
func (r *Runtime) setCgroupLimit(pk *podKernel, s *sandbox, limit int64) {
	if pk.cgroup != nil {
		pk.cgroup.SetLimit(limit)
		return
	}
	pk.cgroup = r.machine.NewCgroup(limit)
	pk.cgroup.SetOutside(kernel.Outside{
		Used: func() int64 { return r.podDemand(s).ledger.now(time.Duration(r.l.UnixNano())) },
		Kill: func() bool { return r.podOOM(s) },
		Grown: func() {
			if g := r.use.podGuards[s]; g != nil {
				g.grown(false)
			} else if r.podPeak(s) > r.podLimit(s) {
				r.guardPod(s)
			}
		},
	})
}

// dropUse forgets what is watched of a sandbox.
func (r *Runtime) dropUse(s *sandbox) {
	if g := r.use.podGuards[s]; g != nil {
		g.stop()
		delete(r.use.podGuards, s)
	}
	delete(r.use.podLimits, s)
}

// cutUse is the end of all processes.
func (r *Runtime) cutUse() {
	a := &r.use
	for _, g := range [...]*guard{&a.node, &a.pods, &a.lowMemory, &a.lowPodsMemory, &a.lowPIDs} {
		g.stop()
	}
	a.lowMemory.limit, a.lowPodsMemory.limit, a.lowPIDs.limit = noLimit, noLimit, noLimit
	a.podGuards = nil
}
