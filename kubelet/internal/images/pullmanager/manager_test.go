package pullmanager

import (
	"errors"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/ground/memfs"
)

func newManager(t *testing.T, policy kubeletconfig.ImagePullCredentialsVerificationPolicy) (*Manager, func() *Manager) {
	l := loop.New(loop.Options{Name: "n"})
	t.Cleanup(l.Close)
	o := Options{FS: memfs.New(memfs.Options{Loop: l}), Dir: "/i", Policy: policy, Now: l.Now, Allowlist: []string{"docker.io/library/free", "quay.io/team/*"}}
	return New(o), func() *Manager { return New(o) }
}

func one(name, hash string) *kubeletconfig.ImagePullSecret {
	return &kubeletconfig.ImagePullSecret{UID: "u" + name, Namespace: "ns", Name: name, CredentialHash: hash}
}

type credentials func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error)

func having(list ...*kubeletconfig.ImagePullSecret) credentials {
	return func() (out []kubeletconfig.ImagePullSecret, _ *kubeletconfig.ImagePullServiceAccount, _ error) {
		for _, s := range list {
			out = append(out, *s)
		}
		return out, nil, nil
	}
}

// being is a pod of a service account whose token a plugin got.
func being(a kubeletconfig.ImagePullServiceAccount) credentials {
	return func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
		return nil, &a, nil
	}
}

func with(s *kubeletconfig.ImagePullSecret) *kubeletconfig.ImagePullCredentials {
	return &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{*s}}
}

func account(name, uid string) kubeletconfig.ImagePullServiceAccount {
	return kubeletconfig.ImagePullServiceAccount{UID: uid, Namespace: "ns", Name: name}
}

func as(list ...kubeletconfig.ImagePullServiceAccount) *kubeletconfig.ImagePullCredentials {
	return &kubeletconfig.ImagePullCredentials{KubernetesServiceAccounts: list}
}

// must asks a manager, and fails if that fails.
func must(t *testing.T, m *Manager, image, ref string, has credentials) bool {
	t.Helper()
	out, err := m.MustAttemptImagePull(image, ref, has)
	if err != nil {
		t.Errorf("%s: %v", image, err)
	}
	return out
}

func TestPolicies(t *testing.T) {
	for _, tc := range []struct {
		policy               kubeletconfig.ImagePullCredentialsVerificationPolicy
		preloaded            bool
		free, team, elswhere bool // whether a pod must pull a preloaded image
	}{
		{kubeletconfig.NeverVerify, false, false, false, false},
		{kubeletconfig.NeverVerifyPreloadedImages, false, false, false, false},
		{kubeletconfig.NeverVerifyAllowlistedImages, true, false, false, true},
		{kubeletconfig.AlwaysVerify, true, true, true, true},
	} {
		m, _ := newManager(t, tc.policy)
		for image, want := range map[string]bool{"free:1": tc.free, "quay.io/team/a/b@sha256:" + sum: tc.team, "quay.io/teams/a": tc.elswhere, "app": tc.preloaded} {
			if got := must(t, m, image, "ref", having()); got != want {
				t.Errorf("%s: %s: %t", tc.policy, image, got)
			}
		}
	}
}

const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestPulledBySecret: who has the secret that an image was pulled with may use
// it, and so may a new kubelet's pods.
func TestPulledBySecret(t *testing.T) {
	m, restarted := newManager(t, kubeletconfig.NeverVerifyPreloadedImages)
	if err := m.RecordPullIntent("app:1"); err != nil {
		t.Fatal(err)
	}
	if !must(t, m, "app:1", "ref", having(one("a", "x"))) {
		t.Error("a pull is under way, and the image may be used")
	}
	m.RecordImagePulled("app:1", "ref", with(one("a", "x")))
	for range 2 {
		for _, tc := range []struct {
			name, image string
			has         credentials
			must        bool
		}{
			{"the secret", "app:1", having(one("a", "x")), false},
			{"the same credentials", "app:2", having(one("b", "x")), false},
			{"the secret, with others in it", "app:1", having(one("a", "y")), false},
			{"none", "app:1", having(), true},
			{"another", "app:1", having(one("c", "z")), true},
			{"another name of the image", "other:1", having(one("a", "x")), true},
			{"a service account", "app:1", being(account("robot", "1")), true},
		} {
			if got := must(t, m, tc.image, "ref", tc.has); got != tc.must {
				t.Errorf("%s: %t", tc.name, got)
			}
		}
		m = restarted()
	}
	m.RecordImagePulled("app:1", "ref", &kubeletconfig.ImagePullCredentials{NodePodsAccessible: true})
	if must(t, m, "app:1", "ref", having()) {
		t.Error("pulled anonymously, and may not be used")
	}
}

