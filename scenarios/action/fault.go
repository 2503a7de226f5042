package action

import (
	"slices"
	"time"

	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// Fault makes the runtime, the API or a signer of certificates fail, or cuts a node, a component of the control plane or a client off. It has exactly one of cri, api, signer and partition.
//
// In the timeline: makes the runtime, the API or a signer of certificates fail,
// or cuts a node, a component of the control plane or a client off.
type Fault struct {
	// The nodes that it hits: a name, a pattern with * and ?, or a list of them. May be left out if there is one node only, and for api and signer, where it means everybody.
	Node value.Nodes `json:"node,omitempty"`
	// The component of the control plane that it hits instead of nodes, for api and partition: kube-scheduler, kube-controller-manager, or one controller, such as job-controller.
	Component string `json:"component,omitempty"`
	// The user of `drydock up` whose requests it hits instead of nodes, for api and partition: a name as kubectl auth whoami says it, such as admin or system:serviceaccount:shop:operator.
	Client string `json:"client,omitempty"`
	// Calls of the container runtime are slow, hang or fail.
	CRI *CRIFault `json:"cri,omitempty"`
	// Requests to the API are slow or fail.
	API *APIFault `json:"api,omitempty"`
	// Certificates are signed late, or requests for them are denied.
	Signer *SignerFault `json:"signer,omitempty"`
	// The node, or the component, and the API do not reach each other.
	Partition *Partition `json:"partition,omitempty"`
}

// Partition cuts nodes, or a component of the control plane, off from the API.
type Partition struct {
	// How long. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// OnlySimulated is because a machine outside has faults of its own.
func (*Fault) OnlySimulated() {}

// Check wants one fault, and somebody whom it hits.
func (a *Fault) Check(at Place) {
	if !value.ExactlyOne(a.CRI != nil, a.API != nil, a.Signer != nil, a.Partition != nil) {
		at.Errorf("needs exactly one of cri, api, signer and partition")
	}
	if a.Component != "" {
		names, component := append(controlplane.Names(), controlplane.ControllerManager), at.Field("component")
		switch {
		case !slices.Contains(names, a.Component):
			value.OneOf(component, "component", a.Component, names)
		case len(a.Node) > 0:
			component.Errorf("a fault hits either nodes or a component")
		case a.CRI != nil || a.Signer != nil:
			component.Errorf("goes with api and partition only")
		}
	}
	if a.Client != "" {
		switch client := at.Field("client"); {
		case len(a.Node) > 0 || a.Component != "":
			client.Errorf("a fault hits either nodes, a component or a client")
		case a.CRI != nil || a.Signer != nil:
			client.Errorf("goes with api and partition only")
		}
	}
	a.Node.Check(at.Field("node"), at.Scope, a.API == nil && a.Signer == nil && a.Component == "" && a.Client == "")
}

// Do begins the fault on each node, on each client of the component, or on the client.
func (a *Fault) Do(s Stage) error {
	nodes, api := a.Node.Select(s.Nodes()), s.Cluster().API()
	switch {
	case a.Component != "":
		nodes = controlplane.Clients(a.Component)
	case a.Client != "":
		nodes = []string{a.Client}
	}
	switch {
	case a.CRI != nil:
		rule := a.CRI.Runtime()
		// Nodes run at the same time: each has a place of its own.
		hit := make([]bool, len(nodes))
		for i, n := range nodes {
			rule.OnHit = func() { hit[i] = true }
			s.Cluster().Node(n).Runtime().AddFault(rule)
		}
		s.AtEnd(func() {
			if !slices.Contains(hit, true) {
				s.Missed("the fault hit no call of the runtime")
			}
		})
	case a.API != nil:
		if len(a.Node) == 0 && a.Component == "" && a.Client == "" {
			nodes = []string{""}
		}
		a.API.Begin(s, nodes...)
	case a.Signer != nil:
		if len(a.Node) == 0 {
			nodes = []string{""}
		}
		a.Signer.begin(s, nodes...)
	case a.Partition != nil:
		for _, n := range nodes {
			during(s, "partition", n, a.Partition.For, api.Partition(n))
		}
	}
	return nil
}
