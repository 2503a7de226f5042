package controlplane

import "github.com/drydock-sim/drydock/sim/apiserver"

// startLifecycle starts what looks after nodes' and objects' ends.
func (c *ControlPlane) startLifecycle(*apiserver.Server) {}
