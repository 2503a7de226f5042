package controlplane

import (
	"cmp"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// process is Scheduler or ControllerManager while it runs.
type process struct {
	group *loop.Group
	hooks apiserver.Hooks
	parts []any
}

// Start starts Scheduler or ControllerManager if it does not run. It begins with
// a list of what there is: a process that starts knows nothing else.
func (c *ControlPlane) Start(component string) {
	if c.running[component] != nil {
		return
	}
	p := &process{group: c.srv.Loop().NewGroup(component)}
	c.running[component] = p
	p.hooks = c.srv.Store().Hooked(func() { p.parts = c.startParts(component, p.group) })
	c.watch(component)
	if component != Scheduler { // which lists what it needs itself
		p.hooks.List()
	}
}

// startParts starts what a process has that is switched on, in the table's order.
func (c *ControlPlane) startParts(component string, group *loop.Group) []any {
	limits, shared := c.opts.schedulerClient(), controller.Options{Group: group, Closed: c.opts.Closed, Warn: c.opts.Warn}
	if component == ControllerManager {
		limits = c.opts.ControllerManager.or(controllerManagerClient)
		shared.Election, shared.Indexes = c.leaderElection(group), controller.NewIndexes(c.srv)
	}
	var running []any
	for _, p := range parts() {
		if p.process() != component || !c.opts.Enabled(p.name) || p.of != "" && c.srv.Store().Kinds().Find(p.of) == nil {
			continue
		}
		// Each controller has a client of its own, as upstream's client builder
		// makes them.
		opts := shared
		opts.API = c.srv.Component(p.name, limits.QPS*cmp.Or(p.qps, 1), limits.Burst*cmp.Or(p.burst, 1))
		running = append(running, p.start(c, opts))
	}
	return running
}

// leaderElection has the controller manager begin anew after it was cut off the
// API for too long, unless it has been stopped meanwhile.
func (c *ControlPlane) leaderElection(manager *loop.Group) *controller.Election {
	return controller.NewElection(c.srv.Loop().Root(), c.srv.Component(ControllerManager, -1, 0), func() {
		if !manager.Dead() {
			c.Stop(ControllerManager)
			c.Start(ControllerManager)
		}
	})
}

// Stop kills Scheduler or ControllerManager: what it had under way is lost, but
// for requests that are on their way.
func (c *ControlPlane) Stop(component string) {
	p := c.running[component]
	if p == nil {
		return
	}
	delete(c.running, component)
	p.hooks.Remove()
	c.srv.Informers(component)
	p.group.Kill()
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
