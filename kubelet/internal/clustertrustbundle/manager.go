// Package clustertrustbundle finds whom pods are to trust: the certificates of
// ClusterTrustBundles, without those that are there twice. It mirrors upstream's
// pkg/kubelet/clustertrustbundle, of whose two versions of the API it knows v1beta1.
// The bundles are watched from the first pod on that wants any, if the API has them
// then; a kubelet that found none does not look again.
package clustertrustbundle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

// Client is what a Manager needs of the API.
type Client interface {
	// ServesClusterTrustBundles asks whether the API serves the kind, in v1beta1.
	ServesClusterTrustBundles(ctx context.Context) (bool, error)
	// WatchClusterTrustBundles lists and watches the bundles until stop is called or
	// g dies, and reconnects by itself.
	WatchClusterTrustBundles(g *loop.Group, listed func([]*certificatesv1beta1.ClusterTrustBundle), event func(watch.EventType, *certificatesv1beta1.ClusterTrustBundle)) (stop func())
}

const (
	// cacheTTL is how long what was made of bundles is used without a look at them.
	cacheTTL = 5 * time.Minute
	// syncTimeout is how long the first pod waits for the first list.
	syncTimeout = 10 * time.Second
	// maxSelector is the length of a selector, written out.
	maxSelector = 100 << 10
)

// Options are what a Manager is made of.
type Options struct {
	Group  *loop.Group
	Client Client
	// NodeName tells this node's order of certificates from others'.
	NodeName string
	// CacheSize is how many different sources are remembered: twice maxPods.
	CacheSize int
	Log       func(format string, args ...any)
}

// Manager is a volume.TrustBundles. The order of certificates is drawn when it is made:
// nobody is to rely on one (upstream draws one each time that it looks at the bundles).
type Manager struct {
	o     Options
	l     *loop.Loop
	start uint64 // of this kubelet, for the order
	// found is what became of the look for the kind.
	found   found
	looking *loop.Event // nil: nobody looks
	synced  loop.Event
	bundles map[string]*certificatesv1beta1.ClusterTrustBundle
	cache   map[source]*entry
	nothing volume.TrustAnchors // for sources that may be without any
}

type found uint8

const (
	unknown found = iota
	absent
	served
)

// source is what is asked for, by name or by a signer's and a selector.
type source struct{ name, signer, selector string }

// entry is what was made of bundles, good without a look at them until a time.
type entry struct {
	anchors *volume.TrustAnchors
	until   int64 // ns since the Unix epoch
}

var _ volume.TrustBundles = (*Manager)(nil)

// New returns a Manager, which asks for nothing yet.
func New(o Options) *Manager {
	l := o.Group.Loop()
	return &Manager{o: o, l: l, start: uint64(l.UnixNano()), cache: map[source]*entry{}}
}

// Errors with upstream's texts.
var (
	errStatic    = errors.New("ClusterTrustBundle projection is not supported in static kubelet mode")
	errNotSynced = errors.New("ClusterTrustBundle informer has not yet synced")
	errNeither   = errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	errNoMatch   = errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
)

// Get implements volume.TrustBundles. Who asks first waits for the first list, for ten
// seconds at most.
func (m *Manager) Get(ctx context.Context, s *v1.ClusterTrustBundleProjection) (*volume.TrustAnchors, error) {
	if s.Name == nil && s.SignerName == nil {
		return nil, errNeither
	}
	if err := m.look(ctx); err != nil {
		return nil, fmt.Errorf("failed to ensure informer manager for ClusterTrustBundles: %w", err)
	}
	if m.found == absent {
		return nil, errStatic
	}
	return m.get(s)
}

// Peek implements volume.TrustBundles.
func (m *Manager) Peek(s *v1.ClusterTrustBundleProjection) (*volume.TrustAnchors, bool) {
	if m.found != served || s.Name == nil && s.SignerName == nil {
		return nil, false
	}
	anchors, err := m.get(s)
	return anchors, err == nil
}

// look asks whether the API has the kind, once, and starts to watch it. Others wait until
// that is done.
func (m *Manager) look(ctx context.Context) error {
	for m.looking != nil {
		if err := m.looking.Wait(ctx); err != nil {
			return err
		}
	}
	if m.found != unknown {
		return nil
	}
	done := &loop.Event{}
	m.looking = done
	defer func() {
		m.looking = nil
		done.Fire()
	}()
	has, err := m.o.Client.ServesClusterTrustBundles(ctx)
	if err != nil {
		return fmt.Errorf("failed to determine which informer manager to choose: %w", err)
	}
	if !has {
		m.found = absent
		m.logf("No version of the ClusterTrustBundle API was found, the ClusterTrustBundle informer won't be started")
		return nil
	}
	m.found = served
	m.o.Client.WatchClusterTrustBundles(m.o.Group, m.listed, m.event)
	_, err = loop.Within(ctx, syncTimeout, func(ctx context.Context) (struct{}, error) { return struct{}{}, m.synced.Wait(ctx) })
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		m.logf("ClusterTrustBundle informer not synced, continuing to attempt in background")
	}
	return nil
}

