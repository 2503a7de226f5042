package kinds

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// The kinds that subresources take. They are stored nowhere: their rows are for
// admission, which is asked about them as about objects.
const (
	Binding      kind.Kind = "Binding"
	Eviction     kind.Kind = "Eviction"
	TokenRequest kind.Kind = "TokenRequest"
	Scale        kind.Kind = "Scale"
)

// TakenBinding is the row of what pods/binding takes.
func TakenBinding(pods *kind.Info) *kind.Info {
	return &kind.Info{Kind: Binding, Of: pods, Version: "v1", Namespaced: true, Strategy: &kind.Typed[v1.Binding, *v1.Binding]{}}
}

// TakenEviction is the row of what pods/eviction takes.
func TakenEviction(pods *kind.Info) *kind.Info {
	return &kind.Info{Kind: Eviction, Of: pods, Group: "policy", Version: "v1", Namespaced: true, Strategy: &kind.Typed[policyv1.Eviction, *policyv1.Eviction]{}}
}

// TakenTokenRequest is the row of what serviceaccounts/token takes.
func TakenTokenRequest(accounts *kind.Info) *kind.Info {
	return &kind.Info{Kind: TokenRequest, Of: accounts, Group: "authentication.k8s.io", Version: "v1", Namespaced: true, Strategy: &kind.Typed[authenticationv1.TokenRequest, *authenticationv1.TokenRequest]{}}
}

// TakenScale is the row of what the subresource scale of a workload takes.
func TakenScale(of *kind.Info) *kind.Info {
	return &kind.Info{Kind: Scale, Of: of, Group: "autoscaling", Version: "v1", Namespaced: of.Namespaced, Strategy: &kind.Typed[autoscalingv1.Scale, *autoscalingv1.Scale]{}}
}
