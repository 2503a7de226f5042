package credentialprovider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// DockerConfigEntry are the credentials for one place.
type DockerConfigEntry struct {
	Username string
	Password string
	Email    string
}

// DockerConfig are credentials by registry, as in a .dockercfg file.
type DockerConfig map[string]DockerConfigEntry

// DockerConfigJSON is a config.json file.
type DockerConfigJSON struct {
	Auths DockerConfig `json:"auths"`
}

// UnmarshalJSON reads an entry; auth is "username:password" in base64 and
// counts more than the other fields.
func (e *DockerConfigEntry) UnmarshalJSON(data []byte) error {
	var raw struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Email    string `json:"email"`
		Auth     string `json:"auth"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*e = DockerConfigEntry{raw.Username, raw.Password, raw.Email}
	if raw.Auth == "" {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(raw.Auth)
	if err != nil {
		if text, err = base64.RawStdEncoding.DecodeString(raw.Auth); err != nil {
			return err
		}
	}
	var ok bool
	if e.Username, e.Password, ok = strings.Cut(string(text), ":"); !ok {
		return errors.New("unable to parse auth field, must be formatted as base64(username:password)")
	}
	return nil
}

// FromSecrets adds what pull secrets hold to a keyring: those of the types
// dockerconfigjson and dockercfg. A secret that can't be parsed is an error.
func (k *Keyring) FromSecrets(secrets []v1.Secret) error {
	for i := range secrets {
		s := &secrets[i]
		var config DockerConfig
		var err error
		switch s.Type {
		case v1.SecretTypeDockerConfigJson:
			config, err = parseJSON(s.Data[v1.DockerConfigJsonKey])
		case v1.SecretTypeDockercfg:
			config, err = parseCfg(s.Data[v1.DockerConfigKey])
		}
		if err != nil {
			return err
		}
		k.Add(config, Source{Secret: s})
	}
	return nil
}

// parseJSON reads a .dockerconfigjson, or .docker/config.json.
func parseJSON(data []byte) (DockerConfig, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var c DockerConfigJSON
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	return c.Auths, nil
}

// parseCfg reads the older .dockercfg, which has the registries alone.
func parseCfg(data []byte) (DockerConfig, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var c DockerConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	return c, nil
}

// Files reads the node's own docker configuration.
type Files interface {
	ReadFile(name string) ([]byte, error)
}

// External gives the credentials of plugins for an image.
type External interface {
	Lookup(ctx context.Context, pod *v1.Pod, repository string) []Credentials
}

// Provider makes the keyrings of pulls.
type Provider struct {
	FS Files
	// Paths are where a config.json may be; the first that is there counts.
	Paths []string
	// Plugins is optional.
	Plugins External
}

// Lookup returns the credentials for pulling from a repository in its full
// form for a pod: those of its pull secrets, then the node's, then those of plugins.
// Errors are of the secrets.
func (p *Provider) Lookup(ctx context.Context, pod *v1.Pod, repository string, secrets []v1.Secret) ([]Credentials, error) {
	var pods Keyring
	if err := pods.FromSecrets(secrets); err != nil {
		return nil, err // as upstream, which shows it as it is
	}
	out := append(pods.Lookup(repository), p.node(repository)...)
	if p.Plugins != nil {
		out = append(out, p.Plugins.Lookup(ctx, pod, repository)...)
	}
	return out, nil
}

// node are the credentials of the node's own configuration.
func (p *Provider) node(repository string) []Credentials {
	if p.FS == nil {
		return nil
	}
	for _, name := range p.Paths {
		data, err := p.FS.ReadFile(name)
		if err != nil {
			continue
		}
		config, err := parseJSON(data)
		if err != nil {
			continue
		}
		var node Keyring
		node.Add(config, Source{})
		return node.Lookup(repository)
	}
	return nil
}
