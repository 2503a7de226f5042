package document

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/drydock-sim/drydock/kubelet/credentialprovider/plugin"
	"github.com/drydock-sim/drydock/scenarios/internal/decode"
	"github.com/drydock-sim/drydock/scenarios/value"
	"github.com/drydock-sim/drydock/sim"
)

// CredentialProvider is an image credential provider plugin: a program on the nodes that kubelets run for credentials of images, beside those of pull secrets. A run that fails shows in the kubelet's log only; the pull is tried without.
type CredentialProvider struct {
	// The plugin's name.
	Name string `json:"name" required:""`
	// Which images it is run for: registries with or without a path, `registry.example/team`. Parts of a host's name may be patterns: `*.registry.example`.
	MatchImages []string `json:"matchImages" required:""`
	// What tokens of pods' service accounts it is told, as in a CredentialProviderConfig (kubelet.config.k8s.io/v1). None unless said: its credentials are every pod's then.
	TokenAttributes *kubeletconfigv1.ServiceAccountTokenAttributes `json:"tokenAttributes,omitempty"`
	// The credentials that it answers with, by registry with or without a path. None unless said.
	Auth map[string]ImageAuth `json:"auth,omitempty"`
	// For which images one answer is kept: the one, all of its registry, or all. Registry unless said.
	CacheKeyType string `json:"cacheKeyType,omitempty" enum:"Image,Registry,Global"`
	// How long an answer is kept; 0s: not at all. 10m unless said.
	CacheDuration *time.Duration `json:"cacheDuration,omitempty"`
	// How long a run takes: a time or a range. No time unless said; the kubelet ends it after a minute.
	Takes *value.Range `json:"takes,omitempty"`
	// Runs fail.
	Fails *CredentialProviderFailure `json:"fails,omitempty"`
}

// CredentialProviderFailure is how runs of a plugin fail: it exits with status 1.
type CredentialProviderFailure struct {
	// What it says of it, for the kubelet's log.
	Message string `json:"message,omitempty"`
	// How many runs fail before the first that works; all of them unless said. Each node counts for itself.
	Times int `json:"times,omitempty"`
}

// Check refuses a negative number of failures.
func (f *CredentialProviderFailure) Check(at decode.Place) {
	value.NotNegative(at.Field("times"), f.Times)
}

// defaultCredentialCache is how long answers are kept unless a scenario says otherwise.
const defaultCredentialCache = 10 * time.Minute

func (p *CredentialProvider) plugin() sim.CredentialProvider {
	out := sim.CredentialProvider{
		Config: kubeletconfigv1.CredentialProvider{
			Name: p.Name, MatchImages: p.MatchImages, TokenAttributes: p.TokenAttributes, DefaultCacheDuration: &metav1.Duration{Duration: defaultCredentialCache},
		},
		CacheKeyType: credentialproviderv1.RegistryPluginCacheKeyType, Takes: p.Takes.Runtime(),
	}
	if p.CacheDuration != nil {
		out.Config.DefaultCacheDuration.Duration = *p.CacheDuration
	}
	if p.CacheKeyType != "" {
		out.CacheKeyType = credentialproviderv1.PluginCacheKeyType(p.CacheKeyType)
	}
	if len(p.Auth) > 0 {
		out.Auth = make(map[string]credentialproviderv1.AuthConfig, len(p.Auth))
		for place, a := range p.Auth { //drydock:unordered each key is set once
			out.Auth[place] = credentialproviderv1.AuthConfig{Username: a.Username, Password: a.Password}
		}
	}
	if f := p.Fails; f != nil {
		out.Fails = &sim.CredentialProviderFailure{Message: f.Message, Times: f.Times}
	}
	return out
}

// checkCredentialProviders wants what a kubelet takes, and each name once.
func (g *NodeGroup) checkCredentialProviders(at decode.Place) {
	for i := range g.CredentialProviders {
		p, at := &g.CredentialProviders[i], at.Index(i)
		if slices.ContainsFunc(g.CredentialProviders[:i], func(o CredentialProvider) bool { return o.Name == p.Name }) {
			at.Field("name").Errorf("%s is there twice", p.Name)
		}
		one := p.plugin().Config
		one.APIVersion = credentialproviderv1.SchemeGroupVersion.String()
		for _, err := range plugin.Validate(&kubeletconfigv1.CredentialProviderConfig{Providers: []kubeletconfigv1.CredentialProvider{one}}, g.gates()) {
			if p.Name == "" || len(p.MatchImages) == 0 {
				continue // told of already
			}
			at.Path(strings.TrimPrefix(err.Field, "providers.")).Errorf("%s", err.ErrorBody())
		}
	}
}

// gates are the feature gates of the group's kubelets; nil: none are set.
func (g *NodeGroup) gates() map[string]bool {
	if g.Kubelet == nil {
		return nil
	}
	return g.Kubelet.FeatureGates
}

// Credentials are the group's image credential provider plugins, for all of its nodes;
// nil: there are none.
func (g *NodeGroup) Credentials() (*sim.CredentialProviders, error) {
	if len(g.CredentialProviders) == 0 {
		return nil, nil
	}
	var list []sim.CredentialProvider
	for i := range g.CredentialProviders {
		list = append(list, g.CredentialProviders[i].plugin())
	}
	return sim.NewCredentialProviders(list, g.gates())
}
