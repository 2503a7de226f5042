package apiserver

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateMeta checks an object's metadata (ValidateObjectMeta).
func validateMeta(obj Object, in kindInfo) field.ErrorList {
	child := func(name string) *field.Path { return field.NewPath("metadata", name) } // of what there is only
	var errs field.ErrorList
	if name := obj.GetName(); name == "" {
		errs = append(errs, field.Required(child("name"), "name or generateName is required"))
	} else if in.kind != KindEvent || !plainSubdomain(name) { // events come in masses, the longest of names
		for _, msg := range nameCheck(in.kind)(name, false) {
			errs = append(errs, field.Invalid(child("name"), name, msg))
		}
	}
	if in.namespaced && !plainLabel(obj.GetNamespace()) {
		for _, msg := range apivalidation.ValidateNamespaceName(obj.GetNamespace(), false) {
			errs = append(errs, field.Invalid(child("namespace"), obj.GetNamespace(), msg))
		}
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
		for _, msg := range validation.IsQualifiedName(f) {
			errs = append(errs, field.Invalid(path.Index(i), f, msg))
		}
		if len(validation.IsQualifiedName(f)) == 0 && !strings.Contains(f, "/") && f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			errs = append(errs, field.Invalid(path.Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// plainLabel recognises a DNS-1123 label, for which the regular expressions of a
// full check, which finds words for what is wrong, would be a waste.
func plainLabel(s string) bool {
	if len(s) == 0 || len(s) > validation.DNS1123LabelMaxLength || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// plainSubdomain is plainLabel for DNS-1123 subdomains.
func plainSubdomain(s string) bool {
	if len(s) > validation.DNS1123SubdomainMaxLength {
		return false
	}
	for more := true; more; {
		var label string
		if label, s, more = strings.Cut(s, "."); !plainLabel(label) {
			return false
		}
	}
	return true
}

// nameCheck is the rule for names of a kind.
func nameCheck(k Kind) func(string, bool) []string {
	switch k {
	case KindNamespace:
		return apivalidation.ValidateNamespaceName
	case KindService:
		return apivalidation.NameIsDNS1035Label
	case KindStatefulSet:
		return apivalidation.NameIsDNSLabel
	}
	return apivalidation.NameIsDNSSubdomain
}

// validateMetaUpdate checks what no update may change.
func validateMetaUpdate(obj, old Object) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateImmutableField(obj.GetUID(), old.GetUID(), path.Child("uid"))
	errs = append(errs, apivalidation.ValidateImmutableField(obj.GetCreationTimestamp(), old.GetCreationTimestamp(), path.Child("creationTimestamp"))...)
	if old.GetDeletionTimestamp() != nil {
		for i, f := range obj.GetFinalizers() {
			if !contains(old.GetFinalizers(), f) {
				errs = append(errs, field.Forbidden(path.Child("finalizers").Index(i), "no new finalizers can be added if the object is being deleted"))
			}
		}
	}
	if pod, ok := obj.(*v1.Pod); ok {
		a, b := pod.Annotations[v1.MirrorPodAnnotationKey], old.GetAnnotations()[v1.MirrorPodAnnotationKey]
		if a != b || isMirror(obj) != isMirror(old) {
			errs = append(errs, field.Forbidden(path.Child("annotations").Key(v1.MirrorPodAnnotationKey), "may not change"))
		}
	}
	return errs
}

func contains[T comparable](list []T, v T) bool {
	for _, o := range list {
		if o == v {
			return true
		}
	}
	return false
}

// oneOf requires v to be one of the values.
func oneOf[T ~string](v T, path *field.Path, values ...T) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if contains(values, v) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, v, values)}
}

// dnsLabel requires v to be a DNS-1123 label.
func dnsLabel(v string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(v) {
		errs = append(errs, field.Invalid(path, v, msg))
	}
	return errs
}

// dnsName requires v to be a DNS-1123 subdomain.
func dnsName(v string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(v) {
		errs = append(errs, field.Invalid(path, v, msg))
	}
	return errs
}

func nonNegative(v int64, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(v, path)
}

func portRange(v int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsValidPortNum(int(v)) {
		errs = append(errs, field.Invalid(path, v, msg))
	}
	return errs
}

// immutable requires a field to stay what it was.
func immutable(now, was any, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(now, was) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, now, apivalidation.FieldImmutableErrorMsg)}
}
