package facade

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// TestAPIServices: what is served is registered, and comes and goes with definitions.
func TestAPIServices(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		clients := dynamic.NewForConfigOrDie(config)
		services := clients.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
		names := func() []string {
			list, err := services.List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for i := range list.Items {
				out = append(out, list.Items[i].GetName())
			}
			return out
		}
		got := names()
		for _, want := range []string{"v1.", "v1.apps", "v2.autoscaling", "v1.autoscaling", "v1.events.k8s.io", "v1.authorization.k8s.io"} {
			if !slices.Contains(got, want) {
				t.Errorf("no %s in %v", want, got)
			}
		}
		if slices.Contains(got, "v1.apiregistration.k8s.io") || slices.Contains(got, "v1.example.com") {
			t.Errorf("too much: %v", got)
		}
		def := &unstructured.Unstructured{}
		if err := def.UnmarshalJSON([]byte(widgets)); err != nil {
			t.Fatal(err)
		}
		defs := clients.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		if _, err := defs.Create(t.Context(), def, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for !slices.Contains(names(), "v1.example.com") {
		}
		one, err := services.Get(t.Context(), "v1.example.com", metav1.GetOptions{})
		if conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions"); err != nil || len(conditions) != 1 || one.GetLabels()[autoManaged] != "true" {
			t.Errorf("%v, %v", one, err)
		}
		if err := defs.Delete(t.Context(), def.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for slices.Contains(names(), "v1.example.com") {
		}
	})
}
