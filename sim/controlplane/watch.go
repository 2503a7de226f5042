package controlplane

import (
	"slices"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// watch has the watch events of a component's informers counted: the
// scheduler's (pkg/scheduler/eventhandlers.go), or those that all controllers
// share, one per kind. The garbage collector watches everything but events.
func (c *ControlPlane) watch(component string) {
	if component == Scheduler {
		if c.opts.Enabled(Scheduler) {
			c.srv.Informers(Scheduler, apiserver.KindPod, apiserver.KindNode, apiserver.KindNamespace, apiserver.KindService,
				apiserver.KindReplicaSet, apiserver.KindStatefulSet, apiserver.KindPodDisruptionBudget)
		}
		return
	}
	if !slices.ContainsFunc(Names(), func(n string) bool { return n != Scheduler && c.opts.Enabled(n) }) {
		return
	}
	c.srv.Informers(ControllerManager, c.srv.Store().Kinds().Collected()...)
}
