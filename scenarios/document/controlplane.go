package document

import (
	"fmt"
	"strings"
	"time"

	schedulerconfigv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/controlplane"
	"github.com/drydock-sim/drydock/sim/controlplane/schedulerconfig"
)

// ControlPlane is which controllers there are, and how fast they may call the API.
type ControlPlane struct {
	// What is left out: kube-scheduler, or controllers by the names that kube-controller-manager's --controllers has, such as node-lifecycle-controller. `*` is everything. Nothing unless said.
	Disable []string `json:"disable,omitempty"`
	// kube-scheduler.
	Scheduler *SchedulerComponent `json:"scheduler,omitempty"`
	// kube-controller-manager.
	ControllerManager *ControllerManager `json:"controllerManager,omitempty"`
	// Kubelets' requests for serving certificates are approved, as by an approver that is no part of Kubernetes. Nobody approves them unless said; the action certificate can.
	ApproveServing bool `json:"approveServing,omitempty"`
	// Who signs pods' certificates (volume sources podCertificate), which needs the API's feature gate PodCertificateRequest. Requests of other signers are left pending. The fault signer can delay and deny.
	PodSigners []PodSigner `json:"podSigners,omitempty"`
}

// PodSigner grants all requests of a signer's for pods' certificates, as a signer that is no part of Kubernetes. It has an authority of its own, and names a pod by its service account.
type PodSigner struct {
	// The signer's name as sources have it: a domain and a path.
	Name string `json:"name" required:""`
	// For how long certificates are good, if not less is asked for. 24h unless said, 1h at least.
	Lifetime time.Duration `json:"lifetime,omitempty"`
	// How long before a certificate's end kubelets begin to ask for the next, up to half of its life. 30m unless said, 10m at least.
	RefreshBefore time.Duration `json:"refreshBefore,omitempty"`
}

// Check wants times that the API takes.
func (p *PodSigner) Check(at decode.Place) {
	if domain, rest, ok := strings.Cut(p.Name, "/"); p.Name != "" && (!ok || domain == "" || rest == "") {
		at.Field("name").Errorf("%q is no signer: want a domain and a path, as in example.com/signer", decode.Short(p.Name))
	}
	if d := at.Field("lifetime"); d.Written() && p.Lifetime < time.Hour {
		d.Errorf("must be at least 1h")
	}
	if d := at.Field("refreshBefore"); d.Written() && p.RefreshBefore < 10*time.Minute {
		d.Errorf("must be at least 10m")
	}
}

// SchedulerComponent configures kube-scheduler.
type SchedulerComponent struct {
	// How fast it may call the API.
	ClientConnection *ClientConnection `json:"clientConnection,omitempty"`
	// Its KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), as in a real cluster; what is not said has upstream's default.
	Configuration *schedulerconfigv1.KubeSchedulerConfiguration `json:"configuration,omitempty"`
	// How long the scheduling of a pod takes, during which no other is scheduled; no time unless said. A real one places some hundreds a second: 3ms.
	CycleTime time.Duration `json:"cycleTime,omitempty"`
}

// ControllerManager configures kube-controller-manager.
type ControllerManager struct {
	// How fast it may call the API. That counts for each controller, as each has a client of its own.
	ClientConnection *ClientConnection `json:"clientConnection,omitempty"`
	// For how long certificates are signed, as its flag --cluster-signing-duration says. A year unless said.
	ClusterSigningDuration time.Duration `json:"clusterSigningDuration,omitempty"`
}

// Check wants certificates that are good for a while.
func (c *ControllerManager) Check(at decode.Place) {
	if d := at.Field("clusterSigningDuration"); d.Written() && c.ClusterSigningDuration <= 0 {
		d.Errorf("must be more than 0s")
	}
}

// ClientConnection bounds how fast a component calls the API, as the field of that name in its configuration does.
type ClientConnection struct {
	// Requests a second in the long run; a negative number is no limit. 50 for the scheduler and 20 for the controller manager unless said.
	QPS float64 `json:"qps,omitempty"`
	// How many requests may go out at once after a while without any. 100 for the scheduler and 30 for the controller manager unless said.
	Burst int `json:"burst,omitempty"`
}

// Check wants controllers that there are.
func (c *ControlPlane) Check(at decode.Place) {
	for i, n := range c.Disable {
		if n != "*" {
			value.OneOf(at.Field("disable").Index(i), "controller", n, controlplane.Names())
		}
	}
}

// Check refuses a negative burst.
func (c *ClientConnection) Check(at decode.Place) {
	value.NotNegative(at.Field("burst"), c.Burst)
}

// Check wants the client's limits to be said once.
func (c *SchedulerComponent) Check(at decode.Place) {
	value.NotNegative(at.Field("cycleTime"), c.CycleTime)
	if c.ClientConnection != nil && c.Configuration != nil && (c.Configuration.ClientConnection.QPS != 0 || c.Configuration.ClientConnection.Burst != 0) {
		at.Field("clientConnection").Errorf("is said in the configuration as well")
	}
}

// Options are the control plane's as sim takes them. There is an error of a configuration of the
// scheduler that was never checked.
func (c *ControlPlane) Options() (controlplane.Options, error) {
	if c == nil {
		return controlplane.Options{}, nil
	}
	out := controlplane.Options{Disable: c.Disable, ApproveServing: c.ApproveServing}
	for _, p := range c.PodSigners {
		out.PodSigners = append(out.PodSigners, controlplane.PodSigner(p))
	}
	if m := c.ControllerManager; m != nil {
		out.ControllerManager, out.SigningDuration = m.ClientConnection.client(), m.ClusterSigningDuration
	}
	if s := c.Scheduler; s != nil {
		out.Scheduler, out.CycleTime = s.ClientConnection.client(), s.CycleTime
		if s.Configuration != nil {
			config, err := schedulerconfig.Resolve(s.Configuration)
			if err != nil {
				return out, fmt.Errorf("spec.controlPlane.scheduler.configuration: %w", err)
			}
			out.SchedulerConfig = config
		}
	}
	return out, nil
}

// client has a component's limits; the zero value has upstream's defaults.
func (c *ClientConnection) client() controlplane.Client {
	if c == nil {
		return controlplane.Client{}
	}
	return controlplane.Client{QPS: c.QPS, Burst: c.Burst}
}