// TestUnreadable: the error of credentials is handed on.
func TestUnreadable(t *testing.T) {
	m, _ := newManager(t, kubeletconfig.NeverVerifyPreloadedImages)
	m.RecordImagePulled("app:1", "ref", with(one("a", "x")))
	bad := errors.New("bad")
	if must, err := m.MustAttemptImagePull("app:1", "ref", func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error) {
		return nil, nil, bad
	}); !must || !errors.Is(err, bad) {
		t.Errorf("%t %v", must, err)
	}
}

// TestPulledByServiceAccount: pods of the account may use the image, also under a new
// kubelet, and nobody else; an account that was made anew is another one.
func TestPulledByServiceAccount(t *testing.T) {
	m, restarted := newManager(t, kubeletconfig.NeverVerifyPreloadedImages)
	_ = m.RecordPullIntent("app:1")
	m.RecordImagePulled("app:1", "ref", as(account("robot", "1")))
	m.RecordImagePulled("app:1", "ref", as(account("cook", "3")))
	m.RecordImagePulled("app:1", "ref", as(account("robot", "1")))
	m.RecordImagePulled("app:1", "ref", with(one("a", "x")))
	for range 2 {
		for _, tc := range []struct {
			name string
			has  credentials
			must bool
		}{
			{"the account", being(account("robot", "1")), false},
			{"the second", being(account("cook", "3")), false},
			{"made anew", being(account("robot", "2")), true},
			{"another", being(account("other", "1")), true},
			{"the secret", having(one("a", "x")), false},
			{"nobody", having(), true},
		} {
			if got := must(t, m, "app:1", "ref", tc.has); got != tc.must {
				t.Errorf("%s: %t", tc.name, got)
			}
		}
		m = restarted()
	}
	rec, err := m.read("ref")
	if err != nil {
		t.Fatal(err)
	}
	if got := rec.CredentialMapping["docker.io/library/app"]; !slices.Equal(got.KubernetesServiceAccounts, as(account("cook", "3"), account("robot", "1")).KubernetesServiceAccounts) || len(got.KubernetesSecrets) != 1 {
		t.Errorf("recorded: %+v", got)
	}
}

func TestIntentsOfAFormerKubelet(t *testing.T) {
	m, restarted := newManager(t, kubeletconfig.NeverVerifyPreloadedImages)
	_ = m.RecordPullIntent("app:1")
	_ = m.RecordPullIntent("gone:1")
	_ = m.RecordPullIntent("failed:1")
	m.RecordImagePullFailed("failed:1")
	m = restarted()
	m.Initialize([]*runtimeapi.Image{{Id: "r", RepoTags: []string{"app:1"}}, {Id: "f", RepoTags: []string{"failed:1"}}})
	if !must(t, m, "app:1", "r", having()) || must(t, m, "failed:1", "f", having()) {
		t.Error("an image whose pull was under way counts as pulled, one whose pull failed does not")
	}
	if entries, _ := m.o.FS.ReadDir("/i/pulling"); len(entries) != 0 {
		t.Errorf("%d intents left", len(entries))
	}
}

func TestPrune(t *testing.T) {
	m, _ := newManager(t, kubeletconfig.NeverVerifyPreloadedImages)
	for _, ref := range []string{"a", "b"} {
		_ = m.RecordPullIntent(ref)
		m.RecordImagePulled(ref, ref, with(one("a", "x")))
	}
	m.Prune([]string{"a"}, m.o.Now().Add(time.Minute))
	if !must(t, m, "a", "a", having()) || must(t, m, "b", "b", having()) {
		t.Error("the record of an image that is gone stays, or the other goes")
	}
}
