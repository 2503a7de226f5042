// Package pullmanager remembers which images the kubelet pulled with which
// credentials, and decides by it whether a pod may use an image that is on the
// machine (gate KubeletEnsureSecretPulledImages). It mirrors upstream's
// pkg/kubelet/images/pullmanager.
//
// Its records are files, so they outlive the kubelet; what was read or written
// once is kept in memory.
package pullmanager

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// maxSecrets is up to how many secrets of a record one that is known by its
// name only is added to it.
const maxSecrets = 100

// FS is what is needed of the node's files.
type FS interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte, perm fs.FileMode) error
	ReadDir(name string) ([]fs.DirEntry, error)
	MkdirAll(path string, perm fs.FileMode) error
	Remove(name string) error
}

// renamer is a FS that can put a file in place at once.
type renamer interface {
	Rename(oldname, newname string) error
}

// Options are what a Manager is made of.
type Options struct {
	FS FS
	// Dir is <root>/image_manager.
	Dir string
	// Policy is imagePullCredentialsVerificationPolicy, Allowlist
	// preloadedImagesVerificationAllowlist.
	Policy    kubeletconfig.ImagePullCredentialsVerificationPolicy
	Allowlist []string
	Now       func() time.Time
}

// Manager keeps the records of one node.
type Manager struct {
	o       Options
	pulling string
	pulled  string
	// intents counts the pulls under way by image.
	intents map[string]int
	// records are those read or written; nil: there is none.
	records map[string]*kubeletconfig.ImagePulledRecord
	// last is the image that was asked for last, and its trimmed name: pods of
	// one kind come together.
	last struct{ image, name string }
}

// New returns a Manager. Nothing is read before the first image is asked for.
func New(o Options) *Manager {
	return &Manager{
		o: o, pulling: o.Dir + "/pulling", pulled: o.Dir + "/pulled",
		intents: map[string]int{}, records: map[string]*kubeletconfig.ImagePulledRecord{},
	}
}

// Initialize turns the intents that a former kubelet left into records of
// pulls, if their images are there now: they may have been pulled by it.
func (m *Manager) Initialize(images []*runtimeapi.Image) {
	entries, err := m.o.FS.ReadDir(m.pulling)
	if err != nil {
		return
	}
	for _, e := range entries {
		var intent kubeletconfig.ImagePullIntent
		name := m.pulling + "/" + e.Name()
		data, err := m.o.FS.ReadFile(name)
		if err != nil || json.Unmarshal(data, &intent) != nil {
			continue
		}
		for _, im := range images {
			if slices.Contains(im.RepoTags, intent.Image) || slices.Contains(im.RepoDigests, intent.Image) {
				m.record(intent.Image, im.Id, nil)
			}
		}
		_ = m.o.FS.Remove(name)
	}
}

// RecordPullIntent notes that the image is about to be pulled.
func (m *Manager) RecordPullIntent(image string) error {
	m.intents[image]++
	if m.intents[image] > 1 {
		return nil
	}
	err := m.write(m.pulling, image, &kubeletconfig.ImagePullIntent{TypeMeta: typeMeta("ImagePullIntent"), Image: image})
	if err != nil {
		m.dropIntent(image)
	}
	return err
}

// RecordImagePulled notes that the image was pulled, as what the runtime calls
// ref, and what it was pulled with: one secret, one service account, or what all pods
// of the node may use.
func (m *Manager) RecordImagePulled(image, ref string, with *kubeletconfig.ImagePullCredentials) {
	m.record(image, ref, with)
	m.dropIntent(image)
}

// RecordImagePullFailed notes that the image was not pulled.
func (m *Manager) RecordImagePullFailed(image string) { m.dropIntent(image) }

// dropIntent forgets one pull of an image; the record goes with the last of
// those that run side by side.
func (m *Manager) dropIntent(image string) {
	if m.intents[image]--; m.intents[image] <= 0 {
		delete(m.intents, image)
		_ = m.o.FS.Remove(m.pulling + "/" + fileName(image))
	}
}

