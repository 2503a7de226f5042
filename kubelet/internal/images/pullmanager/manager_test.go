package pullmanager

import (
	"errors"
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

func having(list ...*kubeletconfig.ImagePullSecret) func() ([]kubeletconfig.ImagePullSecret, error) {
	return func() (out []kubeletconfig.ImagePullSecret, err error) {
		for _, s := range list {
			out = append(out, *s)
		}
		return out, nil
	}
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
			if got := m.MustAttemptImagePull(image, "ref", having()); got != want {
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
	if !m.MustAttemptImagePull("app:1", "ref", having(one("a", "x"))) {
		t.Error("a pull is under way, and the image may be used")
	}
	m.RecordImagePulled("app:1", "ref", one("a", "x"))
	for range 2 {
		for _, tc := range []struct {
			name, image string
			has         func() ([]kubeletconfig.ImagePullSecret, error)
			must        bool
		}{
			{"the secret", "app:1", having(one("a", "x")), false},
			{"the same credentials", "app:2", having(one("b", "x")), false},
			{"the secret, with others in it", "app:1", having(one("a", "y")), false},
			{"none", "app:1", having(), true},
			{"another", "app:1", having(one("c", "z")), true},
			{"another name of the image", "other:1", having(one("a", "x")), true},
			{"unreadable", "app:1", func() ([]kubeletconfig.ImagePullSecret, error) { return nil, errors.New("bad") }, true},
		} {
			if got := m.MustAttemptImagePull(tc.image, "ref", tc.has); got != tc.must {
				t.Errorf("%s: %t", tc.name, got)
			}
		}
		m = restarted()
	}
	m.RecordImagePulled("app:1", "ref", nil)
	if m.MustAttemptImagePull("app:1", "ref", having()) {
		t.Error("pulled anonymously, and may not be used")
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
	if !m.MustAttemptImagePull("app:1", "r", having()) || m.MustAttemptImagePull("failed:1", "f", having()) {
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
		m.RecordImagePulled(ref, ref, one("a", "x"))
	}
	m.Prune([]string{"a"}, m.o.Now().Add(time.Minute))
	if !m.MustAttemptImagePull("a", "a", having()) || m.MustAttemptImagePull("b", "b", having()) {
		t.Error("the record of an image that is gone stays, or the other goes")
	}
}
