package plugin

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	kubeletconfigv1 "k8s.io/kubelet/config/v1"
	kubeletconfigv1alpha1 "k8s.io/kubelet/config/v1alpha1"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// Config is a CredentialProviderConfig that is valid. It is never written to, and may
// be shared.
type Config struct {
	// Providers are the plugins, in the order in which their credentials are tried.
	Providers []kubeletconfigv1.CredentialProvider
	// Hash is that of the files that it was read from ("sha256:..."), or "".
	Hash  string
	codec *codec
}

// NewConfig judges a configuration as Validate does. hash is Config.Hash.
func NewConfig(c *kubeletconfigv1.CredentialProviderConfig, hash string, gates map[string]bool) (*Config, error) {
	if errs := Validate(c, gates); len(errs) > 0 {
		return nil, fmt.Errorf("failed to validate credential provider config: %w", errs.ToAggregate())
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	return &Config{Providers: c.Providers, Hash: hash, codec: codec}, nil
}

// File is a file of a configuration, YAML or JSON.
type File struct {
	Name string
	Data []byte
}

// Read puts the configurations of files together, in their order. Reading is strict:
// unknown and duplicate fields are errors. The hash is that of the files' contents,
// each after its length in 8 bytes, lest two sets of files have the same
// (readCredentialProviderConfig).
func Read(files []File) (c *kubeletconfigv1.CredentialProviderConfig, hash string, err error) {
	codec, err := newCodec()
	if err != nil {
		return nil, "", err
	}
	c = &kubeletconfigv1.CredentialProviderConfig{}
	seen := map[string]bool{}
	sum := sha256.New()
	for _, f := range files {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f.Data)))) // never fails
		_, _ = sum.Write(f.Data)
		one, err := codec.config(f.Data)
		if err != nil {
			return nil, "", fmt.Errorf("error decoding config %q: %w", f.Name, err)
		}
		for _, p := range one {
			if seen[p.Name] {
				return nil, "", fmt.Errorf("duplicate provider name %q found in configuration file(s)", p.Name)
			}
			seen[p.Name] = true
			c.Providers = append(c.Providers, p)
		}
	}
	return c, "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// config decodes one configuration of any version. Older versions have no service
// account tokens.
func (c *codec) config(data []byte) ([]kubeletconfigv1.CredentialProvider, error) {
	obj, gvk, err := c.factory.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	var out []kubeletconfigv1.CredentialProvider
	switch obj := obj.(type) {
	case *kubeletconfigv1.CredentialProviderConfig:
		return obj.Providers, nil
	case *kubeletconfigv1beta1.CredentialProviderConfig:
		for _, p := range obj.Providers {
			out = append(out, kubeletconfigv1.CredentialProvider{
				Name: p.Name, MatchImages: p.MatchImages, DefaultCacheDuration: p.DefaultCacheDuration, APIVersion: p.APIVersion, Args: p.Args,
				Env: environment(p.Env, func(e kubeletconfigv1beta1.ExecEnvVar) kubeletconfigv1.ExecEnvVar {
					return kubeletconfigv1.ExecEnvVar(e)
				}),
			})
		}
	case *kubeletconfigv1alpha1.CredentialProviderConfig:
		for _, p := range obj.Providers {
			out = append(out, kubeletconfigv1.CredentialProvider{
				Name: p.Name, MatchImages: p.MatchImages, DefaultCacheDuration: p.DefaultCacheDuration, APIVersion: p.APIVersion, Args: p.Args,
				Env: environment(p.Env, func(e kubeletconfigv1alpha1.ExecEnvVar) kubeletconfigv1.ExecEnvVar {
					return kubeletconfigv1.ExecEnvVar(e)
				}),
			})
		}
	default:
		return nil, fmt.Errorf("failed to decode %q (wrong Kind)", gvk.Kind)
	}
	return out, nil
}

func environment[T any](in []T, convert func(T) kubeletconfigv1.ExecEnvVar) []kubeletconfigv1.ExecEnvVar {
	var out []kubeletconfigv1.ExecEnvVar
	for _, e := range in {
		out = append(out, convert(e))
	}
	return out
}
