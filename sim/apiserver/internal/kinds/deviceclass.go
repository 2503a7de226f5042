package kinds

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// DeviceClass is the kind of sorts of devices that claims ask for.
const DeviceClass kind.Kind = "DeviceClass"

// deviceClass returns the row of DeviceClass
// (pkg/registry/resource/deviceclass/strategy.go).
func deviceClass() *kind.Info {
	type class = resourcev1.DeviceClass
	return &kind.Info{
		Kind: DeviceClass, Meta: kind.MetaAgain, CheckName: longName, Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses", ReturnsDeleted: true,
		Strategy: &kind.Typed[class, *class]{
			Generation: func(c, old *class, _ string) bool { return !equality.Semantic.DeepEqual(c.Spec, old.Spec) },
			Check:      validateDeviceClass,
			Table:      []kind.Column[class]{kind.NameColumn[class](), kind.AgeColumn[class]()},
		},
	}
}

// validateDeviceClass is ValidateDeviceClass.
func validateDeviceClass(c *resourcev1.DeviceClass) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSelectors(c.Spec.Selectors, spec.Child("selectors"))
	errs = append(errs, each(c.Spec.Config, resourcev1.DeviceConfigMaxSize, spec.Child("config"), func(c *resourcev1.DeviceClassConfiguration, p *field.Path) field.ErrorList {
		return validateDeviceConfig(&c.DeviceConfiguration, p)
	})...)
	if n := c.Spec.ExtendedResourceName; n != nil && !podspec.IsExtended(v1.ResourceName(*n)) {
		errs = append(errs, field.Invalid(spec.Child("extendedResourceName"), *n, "must be a valid extended resource name"))
	}
	return errs
}
