package kind

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// ValidateName checks a name of the kind and returns what is wrong with it.
func (in *Info) ValidateName(name string) []string {
	if in.CheckName == nil && fields.PlainSubdomain(name) { // nearly all are, and the full check costs more than the write
		return nil
	}
	return in.validateName(name, false)
}

// validateName is ValidateName, of the prefix of a generated name too.
func (in *Info) validateName(name string, prefix bool) []string {
	if in.CheckName != nil {
		return in.CheckName(name, prefix)
	}
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// MetaRules say how the rules of a kind check metadata, beyond what is checked of all
// kinds. An error comes as often as it is found.
type MetaRules uint8

const (
	// MetaOfUpdates checks a new object's, and of an update what may change
	// (ValidateObjectMeta, ValidateObjectMetaUpdate).
	MetaOfUpdates MetaRules = iota
	// MetaAgain checks an update's as a new object's, too.
	MetaAgain
	// MetaAsNew checks an update's as a new object's only, MetaAsNewTwice does so twice.
	MetaAsNew
	MetaAsNewTwice
	// MetaLeft leaves metadata to what is checked of all kinds, or to what the kind's
	// rules call.
	MetaLeft
)

// WithMeta adds to what the kind's own rules have found in a new object what is wrong with
// its metadata.
func (in *Info) WithMeta(obj Object, found field.ErrorList) field.ErrorList {
	if in.Meta == MetaLeft && len(found) > 0 {
		return found
	}
	return append(in.ValidateMeta(obj), found...)
}

// ValidateMeta checks a new object's metadata (ValidateObjectMeta).
func (in *Info) ValidateMeta(obj Object) field.ErrorList {
	var errs field.ErrorList
	if prefix := obj.GetGenerateName(); prefix != "" {
		errs = append(errs, fields.Invalid(metaChild("generateName"), prefix, in.validateName(prefix, true))...)
	}
	if name := obj.GetName(); name == "" {
		errs = append(errs, field.Required(metaChild("name"), "name or generateName is required"))
	} else if texts := in.ValidateName(name); len(texts) > 0 {
		errs = append(errs, fields.Invalid(metaChild("name"), name, texts)...)
	}
	errs = append(errs, in.validateCommonMeta(obj)...)
	return append(errs, in.qualifiedFinalizers(obj)...)
}

// qualifiedFinalizers checks what some kinds alone ask of finalizers.
func (in *Info) qualifiedFinalizers(obj Object) field.ErrorList {
	if in.AnyFinalizer || in.CustomKind != "" {
		return nil
	}
	var errs field.ErrorList
	for i, f := range obj.GetFinalizers() {
		errs = append(errs, qualifiedFinalizer(f, metaChild("finalizers").Index(i))...)
	}
	return errs
}

// ValidateFinalizer checks one finalizer (validateFinalizerName).
func ValidateFinalizer(name string, path *field.Path) field.ErrorList {
	return append(apivalidation.ValidateFinalizerName(name, path), qualifiedFinalizer(name, path)...)
}

// qualifiedFinalizer requires a finalizer that is not Kubernetes' own to say whose it is
// (validateKubeFinalizerName).
func qualifiedFinalizer(name string, path *field.Path) field.ErrorList {
	switch name {
	case metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(v1.FinalizerKubernetes):
		return nil
	}
	if strings.Contains(name, "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")}
}

// KeptMeta is metadata that is kept from the stored object.
type KeptMeta uint8

const (
	KeepsNoMeta KeptMeta = iota
	KeepsLabels
	KeepsOwners
	KeepsMeta // all but what records the write
)

// keptPaths are the fields of KeptMeta, as upstream's GetResetFields names them.
var keptPaths = [][]string{
	KeepsNoMeta: nil,
	KeepsLabels: {"metadata", "labels"},
	KeepsOwners: {"metadata", "ownerReferences"},
	KeepsMeta:   {"metadata"},
}

// Path returns the field that is kept; nil: none.
func (k KeptMeta) Path() []string { return keptPaths[k] }

// keep puts back what is kept.
func (k KeptMeta) keep(obj, old Object) {
	switch k {
	case KeepsLabels:
		obj.SetLabels(old.GetLabels())
	case KeepsOwners:
		obj.SetOwnerReferences(old.GetOwnerReferences())
	case KeepsMeta:
		metav1.ResetObjectMetaForStatus(obj, old)
		obj.SetGenerateName(old.GetGenerateName())
	}
}

