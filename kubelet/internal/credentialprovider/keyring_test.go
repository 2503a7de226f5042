package credentialprovider

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
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
		creds, err := (&Provider{}).Lookup(tc.repository, []v1.Secret{secret("s", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, config)})
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

func TestProvider(t *testing.T) {
	p := &Provider{FS: files{"/b": `{"auths": {"quay.io": {"username": "node"}}}`}, Paths: []string{"/a", "/b"}}
	creds, err := p.Lookup("quay.io/app", []v1.Secret{
		secret("old", v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"quay.io": {"username": "old"}}`),
		secret("opaque", v1.SecretTypeOpaque, v1.DockerConfigJsonKey, `{`),
		secret("empty", v1.SecretTypeDockerConfigJson, "x", `{`),
	})
	if err != nil || len(creds) != 2 || creds[0].Auth.Username != "old" || creds[1].Auth.Username != "node" || creds[1].Secret != nil {
		t.Error(creds, err)
	}
	for _, bad := range []string{"{", `{"auths": {"a": {"auth": "bm9jb2xvbg=="}}}`, `{"auths": {"a": {"auth": "%"}}}`} {
		if _, err := p.Lookup("a/b", []v1.Secret{secret("s", v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, bad)}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func FuzzSecret(f *testing.F) {
	f.Add([]byte(`{"auths": {"*.a:1/b": {"auth": "YTpi"}}}`), "x.a:1/b/c")
	f.Fuzz(func(t *testing.T, data []byte, image string) {
		s := v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{v1.DockerConfigJsonKey: data}}
		_, _ = (&Provider{}).Lookup(image, []v1.Secret{s})
	})
}