// MustAttemptImagePull reports whether a pod has to pull an image that is there,
// as ref, to show that it may use it. credentials gives the pod's pull secrets for
// the image, and the service account that a plugin got a token of, if they are asked
// for; its error is returned.
func (m *Manager) MustAttemptImagePull(image, ref string, credentials func() ([]kubeletconfig.ImagePullSecret, *kubeletconfig.ImagePullServiceAccount, error)) (bool, error) {
	if ref == "" {
		return true, nil
	}
	name := m.trimmed(image)
	if !m.mustVerify(image, name, ref) {
		return false, nil
	}
	rec, err := m.read(ref)
	if rec == nil || err != nil {
		return true, nil
	}
	creds, ok := rec.CredentialMapping[name]
	switch {
	case !ok:
		return true, nil
	case creds.NodePodsAccessible:
		return false, nil
	case len(creds.KubernetesSecrets)+len(creds.KubernetesServiceAccounts) == 0:
		return true, nil
	}
	own, account, err := credentials()
	if err != nil {
		return true, err
	}
	for _, s := range own {
		for _, known := range creds.KubernetesSecrets {
			same := known.UID == s.UID && known.Namespace == s.Namespace && known.Name == s.Name
			if known.CredentialHash != s.CredentialHash && !same {
				continue
			}
			if known != s && len(creds.KubernetesSecrets) < maxSecrets {
				m.record(image, ref, &kubeletconfig.ImagePullCredentials{KubernetesSecrets: []kubeletconfig.ImagePullSecret{s}})
			}
			return false, nil
		}
	}
	return account == nil || !slices.Contains(creds.KubernetesServiceAccounts, *account), nil
}

// mustVerify is the policy's word on an image.
func (m *Manager) mustVerify(image, name, ref string) bool {
	switch m.o.Policy {
	case kubeletconfig.NeverVerify:
		return false
	case kubeletconfig.NeverVerifyAllowlistedImages:
		return !slices.ContainsFunc(m.o.Allowlist, func(entry string) bool {
			prefix, glob := strings.CutSuffix(entry, "*")
			return entry == name || glob && strings.HasSuffix(prefix, "/") && strings.HasPrefix(name, prefix)
		})
	case kubeletconfig.AlwaysVerify:
		return true
	}
	// Only what a kubelet pulled.
	if rec, err := m.read(ref); rec != nil || err != nil {
		return true
	}
	return m.intents[image] > 0
}

// record adds credentials to the record of ref; nil for none.
func (m *Manager) record(image, ref string, creds *kubeletconfig.ImagePullCredentials) {
	old, err := m.read(ref)
	rec := &kubeletconfig.ImagePulledRecord{TypeMeta: typeMeta("ImagePulledRecord"), ImageRef: ref, LastUpdatedTime: metav1.Time{Time: m.o.Now()}}
	name := m.trimmed(image)
	if old != nil && err == nil {
		if creds == nil || known(old.CredentialMapping[name], creds) {
			return
		}
		rec.CredentialMapping = make(map[string]kubeletconfig.ImagePullCredentials, len(old.CredentialMapping)+1)
		maps.Copy(rec.CredentialMapping, old.CredentialMapping)
	}
	if creds != nil {
		if rec.CredentialMapping == nil {
			rec.CredentialMapping = map[string]kubeletconfig.ImagePullCredentials{}
		}
		rec.CredentialMapping[name] = merged(rec.CredentialMapping[name], creds)
	}
	if m.write(m.pulled, ref, rec) == nil {
		m.records[ref] = rec
	}
}

// known reports whether old already says what add does.
func known(old kubeletconfig.ImagePullCredentials, add *kubeletconfig.ImagePullCredentials) bool {
	if old.NodePodsAccessible {
		return true
	}
	if add.NodePodsAccessible {
		return false
	}
	return !slices.ContainsFunc(add.KubernetesSecrets, func(s kubeletconfig.ImagePullSecret) bool {
		return !slices.Contains(old.KubernetesSecrets, s)
	}) && !slices.ContainsFunc(add.KubernetesServiceAccounts, func(a kubeletconfig.ImagePullServiceAccount) bool {
		return !slices.Contains(old.KubernetesServiceAccounts, a)
	})
}

