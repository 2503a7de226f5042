package accounts

import (
	"path"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri/internal/podkernel"
	"github.com/drydock-sim/drydock/fakecri/internal/records"
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
func (r *Node) WatchOOM(g *loop.Group, fn func(OOMKill)) { r.oomWatchers.Add(g, fn) }

// TellOOM tells who watches of a kill; nothing is made while nobody does.
func (r *Node) TellOOM(c *records.Container, process string, pid int, cgroup string) {
	if !r.oomWatchers.Any() {
		return
	}
	r.oomWatchers.Tell(OOMKill{Process: process, PID: pid, Cgroup: cgroup, Victim: r.kern.CgroupPath(c)})
}

// task is a process as the OOM killer sees it; p is nil if it is a stated
// program's.
type task struct {
	c *records.Container
	p *kernel.Process
	n int64 // its badness
}

// oomKill has the OOM killer take the worst of the containers in a cgroup that
// has run out of total bytes of memory; false if there is none that it may take.
func (r *Node) oomKill(cgroup string, total int64, in func(*records.Container) bool) bool {
	var worst task
	now := r.l.UnixNano()
	consider := func(t task, memory int64, adj int16) {
		n, ok := kernel.Badness(memory, adj, total)
		if t.n = n; ok && (worst.c == nil || n >= worst.n) {
			worst = t
		}
	}
	for _, c := range r.recs.Containers {
		if c.Process == nil || !in(c) {
			continue
		}
		adj := records.OomScoreAdj(c)
		if c.Process.Interpreted == nil {
			consider(task{c: c}, c.Process.UsageOf(r.l, c.Process.Behaviour.MemoryCurve(), now), adj)
			continue
		}
		for _, p := range c.Process.Interpreted.Kernel.Processes() {
			consider(task{c: c, p: p}, p.Memory(), adj)
		}
	}
	if worst.c == nil {
		return false
	}
	c, name, pid := worst.c, "", 0
	if worst.p != nil {
		name, pid = ProcessName(worst.p.Argv), worst.p.PIDIn(r.kern.Machine.HostPIDs())
	} else {
		name, pid = ProcessName(c.Argv()), r.StatedPID(c)
	}
	if r.rec != nil {
		sub := c.Subject()
		r.rec.RecordObject(trace.KindProcess, sub.Object(), "oom-kill", trace.Str("cgroup", cgroup), trace.Str("process", name), trace.Int("pid", int64(pid)))
	}
	if worst.p != nil {
		c.Process.Interpreted.OOMCgroup = cgroup
		worst.p.OOMKill()
		if in := c.Process; in != nil && in.Interpreted != nil {
			in.Interpreted.OOMCgroup = ""
		}
		return true
	}
	r.TellOOM(c, name, pid, cgroup)
	r.Runner.Exit(c, records.ExitByOOM)
	return true
}

// ProcessName is what the kernel shows of a command line.
func ProcessName(argv []string) string {
	if len(argv) == 0 {
		return "entrypoint"
	}
	name := path.Base(argv[0])
	return name[:min(len(name), 15)]
}

// StatedPID is the number of a stated program's process, which no process is
// there to have.
func (r *Node) StatedPID(c *records.Container) int {
	sub := c.Subject()
	return 2000 + int(r.l.Uint64("pid", sub.Pod, sub.Key())%30000)
}

// nodeOOM is the machine's memory running out.
func (r *Node) nodeOOM(*records.Sandbox) bool {
	return r.oomKill("/", r.node.limit, func(*records.Container) bool { return true })
}

// podsOOM is the memory of all pods together passing its limit.
func (r *Node) podsOOM(*records.Sandbox) bool {
	root := "/kubepods"
	if r.kern.Options.CgroupDriver == "systemd" {
		root = "/kubepods.slice"
	}
	return r.oomKill(root, r.pods.limit, func(*records.Container) bool { return true })
}

// innerOOM acts on the limits of containers, of pods and, for the machine, of all
// pods that are passed at this instant; false if none is. s, if not nil, is the
// pod that is looked at.
func (r *Node) innerOOM(s *records.Sandbox, machine bool) bool {
	now := r.l.UnixNano()
	for _, c := range r.recs.Containers {
		if s != nil && c.Sandbox != s {
			continue
		}
		if p := c.Process; p != nil && p.Interpreted == nil && p.OOMAt != 0 && p.OOMAt <= now {
			if r.Runner.Ends(p); c.Process != p {
				return true
			}
		}
		if g := r.podGuards[c.Sandbox]; s == nil && g != nil && g.over(now) && g.act() {
			return true
		}
	}
	g := &r.pods
	return machine && g.over(now) && g.act()
}

// PodLimit is the memory limit of a pod's cgroup, 0 for none.
func (r *Node) PodLimit(s *records.Sandbox) int64 {
	if n, ok := r.podLimits[s]; ok {
		return n
	}
	lin := s.Config.GetLinux()
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

// SetPodLimit changes the memory limit of a pod's cgroup.
func (r *Node) SetPodLimit(s *records.Sandbox, resources, overhead *runtimeapi.LinuxContainerResources) {
	a := r
	if a.podLimits == nil {
		a.podLimits = map[*records.Sandbox]int64{}
	}
	a.podLimits[s] = podMemoryLimit(resources, overhead)
	if pk := r.kern.Pods[s]; pk != nil {
		r.SetCgroupLimit(pk, s, a.podLimits[s])
	}
	if g := a.podGuards[s]; g != nil {
		g.stop()
		delete(a.podGuards, s)
	}
	r.guardPod(s)
}

// guardPod watches over the memory limit of a pod's cgroup, if its stated
// programs can pass it.
func (r *Node) guardPod(s *records.Sandbox) {
	limit := r.PodLimit(s)
	if limit <= 0 {
		return
	}
	g := r.podGuards[s]
	if g == nil {
		if r.podPeak(s) <= limit {
			return
		}
		g = &guard{r: r, kind: &podGuard, pod: s, limit: limit}
		if r.podGuards == nil {
			r.podGuards = map[*records.Sandbox]*guard{}
		}
		r.podGuards[s] = g
	}
	g.Grown(true)
}

// podOOM is a pod's memory passing the limit of its cgroup.
func (r *Node) podOOM(s *records.Sandbox) bool {
	parent := path.Join("/", s.Whole().GetLinux().GetCgroupParent())
	return r.oomKill(parent, r.PodLimit(s), func(c *records.Container) bool { return c.Sandbox == s })
}

// podPeak is an amount of memory that a pod's containers will not pass while its
// interpreted processes take no more.
func (r *Node) podPeak(s *records.Sandbox) int64 {
	var peak int64
	for _, c := range s.Containers {
		if p := c.Process; p != nil && p.Interpreted == nil {
			peak += p.Behaviour.MemoryCurve().Peak()
		}
	}
	if pk := r.kern.Pods[s]; pk != nil && pk.Cgroup != nil {
		peak += pk.Cgroup.Usage()
	}
	return peak
}

// podDemand is the memory that a pod's containers use.
func (r *Node) podDemand(s *records.Sandbox) demand {
	l := &ledger{}
	for _, c := range s.Containers {
		if p := c.Process; p != nil && p.Interpreted == nil {
			curve := p.Behaviour.MemoryCurve()
			l.peak += curve.Peak()
			l.Users = append(l.Users, p.User(r.l, curve))
		}
	}
	d := demand{ledger: l}
	if pk := r.kern.Pods[s]; pk != nil && pk.Cgroup != nil {
		d.extra = pk.Cgroup.Usage()
	}
	return d
}

// SetCgroupLimit sets the limit of the cgroup that interpreted processes of a
// pod are in, in which stated programs count too.
func (r *Node) SetCgroupLimit(pk *podkernel.Pod, s *records.Sandbox, limit int64) {
	if pk.Cgroup != nil {
		pk.Cgroup.SetLimit(limit)
		return
	}
	pk.Cgroup = r.kern.Machine.NewCgroup(limit)
	pk.Cgroup.SetOutside(kernel.Outside{
		Used: func() int64 { return r.podDemand(s).ledger.now(time.Duration(r.l.UnixNano())) },
		Kill: func() bool { return r.podOOM(s) },
		Grown: func() {
			if g := r.podGuards[s]; g != nil {
				g.Grown(false)
			} else if r.podPeak(s) > r.PodLimit(s) {
				r.guardPod(s)
			}
		},
	})
}

// SandboxStarted books a sandbox's own process.
func (r *Node) SandboxStarted() {
	r.pauses++
	r.low[lowPIDs].Grown(false)
}

// SandboxStopped forgets a sandbox's process and what is watched of its pod.
func (r *Node) SandboxStopped(s *records.Sandbox) {
	r.pauses--
	if g := r.podGuards[s]; g != nil {
		g.stop()
		delete(r.podGuards, s)
	}
	delete(r.podLimits, s)
}

// CutUse is the end of all processes.
func (r *Node) CutUse() {
	r.node.stop()
	r.pods.stop()
	r.unwatch()
	r.podGuards = nil
}
