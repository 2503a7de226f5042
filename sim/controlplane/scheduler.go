package controlplane

import (
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/scheduler"
)

// startScheduler starts the scheduler with its two clients: one for its events,
// with the same limits (cmd/kube-scheduler/app/options, createClients).
func (c *ControlPlane) startScheduler(srv *apiserver.Server) {
	if !c.opts.Enabled(Scheduler) {
		return
	}
	m := c.opts.Scheduler.or(schedulerClient)
	c.keep(Scheduler, scheduler.New(scheduler.Options{
		Group:  c.scheduler,
		API:    srv.Component(Scheduler, m.QPS, m.Burst),
		Events: srv.Component(Scheduler, m.QPS, m.Burst),
	}))
}
