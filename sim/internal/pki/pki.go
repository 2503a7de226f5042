// Package pki is the certificate authority of a cluster. Unless it is given a key, that
// and what it signs follow from the cluster's seed and clock, so that a run can be
// repeated: such a key is no secret, and what it signed must be trusted by nothing but
// the run itself.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"strconv"
	"time"
)

// CA is a certificate authority. It is never written to.
type CA struct {
	Certificate *x509.Certificate
	seed        uint64
	key         crypto.Signer
}

// lifetime is that of kubeadm's authorities.
const lifetime = 10 * 365 * 24 * time.Hour

// New returns the authority that a seed decides, good from a time on for ten years.
func New(seed uint64, from time.Time) (*CA, error) {
	return WithKey(Key(seed, "ca"), seed, from, from.Add(lifetime))
}

// WithKey returns the authority of a key. Of the seed are the serial numbers.
func WithKey(key crypto.Signer, seed uint64, from, until time.Time) (*CA, error) {
	ca := &CA{seed: seed, key: key}
	tmpl := &x509.Certificate{
		SerialNumber: ca.serial("ca"), Subject: pkix.Name{CommonName: "kubernetes"}, DNSNames: []string{"kubernetes"},
		NotBefore: from.UTC().Truncate(time.Second), NotAfter: until.UTC().Truncate(time.Second),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(nil, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	if ca.Certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return ca, nil
}

// PEM is the authority's certificate as clients are given it.
func (ca *CA) PEM() []byte { return encode(ca.Certificate.Raw) }

// Sign returns the certificate of a public key, as PEM. The serial number follows from
// a name, which is another for each certificate.
func (ca *CA) Sign(tmpl *x509.Certificate, public any, name string) ([]byte, error) {
	own := *tmpl
	own.SerialNumber = ca.serial(name)
	der, err := x509.CreateCertificate(nil, &own, ca.Certificate, public, ca.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	return encode(der), nil
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Key is the private key that a seed and a name decide.
func Key(seed uint64, name string) ed25519.PrivateKey {
	sum := digest(seed, "key", name)
	return ed25519.NewKeyFromSeed(sum[:])
}

// ECKey is Key for a key of the curve P-256, which is what kubelets make.
func ECKey(seed uint64, name string) *ecdsa.PrivateKey {
	for n := 0; ; n++ { // a number in four thousand millions is too large for the curve
		sum := digest(seed, "ec key", name, strconv.Itoa(n))
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:]); err == nil {
			return key
		}
	}
}

func (ca *CA) serial(name string) *big.Int {
	sum := digest(ca.seed, "serial", name)
	sum[0] &= 0x7f // X.509 wants a positive number
	return new(big.Int).SetBytes(sum[:16])
}

func digest(seed uint64, parts ...string) [sha256.Size]byte {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, seed))
	for _, p := range parts {
		h.Write(append([]byte(p), 0))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
