package apiserver

import (
	"crypto"
	"time"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/internal/pki"
)

// Authority is the certificate authority of a cluster: it signs what certificate signing
// requests ask for, and is whom pods know the API (kubeadm has one for both).
type Authority = pki.CA

// NewAuthority returns the authority of a key, good between two times.
func NewAuthority(key crypto.Signer, from, until time.Time) (*Authority, error) {
	return pki.WithKey(key, 0, from, until)
}

// SetAuthority replaces the authority that the seed decides, which anybody can make who
// knows the seed. It is for who serves the API to clients that are known by certificates.
func (s *Server) SetAuthority(ca *Authority) { s.authority = ca }

// Authority returns the cluster's authority.
func (s *Server) Authority() *Authority {
	if s.authority == nil {
		ca, err := pki.New(s.l.Seed(), loop.Epoch())
		if err != nil {
			panic(err) // what goes in is of the right form whatever the seed
		}
		s.authority = ca
	}
	return s.authority
}
