package real

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"

	"github.com/drydock-sim/drydock/ground/loop"
)

// podKeys makes the private keys of pods' certificates. It is kubelet.Options.PodKeys.
type podKeys struct{}

// NewPodKey makes a key beside the loop: one of RSA takes a second.
func (podKeys) NewPodKey(ctx context.Context, keyType, _ string) (crypto.Signer, error) {
	return loop.Await(ctx, func(context.Context) (crypto.Signer, error) { return newPodKey(keyType) })
}

func newPodKey(keyType string) (crypto.Signer, error) {
	switch keyType {
	case "RSA3072":
		return rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		return rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("unknown key type %q", keyType)
}
