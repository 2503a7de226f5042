package kernel

import (
	"cmp"
	"slices"
)

// firstHostPID is where the numbers of processes on the node begin. A node has daemons before its
// first container; the number only has to look plausible.
const firstHostPID = 1200

// PIDNamespace gives processes their numbers. Every process is in two of them: its container's or
// pod's, and the node's. A container with hostPID is in the node's alone. Deeper nesting does not
// exist.
type PIDNamespace struct {
	m *Machine
	// last is the highest number that was given.
	last int
	list []*Process // by number
}

// NewPIDs returns a pid namespace of a container or a pod.
func (m *Machine) NewPIDs() *PIDNamespace { return &PIDNamespace{m: m} }

// HostPIDs returns the node's own pid namespace, in which every process has a
// number too.
func (m *Machine) HostPIDs() *PIDNamespace { return &m.pids }

// AddStated adds a process that is listed and does nothing: the pause container
// of a pod with a shared pid namespace, or a daemon of the node. It has no task,
// and no signal does anything to it. It takes the number 1 in a fresh namespace, so the
// containers of a pod that shares one find the pause process there.
func (ns *PIDNamespace) AddStated(argv ...string) *Process {
	p := &Process{Argv: argv, Dir: "/", ns: ns, stated: true, startedAt: ns.m.l.UnixNano(), group: ns.m.l.Root()}
	ns.add(p)
	p.pgid = p.pid
	return p
}

// RemoveStated takes such a process off the list.
func (ns *PIDNamespace) RemoveStated(p *Process) {
	p.dead = true
	ns.remove(p)
}

// Processes lists the living processes by number. A copy, so that the caller may end them while
// going through.
func (ns *PIDNamespace) Processes() []*Process { return slices.Clone(ns.list) }

// Find returns the living process with a number, or nil.
func (ns *PIDNamespace) Find(pid int) *Process {
	for _, p := range ns.list {
		if p.PIDIn(ns) == pid {
			return p
		}
	}
	return nil
}

// PIDIn returns the process's number in a namespace, 0 if it has none there.
func (p *Process) PIDIn(ns *PIDNamespace) int {
	switch ns {
	case p.ns:
		return p.pid
	case &ns.m.pids:
		return p.hostPID
	}
	return 0
}

// add numbers a process, on the node and in its namespace. Numbers are not used
// again: a simulation does not live long enough. The node's list has everyone, in the order of
// the start.
func (ns *PIDNamespace) add(p *Process) {
	host := &ns.m.pids
	host.last = cmp.Or(host.last, firstHostPID)
	host.last++
	p.hostPID = host.last
	host.list = append(host.list, p)
	if ns == host {
		p.pid = p.hostPID
		return
	}
	ns.last++
	p.pid = ns.last
	ns.list = append(ns.list, p)
}

// remove takes a process off both lists.
func (ns *PIDNamespace) remove(p *Process) {
	same := func(o *Process) bool { return o == p }
	ns.list = slices.DeleteFunc(ns.list, same)
	if host := &ns.m.pids; ns != host {
		host.list = slices.DeleteFunc(host.list, same)
	}
}

// ProcessCount returns how many processes run, on all of the machine.
func (m *Machine) ProcessCount() int { return m.processes }

// mayFork reports whether the container can have another process. The runtime answers by the pids
// limit of the pod's cgroup and the node's.
func (c *Container) mayFork() bool {
	return c.opts.Forks == nil || c.opts.Forks()
}

// init returns the namespace's first process, or nil. Orphans go to it. It is nil when process 1
// has ended, which takes the others along.
func (ns *PIDNamespace) init() *Process {
	if len(ns.list) > 0 && ns.list[0].pid == 1 {
		return ns.list[0]
	}
	return nil
}
