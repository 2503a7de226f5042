package controlplane

import "github.com/drydock-sim/drydock/sim/apiserver"

// startServices starts what looks after EndpointSlices and autoscaling.
func (c *ControlPlane) startServices(*apiserver.Server) {}
