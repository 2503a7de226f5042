package controlplane

// Start starts Scheduler or ControllerManager if it does not run. It begins with
// a list of what there is: a process that starts knows nothing else.
func (c *ControlPlane) Start(component string) {
	if _, runs := c.hooks[component]; runs {
		return
	}
	group := c.srv.Loop().NewGroup(component)
	hooks := c.srv.Store().Hooked(func() {
		if component == Scheduler {
			c.scheduler = group
			c.startScheduler(c.srv)
			return
		}
		c.manager = group
		c.startWorkloads(c.srv)
		c.startLifecycle(c.srv)
		c.startServices(c.srv)
	})
	c.hooks[component] = hooks
	c.watch(component)
	if component != Scheduler { // which lists what it needs itself
		hooks.List()
	}
}

// Stop kills Scheduler or ControllerManager: what it had under way is lost, but
// for requests that are on their way.
func (c *ControlPlane) Stop(component string) {
	hooks, runs := c.hooks[component]
	if !runs {
		return
	}
	delete(c.hooks, component)
	delete(c.parts, component)
	hooks.Remove()
	c.srv.Informers(component)
	if component == Scheduler {
		c.scheduler.Kill()
		return
	}
	c.manager.Kill()
}

// Clients returns the names by which faults of the API know a component's
// clients: the scheduler's one, or the controller manager's own and those of all
// its controllers; any other name is that of one client.
func Clients(component string) []string {
	if component != ControllerManager {
		return []string{component}
	}
	out := []string{ControllerManager} // its leader election
	for _, n := range Names() {
		if n != Scheduler {
			out = append(out, n)
		}
	}
	return out
}
