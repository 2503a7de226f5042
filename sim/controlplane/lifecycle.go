package controlplane

import (
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/disruption"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/garbagecollector"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/namespace"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/nodelifecycle"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/podgc"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/tainteviction"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/ttlafterfinished"
)

// startLifecycle starts what looks after nodes' and objects' ends.
func (c *ControlPlane) startLifecycle(srv *apiserver.Server) {
	election := c.leaderElection(srv)
	if c.opts.Enabled(NodeLifecycle) {
		srv.TaintNewNodes()
		c.keep(ControllerManager, nodelifecycle.New(nodelifecycle.Options{Group: c.manager, API: c.component(srv, NodeLifecycle), Election: election}))
	}
	if c.opts.Enabled(TaintEviction) {
		c.keep(ControllerManager, tainteviction.New(tainteviction.Options{Group: c.manager, API: c.component(srv, TaintEviction), Election: election}))
	}
	if c.opts.Enabled(PodGarbageCollector) {
		c.keep(ControllerManager, podgc.New(podgc.Options{Group: c.manager, API: c.component(srv, PodGarbageCollector)}))
	}
	if c.opts.Enabled(Namespace) {
		// One discovery-driven client does all deletions: 20 times the QPS and
		// 100 times the burst (cmd/kube-controller-manager/app/core.go).
		c.keep(ControllerManager, namespace.New(namespace.Options{Group: c.manager, API: c.fasterComponent(srv, Namespace, 20, 100)}))
	}
	if c.opts.Enabled(Disruption) {
		c.keep(ControllerManager, disruption.New(disruption.Options{Group: c.manager, API: c.component(srv, Disruption)}))
	}
	if c.opts.Enabled(GarbageCollector) {
		// Each deletion takes two requests.
		c.keep(ControllerManager, garbagecollector.New(garbagecollector.Options{Group: c.manager, API: c.fasterComponent(srv, GarbageCollector, 2, 1)}))
	}
	if c.opts.Enabled(TTLAfterFinished) {
		c.keep(ControllerManager, ttlafterfinished.New(ttlafterfinished.Options{Group: c.manager, API: c.component(srv, TTLAfterFinished)}))
	}
}

// fasterComponent is component for a controller whose client has a multiple of
// the others' QPS and burst.
func (c *ControlPlane) fasterComponent(srv *apiserver.Server, name string, qps float64, burst int) *apiserver.Component {
	m := c.opts.ControllerManager.or(controllerManagerClient)
	return srv.Component(name, m.QPS*qps, m.Burst*burst)
}

// leaderElection has the controller manager begin anew after it was cut off the
// API for too long, unless it has been stopped meanwhile.
func (c *ControlPlane) leaderElection(srv *apiserver.Server) *controller.Election {
	manager := c.manager
	return controller.NewElection(srv.Loop().Root(), srv.Component(ControllerManager, -1, 0), func() {
		if !manager.Dead() {
			c.Stop(ControllerManager)
			c.Start(ControllerManager)
		}
	})
}
