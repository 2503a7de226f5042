package action

import (
	"cmp"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/internal/text"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim/controlplane"
)

// SignerFault makes a signer of certificates late, or has requests denied. It has exactly one of delay and deny.
type SignerFault struct {
	// Whose requests: their spec.signerName: kubernetes.io/kube-apiserver-client-kubelet, kubernetes.io/kubelet-serving, or one of the control plane's podSigners. The first unless said.
	Name string `json:"name,omitempty"`
	// How old a request is at least when it is signed. What waits when the fault is over is signed then.
	Delay time.Duration `json:"delay,omitempty"`
	// Requests are denied, as by `kubectl certificate deny`, or by who signs for pods.
	Deny bool `json:"deny,omitempty"`
	// How long the fault lasts. To the end unless said.
	For time.Duration `json:"for,omitempty"`
}

// Check fills in the signer, and wants an effect.
func (f *SignerFault) Check(at decode.Place) {
	f.Name = cmp.Or(f.Name, certificatesv1.KubeAPIServerClientKubeletSignerName)
	if !strings.Contains(f.Name, "/") {
		at.Field("name").Errorf("%q is no signer: want a domain and a path, as in example.com/signer", decode.Short(f.Name))
	}
	if !value.ExactlyOne(f.Delay != 0, f.Deny) {
		at.Errorf("needs exactly one of delay and deny")
	}
}

// begin has the fault act for its time, for the requests of nodes; "" is all of them.
func (f *SignerFault) begin(s Stage, nodes ...string) {
	hit := false // on the API's loop
	what := "denial of requests to " + f.Name
	if !f.Deny {
		what = "delay of " + text.ShortTime(f.Delay) + " of " + f.Name
	}
	s.AtEnd(func() {
		if !hit {
			s.Missed("the fault " + what + " hit no request")
		}
	})
	for _, n := range nodes {
		rule := controlplane.SignerFault{Signer: f.Name, Node: n, Deny: f.Deny, Delay: f.Delay, OnHit: func() { hit = true }}
		during(s, what, n, f.For, s.Cluster().ControlPlane().AddSignerFault(rule))
	}
}
