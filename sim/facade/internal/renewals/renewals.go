// Package renewals knows updates that leave as it was who manages which fields.
//
// Most requests of controllers renew leases: one manager gives fields that it manages already,
// and nobody else does, other values. apimachinery's managedfields compares the two objects
// field by field through their schema to find that; this package finds it by their Go types,
// and leaves all else to the library. It is a layer that can be taken off.
package renewals

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// Sets are the sets of fields that managers were seen to manage, by how they are
// written. They belong to the API's loop.
type Sets map[string]*fieldpath.Set

// maxSets is how many are kept: objects of one kind and manager share one.
const maxSets = 1000

// of returns a set; nil: it can't be read.
func (m Sets) of(fields *metav1.FieldsV1) *fieldpath.Set {
	text := fields.GetRawString()
	if set, ok := m[text]; ok {
		return set
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(strings.NewReader(text)); err != nil {
		set = nil
	}
	if len(m) >= maxSets {
		clear(m)
	}
	m[text] = set
	return set
}

// Renewed returns what an update makes of an object, with its managed fields, if it only
// gives other values to fields that its manager alone manages; nil: it may do more. The
// time of its managed fields is zero if something has changed: the caller's to set.
func (m Sets) Renewed(old, sent runtime.Object, manager, apiVersion string) runtime.Object {
	was, ok := old.(apiserver.Object)
	if !ok || len(was.GetManagedFields()) != 1 {
		return nil
	}
	entry := was.GetManagedFields()[0]
	if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.APIVersion != apiVersion || entry.Subresource != "" || entry.FieldsV1 == nil {
		return nil
	}
	is, ok := sent.(apiserver.Object)
	if !ok || !sameMeta(was, is) {
		return nil
	}
	d := difference{}
	if !d.ofObjects(reflect.ValueOf(old), reflect.ValueOf(sent)) {
		return nil
	}
	set := m.of(entry.FieldsV1)
	for _, path := range d.paths {
		if set == nil || !set.Has(path) {
			return nil
		}
	}
	out := sent.DeepCopyObject().(apiserver.Object)
	if len(d.paths) > 0 {
		entry.Time = &metav1.Time{}
	}
	out.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	return out
}

// sameMeta reports whether two objects have the same metadata but for what each write
// changes, and the sender has not meddled with managed fields.
func sameMeta(was, is apiserver.Object) bool {
	a, aok := was.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	b, bok := is.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	if !aok || !bok {
		return false
	}
	if b.ManagedFields != nil && !equality.Semantic.DeepEqual(a.ManagedFields, b.ManagedFields) {
		return false
	}
	x, y := *a, *b
	x.ManagedFields, y.ManagedFields = nil, nil
	x.ResourceVersion, y.ResourceVersion = "", ""
	return equality.Semantic.DeepEqual(&x, &y)
}

// difference is in which fields two objects differ.
type difference struct{ paths []fieldpath.Path }

// ofObjects compares two pointers to objects but for their type and metadata. It reports
// false if they differ in more than the values of plain fields.
func (d *difference) ofObjects(a, b reflect.Value) bool {
	if a.Type() != b.Type() || a.Kind() != reflect.Pointer || a.Elem().Kind() != reflect.Struct {
		return false
	}
	return d.ofStructs(a.Elem(), b.Elem(), nil)
}

func (d *difference) ofStructs(a, b reflect.Value, at fieldpath.Path) bool {
	t := a.Type()
	for i := range t.NumField() {
		field := t.Field(i)
		if len(at) == 0 && (field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Type == reflect.TypeFor[metav1.ObjectMeta]()) {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" || !field.IsExported() {
			return false // written in a way of its own
		}
		if !d.ofFields(a.Field(i), b.Field(i), append(at[:len(at):len(at)], fieldpath.PathElement{FieldName: &name})) {
			return false
		}
	}
	return true
}

// ofFields compares two values of a field.
func (d *difference) ofFields(a, b reflect.Value, at fieldpath.Path) bool {
	if a.IsZero() != b.IsZero() { // it comes or goes
		return false
	}
	if a.IsZero() {
		return true
	}
	if a.Kind() == reflect.Pointer {
		a, b = a.Elem(), b.Elem()
	}
	switch {
	case oneField(a):
		if a.Kind() == reflect.Struct && a.IsZero() != b.IsZero() { // a time that is not said
			return false
		}
		if !equality.Semantic.DeepEqual(a.Interface(), b.Interface()) {
			d.paths = append(d.paths, at)
		}
		return true
	case a.Kind() == reflect.Struct:
		return d.ofStructs(a, b, at)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface()) // lists and maps have rules of their own
}

// oneField reports whether a value is one field, whatever it holds.
func oneField(v reflect.Value) bool {
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, metav1.Duration:
		return true
	}
	return v.Kind() == reflect.String || v.Kind() == reflect.Bool || v.CanInt() || v.CanUint() || v.CanFloat()
}