// merged adds the credentials that pulled an image to those that had before.
// What every pod of the node may use makes single ones needless.
func merged(old kubeletconfig.ImagePullCredentials, add *kubeletconfig.ImagePullCredentials) kubeletconfig.ImagePullCredentials {
	if add.NodePodsAccessible {
		return kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
	}
	out := old
	out.KubernetesSecrets = nil
	for _, s := range old.KubernetesSecrets {
		replaced := slices.ContainsFunc(add.KubernetesSecrets, func(n kubeletconfig.ImagePullSecret) bool {
			return n.UID == s.UID && n.Namespace == s.Namespace && n.Name == s.Name
		})
		if !replaced {
			out.KubernetesSecrets = append(out.KubernetesSecrets, s)
		}
	}
	out.KubernetesSecrets = append(out.KubernetesSecrets, add.KubernetesSecrets...)
	for _, a := range add.KubernetesServiceAccounts {
		// Upstream sorts them, so that the file does not depend on who came first.
		i, found := slices.BinarySearchFunc(out.KubernetesServiceAccounts, a, func(a, b kubeletconfig.ImagePullServiceAccount) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
		})
		if !found {
			out.KubernetesServiceAccounts = slices.Insert(slices.Clone(out.KubernetesServiceAccounts), i, a)
		}
	}
	return out
}

// Prune removes the records that were last changed before since and whose
// image is not among those that are there.
func (m *Manager) Prune(refs []string, since time.Time) {
	entries, err := m.o.FS.ReadDir(m.pulled)
	if err != nil {
		return
	}
	for _, e := range entries {
		var rec kubeletconfig.ImagePulledRecord
		name := m.pulled + "/" + e.Name()
		data, err := m.o.FS.ReadFile(name)
		if err != nil || json.Unmarshal(data, &rec) != nil || !rec.LastUpdatedTime.Time.Before(since) || slices.Contains(refs, rec.ImageRef) {
			continue
		}
		if m.o.FS.Remove(name) == nil {
			delete(m.records, rec.ImageRef)
		}
	}
}

// read returns the record of an image; nil if there is none.
func (m *Manager) read(ref string) (*kubeletconfig.ImagePulledRecord, error) {
	if rec, ok := m.records[ref]; ok {
		return rec, nil
	}
	data, err := m.o.FS.ReadFile(m.pulled + "/" + fileName(ref))
	if err != nil {
		m.records[ref] = nil // only this manager writes them
		return nil, nil
	}
	rec := &kubeletconfig.ImagePulledRecord{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("image pull record of %s: %w", ref, err)
	}
	m.records[ref] = rec
	return rec, nil
}

// write keeps a record. It is renamed into place where that can be done, so
// that no kubelet finds half of one.
func (m *Manager) write(dir, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := m.o.FS.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := dir + "/" + fileName(key)
	r, ok := m.o.FS.(renamer)
	if !ok {
		return m.o.FS.WriteFile(file, data, 0o600)
	}
	if err := m.o.FS.WriteFile(file+".tmp", data, 0o600); err != nil {
		return err
	}
	return r.Rename(file+".tmp", file)
}

// typeMeta is a record's kind, by which upstream's kubelet can read it.
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: kubeletconfig.SchemeGroupVersion.String()}
}

// fileName is a record's file: a hash, since images' names have slashes.
func fileName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// trimmed is an image's name without tag and digest.
func (m *Manager) trimmed(image string) string {
	if m.last.image == image {
		return m.last.name
	}
	name := image
	if named, err := reference.ParseNormalizedNamed(image); err == nil {
		name = named.Name()
	}
	m.last.image, m.last.name = image, name
	return name
}
