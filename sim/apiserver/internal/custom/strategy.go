package custom

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/table"
)

// strategy is what one version of a definition says of its resources. Without a schema
// all is taken.
type strategy struct {
	gvk       schema.GroupVersionKind
	schema    *structuralschema.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator // nil: there are none
	// statusValidator is for the status alone, where that is a subresource.
	statusValidator validation.SchemaValidator
	status          bool                                            // the subresource is there
	scale           *apiextensionsv1.CustomResourceSubresourceScale // nil: it isn't
	columns         []column
	fields          []selectable
}

func content(o kind.Object) map[string]any { return o.(*unstructured.Unstructured).Object }

// New implements kind.Strategy.
func (s *strategy) New() kind.Object {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(s.gvk)
	return u
}

// Copy implements kind.Strategy. Metadata is the copy's own, as a struct's would be.
func (*strategy) Copy(o kind.Object) kind.Object {
	m := maps.Clone(content(o))
	if meta, ok := m["metadata"].(map[string]any); ok {
		m["metadata"] = maps.Clone(meta)
	}
	return &unstructured.Unstructured{Object: m}
}

// NewTable implements kind.Strategy.
func (*strategy) NewTable() table.Any { return table.New[*unstructured.Unstructured]() }

// SetDefaults implements kind.Strategy. What the schema doesn't know is dropped first,
// and so are nulls where a default stands. What can't be coerced, the rules refuse.
func (s *strategy) SetDefaults(o kind.Object) {
	if s.schema == nil {
		return
	}
	_, _ = prune(content(o), s.schema, false)
	defaulting.Default(content(o), s.schema)
}

// UsesUID implements kind.Strategy.
func (*strategy) UsesUID() bool { return false }

// UseUID implements kind.Strategy.
func (*strategy) UseUID(kind.Object, types.UID) {}

// Complete implements kind.Strategy.
func (*strategy) Complete(kind.Object) {}

// PrepareCreate implements kind.Strategy.
func (s *strategy) PrepareCreate(o kind.Object) {
	if s.status {
		delete(content(o), "status")
	}
}

// Stamp implements kind.Strategy.
func (*strategy) Stamp(time.Time, kind.Object) {}

// PrepareUpdate implements kind.Strategy.
func (s *strategy) PrepareUpdate(obj, old kind.Object, sub string) bool {
	o, was := content(obj), content(old)
	switch {
	case sub == "" && s.status:
		take(o, was, "status")
	case sub == "status" && s.status:
		// Of metadata only what records the write is taken.
		next := obj.(*unstructured.Unstructured)
		status, ok := o["status"]
		managed, version := next.GetManagedFields(), next.GetResourceVersion()
		clear(o)
		maps.Copy(o, content(s.Copy(old)))
		next.SetManagedFields(managed)
		next.SetResourceVersion(version)
		delete(o, "status")
		if ok {
			o["status"] = status
		}
	}
	return sub == "" || sub == "status" && s.status
}

// StampUpdate implements kind.Strategy.
func (*strategy) StampUpdate(time.Time, kind.Object, kind.Object, string) {}

// take has a field be what it is in another object.
func take(to, from map[string]any, name string) {
	delete(to, name)
	if v, ok := from[name]; ok {
		to[name] = v
	}
}

// Validate implements kind.Strategy.
func (s *strategy) Validate(obj kind.Object, _ bool) field.ErrorList {
	o := content(obj)
	if s.schema == nil {
		return validateScale(o, s.scale, false)
	}
	errs := validation.ValidateCustomResource(nil, o, s.validator)
	errs = append(errs, validateScale(o, s.scale, false)...)
	errs = append(errs, objectmeta.Validate(nil, o, s.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.schema, o)...)
	return append(errs, s.validateRules(errs, o, nil)...)
}

// ValidateUpdate implements kind.Strategy. What was wrong before and stays as it was is
// no error (KEP-4008). Of an update of the status only that is checked.
func (s *strategy) ValidateUpdate(obj, old kind.Object, sub string) field.ErrorList {
	o, was := content(obj), content(old)
	if s.schema == nil {
		return validateScale(o, s.scale, sub == "status")
	}
	correlated := common.NewCorrelatedObject(o, was, &model.Structural{Structural: s.schema})
	var errs field.ErrorList
	if sub == "status" {
		if status, ok := o["status"]; ok && s.statusValidator != nil {
			errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, was["status"], s.statusValidator, validation.WithRatcheting(correlated.Key("status")))
		}
	} else {
		errs = validation.ValidateCustomResourceUpdate(nil, o, was, s.validator, validation.WithRatcheting(correlated))
		errs = append(errs, objectmeta.Validate(nil, o, s.schema, false)...)
	}
	errs = append(errs, validateScale(o, s.scale, sub == "status")...)
	if len(listtype.ValidateListSetsAndMaps(nil, s.schema, was)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.schema, o)...)
	}
	return append(errs, s.validateRules(errs, o, was, cel.WithRatcheting(correlated))...)
}

// validateRules runs the CEL rules, unless what was found before may have them fail for
// no reason of theirs.
func (s *strategy) validateRules(found field.ErrorList, o, was map[string]any, options ...cel.Option) field.ErrorList {
	if s.rules == nil {
		return nil
	}
	for _, err := range found {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
		}
	}
	var old any
	if was != nil {
		old = was
	}
	errs, _ := s.rules.Validate(context.Background(), nil, s.schema, o, old, celconfig.RuntimeCELCostBudget, options...)
	return errs
}

// Warnings implements kind.Strategy.
func (*strategy) Warnings(_, _ kind.Object, _ string) []string { return nil }

// Unsimulated implements kind.Strategy.
func (*strategy) Unsimulated(kind.Object) field.ErrorList { return nil }

// HasGeneration implements kind.Strategy.
func (*strategy) HasGeneration() bool { return true }

// NewGeneration implements kind.Strategy: all counts but metadata, and the status where
// that is a subresource.
func (s *strategy) NewGeneration(obj, old kind.Object, sub string) bool {
	if sub != "" {
		return false
	}
	o, was := maps.Clone(content(obj)), maps.Clone(content(old))
	delete(o, "metadata")
	delete(was, "metadata")
	return !equality.Semantic.DeepEqual(o, was)
}

// NodeName implements kind.Strategy.
func (*strategy) NodeName(kind.Object) string { return "" }

// Scale implements kind.Strategy.
func (*strategy) Scale(kind.Object) (kind.Scale, bool) { return kind.Scale{}, false }

// Dropped implements kind.Strategy.
func (*strategy) Dropped(kind.Object) []string { return nil }

// Trace implements kind.Strategy.
func (*strategy) Trace(*kind.Notes, kind.Change) {}
