package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	credentialproviderapi "k8s.io/kubelet/pkg/apis/credentialprovider"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/credentialprovider"
)

// errRunLost is what those hear who waited for a run that did not come to its end.
var errRunLost = errors.New("the plugin's run was given up")

// provider is one plugin with its answers (upstream's pluginProvider).
type provider struct {
	m      *Manager
	config *kubeletconfigv1.CredentialProvider
	// attributes is nil if the plugin is told no tokens.
	attributes *kubeletconfigv1.ServiceAccountTokenAttributes
	cache      cache
	// runs are under way; nil: none was yet.
	runs map[runKey]*run
}

// runKey is what requests for one run have in common. Pods of one account have tokens
// of their own, so their requests differ.
type runKey struct{ image, token, annotations string }

// run is a run of the plugin, for all that wait for it.
type run struct {
	done     loop.Event
	response *credentialproviderapi.CredentialProviderResponse
	err      error
}

// provide returns the plugin's credentials for a pod's image, and the service account
// through whose token it has them; nil: all pods may use them. A plugin that is not for
// the image has none.
func (p *provider) provide(ctx context.Context, pod *v1.Pod, image string) (credentialprovider.DockerConfig, *kubeletconfig.ImagePullServiceAccount, error) {
	if !slices.ContainsFunc(p.config.MatchImages, func(place string) bool {
		ok, err := credentialprovider.URLsMatch(place, image)
		return ok && err == nil
	}) {
		return nil, nil, nil
	}
	var of identity
	if a := p.attributes; a != nil {
		name := pod.Spec.ServiceAccountName
		if name == "" && *a.RequireServiceAccount {
			return nil, nil, nil
		}
		if name != "" {
			var err error
			if of, err = p.identify(ctx, pod); err != nil || of.account == nil {
				return nil, nil, err
			}
		}
	}
	now := p.m.o.Loop.Now()
	bases := [...]string{image, registryOf(image), globalKey}
	if config, ok := p.cache.get(now, bases[:], of.key); ok {
		return config, of.account, nil
	}
	response, err := p.run(ctx, image, &of)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to get credential from external registry credential provider: %w", err)
	}
	if of.token != "" && p.attributes.CacheType != kubeletconfigv1.TokenServiceAccountTokenCacheType {
		for _, a := range response.Auth { //drydock:unordered any of them
			if a.Password == of.token {
				return nil, nil, errors.New("credential provider plugin returned the service account token as the password which is not allowed when service account cache type is not set to 'Token'")
			}
		}
	}
	base, err := baseKey(response.CacheKeyType, image)
	if err != nil {
		return nil, nil, err
	}
	config := make(credentialprovider.DockerConfig, len(response.Auth))
	for place, a := range response.Auth { //drydock:unordered each key is set once
		config[place] = credentialprovider.DockerConfigEntry{Username: a.Username, Password: a.Password}
	}
	keep := p.config.DefaultCacheDuration.Duration
	if d := response.CacheDuration; d != nil {
		keep = d.Duration
	}
	if keep != 0 {
		p.cache.put(cacheKey{base, of.key}, config, p.m.o.Loop.Now().Add(keep))
	}
	return config, of.account, nil
}

// run asks the plugin, or waits for who asks the same. What runs is nobody's in
// particular, so it goes on if one of those that wait has gone.
func (p *provider) run(ctx context.Context, image string, of *identity) (*credentialproviderapi.CredentialProviderResponse, error) {
	key := runKey{image: image}
	if of.account != nil {
		key.token, key.annotations = hashed(of.token), joined(of.annotations)
	}
	r := p.runs[key]
	if r == nil {
		r = &run{err: errRunLost}
		if p.runs == nil {
			p.runs = map[runKey]*run{}
		}
		p.runs[key] = r
		request := &credentialproviderapi.CredentialProviderRequest{Image: image, ServiceAccountToken: of.token, ServiceAccountAnnotations: of.annotations}
		p.m.o.Group.Go("credential-provider", func(ctx context.Context) {
			defer func() {
				delete(p.runs, key)
				r.done.Fire()
			}()
			r.response, r.err = p.m.exec(ctx, p.config, request)
		})
	}
	if err := r.done.Wait(ctx); err != nil {
		return nil, err
	}
	return r.response, r.err
}

// baseKey is what an answer is kept under.
func baseKey(t credentialproviderapi.PluginCacheKeyType, image string) (string, error) {
	switch t {
	case credentialproviderapi.ImagePluginCacheKeyType:
		return image, nil
	case credentialproviderapi.RegistryPluginCacheKeyType:
		return registryOf(image), nil
	case credentialproviderapi.GlobalPluginCacheKeyType:
		return globalKey, nil
	}
	return "", fmt.Errorf("credential provider plugin did not return a valid cacheKeyType: %s", t)
}

// registryOf is an image's host, with its port.
func registryOf(image string) string {
	host, _, _ := strings.Cut(image, "/")
	return host
}
