package facade

import (
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// metaModel names the schema of metadata among those of a definition.
const metaModel = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// customTypes are what apply knows of a definition's resources: which lists are sets or
// maps, by the schemas of its versions (buildOpenAPIModelsForApply of
// k8s.io/apiextensions-apiserver, pkg/apiserver).
func customTypes(versions []*apiserver.KindInfo) managedfields.TypeConverter {
	models := map[string]*spec.Schema{metaModel: metaSchema()}
	for _, v := range versions {
		s := v.Custom.Schema()
		if s == nil {
			s = object(nil)
			s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
		}
		addTypeFields(s)
		embed(s)
		s.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": v.Group, "version": v.Version, "kind": v.CustomKind}})
		models[v.Group+"."+v.Version+"."+v.CustomKind] = s
	}
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil { // what the rules let pass, but no type can be made of
		return managedfields.NewDeducedTypeConverter()
	}
	return types
}

// addTypeFields adds to a schema of objects the fields that all have.
func addTypeFields(s *spec.Schema) {
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties["apiVersion"], s.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	s.Properties["metadata"] = *spec.RefSchema("#/definitions/" + metaModel)
}

// embed adds them where a schema says that a field is an object of its own.
func embed(s *spec.Schema) {
	for name, p := range s.Properties {
		embed(&p)
		if is, _ := p.Extensions.GetBool("x-kubernetes-embedded-resource"); is {
			addTypeFields(&p)
		}
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		embed(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		embed(s.AdditionalProperties.Schema)
	}
}

func object(fields map[string]spec.Schema) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: fields}}
}

// metaSchema is that of ObjectMeta, as far as apply goes by it.
func metaSchema() *spec.Schema {
	text, number, flag := *spec.StringProperty(), *spec.Int64Property(), *spec.BooleanProperty()
	texts := *spec.MapProperty(&text)
	list := func(item *spec.Schema, kind string, keys ...any) spec.Schema {
		s := *spec.ArrayProperty(item)
		s.AddExtension("x-kubernetes-list-type", kind)
		if len(keys) > 0 {
			s.AddExtension("x-kubernetes-list-map-keys", keys)
		}
		return s
	}
	owner := object(map[string]spec.Schema{"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag})
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	managed := object(nil)
	managed.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return object(map[string]spec.Schema{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
		"generation": number, "deletionGracePeriodSeconds": number, "creationTimestamp": text, "deletionTimestamp": text,
		"labels": texts, "annotations": texts,
		"ownerReferences": list(owner, "map", "uid"),
		"finalizers":      list(&text, "set"),
		"managedFields":   list(managed, "atomic"),
	})
}
