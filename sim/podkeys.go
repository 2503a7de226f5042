package sim

import (
	"context"
	"crypto"

	"github.com/drydock-sim/drydock/sim/internal/pki"
)

// podKeys makes the private keys of a node's pods: they follow from the cluster's seed.
type podKeys struct{ seed uint64 }

// NewPodKey is that of the kubelet's Options.PodKeys. It takes no virtual time.
func (k podKeys) NewPodKey(_ context.Context, keyType, name string) (crypto.Signer, error) {
	return pki.PodKey(k.seed, keyType, "pod "+name)
}
