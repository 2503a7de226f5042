package plugin

import (
	"testing"
	"time"

	credentialproviderapi "k8s.io/kubelet/pkg/apis/credentialprovider"
)

const apiV1 = "credentialprovider.kubelet.k8s.io/v1"

func newTestCodec(t testing.TB) *codec {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEncode(t *testing.T) {
	r := &credentialproviderapi.CredentialProviderRequest{Image: "quay.io/app", ServiceAccountToken: "t", ServiceAccountAnnotations: map[string]string{"a": "b"}}
	for version, want := range map[string]string{
		apiV1:            `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"quay.io/app","serviceAccountToken":"t","serviceAccountAnnotations":{"a":"b"}}`,
		apiV1 + "beta1":  `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1beta1","image":"quay.io/app"}`,
		apiV1 + "alpha1": `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1alpha1","image":"quay.io/app"}`,
	} {
		if got, err := newTestCodec(t).encode(version, r); err != nil || string(got) != want+"\n" {
			t.Errorf("%s: %s, %v", version, got, err)
		}
	}
}

func TestDecode(t *testing.T) {
	const undecodable = "error decoding credential provider plugin response from stdout"
	response := func(version, more string) string {
		return `{"kind": "CredentialProviderResponse", "apiVersion": "` + version + `"` + more + `}`
	}
	for _, tc := range []struct{ name, asked, data, err string }{
		{"v1", apiV1, response(apiV1, `, "cacheKeyType": "Image", "cacheDuration": "2m", "auth": {"quay.io": {"username": "u", "password": "p"}}`), ""},
		{"v1beta1", apiV1 + "beta1", response(apiV1+"beta1", `, "cacheKeyType": "Image", "cacheDuration": "2m", "auth": {"quay.io": {"username": "u", "password": "p"}}`), ""},
		{"v1alpha1", apiV1 + "alpha1", response(apiV1+"alpha1", `, "cacheKeyType": "Image", "cacheDuration": "2m", "auth": {"quay.io": {"username": "u", "password": "p"}}`), ""},
		{"another version", apiV1, response(apiV1+"beta1", ""), "apiVersion from credential plugin response did not match expected apiVersion:credentialprovider.kubelet.k8s.io/v1, actual apiVersion:credentialprovider.kubelet.k8s.io/v1beta1"},
		{"no JSON", apiV1, "hello", "error reading GVK from response: couldn't get version/kind; json parse error: invalid character 'h' looking for beginning of value"},
		{"nothing", apiV1, "", "error reading GVK from response: couldn't get version/kind; json parse error: unexpected end of JSON input"},
		{"another kind", apiV1, `{"kind": "CredentialProviderRequest", "apiVersion": "` + apiV1 + `"}`, undecodable},
		{"an unknown field", apiV1, response(apiV1, `, "secret": "hush"`), undecodable},
		{"a field twice", apiV1, response(apiV1, `, "auth": {}, "auth": {}`), undecodable},
		{"another type", apiV1, response(apiV1, `, "auth": ["hush"]`), undecodable},
		{"a duration that is none", apiV1, response(apiV1, `, "cacheDuration": "hush"`), undecodable},
	} {
		got, err := newTestCodec(t).decode(tc.asked, []byte(tc.data))
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		if err != nil || got.CacheKeyType != "Image" || got.CacheDuration.Duration != 2*time.Minute || got.Auth["quay.io"] != (credentialproviderapi.AuthConfig{Username: "u", Password: "p"}) {
			t.Errorf("%s: %+v %v", tc.name, got, err)
		}
	}
}

// FuzzDecode has responses of any text be refused or understood.
func FuzzDecode(f *testing.F) {
	c := newTestCodec(f)
	f.Add(apiV1, `{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "cacheKeyType": "Global", "cacheDuration": "0s", "auth": {"*.io:5/x": {"username": "u", "password": "p"}}}`)
	f.Add(apiV1+"beta1", `{"kind": "CredentialProviderResponse", "apiVersion": "credentialprovider.kubelet.k8s.io/v1beta1"}`)
	f.Add(apiV1, `{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "auth": {"a": {"password": "hunter2"}}}`)
	f.Add(apiV1, "kind: CredentialProviderResponse\napiVersion: credentialprovider.kubelet.k8s.io/v1\n")
	f.Fuzz(func(t *testing.T, version, data string) {
		r, err := c.decode(version, []byte(data))
		if (r == nil) == (err == nil) {
			t.Errorf("%v, %v", r, err)
		}
		if err == nil {
			_, _ = baseKey(r.CacheKeyType, "quay.io/app")
		}
	})
}
