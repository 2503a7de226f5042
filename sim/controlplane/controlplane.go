// Package controlplane is the control plane of a simulated cluster: the
// scheduler and kube-controller-manager's controllers, small, deterministic, on
// the API's loop. Each controller is a package below it that is called as
// upstream's below pkg/controller is.
package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
)

// The names by which a part of the control plane is switched off: those of
// kube-controller-manager's --controllers
// (cmd/kube-controller-manager/names/controller_names.go), and the scheduler.
const (
	Scheduler               = "kube-scheduler"
	Deployment              = "deployment-controller"
	ReplicaSet              = "replicaset-controller"
	StatefulSet             = "statefulset-controller"
	DaemonSet               = "daemonset-controller"
	Job                     = "job-controller"
	CronJob                 = "cronjob-controller"
	NodeLifecycle           = "node-lifecycle-controller"
	TaintEviction           = "taint-eviction-controller"
	PodGarbageCollector     = "pod-garbage-collector-controller"
	Namespace               = "namespace-controller"
	Disruption              = "disruption-controller"
	GarbageCollector        = "garbage-collector-controller"
	EndpointSlice           = "endpointslice-controller"
	TTLAfterFinished        = "ttl-after-finished-controller"
	HorizontalPodAutoscaler = "horizontal-pod-autoscaler-controller"
)

// ControllerManager is the process that all controllers but the scheduler are in.
const ControllerManager = "kube-controller-manager"

// Names returns the names of all parts, sorted.
func Names() []string {
	names := []string{
		Scheduler, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob, NodeLifecycle, TaintEviction,
		PodGarbageCollector, Namespace, Disruption, GarbageCollector, EndpointSlice, TTLAfterFinished, HorizontalPodAutoscaler,
	}
	slices.Sort(names)
	return names
}

// Client says how fast a component may call the API. The zero value is the
// component's default upstream.
type Client struct {
	// QPS and Burst are those of the component's clientConnection; a QPS under
	// 0 is no limit.
	QPS   float64
	Burst int
}

// Defaults of kube-scheduler's and kube-controller-manager's clientConnection.
var (
	schedulerClient         = Client{QPS: 50, Burst: 100}
	controllerManagerClient = Client{QPS: 20, Burst: 30}
)

func (c Client) or(d Client) Client {
	if c.QPS == 0 {
		c.QPS = d.QPS
	}
	if c.Burst == 0 {
		c.Burst = d.Burst
	}
	return c
}

// Options configure a control plane. The zero value is a whole one with
// upstream's defaults.
type Options struct {
	// Disable are names of what is left out; "*" is everything.
	Disable []string
	// Scheduler and ControllerManager bound what the two components ask of the
	// API.
	Scheduler, ControllerManager Client
	// Metrics is what pods use, for autoscaling. Nil is a cluster without
	// metrics-server.
	Metrics podautoscaler.Metrics
}

// Validate returns an error that names the first name in Disable that there is
// not.
func (o *Options) Validate() error {
	for _, n := range o.Disable {
		if n != "*" && !slices.Contains(Names(), n) {
			return fmt.Errorf("no controller is called %q: there are %s", n, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// Enabled tells whether a part is wanted.
func (o *Options) Enabled(name string) bool {
	return !slices.Contains(o.Disable, "*") && !slices.Contains(o.Disable, name)
}

// ControlPlane is a running control plane. The two components die separately.
type ControlPlane struct {
	opts      Options
	srv       *apiserver.Server
	hooks     map[string]apiserver.Hooks // of the components that run
	scheduler *loop.Group
	manager   *loop.Group
	parts     map[string][]any // the scheduler, or the controllers, of the components that run
}

// New starts a control plane on the server's loop.
func New(srv *apiserver.Server, opts Options) *ControlPlane {
	c := &ControlPlane{opts: opts, srv: srv, hooks: map[string]apiserver.Hooks{}, parts: map[string][]any{}}
	c.Start(Scheduler)
	c.Start(ControllerManager)
	return c
}

// component returns the API for one of the controller manager's controllers: each
// has a client of its own with the same QPS and burst, as upstream
// (clientbuilder, one client per controller).
func (c *ControlPlane) component(srv *apiserver.Server, name string) *apiserver.Component {
	m := c.opts.ControllerManager.or(controllerManagerClient)
	return srv.Component(name, m.QPS, m.Burst)
}

// keep takes note of a part that was started, for Parts.
func (c *ControlPlane) keep(component string, parts ...any) {
	c.parts[component] = append(c.parts[component], parts...)
}

// Parts returns the scheduler and the controllers that run, and the indexes that
// they share, for a census of what they keep.
func (c *ControlPlane) Parts() []any {
	return slices.Concat(c.parts[Scheduler], c.parts[ControllerManager])
}
