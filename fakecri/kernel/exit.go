package kernel

import "slices"

// die ends a process. All that others can see of it is done in this step; its
// tasks unwind right after it. The order is what others can observe: the container counts as
// ended before Done of its first process is called, and the rest of its processes are dead by
// then.
func (p *Process) die(e Exit) {
	if p.dead {
		return
	}
	c := p.c
	p.exit = e
	done := p.done
	p.done = nil
	if c.first == p {
		c.ended = true
	}
	p.leave()
	// runc's container is gone with its first process: the kernel kills what is left of its pid
	// namespace, and the runtime the rest of the cgroup.
	if c.first == p {
		for _, o := range slices.Clone(c.procs) {
			o.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL})
		}
	}
	if p.pid == 1 { // it takes its pid namespace along, also what another container has there
		for _, o := range slices.Clone(p.ns.list) {
			// The pause process of a shared namespace is process 1 itself, and only stated.
			if !o.stated {
				o.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL})
			}
		}
	}
	if done != nil {
		done(e)
	}
}

// vanish is what happens to a process when its group is killed from outside. It is also called
// when die kills the group, and does nothing then.
func (p *Process) vanish() {
	if p.dead {
		return
	}
	p.exit = Exit{Code: 128 + SIGKILL, Signal: SIGKILL}
	p.done = nil
	if p.c.first == p {
		p.c.ended = true
	}
	p.leave()
}

// leave takes a process out of the world. Memory and processor time go first: whoever is called
// later sees sums without this process.
func (p *Process) leave() {
	p.dead = true
	c := p.c
	c.charge(p, -p.mem)
	c.m.processes--
	p.burn(-p.burns)
	// Closing wakes the other ends of pipes and connections.
	for i, f := range p.fds {
		p.fds[i] = nil
		if f != nil {
			_ = f.Close()
		}
	}
	for _, o := range p.owned {
		_ = o.Close()
	}
	p.fds, p.owned, p.pending, p.Env = nil, nil, nil, nil
	p.ns.remove(p)
	// The last process of a container that has ended: what its tmpfs files took is free, as the
	// mounts go with the namespace.
	if c.ended && len(c.procs) == 1 {
		c.removed(c.files)
		if c.opts.Cgroup != nil {
			c.opts.Cgroup.remove(c)
		}
	}
	c.procs = slices.DeleteFunc(c.procs, func(o *Process) bool { return o == p })
	// Orphans go to the namespace's first process, which never needs to wait
	// for them.
	var init *Process
	if i := p.ns.init(); i != p {
		init = i
	}
	for _, k := range p.children {
		k.parent = init
	}
	p.children = nil
	p.ended.Fire()
	// SIGCHLD comes after childEnded, so whoever it wakes finds the child dead.
	if parent := p.parent; parent != nil && !parent.dead && slices.Contains(parent.children, p) {
		parent.childEnded.Notify()
		parent.deliver(SIGCHLD, true)
	}
	// Last: if the process ends itself, its own task unwinds from here.
	p.group.Kill()
}
