package value

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drydock-sim/drydock/scenarios/internal/decode"
)

// Notice is what a document's reader finds out that is no mistake and that its author
// should know. The reader's Found gets it.
type Notice string

// Undefined is a custom resource as the reader's Found gets it: its definition may be
// anywhere in the document, or nowhere.
type Undefined struct{ *unstructured.Unstructured }

// Dropped are the fields of a manifest that a server wrote and that were left out.
type Dropped []string

// serverFields are the fields of metadata that the API writes, and how each is taken
// off. One that a manifest has without a value is none.
var serverFields = []struct {
	name string
	has  func(metav1.Object) bool
	drop func(metav1.Object)
}{
	{"resourceVersion", func(m metav1.Object) bool { return m.GetResourceVersion() != "" }, func(m metav1.Object) { m.SetResourceVersion("") }},
	{"uid", func(m metav1.Object) bool { return m.GetUID() != "" }, func(m metav1.Object) { m.SetUID("") }},
	{"generation", func(m metav1.Object) bool { return m.GetGeneration() != 0 }, func(m metav1.Object) { m.SetGeneration(0) }},
	{"selfLink", func(m metav1.Object) bool { return m.GetSelfLink() != "" }, func(m metav1.Object) { m.SetSelfLink("") }},
	{"creationTimestamp", func(m metav1.Object) bool { return m.GetCreationTimestamp() != metav1.Time{} }, func(m metav1.Object) { m.SetCreationTimestamp(metav1.Time{}) }},
	{"deletionTimestamp", func(m metav1.Object) bool { return m.GetDeletionTimestamp() != nil }, func(m metav1.Object) { m.SetDeletionTimestamp(nil) }},
	{"managedFields", func(m metav1.Object) bool { return len(m.GetManagedFields()) > 0 }, func(m metav1.Object) { m.SetManagedFields(nil) }},
}

// dropServers takes off an object what the API writes and an object that was read from
// one has, and tells the reader.
func dropServers(at decode.Place, obj runtime.Object) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	var out Dropped
	for _, f := range serverFields {
		if f.has(m) {
			f.drop(m)
			out = append(out, "metadata."+f.name)
		}
	}
	if dropStatus(obj) {
		out = append(out, "status")
	}
	if len(out) > 0 {
		at.Found(out)
	}
}

// dropStatus takes the status off an object that has one. A node's is what its
// simulated machine would tell.
func dropStatus(obj runtime.Object) bool {
	switch o := obj.(type) {
	case *v1.Node:
		return false
	case *unstructured.Unstructured:
		_, has := o.Object["status"]
		delete(o.Object, "status")
		return has
	}
	f := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !f.IsValid() || f.IsZero() {
		return false
	}
	// "status: {}" and what is like it, such as "loadBalancer: {}", says nothing.
	empty := isEmpty(f)
	f.SetZero()
	return !empty
}

// isEmpty reports whether a value says nothing, however deep.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !isEmpty(v.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}
