package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"testing"
)

// TestPodKey: a key follows from the seed and the name, and a request that it signs is good.
func TestPodKey(t *testing.T) {
	seen := map[string]string{}
	for _, tc := range []struct {
		keyType string
		bits    int
	}{{"ED25519", 0}, {"ECDSAP256", 256}, {"ECDSAP384", 384}, {"ECDSAP521", 521}, {"RSA3072", 3072}, {"RSA4096", 4096}} {
		var der [2][]byte
		for i := range der {
			key, err := PodKey(7, tc.keyType, "a")
			if err != nil {
				t.Fatal(err)
			}
			if der[i], err = x509.MarshalPKCS8PrivateKey(key); err != nil {
				t.Fatal(err)
			}
			raw, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{}, key)
			if err != nil {
				t.Fatal(err)
			}
			request, err := x509.ParseCertificateRequest(raw)
			if err != nil || request.CheckSignature() != nil {
				t.Errorf("%s: the request is not good: %v", tc.keyType, err)
			}
			switch k := key.Public().(type) {
			case *ecdsa.PublicKey:
				if k.Curve.Params().BitSize != tc.bits {
					t.Errorf("%s: %d bits", tc.keyType, k.Curve.Params().BitSize)
				}
			case *rsa.PublicKey:
				if k.N.BitLen() != tc.bits {
					t.Errorf("%s: %d bits", tc.keyType, k.N.BitLen())
				}
			}
		}
		if !bytes.Equal(der[0], der[1]) {
			t.Errorf("%s: another key for the same name", tc.keyType)
		}
		if other := seen[string(der[0])]; other != "" {
			t.Errorf("%s is as %s", tc.keyType, other)
		}
		seen[string(der[0])] = tc.keyType
	}
	a, _ := PodKey(7, "ECDSAP384", "a")
	b, _ := PodKey(7, "ECDSAP384", "b")
	if a.(*ecdsa.PrivateKey).Equal(b) {
		t.Error("two names have one key")
	}
	if _, err := PodKey(7, "RSA2048", "a"); err == nil {
		t.Error("a type that there is not")
	}
}
