package clustertrustbundle

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/kubelet/internal/volume"
)

type bundle = certificatesv1beta1.ClusterTrustBundle

type client struct {
	served bool
	err    error
	asked  int
	list   []*bundle
	late   time.Duration
	event  func(watch.EventType, *bundle)
}

func (c *client) ServesClusterTrustBundles(context.Context) (bool, error) {
	c.asked++
	return c.served, c.err
}

func (c *client) WatchClusterTrustBundles(g *loop.Group, listed func([]*bundle), event func(watch.EventType, *bundle)) func() {
	c.event = event
	g.After(c.late, func() { listed(c.list) })
	return func() {}
}

// of is a bundle with one certificate for each word.
func of(name, signer, label string, words ...string) *bundle {
	b := &bundle{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": label}}, Spec: certificatesv1beta1.ClusterTrustBundleSpec{SignerName: signer}}
	for _, w := range words {
		b.Spec.TrustBundle += "noise\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(w)}))
	}
	return b
}

// words are those in a file, in its order.
func words(a *volume.TrustAnchors) string {
	var out []string
	for block, rest := pem.Decode(a.PEM); block != nil; block, rest = pem.Decode(rest) {
		out = append(out, string(block.Bytes))
	}
	return strings.Join(out, " ")
}

func sorted(s string) string {
	list := strings.Fields(s)
	slices.Sort(list)
	return strings.Join(list, " ")
}

type bed struct {
	t *testing.T
	l *loop.Loop
	c *client
	m *Manager
}

func newBed(t *testing.T, c *client) *bed {
	l := loop.New(loop.Options{Name: "n", Seed: 3})
	t.Cleanup(l.Close)
	return &bed{t, l, c, New(Options{Group: l.NewGroup("kubelet"), Client: c, NodeName: "n", CacheSize: 2})}
}

// get returns the words of a source, or the error.
func (b *bed) get(s *v1.ClusterTrustBundleProjection) (out string) {
	b.t.Helper()
	task := b.l.Root().Go("test", func(ctx context.Context) {
		a, err := b.m.Get(ctx, s)
		if err != nil {
			out = err.Error()
			return
		}
		out = words(a)
		if peeked, ok := b.m.Peek(s); !ok || peeked != a {
			b.t.Errorf("peeked another: %v, %t", peeked, ok)
		}
	})
	if err := b.l.RunUntil(b.l.Now().Add(11 * time.Second)); err != nil || !task.Done() {
		b.t.Fatal(err, task.Done())
	}
	return out
}

func named(name string, optional bool) *v1.ClusterTrustBundleProjection {
	return &v1.ClusterTrustBundleProjection{Name: &name, Optional: &optional}
}

func signed(signer string, selector *metav1.LabelSelector, optional bool) *v1.ClusterTrustBundleProjection {
	return &v1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: selector, Optional: &optional}
}

