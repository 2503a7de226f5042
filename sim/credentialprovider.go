package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/kubelet/credentialprovider/plugin"
)

// CredentialProvider is an image credential provider plugin of a node, and how its
// program answers.
type CredentialProvider struct {
	// Config is what the kubelet knows of it. Its apiVersion is set here; args and env
	// mean nothing.
	Config kubeletconfigv1.CredentialProvider
	// Auth and CacheKeyType are what it answers. How long that is kept is Config's
	// default.
	Auth         map[string]credentialproviderv1.AuthConfig
	CacheKeyType credentialproviderv1.PluginCacheKeyType
	// Takes is how long a run takes: no time, if it is zero.
	Takes fakecri.Range
	// Fails is what it says when it exits with status 1, which it does the first Times
	// times on each node; 0: for ever. nil: it does not.
	Fails *CredentialProviderFailure
}

// CredentialProviderFailure is how a plugin's program fails.
type CredentialProviderFailure struct {
	Message string
	Times   int
}

// CredentialProviders are the plugins of nodes, which may share them.
type CredentialProviders struct {
	config *plugin.Config
	byName map[string]*credentialProgram
}

// credentialProgram is a plugin's program.
type credentialProgram struct {
	answer []byte
	takes  fakecri.Range
	fails  *CredentialProviderFailure
}

// NewCredentialProviders returns the plugins of nodes whose kubelets have those feature
// gates. The error is what a kubelet would say of their configuration.
func NewCredentialProviders(list []CredentialProvider, gates map[string]bool) (*CredentialProviders, error) {
	c := &kubeletconfigv1.CredentialProviderConfig{}
	ps := &CredentialProviders{byName: make(map[string]*credentialProgram, len(list))}
	for i := range list {
		p := &list[i]
		config := p.Config
		config.APIVersion = credentialproviderv1.SchemeGroupVersion.String()
		c.Providers = append(c.Providers, config)
		answer, err := json.Marshal(&credentialproviderv1.CredentialProviderResponse{
			TypeMeta:     metav1.TypeMeta{Kind: "CredentialProviderResponse", APIVersion: config.APIVersion},
			CacheKeyType: p.CacheKeyType, Auth: p.Auth,
		})
		if err != nil {
			return nil, fmt.Errorf("credential provider %s: %w", config.Name, err)
		}
		ps.byName[config.Name] = &credentialProgram{answer, p.Takes, p.Fails}
	}
	var err error
	if ps.config, err = plugin.NewConfig(c, "", gates); err != nil {
		return nil, err //nolint:wrapcheck // It says what it is about.
	}
	return ps, nil
}

// credentialPlugins runs a node's plugins on its loop.
type credentialPlugins struct {
	n    *Node
	of   *CredentialProviders
	runs map[string]int // by plugin, since the machine is there
}

var errExitStatus1 = errors.New("exit status 1")

// Run implements plugin.Runner. Times are drawn by plugin and number of the run.
func (c *credentialPlugins) Run(ctx context.Context, p *kubeletconfigv1.CredentialProvider, _ []byte) (stdout, stderr []byte, err error) {
	program := c.of.byName[p.Name]
	n := c.runs[p.Name]
	c.runs[p.Name]++
	var took time.Duration
	if r := program.takes; r != (fakecri.Range{}) {
		took = c.n.l.Between(r.Min, r.Max, "credential provider", p.Name, uint64(n))
	}
	if err := c.n.l.Sleep(ctx, took); err != nil {
		return nil, nil, err
	}
	if f := program.fails; f != nil && (f.Times == 0 || n < f.Times) {
		return nil, []byte(f.Message), errExitStatus1
	}
	return program.answer, nil, nil
}
