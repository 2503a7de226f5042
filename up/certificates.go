package up

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// certificateLife is how long the certificate of a run's server is good for, by the wall
// clock, which is what clients check it by; authorityLife is kubeadm's.
const (
	certificateLife = 365 * 24 * time.Hour
	authorityLife   = 10 * certificateLife
)

// serverNames are what a cluster's API is called besides its address.
var serverNames = [...]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

// newAuthority returns the authority of one run, which signs the server's certificate and
// those that clients ask for, with a key that nobody else has. The cluster's time may be
// far from the wall clock's: the authority is good by both.
func newAuthority(wall, start time.Time) (*apiserver.Authority, error) {
	from, until := wall, wall
	if start.Before(from) {
		from = start
	}
	if start.After(until) {
		until = start
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the authority: %w", err)
	}
	return apiserver.NewAuthority(key, from.Add(-time.Hour), until.Add(authorityLife))
}

// newCertificate returns a certificate for the server of one run.
func newCertificate(ca *apiserver.Authority, wall time.Time, address string) (server tls.Certificate, err error) {
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: wall.Add(-time.Hour), NotAfter: wall.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: serverNames[:], IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(address); ip != nil {
		leaf.IPAddresses = append(leaf.IPAddresses, ip)
	} else {
		leaf.DNSNames = append(leaf.DNSNames, address)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return server, fmt.Errorf("key of the server: %w", err)
	}
	text, err := ca.Sign(leaf, key.Public(), "kube-apiserver")
	if err != nil {
		return server, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return server, errors.New("certificate of the server: no PEM")
	}
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}, nil
}