func (m *Manager) logf(format string, args ...any) {
	if m.o.Log != nil {
		m.o.Log(format, args...)
	}
}

// listed takes a new list: what was made of bundles that differ is forgotten.
func (m *Manager) listed(list []*certificatesv1beta1.ClusterTrustBundle) {
	old := m.bundles
	m.bundles = make(map[string]*certificatesv1beta1.ClusterTrustBundle, len(list))
	for _, b := range list {
		m.bundles[b.Name] = b
		if was := old[b.Name]; was == nil || was.ResourceVersion != b.ResourceVersion {
			m.forget(b)
		}
	}
	for name, b := range old { //drydock:unordered each is forgotten by itself
		if m.bundles[name] == nil {
			m.forget(b)
		}
	}
	if !m.synced.Fired() {
		m.synced.Fire()
	}
}

func (m *Manager) event(t watch.EventType, b *certificatesv1beta1.ClusterTrustBundle) {
	if t == watch.Deleted {
		delete(m.bundles, b.Name)
	} else {
		m.bundles[b.Name] = b
	}
	m.forget(b)
}

// forget forgets what a bundle may be part of. As upstream's dropCacheFor it leaves what
// was asked for by name of a bundle that has a signer: that shows when its time is over.
func (m *Manager) forget(b *certificatesv1beta1.ClusterTrustBundle) {
	for s := range m.cache { //drydock:unordered deletes what matches
		if signer := b.Spec.SignerName; signer != "" && s.signer == signer || signer == "" && s.name == b.Name {
			delete(m.cache, s)
		}
	}
}

// get returns what is remembered of a source, or looks at the bundles.
func (m *Manager) get(s *v1.ClusterTrustBundleProjection) (*volume.TrustAnchors, error) {
	if !m.synced.Fired() {
		return nil, errNotSynced
	}
	key, selector, err := sourceOf(s)
	if err != nil {
		return nil, err
	}
	kept := m.cache[key]
	if kept != nil && m.l.UnixNano() < kept.until {
		return kept.anchors, nil
	}
	list := m.selected(key, selector)
	switch {
	case len(list) > 0:
	case ptr.Deref(s.Optional, false):
		return &m.nothing, nil
	case s.Name != nil:
		return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", apierrors.NewNotFound(certificatesv1beta1.Resource("clustertrustbundle"), key.name))
	default:
		return nil, errNoMatch
	}
	anchors := &volume.TrustAnchors{PEM: m.normalize(list)}
	if kept != nil && bytes.Equal(kept.anchors.PEM, anchors.PEM) {
		anchors = kept.anchors
	}
	if kept == nil && len(m.cache) >= m.o.CacheSize {
		clear(m.cache)
	}
	m.cache[key] = &entry{anchors, m.l.Now().Add(cacheTTL).UnixNano()}
	return anchors, nil
}

// sourceOf returns what a projection is remembered by, and its selector: none selects
// nothing, an empty one everything.
func sourceOf(s *v1.ClusterTrustBundleProjection) (source, labels.Selector, error) {
	if s.Name != nil {
		return source{name: *s.Name}, nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if err != nil {
		return source{}, nil, fmt.Errorf("while parsing label selector: %w", err)
	}
	key := source{signer: *s.SignerName, selector: selector.String()}
	if n := len(key.selector); n > maxSelector {
		return source{}, nil, fmt.Errorf("label selector length (%d) is larger than %d", n, maxSelector)
	}
	// Nothing and everything look alike when they are written out.
	if s.LabelSelector == nil {
		key.selector = "none"
	}
	return key, selector, nil
}

// selected returns the bundles of a source.
func (m *Manager) selected(key source, selector labels.Selector) []*certificatesv1beta1.ClusterTrustBundle {
	if selector == nil {
		if b := m.bundles[key.name]; b != nil {
			return []*certificatesv1beta1.ClusterTrustBundle{b}
		}
		return nil
	}
	var out []*certificatesv1beta1.ClusterTrustBundle
	for _, b := range m.bundles { //drydock:unordered normalize sorts what is in them
		if b.Spec.SignerName == key.signer && selector.Matches(labels.Set(b.Labels)) {
			out = append(out, b)
		}
	}
	return out
}

// normalize returns the certificates of bundles, each once, in this kubelet's order.
func (m *Manager) normalize(list []*certificatesv1beta1.ClusterTrustBundle) []byte {
	type anchor struct {
		der  string
		rank uint64
	}
	var all []anchor
	for _, b := range list {
		for block, rest := pem.Decode([]byte(b.Spec.TrustBundle)); block != nil; block, rest = pem.Decode(rest) {
			der := string(block.Bytes)
			all = append(all, anchor{der, m.l.Uint64("clustertrustbundle/order", m.o.NodeName+"/"+der, m.start)})
		}
	}
	slices.SortFunc(all, func(a, b anchor) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.der, b.der)) })
	var out []byte
	for _, a := range slices.Compact(all) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(a.der)})...)
	}
	return out
}
