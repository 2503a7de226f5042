package projected

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// api has the configMap "cm" with keys a and b, the secret "s" with key a, and
// one token.
type api struct{ refresh time.Time }

func (api) Get(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	if name == "cm" {
		return &v1.ConfigMap{Data: map[string]string{"a": "ca"}, BinaryData: map[string][]byte{"b": []byte("cb")}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmap"}, name)
}
func (api) Peek(string, string) (*v1.ConfigMap, bool) { return nil, true }

type secrets struct{}

func (secrets) Get(_ context.Context, _, name string) (*v1.Secret, error) {
	if name == "s" {
		return &v1.Secret{Data: map[string][]byte{"a": []byte("sa")}}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secret"}, name)
}
func (secrets) Peek(string, string) (*v1.Secret, bool) { return nil, true }

func (a api) GetServiceAccountToken(_ context.Context, _, name string, tr *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	out := tr.DeepCopy()
	out.Status.Token = fmt.Sprint("token of ", name, " for ", tr.Spec.Audiences, " ", tr.Spec.BoundObjectRef.UID)
	return out, nil
}
func (api) DeleteServiceAccountToken(types.UID) {}
func (a api) NextRefresh(string, string, *authenticationv1.TokenRequest) time.Time {
	return a.refresh
}

func configMap(name string, optional bool, items ...v1.KeyToPath) v1.VolumeProjection {
	p := v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{Items: items, Optional: &optional}}
	p.ConfigMap.Name = name
	return p
}

func secretOf(name string, optional bool, items ...v1.KeyToPath) v1.VolumeProjection {
	p := v1.VolumeProjection{Secret: &v1.SecretProjection{Items: items, Optional: &optional}}
	p.Secret.Name = name
	return p
}

func TestCollectData(t *testing.T) {
	token := v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}}
	for i, tc := range []struct {
		sources []v1.VolumeProjection
		group   *int64
		want    map[string]string // "content mode"
		err     string
	}{
		{[]v1.VolumeProjection{configMap("cm", false)}, nil, map[string]string{"a": "ca 644", "b": "cb 644"}, ""},
		{[]v1.VolumeProjection{configMap("cm", false, v1.KeyToPath{Key: "b", Path: "dir/x", Mode: new(int32(0o400))})}, nil, map[string]string{"dir/x": "cb 400"}, ""},
		{[]v1.VolumeProjection{configMap("cm", false), secretOf("s", false)}, nil, map[string]string{"a": "sa 644", "b": "cb 644"}, ""},
		{[]v1.VolumeProjection{configMap("none", true), secretOf("none", true)}, nil, map[string]string{}, ""},
		{[]v1.VolumeProjection{configMap("none", false), secretOf("none", false)}, nil, nil, `[configmap "none" not found, secret "none" not found]`},
		{[]v1.VolumeProjection{configMap("cm", false, v1.KeyToPath{Key: "x", Path: "x"})}, nil, nil, "configmap references non-existent config key: x"},
		{[]v1.VolumeProjection{configMap("cm", true, v1.KeyToPath{Key: "x", Path: "x"})}, nil, map[string]string{}, ""},
		{[]v1.VolumeProjection{secretOf("s", false, v1.KeyToPath{Key: "x", Path: "x"})}, nil, nil, "references non-existent secret key: x"},
		{[]v1.VolumeProjection{token}, nil, map[string]string{"token": "token of builder for [vault] uid 644"}, ""},
		{[]v1.VolumeProjection{token}, new(int64(7)), map[string]string{"token": "token of builder for [vault] uid 600"}, ""},
		{[]v1.VolumeProjection{{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{
			{Path: "n", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}}, nil, map[string]string{"n": "p 644"}, ""},
	} {
		p := New(&volume.Host{ConfigMaps: api{}, Secrets: secrets{}, Tokens: api{}, NodeAllocatable: func() v1.ResourceList { return nil }})
		r := &volume.Request{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid"}, Spec: v1.PodSpec{ServiceAccountName: "builder"}},
			Volume:  &v1.Volume{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: tc.sources, DefaultMode: new(int32(0o644))}}},
			FSGroup: tc.group}
		data, err := p.collectData(context.Background(), r)
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%d: %v", i, err)
			}
			continue
		}
		got := map[string]string{}
		for name, f := range data {
			got[name] = fmt.Sprintf("%s %o", f.Data, f.Mode)
		}
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
}

