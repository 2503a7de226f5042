package custom

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// coercer returns the Coerce of a kind (unstructuredSchemaCoercer of
// pkg/apiserver/customresource_handler.go). Objects of other kinds only have their
// metadata coerced; those of a version that isn't served keep nothing but metadata.
func (all schemas) coercer(gk schema.GroupKind) func(o kind.Object, tell bool) ([]string, error) {
	return func(o kind.Object, tell bool) ([]string, error) {
		u := o.(*unstructured.Unstructured)
		apiVersion, has, err := unstructured.NestedString(u.Object, "apiVersion")
		if err != nil {
			return nil, fmt.Errorf("apiVersion: %w", err)
		}
		kindName, hasKind, err := unstructured.NestedString(u.Object, "kind")
		if err != nil {
			return nil, fmt.Errorf("kind: %w", err)
		}
		meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: tell})
		if err != nil {
			return nil, err //nolint:wrapcheck // the text is the answer
		}
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		if gv.WithKind(kindName).GroupKind() == gk {
			more, err := prune(u.Object, all[gv.Version], tell)
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
		if hasKind {
			u.SetKind(kindName)
		}
		if has {
			u.SetAPIVersion(apiVersion)
		}
		if hasMeta {
			if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
				return nil, err //nolint:wrapcheck // as above
			}
		}
		return unknown, nil
	}
}

// prune drops what a schema doesn't know, and nulls where nothing can be null, and has
// embedded objects be objects.
func prune(o map[string]any, s *structuralschema.Structural, tell bool) ([]string, error) {
	unknown := pruning.PruneWithOptions(o, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: tell})
	defaulting.PruneNonNullableNullsWithoutDefaults(o, s)
	err, more := objectmeta.CoerceWithOptions(nil, o, s, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: tell})
	if err != nil {
		return nil, err
	}
	return append(unknown, more...), nil
}
