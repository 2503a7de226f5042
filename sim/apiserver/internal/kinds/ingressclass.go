package kinds

import (
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// IngressClass is the kind of ingress classes, which say whose an ingress is.
const IngressClass kind.Kind = "IngressClass"

// ingressClass returns the row of IngressClass
// (pkg/registry/networking/ingressclass/strategy.go).
func ingressClass() *kind.Info {
	return &kind.Info{
		Kind: IngressClass, Meta: kind.MetaAgain, Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses", Inert: kind.InertAlways,
		Strategy: &kind.Typed[networkingv1.IngressClass, *networkingv1.IngressClass]{
			Defaults: func(c *networkingv1.IngressClass) {
				if p := c.Spec.Parameters; p != nil && p.Scope == nil {
					own := *p
					own.Scope = new(networkingv1.IngressClassParametersReferenceScopeCluster)
					c.Spec.Parameters = &own
				}
			},
			Generation: func(c, old *networkingv1.IngressClass, _ string) bool {
				return !equality.Semantic.DeepEqual(c.Spec, old.Spec)
			},
			Check: validateIngressClass,
			CheckUpdate: func(c, old *networkingv1.IngressClass, _ string) field.ErrorList {
				return append(fields.Immutable(c.Spec.Controller, old.Spec.Controller, field.NewPath("spec", "controller")), validateIngressClass(c)...)
			},
			Table: ingressClassTable(),
		},
	}
}

func ingressClassTable() []kind.Column[networkingv1.IngressClass] {
	type class = networkingv1.IngressClass
	name := kind.NameColumn[class]()
	name.Cell = func(c *class, _ time.Time) any {
		if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			return c.Name + " (default)"
		}
		return c.Name
	}
	return []kind.Column[class]{
		name,
		{Name: "Controller", Type: "string", Description: "Controller that is responsible for handling this class", Cell: func(c *class, _ time.Time) any {
			return c.Spec.Controller
		}},
		{Name: "Parameters", Type: "string", Description: "A reference to a resource with additional parameters", Cell: func(c *class, _ time.Time) any {
			p := c.Spec.Parameters
			switch {
			case p == nil:
				return none
			case p.APIGroup != nil:
				return p.Kind + "." + *p.APIGroup + "/" + p.Name
			}
			return p.Kind + "/" + p.Name
		}},
		kind.AgeColumn[class](),
	}
}

// maxIngressController is how long the name of an ingress controller may be.
const maxIngressController = 250

// validateIngressClass is ValidateIngressClass (pkg/apis/networking/validation).
func validateIngressClass(c *networkingv1.IngressClass) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "controller")
	if len(c.Spec.Controller) > maxIngressController {
		errs = append(errs, field.TooLong(path, "", maxIngressController))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(path, c.Spec.Controller)...)
	p, path := c.Spec.Parameters, field.NewPath("spec", "parameters")
	if p == nil {
		return errs
	}
	errs = append(errs, validateTypedReference(p.APIGroup, p.Kind, p.Name, path)...)
	if p.Scope == nil { // a manifest that nobody has defaulted
		return append(errs, field.Required(path.Child("scope"), ""))
	}
	const cluster, namespace = networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace
	switch ns := path.Child("namespace"); {
	case *p.Scope == namespace && p.Namespace == nil:
		errs = append(errs, field.Required(ns, "`parameters.scope` is set to 'Namespace'"))
	case *p.Scope == namespace:
		errs = append(errs, fields.Invalid(ns, *p.Namespace, apivalidation.ValidateNamespaceName(*p.Namespace, false))...)
	case *p.Scope == cluster && p.Namespace != nil:
		errs = append(errs, field.Forbidden(ns, "`parameters.scope` is set to 'Cluster'"))
	case *p.Scope != cluster:
		errs = append(errs, field.NotSupported(path.Child("scope"), *p.Scope, []string{cluster, namespace}))
	}
	return errs
}

// validateTypedReference is validateIngressTypedLocalObjectReference: an object of any
// group, by kind and name.
func validateTypedReference(group *string, kindName, name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if group != nil {
		errs = append(errs, fields.DNSName(*group, path.Child("apiGroup"))...)
	}
	errs = append(errs, validatePathSegment(kindName, path.Child("kind"))...)
	return append(errs, validatePathSegment(name, path.Child("name"))...)
}

// validatePathSegment requires what can stand between two slashes of a path.
func validatePathSegment(v string, path *field.Path) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return fields.Invalid(path, v, content.IsPathSegmentName(v))
}
