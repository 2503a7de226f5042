package kinds

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ControllerRevision is the kind of the revisions that daemon sets and stateful
// sets keep of their templates. Only the number of one ever changes: an old
// template that is used again becomes the newest.
const ControllerRevision kind.Kind = "ControllerRevision"

// controllerRevision returns the row of ControllerRevision
// (pkg/registry/apps/controllerrevision).
func controllerRevision() *kind.Info {
	return &kind.Info{
		Kind: ControllerRevision, Group: "apps", Version: "v1", Resource: "controllerrevisions", Unwritten: true, Namespaced: true,
		Strategy: &kind.Typed[appsv1.ControllerRevision, *appsv1.ControllerRevision]{
			Check: validateControllerRevision,
			CheckUpdate: func(r, old *appsv1.ControllerRevision, sub string) field.ErrorList {
				errs := fields.NonNegative(r.Revision, field.NewPath("revision"))
				return append(errs, fields.Immutable(r.Data, old.Data, field.NewPath("data"))...)
			},
			Table: controllerRevisionTable(),
		},
	}
}

// validateControllerRevision is ValidateControllerRevisionCreate: the data is a
// JSON object, whatever it says.
func validateControllerRevision(r *appsv1.ControllerRevision) field.ErrorList {
	errs := fields.NonNegative(r.Revision, field.NewPath("revision"))
	data := field.NewPath("data")
	var v any
	// null is data that is not there, too.
	switch err := json.Unmarshal(r.Data.Raw, &v); {
	case r.Data.Raw == nil || err == nil && v == nil:
		errs = append(errs, field.Required(data, "data is mandatory"))
	case err != nil:
		errs = append(errs, field.Invalid(data, "<value omitted>", fmt.Sprintf("error parsing data: %v", err)))
	default:
		if _, ok := v.(map[string]any); !ok {
			errs = append(errs, field.Required(data, "data must be a valid JSON object"))
		}
	}
	return errs
}

func controllerRevisionTable() []kind.Column[appsv1.ControllerRevision] {
	type revision = appsv1.ControllerRevision
	return []kind.Column[revision]{
		kind.NameColumn[revision](),
		textColumn("Controller", "Controller of the object", func(r *revision) string {
			ref := metav1.GetControllerOf(r)
			if ref == nil {
				return none
			}
			return strings.ToLower(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind().String()) + "/" + ref.Name
		}),
		{Name: "Revision", Type: "string", Description: revision{}.SwaggerDoc()["revision"], Cell: func(r *revision, _ time.Time) any { return r.Revision }},
		kind.AgeColumn[revision](),
	}
}
