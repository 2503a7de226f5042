package kind

import (
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// ValidateName checks a name of the kind and returns what is wrong with it.
func (in *Info) ValidateName(name string) []string {
	switch {
	case in.CheckName != nil:
		return in.CheckName(name, false)
	case fields.PlainSubdomain(name): // nearly all are, and the full check costs more than the write
		return nil
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}

// ValidateMeta checks an object's metadata (ValidateObjectMeta).
func (in *Info) ValidateMeta(obj Object) field.ErrorList {
	child := func(name string) *field.Path { return field.NewPath("metadata", name) } // made where something is there to check
	var errs field.ErrorList
	if name := obj.GetName(); name == "" {
		errs = append(errs, field.Required(child("name"), "name or generateName is required"))
	} else if texts := in.ValidateName(name); len(texts) > 0 {
		errs = append(errs, fields.Invalid(child("name"), name, texts)...)
	}
	if in.Namespaced && !fields.PlainLabel(obj.GetNamespace()) {
		errs = append(errs, fields.Invalid(child("namespace"), obj.GetNamespace(), apivalidation.ValidateNamespaceName(obj.GetNamespace(), false))...)
	}
	if m := obj.GetLabels(); len(m) > 0 {
		errs = append(errs, metavalidation.ValidateLabels(m, child("labels"))...)
	}
	if m := obj.GetAnnotations(); len(m) > 0 {
		errs = append(errs, apivalidation.ValidateAnnotations(m, child("annotations"))...)
	}
	if list := obj.GetOwnerReferences(); len(list) > 0 {
		errs = append(errs, apivalidation.ValidateOwnerReferences(list, child("ownerReferences"))...)
	}
	if list := obj.GetFinalizers(); len(list) > 0 {
		errs = append(errs, validateFinalizers(list, child("finalizers"))...)
	}
	return errs
}

func validateFinalizers(list []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range list {
		errs = append(errs, fields.Invalid(path.Index(i), f, validation.IsQualifiedName(f))...)
		if len(validation.IsQualifiedName(f)) == 0 && !strings.Contains(f, "/") && f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			errs = append(errs, field.Invalid(path.Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// ValidateMetaUpdate checks what no update may change of any kind's metadata
// (ValidateObjectMetaUpdate).
func ValidateMetaUpdate(obj, old Object) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateImmutableField(obj.GetUID(), old.GetUID(), path.Child("uid"))
	errs = append(errs, apivalidation.ValidateImmutableField(obj.GetCreationTimestamp(), old.GetCreationTimestamp(), path.Child("creationTimestamp"))...)
	if old.GetDeletionTimestamp() != nil {
		for i, f := range obj.GetFinalizers() {
			if !slices.Contains(old.GetFinalizers(), f) {
				errs = append(errs, field.Forbidden(path.Child("finalizers").Index(i), "no new finalizers can be added if the object is being deleted"))
			}
		}
	}
	return errs
}
