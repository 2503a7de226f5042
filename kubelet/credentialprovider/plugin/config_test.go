package plugin

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	kubeletconfigv1 "k8s.io/kubelet/config/v1"
)

const head = "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/"

// entry is a provider of a file.
func entry(name string) string {
	return "- {name: " + name + ", matchImages: [quay.io], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1, args: [a], env: [{name: K, value: V}]}\n"
}

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []string
		want  string // the names, or the error's end
		bad   bool
	}{
		{"v1", []string{head + "v1\nproviders:\n" + entry("a")}, "a", false},
		{"v1beta1", []string{head + "v1beta1\nproviders:\n" + entry("a")}, "a", false},
		{"v1alpha1", []string{head + "v1alpha1\nproviders:\n" + entry("a")}, "a", false},
		{"JSON", []string{`{"kind": "CredentialProviderConfig", "apiVersion": "kubelet.config.k8s.io/v1", "providers": [{"name": "a", "args": ["a"], "env": [{"name": "K", "value": "V"}]}]}`}, "a", false},
		{"several", []string{head + "v1\nproviders:\n" + entry("b") + entry("a"), head + "v1beta1\nproviders:\n" + entry("c")}, "b a c", false},
		{"none in it", []string{head + "v1\n"}, "", false},
		{"a name twice", []string{head + "v1\nproviders:\n" + entry("a"), head + "v1\nproviders:\n" + entry("a")}, `duplicate provider name "a" found in configuration file(s)`, true},
		{"an unknown field", []string{head + "v1\nproviders:\n- {name: a, matchimages: [x]}\n"}, `error decoding config "f0": strict decoding error: unknown field "providers[0].matchimages"`, true},
		{"a field twice", []string{head + "v1\nproviders:\n- name: a\n  name: b\n"}, `key "name" already set in map`, true},
		{"tokens before v1", []string{head + "v1beta1\nproviders:\n- {name: a, tokenAttributes: {}}\n"}, `strict decoding error: unknown field "providers[0].tokenAttributes"`, true},
		{"another kind", []string{"kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"}, `error decoding config "f0": failed to decode "KubeletConfiguration" (wrong Kind)`, true},
		{"another version", []string{head + "v2\n"}, `no kind "CredentialProviderConfig" is registered for version "kubelet.config.k8s.io/v2" in scheme`, true},
		{"nothing", []string{""}, "Object 'Kind' is missing in ''", true},
		{"a duration that is none", []string{head + "v1\nproviders:\n- {name: a, defaultCacheDuration: soon}\n"}, `time: invalid duration "soon"`, true},
	} {
		var files []File
		for i, text := range tc.files {
			files = append(files, File{fmt.Sprint("f", i), []byte(text)})
		}
		c, hash, err := Read(files)
		if tc.bad {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		var names []string
		for _, p := range c.Providers {
			names = append(names, p.Name)
			if len(p.Args) != 1 || len(p.Env) != 1 || p.Env[0] != (kubeletconfigv1.ExecEnvVar{Name: "K", Value: "V"}) {
				t.Errorf("%s: %+v", tc.name, p)
			}
		}
		if got := strings.Join(names, " "); got != tc.want || len(hash) != len("sha256:")+64 {
			t.Errorf("%s: %q %s", tc.name, got, hash)
		}
	}
}