// ResetUpdate puts back what an update of old through sub does not reach. It reports
// whether the kind has that subresource.
func (in *Info) ResetUpdate(obj, old Object, sub string) bool {
	if sub == "status" {
		in.StatusKeeps.keep(obj, old)
	}
	return in.PrepareUpdate(obj, old, sub)
}

// metaChild is the path of a field of metadata. It is made only where something is there
// to check: most objects have little.
func metaChild(name string) *field.Path { return field.NewPath("metadata", name) }

// validateCommonMeta checks what has the same rules in metadata of all kinds
// (ValidateObjectMetaAccessor).
func (in *Info) validateCommonMeta(obj Object) field.ErrorList {
	var errs field.ErrorList
	if ns := obj.GetNamespace(); in.Namespaced && !fields.PlainLabel(ns) {
		errs = append(errs, fields.Invalid(metaChild("namespace"), ns, apivalidation.ValidateNamespaceName(ns, false))...)
	}
	if obj.GetGeneration() < 0 {
		errs = append(errs, fields.NonNegative(obj.GetGeneration(), metaChild("generation"))...)
	}
	if list := obj.GetFinalizers(); len(list) > 0 {
		errs = append(errs, apivalidation.ValidateFinalizers(list, metaChild("finalizers"))...)
	}
	return append(errs, validateMetaMaps(obj)...)
}

// validateMetaMaps checks labels, annotations and owners, which updates check once more.
func validateMetaMaps(obj Object) field.ErrorList {
	var errs field.ErrorList
	if m := obj.GetLabels(); len(m) > 0 {
		errs = append(errs, metavalidation.ValidateLabels(m, metaChild("labels"))...)
	}
	if m := obj.GetAnnotations(); len(m) > 0 {
		errs = append(errs, apivalidation.ValidateAnnotations(m, metaChild("annotations"))...)
	}
	if list := obj.GetOwnerReferences(); len(list) > 0 {
		errs = append(errs, apivalidation.ValidateOwnerReferences(list, metaChild("ownerReferences"))...)
	}
	return errs
}

// ValidateMetaUpdate checks metadata that is to take old's place. An error comes as often
// as upstream checks: once for all kinds (BeforeUpdate) and once by the kind's own rules
// (ValidateObjectMetaUpdate), which may be those of a new object, too.
func (in *Info) ValidateMetaUpdate(obj, old Object, sub string) field.ErrorList {
	common, changed := in.validateCommonMeta(obj), validateMetaMaps(obj)
	if old.GetDeletionTimestamp() != nil {
		changed = append(changed, apivalidation.ValidateNoNewFinalizers(obj.GetFinalizers(), old.GetFinalizers(), metaChild("finalizers"))...)
	}
	if obj.GetUID() != old.GetUID() {
		changed = append(changed, fields.Immutable(obj.GetUID(), old.GetUID(), metaChild("uid"))...)
	}
	if now, was := obj.GetDeletionTimestamp(), old.GetDeletionTimestamp(); !now.Equal(was) {
		changed = append(changed, fields.Immutable(now, was, metaChild("deletionTimestamp"))...)
	}
	if now, was := obj.GetDeletionGracePeriodSeconds(), old.GetDeletionGracePeriodSeconds(); !equality.Semantic.DeepEqual(now, was) {
		changed = append(changed, fields.Immutable(now, was, metaChild("deletionGracePeriodSeconds"))...)
	}
	rules := in.Meta
	if sub != "" && rules != MetaLeft {
		rules = MetaOfUpdates
	}
	if len(common)+len(changed) == 0 && len(obj.GetFinalizers()) == 0 && (rules == MetaOfUpdates || obj.GetGenerateName() == "") {
		return nil
	}
	errs := append(common, changed...)
	if rules == MetaOfUpdates || rules == MetaAgain {
		errs = append(append(errs, changed...), in.qualifiedFinalizers(obj)...)
	}
	if rules == MetaAgain || rules == MetaAsNew || rules == MetaAsNewTwice {
		errs = append(errs, in.ValidateMeta(obj)...)
	}
	if rules == MetaAsNewTwice {
		errs = append(errs, in.ValidateMeta(obj)...)
	}
	return errs
}
