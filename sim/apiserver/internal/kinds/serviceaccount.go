package kinds

import (
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ServiceAccount is the kind of the identities of pods. Nothing acts on it yet: pods
// run without theirs, and nobody makes a namespace's default one.
const ServiceAccount kind.Kind = "ServiceAccount"

// serviceAccount returns the row of ServiceAccount
// (pkg/registry/core/serviceaccount/strategy.go), of which only metadata is checked.
func serviceAccount() *kind.Info {
	return &kind.Info{
		Kind: ServiceAccount, Version: "v1", Resource: "serviceaccounts", ReturnsDeleted: true, Namespaced: true, ChecksMetaAgain: true,
		// A scenario's would have no effect, and nobody would say so.
		Unwritten: true,
		Strategy:  &kind.Typed[v1.ServiceAccount, *v1.ServiceAccount]{},
	}
}
