// Package controlplane is the control plane of a simulated cluster: the scheduler
// and kube-controller-manager's controllers, small, deterministic, on the API's
// loop.
//
// How to read it: controlplane.go has the options and what others may ask;
// controllers.go is the table of all parts, from which names, clients, the order
// of starting and the census follow; restart.go starts and kills the two
// processes; watch.go has their watch events counted. Each controller is a
// package below internal/ that is called as upstream's below pkg/controller is,
// and all stand on internal/controller: queue, client, indexes, pods. Only
// podautoscaler is visible from outside, because who makes a cluster says where
// its metrics come from.
//
// To add a controller: write its package with New(controller.Options), add its
// row to parts, a scenario that fails without it, and its name to the docs.
package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drydock-sim/drydock/ground/lists"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/certificates"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
	"github.com/drydock-sim/drydock/sim/controlplane/podautoscaler"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// The two processes, by the names that Start, Stop and Clients take. The scheduler
// is also the only part of its process.
const (
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
)

// Names returns the names of all parts, sorted: those that Options.Disable takes.
func Names() []string {
	names := lists.Map(parts(), func(p part) string { return p.name })
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
	c.QPS = cmp.Or(c.QPS, d.QPS)
	c.Burst = cmp.Or(c.Burst, d.Burst)
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
	// SchedulerConfig is what the scheduler goes by. Nil is an empty
	// KubeSchedulerConfiguration. What Scheduler says of the client goes before.
	SchedulerConfig *schedulerconfig.Config
	// CycleTime is how long the scheduling of a pod takes. Zero takes no time.
	CycleTime time.Duration
	// Closed: no client from outside comes. Then claims whose class names a provisioner that there
	// is none of get directories of their nodes, with a word, since nobody would ever make volumes
	// for them.
	Closed bool
	// Warn, if any, takes a word, one line, about what users may not expect.
	Warn func(text string)
	// Metrics is what pods use, for autoscaling. Nil is a cluster without
	// metrics-server.
	Metrics podautoscaler.Metrics
	// Figures are the custom and external metrics, for autoscaling. Nil is a cluster in
	// which nobody serves any.
	Figures *podautoscaler.Figures
	// SigningDuration is --cluster-signing-duration, for how long certificates are signed. Zero means
	// a year.
	SigningDuration time.Duration
	// PodSigners sign pods' certificates, as parts of no Kubernetes: the API must serve the
	// requests (gate PodCertificateRequest).
	PodSigners []PodSigner
	// ApproveServing has kubelets' serving certificates approved, as by an approver that is no part
	// of Kubernetes.
	ApproveServing bool
}

// PodSigner signs requests of a signer's name for pods' certificates.
type PodSigner struct {
	Name string
	// Lifetime is that of certificates, RefreshBefore how long before their end kubelets may
	// ask for the next. Zero means a day, and half an hour.
	Lifetime, RefreshBefore time.Duration
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

// schedulerClient is the limits of the scheduler's clients.
func (o *Options) schedulerClient() Client {
	if c := o.SchedulerConfig; c != nil {
		return o.Scheduler.or(Client{QPS: c.QPS, Burst: c.Burst})
	}
	return o.Scheduler.or(schedulerClient)
}

// Enabled reports whether a part is wanted.
func (o *Options) Enabled(name string) bool {
	return !slices.Contains(o.Disable, "*") && !slices.Contains(o.Disable, name)
}

// ControlPlane is a running control plane. Its two processes die separately.
type ControlPlane struct {
	opts    Options
	srv     *apiserver.Server
	running map[string]*process
	signing certificates.Faults
}

// SignerFault is something wrong with who approves and signs certificates.
type SignerFault = certificates.Fault

// AddSignerFault makes a fault act until remove is called. It is for use on the API's loop, or
// between runs.
func (c *ControlPlane) AddSignerFault(f SignerFault) (remove func()) { return c.signing.Add(f) }

// New starts a control plane on the server's loop.
func New(srv *apiserver.Server, opts Options) *ControlPlane {
	c := &ControlPlane{opts: opts, srv: srv, running: map[string]*process{}}
	c.Start(Scheduler)
	c.Start(ControllerManager)
	for _, p := range opts.PodSigners {
		certificates.NewPodSigner(certificates.PodSignerOptions{
			Options: controller.Options{Group: srv.Loop().NewGroup("signer " + p.Name), API: srv.Component(PodSignerClient, -1, 0)},
			Name:    p.Name, Lifetime: p.Lifetime, RefreshBefore: p.RefreshBefore, Faults: &c.signing,
		})
	}
	return c
}

// PodSignerClient is the name of the clients of signers of pods' certificates.
const PodSignerClient = "pod-signer"

// Parts returns the scheduler and the controllers that run, for a census of what
// they keep. The indexes that controllers share are reached through them.
func (c *ControlPlane) Parts() []any {
	var out []any
	for _, name := range []string{Scheduler, ControllerManager} {
		if p := c.running[name]; p != nil {
			out = append(out, p.parts...)
		}
	}
	return out
}