func TestGet(t *testing.T) {
	every, some := &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"l": "x"}}
	for _, tc := range []struct {
		name   string
		source *v1.ClusterTrustBundleProjection
		want   string // sorted, or an error
	}{
		{"by name", named("plain", false), "a b"},
		{"absent", named("none", false), `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "none" not found`},
		{"absent and optional", named("none", true), ""},
		{"of a signer, each once", signed("e.com/s", every, false), "b c d"},
		{"selected", signed("e.com/s", some, false), "b c"},
		{"no selector selects nothing", signed("e.com/s", nil, false), "combination of signerName and labelSelector matched zero ClusterTrustBundles"},
		{"nothing and optional", signed("e.com/other", every, true), ""},
		{"bad selector", signed("e.com/s", &metav1.LabelSelector{MatchLabels: map[string]string{"": ""}}, true), "while parsing label selector: "},
		{"neither", &v1.ClusterTrustBundleProjection{}, "ClusterTrustBundle projection requires either name or signerName to be set"},
	} {
		b := newBed(t, &client{served: true, list: []*bundle{of("plain", "", "", "a", "b", "a"), of("e.com:s:1", "e.com/s", "x", "b", "c"), of("e.com:s:2", "e.com/s", "y", "c", "d")}})
		got := b.get(tc.source)
		if got != tc.want && sorted(got) != tc.want && (tc.name != "bad selector" || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// What changes shows at once, but for a bundle of a signer's that is asked for by name:
// that shows when five minutes are over.
func TestChanges(t *testing.T) {
	b := newBed(t, &client{served: true, list: []*bundle{of("plain", "", "", "a"), of("e.com:s:1", "e.com/s", "", "a")}})
	plain, owned, by := named("plain", false), named("e.com:s:1", false), signed("e.com/s", &metav1.LabelSelector{}, false)
	check := func(when string, s *v1.ClusterTrustBundleProjection, want string) {
		t.Helper()
		if got := b.get(s); got != want {
			t.Errorf("%s: %q, not %q", when, got, want)
		}
	}
	check("first", plain, "a")
	before, _ := b.m.Peek(plain)
	b.c.event(watch.Modified, of("plain", "", "", "z"))
	check("changed", plain, "z")
	if now, _ := b.m.Peek(plain); now == before {
		t.Error("the same input for another content")
	}
	b.c.event(watch.Deleted, of("plain", "", "", "z"))
	check("deleted", plain, `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "plain" not found`)
	check("by signer", by, "a")
	check("by name", owned, "a")
	b.c.event(watch.Modified, of("e.com:s:1", "e.com/s", "", "z"))
	check("by signer, changed", by, "z")
	check("by name, stale", owned, "a")
	stale, _ := b.m.Peek(by)
	if err := b.l.RunUntil(b.l.Now().Add(cacheTTL)); err != nil {
		t.Fatal(err)
	}
	check("by name, changed", owned, "z")
	if now, _ := b.m.Peek(by); now != stale {
		t.Error("another input for the same content")
	}
}

// The order is a kubelet's for as long as it runs.
func TestOrder(t *testing.T) {
	list := strings.Fields("a b c d e f g h i j")
	b := newBed(t, &client{served: true, list: []*bundle{of("plain", "", "", list...)}})
	first := b.get(named("plain", false))
	if sorted(first) != strings.Join(list, " ") || first == strings.Join(list, " ") {
		t.Errorf("the order is %q", first)
	}
	if err := b.l.RunUntil(b.l.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if again := b.get(named("plain", false)); again != first {
		t.Errorf("then %q", again)
	}
	other := New(Options{Group: b.l.NewGroup("kubelet"), Client: b.c, NodeName: "n", CacheSize: 2})
	if bytes.Equal(other.normalize(b.c.list), []byte(first)) || words(&volume.TrustAnchors{PEM: other.normalize(b.c.list)}) == first {
		t.Error("the next kubelet has the same order")
	}
}

// An API without the kind is asked once; one that gave no answer is asked again.
func TestLook(t *testing.T) {
	b := newBed(t, &client{err: errors.New("down")})
	if got := b.get(named("a", true)); got != "failed to ensure informer manager for ClusterTrustBundles: failed to determine which informer manager to choose: down" {
		t.Error(got)
	}
	b.c.err = nil
	for range 2 {
		if got := b.get(named("a", true)); got != "ClusterTrustBundle projection is not supported in static kubelet mode" || b.c.asked != 2 {
			t.Error(got, b.c.asked)
		}
	}
	late := newBed(t, &client{served: true, late: 15 * time.Second})
	if got := late.get(named("a", true)); got != "ClusterTrustBundle informer has not yet synced" {
		t.Error(got)
	}
	if got := late.get(named("a", false)); !strings.HasSuffix(got, "not yet synced") {
		t.Error(got)
	}
	if got := late.get(named("a", false)); !strings.HasSuffix(got, "not found") {
		t.Error(got)
	}
}
