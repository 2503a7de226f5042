// Package credentialprovider finds the credentials for pulling an image among
// pods' pull secrets, the node's own configuration and those of plugins
// (kubelet/credentialprovider/plugin). It mirrors upstream's
// pkg/credentialprovider.
package credentialprovider

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// defaultRegistry is what credentials for images without a registry are filed
// under.
const defaultRegistry = "index.docker.io"

// Credentials are what a pull may be tried with.
type Credentials struct {
	Auth *runtimeapi.AuthConfig
	// Secret is where they come from, or ServiceAccount is whose token a plugin got
	// for them; neither means the node's configuration, which all its pods may use.
	Secret         *kubeletconfig.ImagePullSecret
	ServiceAccount *kubeletconfig.ImagePullServiceAccount
}

// Source is what credentials are had through; the zero value is the node itself.
type Source struct {
	Secret         *v1.Secret
	ServiceAccount *kubeletconfig.ImagePullServiceAccount
}

// Keyring holds credentials by the places that they are for.
type Keyring struct {
	byPlace map[string][]Credentials
	places  []string // longest match first: in reverse order
}

// Add files the entries of a docker configuration. A place may be a URL; its
// scheme does not count, nor do the paths /v1/ and /v2/. What can't be read as a
// place is left out.
func (k *Keyring) Add(config DockerConfig, from Source) {
	if k.byPlace == nil {
		k.byPlace = map[string][]Credentials{}
	}
	names := make([]string, 0, len(config))
	for name := range config { //drydock:unordered sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		entry := config[name]
		c := Credentials{Auth: &runtimeapi.AuthConfig{Username: entry.Username, Password: entry.Password}, ServiceAccount: from.ServiceAccount}
		if secret := from.Secret; secret != nil {
			c.Secret = &kubeletconfig.ImagePullSecret{
				UID: string(secret.UID), Namespace: secret.Namespace, Name: secret.Name, CredentialHash: hash(entry),
			}
		}
		place, ok := placeOf(name)
		if !ok {
			continue
		}
		if k.byPlace[place] == nil {
			k.places = append(k.places, place)
		}
		k.byPlace[place] = append(k.byPlace[place], c)
	}
	slices.SortFunc(k.places, func(a, b string) int { return cmp.Compare(b, a) })
}

// placeOf is a registry's host and path, by which credentials are found. An
// address that is none is left out, as upstream does.
func placeOf(name string) (string, bool) {
	if !strings.HasPrefix(name, "https://") && !strings.HasPrefix(name, "http://") {
		name = "https://" + name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "", false
	}
	p := u.Path
	if strings.HasPrefix(p, "/v1/") || strings.HasPrefix(p, "/v2/") {
		p = p[3:]
	}
	if p == "/" {
		p = ""
	}
	return u.Host + p, true
}

// hash names credentials without telling them: records of pulls keep it.
func hash(e DockerConfigEntry) string {
	b, _ := json.Marshal(e) // it is all text
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Lookup returns the credentials for a repository in its full form
// ("docker.io/library/app"), those for the most particular place first.
func (k *Keyring) Lookup(repository string) []Credentials {
	var out []Credentials
	for _, place := range k.places {
		if matches(place, repository) {
			out = append(out, k.byPlace[place]...)
		}
	}
	if len(out) == 0 && onDefaultRegistry(repository) {
		out = k.byPlace[defaultRegistry]
	}
	return out
}

// onDefaultRegistry reports whether an image names no registry, or that of
// Docker.
func onDefaultRegistry(image string) bool {
	host, _, more := strings.Cut(image, "/")
	switch {
	case host == "":
		return false
	case !more, host == "docker.io", host == defaultRegistry:
		return true
	}
	return !strings.ContainsAny(host, ".:")
}

// matches reports whether an image lies at a place. A place that is no URL has none.
func matches(place, image string) bool {
	ok, err := URLsMatch(place, image)
	return ok && err == nil
}

// URLsMatch reports whether an image, which has neither tag nor digest, lies at a
// place ("*.registry.example:5000/team"): the same port, as many parts of the host
// name, each by its pattern, and below the path, where "team" has "teams", too. The
// error is of what is no URL or no pattern.
func URLsMatch(place, image string) (bool, error) {
	glob, err := ParseSchemelessURL(place)
	if err != nil {
		return false, err
	}
	target, err := ParseSchemelessURL(image)
	if err != nil {
		return false, err
	}
	globName, globPort := splitPort(glob.Host)
	name, port := splitPort(target.Host)
	patterns, parts := strings.Split(globName, "."), strings.Split(name, ".")
	if globPort != port || len(patterns) != len(parts) || !strings.HasPrefix(target.Path, glob.Path) {
		return false, nil
	}
	for i := range parts {
		if ok, err := path.Match(patterns[i], parts[i]); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// ParseSchemelessURL parses a place or an image.
func ParseSchemelessURL(s string) (*url.URL, error) {
	u, err := url.Parse("https://" + s)
	if err != nil {
		return nil, err
	}
	u.Scheme = ""
	return u, nil
}

// splitPort splits a host that may have no port.
func splitPort(host string) (name, port string) {
	if n, p, err := net.SplitHostPort(host); err == nil {
		return n, p
	}
	return host, ""
}
