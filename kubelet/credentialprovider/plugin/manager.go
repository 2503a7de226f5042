package plugin

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	credentialproviderapi "k8s.io/kubelet/pkg/apis/credentialprovider"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
	"github.com/drydock-sim/drydock/kubelet/internal/metrics"
)

// execTimeout is how long a plugin may take.
const execTimeout = time.Minute

// Runner runs the programs of plugins.
type Runner interface {
	// Run runs a plugin's program, with the request on its standard input, until it
	// ends or ctx does. The error says how the program failed, and is that of ctx if it
	// was ended.
	Run(ctx context.Context, p *kubeletconfigv1.CredentialProvider, request []byte) (stdout, stderr []byte, err error)
}

// ServiceAccounts are those of the API.
type ServiceAccounts interface {
	GetServiceAccount(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error)
}

// Tokens are those of service accounts: token.Manager.
type Tokens interface {
	GetServiceAccountToken(ctx context.Context, namespace, name string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
}

// Options are what a Manager is made of.
type Options struct {
	// Group is the kubelet's process, which the plugins' runs belong to.
	Group  *loop.Group
	Loop   *loop.Loop
	Config *Config
	Runner Runner
	// ServiceAccountTokens is the feature gate KubeletServiceAccountTokenForCredentialProviders.
	ServiceAccountTokens bool
	// Accounts and Tokens are nil without an API.
	Accounts ServiceAccounts
	Tokens   Tokens
	// Metrics counts; nil: nobody does.
	Metrics *metrics.Kubelet
	// Log is optional.
	Log func(format string, args ...any)
}

// Manager asks the plugins of one kubelet.
type Manager struct {
	o         Options
	providers []*provider
}

var _ credentialprovider.External = (*Manager)(nil)

// New returns a Manager that has asked no plugin yet.
func New(o Options) *Manager {
	m := &Manager{o: o}
	for i := range o.Config.Providers {
		p := &provider{m: m, config: &o.Config.Providers[i], cache: cache{purged: o.Loop.Now()}}
		if o.ServiceAccountTokens {
			p.attributes = p.config.TokenAttributes
		}
		m.providers = append(m.providers, p)
	}
	return m
}

// Lookup returns the credentials that the plugins have for a pod's image, by its
// repository in full; those for the most particular place first, and for one place
// those of the first plugin. A plugin that fails has none: the log alone tells of it,
// and the pull is tried without.
func (m *Manager) Lookup(ctx context.Context, pod *v1.Pod, repository string) []credentialprovider.Credentials {
	var ring credentialprovider.Keyring
	for _, p := range m.providers {
		config, account, err := p.provide(ctx, pod, repository)
		if err != nil {
			m.failed(p, pod, repository, err)
			continue
		}
		ring.Add(config, credentialprovider.Source{ServiceAccount: account})
	}
	return ring.Lookup(repository)
}

func (m *Manager) failed(p *provider, pod *v1.Pod, repository string, err error) {
	switch {
	case m.o.Log == nil:
	case p.attributes != nil:
		m.o.Log("Failed to provide credentials for image provider=%s image=%s pod=%s/%s podUID=%s serviceAccount=%s/%s: %v",
			p.config.Name, repository, pod.Namespace, pod.Name, pod.UID, pod.Namespace, pod.Spec.ServiceAccountName, err)
	default:
		m.o.Log("Failed to provide credentials for image provider=%s image=%s: %v", p.config.Name, repository, err)
	}
}

// exec runs a plugin once and reads its answer (execPlugin.ExecPlugin).
func (m *Manager) exec(ctx context.Context, p *kubeletconfigv1.CredentialProvider, request *credentialproviderapi.CredentialProviderRequest) (*credentialproviderapi.CredentialProviderResponse, error) {
	codec := m.o.Config.codec
	data, err := codec.encode(p.APIVersion, request)
	if err != nil {
		return nil, fmt.Errorf("failed to encode auth request: %w", err)
	}
	ctx, cancel := loop.WithTimeout(ctx, execTimeout)
	defer cancel()
	began := m.o.Loop.Now()
	stdout, stderr, err := m.o.Runner.Run(ctx, p, data)
	m.o.Metrics.CredentialPlugin(p.Name, m.o.Loop.Since(began), err != nil)
	if err != nil {
		return nil, fmt.Errorf("error execing credential provider plugin %s for image %s: %w: %s", p.Name, request.Image, err, stderr)
	}
	return codec.decode(p.APIVersion, stdout)
}
