// Package custom makes rows of the table of kinds out of CustomResourceDefinitions:
// custom resources are defaulted, pruned and checked by the schemas and CEL rules of
// their definition, with the pure packages of k8s.io/apiextensions-apiserver.
//
//   - row.go: from a definition to a row
//   - strategy.go: the row's rules (pkg/registry/customresource/strategy.go there)
package custom

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Row returns the row of a definition's resources, in the version in which they are
// stored. The definition has passed its own rules, and its names are accepted.
func Row(d *apiextensionsv1.CustomResourceDefinition) (*kind.Info, error) {
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if !v.Storage {
			continue
		}
		s, err := newStrategy(v)
		if err != nil {
			return nil, fmt.Errorf("schema of %s, version %s: %w", d.Name, v.Name, err)
		}
		names := d.Status.AcceptedNames
		in := &kind.Info{
			Kind: kind.Kind(d.Name), CustomKind: names.Kind, Group: d.Spec.Group, Version: v.Name, Resource: names.Plural,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped, NeedsVersion: true, Strategy: s,
		}
		s.gvk = in.GroupVersionKind()
		return in, nil
	}
	return nil, fmt.Errorf("%s: no version is stored", d.Name) // its rules ask for one
}

// newStrategy compiles the schema of a version.
func newStrategy(v *apiextensionsv1.CustomResourceDefinitionVersion) (*strategy, error) {
	s := &strategy{status: v.Subresources != nil && v.Subresources.Status != nil}
	if v.Schema == nil {
		return s, nil
	}
	in := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema.DeepCopy(), in, nil); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	structural, err := structuralschema.NewStructural(in.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("not structural: %w", err)
	}
	s.schema = structural.DeepCopy() // shares its defaults otherwise
	if err := defaulting.PruneDefaults(s.schema); err != nil {
		return nil, fmt.Errorf("prune defaults: %w", err)
	}
	if s.validator, _, err = validation.NewSchemaValidator(in.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("validator: %w", err)
	}
	s.rules = cel.NewValidator(s.schema, true, celconfig.PerCallLimit)
	return s, nil
}
