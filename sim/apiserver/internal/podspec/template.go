package podspec

import (
	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateTemplate checks a pod template (ValidatePodTemplateSpec). Ephemeral
// containers are for pods that run. The template's metadata are labels and annotations only: a
// name would be ignored.
func ValidateTemplate(t *v1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	c := checker{spec: &t.Spec}
	errs = append(errs, c.validateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, c.validate(path.Child("spec"))...)
	errs = append(errs, c.validateSameProfiles(t.Annotations, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

// ValidateLongRunning checks a template whose pods are to run for ever, and that
// the selector selects them: a controller would make pods without end that it does
// not see. kind is for the message, and not always the kind's own: a Deployment's
// is that of its ReplicaSets. Deployments, ReplicaSets, StatefulSets and DaemonSets share it.
func ValidateLongRunning(t *v1.PodTemplateSpec, sel *metav1.LabelSelector, kind string, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabelSelector(sel, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))
	tmpl := path.Child("template")
	s, err := metav1.LabelSelectorAsSelector(sel)
	// An empty selector is refused by ValidateSelector, a malformed one above.
	if err == nil && !s.Empty() && !s.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(tmpl.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	errs = append(errs, ValidateTemplate(t, tmpl)...)
	return append(errs, ValidateEndless(t, kind, tmpl)...)
}

// ValidateEndless checks that nothing in a template ends its pods.
func ValidateEndless(t *v1.PodTemplateSpec, kind string, tmpl *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p := t.Spec.RestartPolicy; p != v1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(tmpl.Child("spec", "restartPolicy"), p, []v1.RestartPolicy{v1.RestartPolicyAlways}))
	}
	// A deadline would end what the controller then starts anew.
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(tmpl.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

// ValidateSelector requires a selector that selects something.
func ValidateSelector(sel *metav1.LabelSelector, kind string, path *field.Path) field.ErrorList {
	if sel == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(sel.MatchLabels)+len(sel.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(path, sel, "empty selector is invalid for "+kind)}
	}
	return nil
}