// TestHash has the hash that upstream's kubelet shows, where files begin and end.
func TestHash(t *testing.T) {
	hash := func(texts ...string) string {
		var files []File
		for _, text := range texts {
			files = append(files, File{Data: []byte(head + "v1\n" + text)})
		}
		_, h, err := Read(files)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if hash("# a\n", "# b\n") == hash("# b\n", "# a\n") || hash("# a\n") == hash("# b\n") {
		t.Error("two configurations have one hash")
	}
	// printf '\0\0\0\0\0\0\0\104kind: ...' | sha256sum
	if got, want := hash(""), "sha256:9a730a9f9b902ebb71e62ac3dbb827d96e04d666064cfeda8138b305d81c5ea4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// valid is a provider with which nothing is wrong.
func valid(name string) kubeletconfigv1.CredentialProvider {
	return kubeletconfigv1.CredentialProvider{
		Name: name, MatchImages: []string{"quay.io"}, DefaultCacheDuration: minutes(1), APIVersion: "credentialprovider.kubelet.k8s.io/v1",
	}
}

func attributes() *kubeletconfigv1.ServiceAccountTokenAttributes {
	return &kubeletconfigv1.ServiceAccountTokenAttributes{ServiceAccountTokenAudience: "registry", CacheType: "Token", RequireServiceAccount: ptr.To(true)}
}

func TestValidate(t *testing.T) {
	type provider = kubeletconfigv1.CredentialProvider
	token := func(change func(a *kubeletconfigv1.ServiceAccountTokenAttributes)) func(p *provider) {
		return func(p *provider) {
			p.TokenAttributes = attributes()
			change(p.TokenAttributes)
		}
	}
	for _, tc := range []struct {
		name   string
		change func(p *provider)
		want   string // "": it is valid
	}{
		{"valid", func(*provider) {}, ""},
		{"no caching", func(p *provider) { p.DefaultCacheDuration = minutes(0) }, ""},
		{"older API", func(p *provider) { p.APIVersion = "credentialprovider.kubelet.k8s.io/v1alpha1" }, ""},
		{"a slash", func(p *provider) { p.Name = "a/b" }, `providers.name: Invalid value: "a/b": provider name cannot contain '/'`},
		{"a space", func(p *provider) { p.Name = "a b" }, `providers.name: Invalid value: "a b": provider name cannot contain spaces`},
		{"a dot", func(p *provider) { p.Name = "." }, `providers.name: Invalid value: ".": provider name cannot be '.'`},
		{"two dots", func(p *provider) { p.Name = ".." }, `providers.name: Invalid value: "..": provider name cannot be '..'`},
		{"a name twice", func(p *provider) { p.Name = "first" }, `providers.name: Duplicate value: "first"`},
		{"no version", func(p *provider) { p.APIVersion = "" }, `providers.apiVersion: Required value`},
		{"another version", func(p *provider) { p.APIVersion = "v1" }, `providers.apiVersion: Unsupported value: "v1": supported values: "credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1alpha1", "credentialprovider.kubelet.k8s.io/v1beta1"`},
		{"no images", func(p *provider) { p.MatchImages = nil }, `providers.matchImages: Required value: at least 1 item in matchImages is required`},
		{"no URL", func(p *provider) { p.MatchImages = []string{"quay.io", "%invalid%"} }, `providers.matchImages: Invalid value: "%invalid%": match image is invalid: parse "https://%invalid%": invalid URL escape "%in"`},
		{"no duration", func(p *provider) { p.DefaultCacheDuration = nil }, `providers.defaultCacheDuration: Required value`},
		{"a negative one", func(p *provider) { p.DefaultCacheDuration = minutes(-1) }, `providers.defaultCacheDuration: Invalid value: "-1m0s": must be greater than or equal to 0`},
		{"tokens", token(func(*kubeletconfigv1.ServiceAccountTokenAttributes) {}), ""},
		{"tokens without an account", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.RequireServiceAccount = ptr.To(false) }), ""},
		{"tokens of an older API", func(p *provider) {
			p.TokenAttributes, p.APIVersion = attributes(), "credentialprovider.kubelet.k8s.io/v1beta1"
		}, `providers.tokenAttributes: Forbidden: tokenAttributes is only supported for credentialprovider.kubelet.k8s.io/v1 API version`},
		{"no audience", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.ServiceAccountTokenAudience = "" }), `providers.tokenAttributes.serviceAccountTokenAudience: Required value`},
		{"need unsaid", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.RequireServiceAccount = nil }), `providers.tokenAttributes.requireServiceAccount: Required value`},
		{"annotations without need", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.RequireServiceAccount, a.RequiredServiceAccountAnnotationKeys = ptr.To(false), []string{"a"}
		}), `providers.tokenAttributes.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set`},
		{"annotations", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.RequiredServiceAccountAnnotationKeys, a.OptionalServiceAccountAnnotationKeys = []string{"Example.com/Role"}, []string{"b"}
		}), ""},
		{"no key", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.OptionalServiceAccountAnnotationKeys = []string{"a b"}
		}),
			`providers.tokenAttributes.optionalServiceAccountAnnotationKeys: Invalid value: "a b": name part must consist of`},
		{"a key twice", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.RequiredServiceAccountAnnotationKeys = []string{"a", "a"}
		}), `providers.tokenAttributes.requiredServiceAccountAnnotationKeys: Duplicate value: "a"`},
		{"a key in both", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) {
			a.RequiredServiceAccountAnnotationKeys, a.OptionalServiceAccountAnnotationKeys = []string{"b", "a"}, []string{"a", "b"}
		}), `providers.tokenAttributes: Invalid value: ["a","b"]: annotation keys cannot be both required and optional`},
		{"no cache type", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.CacheType = "" }), `providers.tokenAttributes.cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. Supported values are: ServiceAccount, Token`},
		{"another cache type", token(func(a *kubeletconfigv1.ServiceAccountTokenAttributes) { a.CacheType = "Pod" }), `providers.tokenAttributes.cacheType: Unsupported value: "Pod": supported values: "ServiceAccount", "Token"`},
	} {
		c := &kubeletconfigv1.CredentialProviderConfig{Providers: []provider{valid("first"), valid("second")}}
		tc.change(&c.Providers[1])
		errs := Validate(c, nil)
		switch {
		case tc.want == "" && len(errs) > 0, tc.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), tc.want)):
			t.Errorf("%s:\n%v, want\n%s", tc.name, errs, tc.want)
		}
	}
	if _, err := NewConfig(&kubeletconfigv1.CredentialProviderConfig{}, "", nil); err == nil || err.Error() != "failed to validate credential provider config: providers: Required value: at least 1 item in plugins is required" {
		t.Error(err)
	}
	c := &kubeletconfigv1.CredentialProviderConfig{Providers: []provider{valid("a")}}
	c.Providers[0].TokenAttributes = attributes()
	if _, err := NewConfig(c, "", map[string]bool{"KubeletServiceAccountTokenForCredentialProviders": false}); err == nil || err.Error() != "failed to validate credential provider config: providers.tokenAttributes: Forbidden: tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is disabled" {
		t.Error(err)
	}
}
