package controlplane

import (
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/binder"
)

func (c *ControlPlane) startScheduler(srv *apiserver.Server) {
	if c.opts.Enabled(Scheduler) {
		binder.New(binder.Options{Server: srv})
	}
}
