// Package custom makes rows of the table of kinds out of CustomResourceDefinitions:
// custom resources are defaulted, pruned and checked by the schemas and CEL rules of
// their definition, with the pure packages of k8s.io/apiextensions-apiserver.
//
//   - row.go: from a definition to rows, one for each version
//   - strategy.go: a row's rules (pkg/registry/customresource/strategy.go there)
//   - coerce.go: what decoding does to objects; conversion.go: what conversion does
//   - scale.go: the subresource scale
//   - columns.go: tables, and the fields that selectors name
package custom

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Row returns the row of a definition's resources, in the version in which they are
// stored; the others that are served are with it. The definition has passed its own
// rules, and its names are accepted.
func Row(d *apiextensionsv1.CustomResourceDefinition) (*kind.Info, error) {
	all := schemas{}
	var stored *kind.Info
	var served []*kind.Info
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if !v.Storage && !v.Served {
			continue
		}
		in, err := versionRow(d, v, all)
		if err != nil {
			return nil, fmt.Errorf("%s, version %s: %w", d.Name, v.Name, err)
		}
		if v.Served {
			served = append(served, in)
		}
		if v.Storage {
			stored = in
		}
	}
	if stored == nil {
		return nil, fmt.Errorf("%s: no version is stored", d.Name) // its rules ask for one
	}
	slices.SortFunc(served, func(a, b *kind.Info) int { return version.CompareKubeAwareVersionStrings(b.Version, a.Version) })
	for _, in := range append([]*kind.Info{stored}, served...) {
		in.Custom.Versions = served
	}
	return stored, nil
}

// schemas are those of the versions that are served or stored, by name; nil: a version
// has none.
type schemas map[string]*structuralschema.Structural

// versionRow returns the row of one version.
func versionRow(d *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion, all schemas) (*kind.Info, error) {
	s, err := newStrategy(v)
	if err != nil {
		return nil, err
	}
	all[v.Name] = s.schema
	names := d.Status.AcceptedNames
	in := &kind.Info{
		Kind: kind.Kind(d.Name), CustomKind: names.Kind, Group: d.Spec.Group, Version: v.Name, Resource: names.Plural,
		ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped, NeedsVersion: true, StatusKeeps: kind.KeepsMeta, Strategy: s,
	}
	s.gvk = in.GroupVersionKind()
	in.Custom = &kind.Custom{
		Coerce:     all.coercer(s.gvk.GroupKind()),
		Convert:    all.converter(s.gvk),
		Adopt:      all.adopter(s.gvk),
		Schema:     func() *spec.Schema { return s.schema.ToKubeOpenAPI() },
		Singular:   names.Singular,
		List:       names.ListKind,
		Deprecated: deprecation(d, v),
	}
	if c := d.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
		in.Custom.Hook = c.Webhook
	}
	if s.scale != nil {
		in.Custom.Scale = newScale(s.scale)
	}
	return in, nil
}

// deprecation is what clients of a version are warned of (defaultDeprecationWarning).
func deprecation(d *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	text, better := fmt.Sprintf("%s/%s %s is deprecated", d.Spec.Group, v.Name, d.Spec.Names.Kind), ""
	for _, o := range d.Spec.Versions {
		if o.Served && !o.Deprecated && version.CompareKubeAwareVersionStrings(cmp.Or(better, v.Name), o.Name) < 0 {
			better = o.Name
		}
	}
	if better != "" {
		text += fmt.Sprintf("; use %s/%s %s", d.Spec.Group, better, d.Spec.Names.Kind)
	}
	return text
}

// newStrategy compiles the schema of a version.
func newStrategy(v *apiextensionsv1.CustomResourceDefinitionVersion) (*strategy, error) {
	s := &strategy{}
	if sub := v.Subresources; sub != nil {
		s.status, s.scale = sub.Status != nil, sub.Scale
	}
	var err error
	if s.columns, err = newColumns(v.AdditionalPrinterColumns); err != nil {
		return nil, err
	}
	if s.fields, err = newFields(v.SelectableFields); err != nil {
		return nil, err
	}
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
	if p, ok := in.OpenAPIV3Schema.Properties["status"]; ok && s.status {
		if s.statusValidator, _, err = validation.NewSchemaValidator(&p); err != nil {
			return nil, fmt.Errorf("validator of the status: %w", err)
		}
	}
	s.rules = cel.NewValidator(s.schema, true, celconfig.PerCallLimit)
	return s, nil
}
