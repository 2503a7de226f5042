package kinds

import (
	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ServiceAccount is the kind of the identities of pods. It has an effect where clients
// come in: without them pods are admitted and run without an account.
const ServiceAccount kind.Kind = "ServiceAccount"

// serviceAccount returns the row of ServiceAccount
// (pkg/registry/core/serviceaccount/strategy.go), of which only metadata is checked.
func serviceAccount() *kind.Info {
	return &kind.Info{
		Kind: ServiceAccount, Version: "v1", Resource: "serviceaccounts", ShortNames: []string{"sa"}, ReturnsDeleted: true, Namespaced: true,
		Meta: kind.MetaAgain, ReadByAdmission: true,
		Inert: kind.InertWithoutClients, // pods get accounts where clients come in
		Strategy: &kind.Typed[v1.ServiceAccount, *v1.ServiceAccount]{
			Reset: nameSecrets,
			Keep: func(sa, _ *v1.ServiceAccount, sub string) bool {
				nameSecrets(sa)
				return sub == ""
			},
			Warn:  serviceAccountWarnings,
			Table: []kind.Column[v1.ServiceAccount]{kind.NameColumn[v1.ServiceAccount](), kind.AgeColumn[v1.ServiceAccount]()},
		},
	}
}

// nameSecrets leaves of references to secrets their names (cleanSecretReferences).
func nameSecrets(sa *v1.ServiceAccount) {
	if len(sa.Secrets) == 0 {
		return
	}
	list := make([]v1.ObjectReference, len(sa.Secrets)) // the manifest's may be shared
	for i, s := range sa.Secrets {
		list[i].Name = s.Name
	}
	sa.Secrets = list
}

// enforceMountable is the annotation that keeps a service account's pods to its secrets.
const enforceMountable = "kubernetes.io/enforce-mountable-secrets"

// serviceAccountWarnings tells who sets an annotation that is deprecated.
func serviceAccountWarnings(sa, old *v1.ServiceAccount, _ string) []string {
	if _, ok := sa.Annotations[enforceMountable]; !ok {
		return nil
	}
	if old != nil {
		if _, ok := old.Annotations[enforceMountable]; ok {
			return nil
		}
	}
	return []string{"metadata.annotations[" + enforceMountable + "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}
