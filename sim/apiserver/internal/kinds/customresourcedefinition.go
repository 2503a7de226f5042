package kinds

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// CustomResourceDefinition is the kind of the definitions of further kinds.
const CustomResourceDefinition kind.Kind = "CustomResourceDefinition"

// customResourceDefinition returns the row of CustomResourceDefinition
// (k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go).
// The rules are that module's own.
func customResourceDefinition() *kind.Info {
	type definition = apiextensionsv1.CustomResourceDefinition
	return &kind.Info{
		Kind: CustomResourceDefinition, Group: apiextensionsv1.GroupName, Version: "v1", Resource: "customresourcedefinitions", NeedsVersion: true,
		ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
		Meta: kind.MetaLeft,
		Strategy: &kind.Typed[definition, *definition]{
			Defaults: apiextensionsv1.SetObjectDefaults_CustomResourceDefinition,
			Halves: kind.SpecAndStatus(func(d *definition) (*apiextensionsv1.CustomResourceDefinitionSpec, *apiextensionsv1.CustomResourceDefinitionStatus) {
				return &d.Spec, &d.Status
			}),
			Reset:      resetDefinition,
			CountsSpec: true,
			Check: func(d *definition) field.ErrorList {
				in, errs := internalDefinition(d)
				if errs != nil {
					return errs
				}
				errs = dropUnselectable(in)
				return append(errs, validation.ValidateCustomResourceDefinition(context.Background(), in)...)
			},
			CheckUpdate: func(d, old *definition, sub string) field.ErrorList {
				in, errs := internalDefinition(d)
				was, oldErrs := internalDefinition(old)
				switch {
				case errs != nil || oldErrs != nil:
					return append(errs, oldErrs...)
				case sub == "status":
					return validation.ValidateUpdateCustomResourceDefinitionStatus(in, was)
				}
				errs = dropUnselectable(in)
				return append(errs, validation.ValidateCustomResourceDefinitionUpdate(context.Background(), in, was)...)
			},
		},
	}
}

// resetDefinition leaves of the status which version is stored: the one that the
// spec says.
func resetDefinition(d *apiextensionsv1.CustomResourceDefinition) {
	d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	for _, v := range d.Spec.Versions {
		if v.Storage {
			d.Status.StoredVersions = []string{v.Name}
			break
		}
	}
}

// internalDefinition is a definition as the rules take it.
func internalDefinition(d *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, field.ErrorList) {
	in := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d.DeepCopy(), in, nil); err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	return in, nil
}

// dropUnselectable takes off the selectable fields of versions whose schemas aren't
// structural: the library's rules panic over them. It says why the schema isn't.
func dropUnselectable(in *apiextensions.CustomResourceDefinition) field.ErrorList {
	var errs field.ErrorList
	drop := func(fields *[]apiextensions.SelectableField, schema *apiextensions.CustomResourceValidation, path *field.Path) {
		if len(*fields) == 0 || schema == nil {
			return
		}
		_, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
		if err != nil {
			errs = append(errs, field.Invalid(path, "", err.Error()))
		}
		if err != nil || schema.OpenAPIV3Schema == nil { // which is required, as the rules say
			*fields = nil
		}
	}
	drop(&in.Spec.SelectableFields, in.Spec.Validation, field.NewPath("spec", "validation", "openAPIV3Schema"))
	for i := range in.Spec.Versions {
		v := &in.Spec.Versions[i]
		drop(&v.SelectableFields, v.Schema, field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema"))
	}
	return errs
}
