package up

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func namespaceNamed(name string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// client is what controls a cluster.
func client(t *testing.T, config *rest.Config) *Client {
	t.Helper()
	c, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestControl steps a cluster through a partition, by which a node comes to be unknown.
func TestControl(t *testing.T) {
	c := start(t, Options{Nodes: 3, Paused: true})
	control, ctx := client(t, c.Config()), t.Context()
	nodes := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().Nodes()
	ready := func(node string) v1.ConditionStatus {
		t.Helper()
		n, err := nodes.Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == v1.NodeReady {
				return c.Status
			}
		}
		return ""
	}
	before, err := control.Status(ctx)
	if err != nil || !before.Paused || before.Nodes != 3 || before.Ready != 0 {
		t.Fatalf("%+v %v", before, err)
	}
	s, err := control.Step(ctx, 30*time.Second)
	if err != nil || s.Ready != 3 || s.Now.Sub(before.Now) < 30*time.Second-10*time.Millisecond || s.Now.Sub(before.Now) > 30*time.Second {
		t.Fatalf("%+v %v", s, err)
	}
	if _, err := control.Do(ctx, `{fault: {node: node-1, partition: {for: 2m}}}`); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		step time.Duration
		want v1.ConditionStatus
	}{{30 * time.Second, v1.ConditionTrue}, {time.Minute, v1.ConditionUnknown}, {time.Minute, v1.ConditionTrue}} {
		if _, err := control.Step(ctx, tt.step); err != nil {
			t.Fatal(err)
		}
		if got := ready("node-1"); got != tt.want {
			t.Errorf("after %v: Ready is %s, want %s", tt.step, got, tt.want)
		}
	}
	if s, err := control.Resume(ctx); err != nil || s.Paused {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := control.Pause(ctx); err != nil || !s.Paused {
		t.Errorf("%+v %v", s, err)
	}
}

func TestControlRefuses(t *testing.T) {
	c := start(t, Options{Nodes: 2})
	ctx, control := t.Context(), client(t, c.Config())
	for _, tt := range []struct{ action, want string }{
		{"", "want one action"},
		{"[]", "want one action"},
		{"{}", "says nothing that happens"},
		{"{powerCut: {node: nod-0}}", `did you mean "node-0"?`},
		{"{powerCut: {node: node-0}, cordon: {node: node-0}}", "an action is one thing"},
		{"{at: 1s, cordon: {node: node-0}}", "at"},
		{"{fault: {node: node-0}}", "needs exactly one of"},
		{"{apply: {files: [/etc/passwd]}}", "there are no files here"},
		{"{delete: {kind: Pod, name: nobody}}", "not found"},
		{strings.Repeat("[", 100000), "action"},
		{strings.Repeat("x", maxControlBytes+1), "too large"},
	} {
		if _, err := control.Do(ctx, tt.action); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: %v, want %s", tt.action, err, tt.want)
		}
	}
	config := c.Config()
	config.BearerToken = "wrong"
	if _, err := client(t, config).Pause(ctx); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("a wrong token: %v", err)
	}
	config = c.Config()
	config.Impersonate.UserName = "bob"
	if _, err := client(t, config).Pause(ctx); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("another user: %v", err)
	}
	if s, err := control.Status(ctx); err != nil || s.Paused {
		t.Errorf("%+v %v", s, err)
	}
}

// TestForget has lists and watches go on from versions that the API has forgotten: of
// a kind that is there from the beginning, and of one that came later, of which what
// was before is gone with a compaction.
func TestForget(t *testing.T) {
	c := start(t, Options{})
	ctx, control := t.Context(), client(t, c.Config())
	clients := dynamic.NewForConfigOrDie(c.Config())
	definitions := clients.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	widgets := clients.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	namespaces := clients.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	first, err := namespaces.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err = widgets.List(ctx, metav1.ListOptions{}); err == nil || time.Since(began) > 20*time.Second {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name                string
		do                  func(context.Context) (*Status, error)
		namespaces, widgets bool // are known as of the first list
	}{
		{"nothing", control.Status, true, true},
		{"compact", control.Compact, true, false},
		{"forget", control.Forget, false, false},
	} {
		if _, err := tt.do(ctx); err != nil {
			t.Fatal(err)
		}
		exact := metav1.ListOptions{ResourceVersion: first.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		for _, k := range []struct {
			kind  string
			of    dynamic.ResourceInterface
			known bool
		}{{"namespaces", namespaces, tt.namespaces}, {"widgets", widgets, tt.widgets}} {
			if _, err := k.of.List(ctx, exact); k.known && err != nil || !k.known && !apierrors.IsResourceExpired(err) {
				t.Errorf("%s: %s as they were: %v", tt.name, k.kind, err)
			}
		}
	}
}
