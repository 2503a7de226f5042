package credentialprovider

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func secret(name string, t v1.SecretType, key, data string) v1.Secret {
	s := v1.Secret{Type: t, Data: map[string][]byte{key: []byte(data)}}
	s.Name, s.Namespace, s.UID = name, "ns", "uid-of-"+"x"
	return s
}

func TestLookup(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("coded:pa:ss"))
	config := `{"auths": {
		"quay.io": {"username": "quay"}, "quay.io/team": {"username": "team"}, "https://quay.io/v2/other/": {"username": "other"},
		"*.corp.example": {"username": "glob"}, "reg.example:5000": {"username": "port"}, "https://index.docker.io/v1/": {"username": "hub"},
		"coded.example": {"username": "no", "auth": "` + auth + `"}}}`
	for _, tc := range []struct{ repository, want string }{
		{"quay.io/team/app", "team,quay"},
		{"quay.io/app", "quay"},
		{"quay.io/other/app", "other,quay"},
		{"a.corp.example/app", "glob"},
		{"a.b.corp.example/app", ""},
		{"reg.example:5000/app", "port"},
		{"reg.example/app", ""},
		{"docker.io/library/app", "hub"},
		{"coded.example/app", "coded:pa:ss"},
	} {
		creds, err := (&Provider{}).Lookup(t.Context(), nil, tc.repository, []v1.Secret{secret("s", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, config)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range creds {
			text := c.Auth.Username
			if c.Auth.Password != "" {
				text += ":" + c.Auth.Password
			}
			if c.Secret == nil || c.Secret.Name != "s" || len(c.Secret.CredentialHash) != 64 {
				t.Errorf("%s: of %v", tc.repository, c.Secret)
			}
			got = append(got, text)
		}
		if strings.Join(got, ",") != tc.want {
			t.Errorf("%s: %v, want %s", tc.repository, got, tc.want)
		}
	}
}

type files map[string]string

func (f files) ReadFile(name string) ([]byte, error) {
	if s, ok := f[name]; ok {
		return []byte(s), nil
	}
	return nil, errors.New("none")
}

// external is a plugin that knows one user.
type external struct{}

func (external) Lookup(context.Context, *v1.Pod, string) []Credentials {
	return []Credentials{{Auth: &runtimeapi.AuthConfig{Username: "plugin"}}}
}

// TestURLsMatch has upstream's rules: globs in parts of the host alone, the same port,
// and a prefix of the path.
func TestURLsMatch(t *testing.T) {
	for _, tc := range []struct {
		place, image string
		want         bool
	}{
		{"quay.io", "quay.io/app", true},
		{"quay.io/", "quay.io/app", true},
		{"quay.io", "quay.io:443/app", false},
		{"quay.io:443", "quay.io:443/app", true},
		{"quay.io:443", "quay.io/app", false},
		{"quay.io/team", "quay.io/team/app", true},
		{"quay.io/team", "quay.io/teams/app", true},
		{"quay.io/team/", "quay.io/teams/app", false},
		{"quay.io/t*", "quay.io/team/app", false},
		{"*.io", "quay.io/app", true},
		{"*.io", "a.quay.io/app", false},
		{"*.*.io", "a.quay.io/app", true},
		{"q*y.io", "quay.io/app", true},
		{"quay.*", "quay.io/app", true},
		{"*", "quay.io/app", false},
		{"*", "localhost/app", true},
		{"*:5000", "localhost:5000/app", true},
		{"*.dkr.ecr.*.amazonaws.com", "123.dkr.ecr.eu-west-1.amazonaws.com/app", true},
		{"quay.io:*", "quay.io:443/app", false},
		{"[", "quay.io/app", false},
		{"qu[ay.io", "quay.io/app", false},
	} {
		got, err := URLsMatch(tc.place, tc.image)
		if got != tc.want {
			t.Errorf("%s, %s: %t %v", tc.place, tc.image, got, err)
		}
		if bad := strings.ContainsAny(tc.place, "[") || strings.HasSuffix(tc.place, ":*"); bad != (err != nil) {
			t.Errorf("%s: %v", tc.place, err)
		}
	}
}

func TestProvider(t *testing.T) {
	p := &Provider{FS: files{"/b": `{"auths": {"quay.io": {"username": "node"}}}`}, Paths: []string{"/a", "/b"}, Plugins: external{}}
	creds, err := p.Lookup(t.Context(), nil, "quay.io/app", []v1.Secret{
		secret("old", v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"quay.io": {"username": "old"}}`),
		secret("opaque", v1.SecretTypeOpaque, v1.DockerConfigJsonKey, `{`),
		secret("empty", v1.SecretTypeDockerConfigJson, "x", `{`),
	})
	// Secrets first, then the node's own, plugins last.
	if err != nil || len(creds) != 3 || creds[0].Auth.Username != "old" || creds[1].Auth.Username != "node" || creds[1].Secret != nil || creds[2].Auth.Username != "plugin" {
		t.Error(creds, err)
	}
	for _, bad := range []string{"{", `{"auths": {"a": {"auth": "bm9jb2xvbg=="}}}`, `{"auths": {"a": {"auth": "%"}}}`} {
		if _, err := p.Lookup(t.Context(), nil, "a/b", []v1.Secret{secret("s", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, bad)}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func FuzzSecret(f *testing.F) {
	f.Add([]byte(`{"auths": {"*.a:1/b": {"auth": "YTpi"}}}`), "x.a:1/b/c")
	f.Fuzz(func(t *testing.T, data []byte, image string) {
		s := v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: data}}
		_, _ = (&Provider{}).Lookup(t.Context(), nil, image, []v1.Secret{s})
	})
}