// A volume with a token is up to date until the token could be renewed.
func TestInputsOfToken(t *testing.T) {
	now := time.Unix(1000, 0)
	for after, want := range map[time.Duration]bool{time.Second: true, 0: false, -time.Second: false} {
		p := New(&volume.Host{Tokens: api{refresh: now.Add(after)}, Now: func() time.Time { return now }})
		v := &v1.Volume{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}}}}}}
		if _, ok := p.Inputs(&v1.Pod{}, v); ok != want {
			t.Errorf("%v: %t", after, ok)
		}
	}
}

func TestStandalone(t *testing.T) {
	err := New(&volume.Host{}).SetUp(context.Background(), &volume.Request{Volume: &v1.Volume{Name: "v"}})
	if err == nil || err.Error() != "cannot setup projected volume v because kube client is not configured" {
		t.Error(err)
	}
}

// certificates has whom to trust by the name "roots", and a certificate of the source 1 of
// the volume "id".
type certificates struct {
	anchors *volume.TrustAnchors
	own     *volume.Credentials
}

func (c *certificates) Get(_ context.Context, s *v1.ClusterTrustBundleProjection) (*volume.TrustAnchors, error) {
	if *s.Name == "roots" {
		return c.anchors, nil
	}
	return nil, errors.New("no " + *s.Name)
}

func (c *certificates) Peek(s *v1.ClusterTrustBundleProjection) (*volume.TrustAnchors, bool) {
	return c.anchors, *s.Name == "roots"
}

func (c *certificates) GetPodCertificateCredentialBundle(_ *v1.Pod, name string, source int) (*volume.Credentials, error) {
	if name == "id" && source == 1 {
		return c.own, nil
	}
	return nil, errors.New("not issued")
}

func TestCertificates(t *testing.T) {
	bundle := func(name string) v1.VolumeProjection {
		return v1.VolumeProjection{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Name: &name, Path: "ca"}}
	}
	own := v1.VolumeProjection{PodCertificate: &v1.PodCertificateProjection{CredentialBundlePath: "both", KeyPath: "k", CertificateChainPath: "c"}}
	for i, tc := range []struct {
		sources []v1.VolumeProjection
		user    *int64
		off     bool
		want    map[string]string // "content mode user"
		err     string
	}{
		{[]v1.VolumeProjection{bundle("roots"), own}, nil, false, map[string]string{"ca": "CA 644", "both": "KEYCHAIN 644", "k": "KEY 644", "c": "CHAIN 644"}, ""},
		{[]v1.VolumeProjection{bundle("roots"), own}, new(int64(7)), false, map[string]string{"ca": "CA 600 7", "both": "KEYCHAIN 600 7", "k": "KEY 600 7", "c": "CHAIN 600 7"}, ""},
		{[]v1.VolumeProjection{own}, nil, false, nil, "not issued"},
		{[]v1.VolumeProjection{bundle("none"), own}, nil, false, nil, "no none"},
		{[]v1.VolumeProjection{bundle("roots"), own}, nil, true, nil, "[ClusterTrustBundle projection is disabled: the feature gate ClusterTrustBundleProjection is off, PodCertificate projection is disabled: the feature gate PodCertificateRequest is off]"},
	} {
		c := &certificates{&volume.TrustAnchors{PEM: []byte("CA")}, &volume.Credentials{Key: []byte("KEY"), Chain: []byte("CHAIN")}}
		host := &volume.Host{}
		if !tc.off {
			host.TrustBundles, host.PodCertificates = c, c
		}
		p := New(host)
		r := &volume.Request{Pod: &v1.Pod{}, FSUser: tc.user,
			Volume: &v1.Volume{Name: "id", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: tc.sources, DefaultMode: new(int32(0o644))}}}}
		data, err := p.collectData(context.Background(), r)
		if tc.err != "" {
			if err == nil || err.Error() != tc.err {
				t.Errorf("%d: %v", i, err)
			}
			if _, ok := p.Inputs(r.Pod, r.Volume); ok {
				t.Errorf("%d: it is up to date", i)
			}
			continue
		}
		got := map[string]string{}
		for name, f := range data {
			got[name] = fmt.Sprintf("%s %o", f.Data, f.Mode)
			if f.FSUser != nil {
				got[name] += fmt.Sprint(" ", *f.FSUser)
			}
		}
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%d: %v, %v", i, got, err)
		}
		// It is up to date until either is another one.
		if inputs, ok := p.Inputs(r.Pod, r.Volume); !ok || !slices.Equal(inputs, r.Inputs) {
			t.Errorf("%d: inputs %v, not %v", i, inputs, r.Inputs)
		}
		c.own = &volume.Credentials{}
		if inputs, ok := p.Inputs(r.Pod, r.Volume); !ok || slices.Equal(inputs, r.Inputs) {
			t.Errorf("%d: a new certificate is no other input", i)
		}
	}
}
