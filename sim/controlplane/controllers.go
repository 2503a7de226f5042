package controlplane

import (
	"fmt"
	"strings"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/attachdetach"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/certificates"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/cronjob"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/daemon"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/deployment"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/devicetainteviction"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/disruption"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/endpointslice"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/ephemeralvolume"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/garbagecollector"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/job"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/namespace"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/nodelifecycle"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/nodestorage"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/persistentvolume"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/podgc"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/replicaset"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/resourceclaim"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/resourcequota"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/scheduler"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/serviceaccount"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/statefulset"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/tainteviction"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/ttlafterfinished"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/volumeexpand"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/volumeprotection"
	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// part is a part of the control plane that can be switched off. All that there is
// to know of one stands in its row of parts: what scenarios may call it, which
// process it is in, its client's limits, and how it is made.
type part struct {
	// name is the one that kube-controller-manager's --controllers knows
	// (cmd/kube-controller-manager/names/controller_names.go). It is also the
	// name of the part's client, by which faults and statistics know it.
	name string
	// qps and burst multiply the limits of kube-controller-manager's client. Zero
	// means 1.
	qps   float64
	burst int
	// start returns the running part, which a census looks into.
	start func(c *ControlPlane, opts controller.Options) any
	// of is a kind that the API serves with a feature gate only, without which there is no
	// such part; "": there always is.
	of apiserver.Kind
}

// NodeStorage is the driver of volumes that are directories of nodes, which claims get where
// nobody provisions.
const NodeStorage = nodestorage.Driver

// AttachDetach is the name of the part that has volumes attached.
const AttachDetach = "persistentvolume-attach-detach-controller"

// process is the component that a part runs and dies in.
func (p *part) process() string {
	if p.name == Scheduler {
		return Scheduler
	}
	return ControllerManager
}

// parts is the table of all parts. A new controller is a package of its own and a
// row here.
//
// The order is that of starting, and so that in which the parts hear of one
// change: it decides the order of steps that are due at one instant, and a trace
// shows it. New rows go to the end.
func parts() []part {
	return []part{
		{name: Scheduler, start: startScheduler},
		{name: "replicaset-controller", start: plain(replicaset.New)},
		{name: "deployment-controller", start: plain(deployment.New)},
		{name: "statefulset-controller", start: plain(statefulset.New)},
		{name: "daemonset-controller", start: plain(daemon.New)},
		{name: "job-controller", start: plain(job.New)},
		{name: "cronjob-controller", start: plain(cronjob.New)},
		{name: "node-lifecycle-controller", start: func(c *ControlPlane, opts controller.Options) any {
			// Upstream's admission plugin TaintNodesByCondition is always on; here
			// it is only while somebody takes the taints off again.
			c.srv.TaintNewNodes()
			return nodelifecycle.New(opts)
		}},
		{name: "taint-eviction-controller", start: plain(tainteviction.New)},
		{name: "pod-garbage-collector-controller", start: func(_ *ControlPlane, opts controller.Options) any {
			return podgc.New(podgc.Options{Options: opts})
		}},
		// One discovery-driven client does all deletions: 20 times the QPS and 100
		// times the burst (cmd/kube-controller-manager/app/core.go).
		{name: "namespace-controller", qps: 20, burst: 100, start: plain(namespace.New)},
		{name: "disruption-controller", start: plain(disruption.New)},
		// Each deletion takes two requests (the same core.go).
		{name: "garbage-collector-controller", qps: 2, start: plain(garbagecollector.New)},
		{name: "ttl-after-finished-controller", start: plain(ttlafterfinished.New)},
		{name: "endpointslice-controller", start: func(_ *ControlPlane, opts controller.Options) any {
			return endpointslice.New(endpointslice.Options{Options: opts})
		}},
		{name: "horizontal-pod-autoscaler-controller", start: func(c *ControlPlane, opts controller.Options) any {
			return podautoscaler.New(podautoscaler.Options{Options: opts, Metrics: c.opts.Metrics, Figures: c.opts.Figures})
		}},
		{name: "serviceaccount-controller", start: plain(serviceaccount.NewAccounts)},
		{name: "root-ca-certificate-publisher-controller", start: plain(serviceaccount.NewRootCA)},
		{name: "resourcequota-controller", start: plain(resourcequota.New)},
		{name: "replicationcontroller-controller", start: plain(replicaset.NewReplicationControllers)},
		{name: "persistentvolumeclaim-protection-controller", start: plain(volumeprotection.NewClaims)},
		{name: "persistentvolume-protection-controller", start: plain(volumeprotection.NewVolumes)},
		{name: "endpoints-controller", start: plain(endpointslice.NewEndpoints)},
		{name: "certificatesigningrequest-approving-controller", start: func(c *ControlPlane, opts controller.Options) any {
			return certificates.NewApprover(certificates.ApproverOptions{Options: opts, Serving: c.opts.ApproveServing, Faults: &c.signing})
		}},
		{name: "certificatesigningrequest-signing-controller", start: func(c *ControlPlane, opts controller.Options) any {
			return certificates.NewSigner(certificates.SignerOptions{Options: opts, CA: c.srv.Authority, Duration: c.opts.SigningDuration, Faults: &c.signing})
		}},
		{name: "certificatesigningrequest-cleaner-controller", start: plain(certificates.NewCleaner)},
		// In the place of persistentvolume-binder-controller, where nobody provisions volumes.
		{name: "node-storage-controller", start: plain(nodestorage.New)},
		{name: "resourceclaim-controller", start: plain(resourceclaim.New)},
		{name: AttachDetach, start: plain(attachdetach.New)},
		{name: "ephemeral-volume-controller", start: plain(ephemeralvolume.New)},
		{name: "persistentvolume-binder-controller", start: plain(persistentvolume.New)},
		{name: "persistentvolume-expander-controller", start: plain(volumeexpand.New)},
		{name: "device-taint-eviction-controller", start: plain(devicetainteviction.New)},
		{name: "podcertificaterequest-cleaner-controller", of: apiserver.KindPodCertificateRequest, start: plain(certificates.NewPodCleaner)},
	}
}

// plain starts a part that wants nothing but what all are given.
func plain[T any](start func(controller.Options) T) func(*ControlPlane, controller.Options) any {
	return func(_ *ControlPlane, opts controller.Options) any { return start(opts) }
}

// Unserved words that pods ask for a scheduler that there is none of.
func Unserved(name string, c *schedulerconfig.Config) string {
	return fmt.Sprintf("no scheduler is called %q: pods with that schedulerName get no node unless somebody else binds them (kube-scheduler's profiles: %s)",
		name, strings.Join(schedulerconfig.SchedulerNames(c), ", "))
}

// startScheduler starts the scheduler with its two clients: one for its events,
// with the same limits (cmd/kube-scheduler/app/options, createClients).
func startScheduler(c *ControlPlane, opts controller.Options) any {
	limits := c.opts.schedulerClient()
	so := scheduler.Options{
		Group: opts.Group, API: opts.API, Events: c.srv.Component(Scheduler, limits.QPS, limits.Burst), Config: c.opts.SchedulerConfig,
		CycleTime: c.opts.CycleTime, Closed: c.opts.Closed,
	}
	if warn := c.opts.Warn; warn != nil {
		so.Unserved = func(name string) { warn(Unserved(name, c.opts.SchedulerConfig)) }
	}
	return scheduler.New(so)
}
