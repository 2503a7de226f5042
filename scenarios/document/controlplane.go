package document

import (
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// ControlPlane is which controllers there are, and how fast they may call the API.
type ControlPlane struct {
	// What is left out: kube-scheduler, or controllers by the names that kube-controller-manager's --controllers has, such as node-lifecycle-controller. `*` is everything. Nothing unless said.
	Disable []string `json:"disable,omitempty"`
	// kube-scheduler.
	Scheduler *ControlPlaneComponent `json:"scheduler,omitempty"`
	// kube-controller-manager.
	ControllerManager *ControlPlaneComponent `json:"controllerManager,omitempty"`
}

// ControlPlaneComponent configures kube-scheduler or kube-controller-manager.
type ControlPlaneComponent struct {
	// How fast it may call the API. In the controller manager that counts for each controller, as each has a client of its own.
	ClientConnection *ClientConnection `json:"clientConnection,omitempty"`
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

// Options are the control plane's as sim takes them.
func (c *ControlPlane) Options() controlplane.Options {
	if c == nil {
		return controlplane.Options{}
	}
	return controlplane.Options{Disable: c.Disable, Scheduler: c.Scheduler.client(), ControllerManager: c.ControllerManager.client()}
}

// client is the component's client; the zero value has upstream's defaults.
func (c *ControlPlaneComponent) client() controlplane.Client {
	if c == nil || c.ClientConnection == nil {
		return controlplane.Client{}
	}
	return controlplane.Client{QPS: c.ClientConnection.QPS, Burst: c.ClientConnection.Burst}
}
