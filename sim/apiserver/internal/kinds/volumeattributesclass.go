package kinds

import (
	"maps"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// VolumeAttributesClass is the kind of the parameters that a volume may be changed to
// have. Nobody here changes volumes.
const VolumeAttributesClass kind.Kind = "VolumeAttributesClass"

// volumeAttributesClass returns the row of VolumeAttributesClass
// (pkg/registry/storage/volumeattributesclass/strategy.go).
func volumeAttributesClass() *kind.Info {
	type class = storagev1.VolumeAttributesClass
	return &kind.Info{
		Kind: VolumeAttributesClass, Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses", ShortNames: []string{"vac"},
		ReturnsDeleted: true, Inert: kind.InertAlways, Meta: kind.MetaAgain,
		Strategy: &kind.Typed[class, *class]{
			Check: validateVolumeAttributesClass,
			CheckUpdate: func(c, old *class, _ string) field.ErrorList {
				var errs field.ErrorList
				if c.DriverName != old.DriverName {
					errs = append(errs, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
				}
				if !maps.Equal(c.Parameters, old.Parameters) {
					errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
				}
				return append(errs, validateVolumeAttributesClass(c)...)
			},
			Table: []kind.Column[class]{
				kind.NameColumn[class](),
				{Name: "DriverName", Type: "string", Description: class{}.SwaggerDoc()["driverName"], Cell: func(c *class, _ time.Time) any { return c.DriverName }},
				kind.AgeColumn[class](),
			},
		},
	}
}

// validateVolumeAttributesClass is ValidateVolumeAttributesClass
// (pkg/apis/storage/validation).
func validateVolumeAttributesClass(c *storagev1.VolumeAttributesClass) field.ErrorList {
	p := field.NewPath("parameters")
	errs := validateProvisioner(c.DriverName, field.NewPath("driverName"))
	errs = append(errs, validateClassParameters(c.Parameters, p)...)
	if len(c.Parameters) == 0 {
		errs = append(errs, field.Required(p, "must contain at least one key/value pair"))
	}
	return errs
}
