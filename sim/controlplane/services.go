package controlplane

import (
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/endpointslice"
	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
)

// startServices starts what looks after EndpointSlices and autoscaling.
func (c *ControlPlane) startServices(srv *apiserver.Server) {
	if c.opts.Enabled(EndpointSlice) {
		c.keep(ControllerManager, endpointslice.New(endpointslice.Options{Group: c.manager, API: c.component(srv, EndpointSlice)}))
	}
	if c.opts.Enabled(HorizontalPodAutoscaler) {
		c.keep(ControllerManager, podautoscaler.New(podautoscaler.Options{Group: c.manager, API: c.component(srv, HorizontalPodAutoscaler), Metrics: c.opts.Metrics}))
	}
}
