package sim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/drydock-sim/drydock/kubelet/server"
	"github.com/drydock-sim/drydock/sim/internal/identity"
)

// Certificates say what a node is known by. What its kubelet does about them its configuration says:
// rotateCertificates, serverTLSBootstrap.
type Certificates struct {
	// Lifetime is that of the client certificate with which the node begins. Zero means that of those
	// that the cluster signs.
	Lifetime time.Duration
	// Bootstrap tells that a kubelet which starts without a good client certificate has a token to
	// ask for one with (--bootstrap-kubeconfig).
	Bootstrap bool
}

// defaultLifetime is the signers' (--cluster-signing-duration).
const defaultLifetime = 365 * 24 * time.Hour

// of returns a node's certificates.
func (c *Certificates) of(n *Node) *identity.Identity {
	life := cmp.Or(c.Lifetime, n.cluster.opts.ControlPlane.SigningDuration, defaultLifetime)
	return identity.New(identity.Options{
		Loop: n.l, API: n.client, Node: n.name, Address: n.machine.NodeIP(), Lifetime: life, Bootstrap: c.Bootstrap,
		Rotate: n.config.RotateCertificates, Serve: n.config.ServerTLSBootstrap,
	})
}

// serverHost is the kubelet for its server, with what a node's certificates tell.
func (n *Node) serverHost() server.Host {
	if n.identity == nil {
		return n.kubelet.Host()
	}
	return identified{n.kubelet.Host(), n.identity}
}

// identified is a kubelet with certificates.
type identified struct {
	server.Host
	identity *identity.Identity
}

// Metrics implements server.Host.
func (h identified) Metrics(ctx context.Context, of server.MetricsPath) ([]*dto.MetricFamily, error) {
	list, err := h.Host.Metrics(ctx, of)
	if err != nil || of != server.Metrics {
		return list, err //nolint:wrapcheck // It is the kubelet's answer.
	}
	list = append(slices.Clone(list), h.identity.Families()...)
	slices.SortFunc(list, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list, nil
}
