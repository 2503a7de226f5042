package apiserver

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// SetRootCA sets the certificates, PEM, by which pods of the cluster know the API. It is
// for who serves it under a certificate.
func (s *Server) SetRootCA(certificates []byte) { s.rootCA = certificates }

// RootCA returns the certificates by which pods know the API: those that were set, or
// one of the cluster's own, whose key is that of service accounts' tokens.
func (s *Server) RootCA() []byte {
	if s.rootCA == nil {
		cert, err := ownCA(s)
		if err != nil {
			panic(err) // its input is constant
		}
		s.rootCA = cert
	}
	return s.rootCA
}

// ownCA makes a certificate of the cluster's own that anybody can make again.
func ownCA(s *Server) ([]byte, error) {
	signer, err := s.tokens.keyring()
	if err != nil {
		return nil, err
	}
	start := s.now().Truncate(time.Hour)
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: start, NotAfter: start.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(nil, t, t, signer.Key().Public(), signer.Key())
	if err != nil {
		return nil, fmt.Errorf("root certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
