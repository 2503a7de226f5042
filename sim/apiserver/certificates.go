package apiserver

import (
	"context"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/wire"
)

// This file has what a node is known by: the certificate that its connections show, and the
// requests for the next. A node that shows none of its own accord is known by its name.

// Who a kubelet is that shows a bootstrap token, as kubeadm makes them.
const bootstrapUser = "system:bootstrap:abcdef"

// bootstrapGroups are that user's.
func bootstrapGroups() []string {
	return []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", user.AllAuthenticated}
}

// A watch lasts for 5 to 10 minutes (client-go/tools/cache/reflector.go, minWatchTimeout). Only its
// end shows that a certificate has expired: who asks is looked at when a request begins.
const (
	minWatch = 5 * time.Minute
	maxWatch = 10 * time.Minute
)

// credential is the certificate that a node's connections show.
type credential struct {
	until time.Time
	end   *loop.Timer
	draws uint64
}

// refuses reports whether a request is answered with 401, because the certificate has expired.
func (c *credential) refuses(r *wire.Request, now int64) bool {
	return c != nil && !r.Token && now > c.until.UnixNano()
}

// ShowCertificate has the client's connections closed and made anew, with a certificate that is
// good until a time. Requests that arrive later than that are refused with 401. What is sent at the
// very same time may arrive before it. A client that has shown none is not asked for any.
func (c *Client) ShowCertificate(until time.Time) {
	p, s := c.peer, c.srv
	c.tell(func() { p.show(s, until) })
}

// show has the node known by another certificate. With the connections its watches break, which
// have been there if it is not the first.
func (p *peer) show(s *Server, until time.Time) {
	if p.shows == nil {
		p.shows = &credential{}
		p.shows.end = s.l.Root().NewTimer("certificate expiry", func() { p.expired(s) })
	} else {
		for _, sub := range slices.Clone(p.subs) {
			s.watches.lose(sub)
		}
	}
	p.shows.until = until
	if until.After(s.now()) {
		p.shows.end.ResetAt(until)
	}
}

// expired has the watches of the node end one after another.
func (p *peer) expired(s *Server) {
	for _, sub := range p.subs {
		p.shows.draws++
		n := p.shows.draws
		lasts := s.l.Between(minWatch, maxWatch, "api/watch", p.node, n)
		left := s.l.Between(0, lasts, "api/watch left", p.node, n)
		s.l.Root().After(left, func() {
			if slices.Contains(p.subs, sub) {
				s.watches.lose(sub)
			}
		})
	}
}

// CreateCertificateSigningRequest asks for a certificate, as the node or with a bootstrap token. The
// request is not to be used any more.
func (c *Client) CreateCertificateSigningRequest(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, token bool) (*certificatesv1.CertificateSigningRequest, error) {
	// PrepareForCreate (pkg/registry/certificates/certificates/strategy.go) writes who asks.
	csr.Spec.Username, csr.Spec.Groups = nodeUser+c.node, []string{user.NodesGroup, user.AllAuthenticated}
	if token {
		csr.Spec.Username, csr.Spec.Groups = bootstrapUser, bootstrapGroups()
	}
	return call(ctx, c, wire.Request{Verb: "create", Resource: "certificatesigningrequests", Token: token}, func(s *store.Store, now time.Time) (*certificatesv1.CertificateSigningRequest, error) {
		return as[*certificatesv1.CertificateSigningRequest](s.Create(now, csr))
	})
}

// WatchCertificateSigningRequest has seen called with a request as it is, and whenever it changes,
// until stop is called or g dies; nil: there is none. It must not wait.
func (c *Client) WatchCertificateSigningRequest(g *loop.Group, name string, token bool, seen func(*certificatesv1.CertificateSigningRequest)) (stop func()) {
	w := &watcher{c: c, g: g, in: c.kinds.Find(KindCertificateSigningRequest), name: name, token: token}
	w.listed = func(list []Object) {
		if len(list) == 0 {
			seen(nil)
			return
		}
		seen(list[0].(*certificatesv1.CertificateSigningRequest))
	}
	w.event = func(t watch.EventType, o Object) {
		if t == watch.Deleted {
			seen(nil)
			return
		}
		seen(o.(*certificatesv1.CertificateSigningRequest))
	}
	return c.startObject(w)
}
