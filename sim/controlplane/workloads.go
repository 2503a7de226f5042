package controlplane

import "github.com/drydock-sim/drydock/sim/apiserver"

// startWorkloads starts what looks after Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs.
func (c *ControlPlane) startWorkloads(*apiserver.Server) {}
