package kernel

import "slices"

// die ends a process. All that others can see of it is done in this step; its
// tasks unwind right after it.
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
	if c.first == p {
		for _, o := range slices.Clone(c.procs) {
			o.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL})
		}
	}
	if p.pid == 1 { // it takes its pid namespace along, also what another container has there
		for _, o := range slices.Clone(p.ns.list) {
			if !o.stated {
				o.die(Exit{Code: 128 + SIGKILL, Signal: SIGKILL})
			}
		}
	}
	if done != nil {
		done(e)
	}
}

// vanish is what happens to a process when its group is killed from outside.
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

// leave takes a process out of the world.
func (p *Process) leave() {
	p.dead = true
	c := p.c
	c.charge(p, -p.mem)
	c.m.processes--
	p.burn(-p.burns)
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
	if parent := p.parent; parent != nil && !parent.dead && slices.Contains(parent.children, p) {
		parent.childEnded.Notify()
		parent.deliver(SIGCHLD, true)
	}
	p.group.Kill()
}
