package policy

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Input is a request as expressions see it. The objects are not written to.
type Input struct {
	Kind        *kind.Info
	Subresource string
	Operation   admission.Operation
	Name        string
	// Namespace is the one that the object is in; nil: it is in none.
	Namespace *v1.Namespace
	Object    kind.Object // nil: it is deleted
	Old       kind.Object // nil: it is new
	Options   runtime.Object
	DryRun    bool
	User      user.Info
}

// attributes are the request as the library has it.
func (in *Input) attributes(obj kind.Object) *admission.VersionedAttributes {
	gvk, asked := in.Kind.GroupVersionKind(), in.Kind.Asked()
	namespace := ""
	switch {
	case in.Namespace != nil:
		namespace = in.Namespace.Name
	case in.isNamespace(): // a namespace is in itself
		namespace = in.Name
	}
	var object, old runtime.Object
	if obj != nil {
		object = obj
	}
	if in.Old != nil {
		old = in.Old
	}
	a := admission.NewAttributesRecord(object, old, gvk, namespace, in.Name, asked.GroupVersionKind().GroupVersion().WithResource(asked.Resource), in.Subresource, in.Operation, in.Options, in.DryRun, in.User)
	return &admission.VersionedAttributes{Attributes: a, VersionedObject: object, VersionedOldObject: old, VersionedKind: gvk}
}

// Review is the request as webhooks are asked about it, without its objects.
func (in *Input) Review() *admissionv1.AdmissionReview {
	a := in.attributes(in.Object)
	req := plugincel.CreateAdmissionRequest(a.Attributes, metav1.GroupVersionResource(a.GetResource()), metav1.GroupVersionKind(a.VersionedKind))
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req}
}

func (in *Input) isNamespace() bool { return in.Kind.Group == "" && in.Kind.Resource == "namespaces" }

// Matches reports whether a MatchResources is for a request; nil is for all.
func Matches(m *admissionregistrationv1.MatchResources, in *Input) (bool, error) {
	if m == nil {
		return true, nil
	}
	named := func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return MatchesRule(&r.RuleWithOperations, in) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, in.Name))
	}
	if slices.ContainsFunc(m.ExcludeResourceRules, named) || len(m.ResourceRules) > 0 && !slices.ContainsFunc(m.ResourceRules, named) {
		return false, nil
	}
	return MatchesSelectors(m.NamespaceSelector, m.ObjectSelector, in)
}

// MatchesSelectors reports whether the labels of a request's namespace and of its object
// are selected. What is in no namespace has a namespace's every label; of an update the
// old object may be selected, too.
func MatchesSelectors(namespace, object *metav1.LabelSelector, in *Input) (bool, error) {
	ns, err := metav1.LabelSelectorAsSelector(namespace)
	if err != nil {
		return false, fmt.Errorf("namespace selector: %w", err)
	}
	obj, err := metav1.LabelSelectorAsSelector(object)
	if err != nil {
		return false, fmt.Errorf("object selector: %w", err)
	}
	if l, ok := in.namespaceLabels(); ok && !ns.Matches(l) {
		return false, nil
	}
	return obj.Empty() || in.Object != nil && obj.Matches(labels.Set(in.Object.GetLabels())) || in.Old != nil && obj.Matches(labels.Set(in.Old.GetLabels())), nil
}

// namespaceLabels are those of the request's namespace, or of the namespace that it is
// about; false: there is none.
func (in *Input) namespaceLabels() (labels.Set, bool) {
	switch {
	case in.Namespace != nil:
		return in.Namespace.Labels, true
	case in.isNamespace() && in.Object != nil:
		return in.Object.GetLabels(), true
	case in.isNamespace() && in.Old != nil:
		return in.Old.GetLabels(), true
	}
	return nil, false
}

// MatchesRule reports whether a rule is for a request
// (k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules).
func MatchesRule(r *admissionregistrationv1.RuleWithOperations, in *Input) bool {
	asked := in.Kind.Asked()
	has := func(list []string, v string) bool { return slices.Contains(list, "*") || slices.Contains(list, v) }
	if !has(r.APIGroups, asked.Group) {
		return false
	}
	if !has(r.APIVersions, asked.Version) {
		return false
	}
	if !slices.Contains(r.Operations, admissionregistrationv1.OperationAll) && !slices.Contains(r.Operations, admissionregistrationv1.OperationType(in.Operation)) {
		return false
	}
	if s := r.Scope; s != nil && *s != admissionregistrationv1.AllScopes && asked.Namespaced != (*s == admissionregistrationv1.NamespacedScope) {
		return false
	}
	return slices.ContainsFunc(r.Resources, func(text string) bool {
		resource, sub, _ := strings.Cut(text, "/")
		return (resource == "*" || resource == asked.Resource) && (sub == "*" || sub == in.Subresource)
	})
}
