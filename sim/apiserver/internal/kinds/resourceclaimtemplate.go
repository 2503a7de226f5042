package kinds

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// ResourceClaimTemplate is the kind of what claims of single pods are made of.
const ResourceClaimTemplate kind.Kind = "ResourceClaimTemplate"

// resourceClaimTemplate returns the row of ResourceClaimTemplate
// (pkg/registry/resource/resourceclaimtemplate/strategy.go).
func resourceClaimTemplate() *kind.Info {
	type template = resourcev1.ResourceClaimTemplate
	return &kind.Info{
		Kind: ResourceClaimTemplate, Meta: kind.MetaAgain, Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates",
		Namespaced: true, ReturnsDeleted: true,
		Strategy: &kind.Typed[template, *template]{
			Defaults: func(t *template) { setRequestDefaults(&t.Spec.Spec.Devices) },
			Check:    validateClaimTemplate,
			CheckUpdate: func(t, old *template, _ string) field.ErrorList {
				return append(validateClaimTemplate(t), fields.Immutable(t.Spec, old.Spec, field.NewPath("spec"))...)
			},
			Table: []kind.Column[template]{kind.NameColumn[template](), kind.AgeColumn[template]()},
		},
	}
}

// validateClaimTemplate is ValidateResourceClaimTemplate.
func validateClaimTemplate(t *resourcev1.ResourceClaimTemplate) field.ErrorList {
	spec := field.NewPath("spec")
	errs := podspec.ValidateTemplateMeta(&t.Spec.ObjectMeta, spec.Child("metadata"))
	return append(errs, validateDeviceClaim(&t.Spec.Spec.Devices, spec.Child("spec", "devices"))...)
}
