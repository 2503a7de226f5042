package apiserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/store"
)

// define creates a definition of a kind Widget, and has it looked at.
func define(t *testing.T, l *loop.Loop, s *Server, plural, group string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	obj, err := s.Store().Kinds().Decode(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[1]s, singular: widget, kind: Widget, shortNames: [w]}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, group))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(obj); err != nil {
		t.Fatal(err)
	}
	run(t, l, time.Second)
	return definition(t, s, plural+"."+group)
}

func definition(t *testing.T, s *Server, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	obj, err := s.Get("CustomResourceDefinition", "", name)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*apiextensionsv1.CustomResourceDefinition)
}

func holds(def *apiextensionsv1.CustomResourceDefinition, typ apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	for _, c := range def.Status.Conditions {
		if c.Type == typ {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// TestNamesBecomeFree: a definition whose names another one of the group has waits until that is gone.
func TestNamesBecomeFree(t *testing.T) {
	l, s := loaded(nil)
	defer l.Close()
	if first := define(t, l, s, "widgets", "a.example.com"); !holds(first, apiextensionsv1.Established) {
		t.Fatalf("the first: %+v", first.Status)
	}
	if other := define(t, l, s, "widgets", "b.example.com"); !holds(other, apiextensionsv1.Established) {
		t.Errorf("of another group: %+v", other.Status)
	}
	if second := define(t, l, s, "gadgets", "a.example.com"); holds(second, apiextensionsv1.NamesAccepted) || holds(second, apiextensionsv1.Established) {
		t.Errorf("the second: %+v", second.Status)
	}
	if err := s.Delete("CustomResourceDefinition", "", "widgets.a.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	run(t, l, time.Second)
	if second := definition(t, s, "gadgets.a.example.com"); !holds(second, apiextensionsv1.NamesAccepted) || !holds(second, apiextensionsv1.Established) || second.Status.AcceptedNames.Kind != "Widget" {
		t.Errorf("the second, alone: %+v", second.Status)
	}
}

// TestFinalizerOfADefinition: what nobody could get at any more, since somebody took the finalizer
// off a definition, is told to be gone.
func TestFinalizerOfADefinition(t *testing.T) {
	l, s := loaded(nil)
	defer l.Close()
	def := define(t, l, s, "widgets", "a.example.com")
	k := Kind(def.Name)
	var gone []string
	s.OnChange(func(c Change) {
		if c.Type == watch.Deleted {
			gone = append(gone, c.New.GetName())
		}
	}, k)
	w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "default", "finalizers": []any{"example.com/hold"}}}}
	if _, err := s.Create(w); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete("CustomResourceDefinition", "", def.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	run(t, l, time.Minute)
	if def := definition(t, s, def.Name); def.DeletionTimestamp == nil || len(gone) > 0 {
		t.Fatalf("held by a finalizer: %v, gone %v", def.DeletionTimestamp, gone)
	}
	if err := s.PatchMeta("CustomResourceDefinition", "", def.Name, def.UID, store.MetaPatch{RemoveFinalizer: apiextensionsv1.CustomResourceCleanupFinalizer}); err != nil {
		t.Fatal(err)
	}
	run(t, l, time.Second)
	if strings.Join(gone, " ") != "w" {
		t.Errorf("gone: %v", gone)
	}
	if again := define(t, l, s, "widgets", "a.example.com"); !holds(again, apiextensionsv1.Established) {
		t.Errorf("defined again: %+v", again.Status)
	}
}
