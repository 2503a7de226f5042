package kind

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// View is another group and version in which a kind is served, beside the one that its
// objects are stored in. Its objects are of a type of their own, or, of custom
// resources, say so in their content.
type View struct {
	Group, Version string
	// New returns an empty object of the view.
	New func() Object
	// Defaults fills in what a manifest in this version left out, in place. Nil: there
	// are no defaults before the object is converted.
	Defaults func(Object)
	// FromStored and ToStored convert. What they return may share all below its struct
	// with what they are given.
	FromStored, ToStored func(Object) (Object, error)
	// Labels are the fields that field selectors of the view name, with the row's
	// SelectableFields that they stand for. Nil: they are the row's.
	Labels map[string]string
	// Check is Validate and, given an old object, ValidateUpdate of stored objects that
	// were written through the view. Nil is that of the row.
	Check func(obj, old Object, sub string) field.ErrorList
}

// GroupVersion is the group and version that the view is.
func (v *View) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v.Group, Version: v.Version}
}
