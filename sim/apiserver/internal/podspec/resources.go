package podspec

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

const notNegative = "must be greater than or equal to 0"

// IsExtended reports whether a resource is neither native nor a hugepage size
// (helper.IsExtendedResourceName): a device plugin's, say, which comes in whole
// units and cannot be overcommitted.
func IsExtended(name v1.ResourceName) bool {
	n := string(name)
	if !strings.Contains(n, "/") || strings.Contains(n, "kubernetes.io/") || strings.HasPrefix(n, "requests.") {
		return false
	}
	return len(validation.IsQualifiedName("requests."+n)) == 0
}

// isHugePages reports whether a resource is a size of huge pages
// (helper.IsHugePageResourceName).
func isHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// ValidateAmounts checks a node's quantities (ValidateResourceQuantityValue).
// Sorted keys keep the order of errors, and so the message, the same from run to
// run. They come from a kubelet, not from a manifest, so less is asked of them.
func ValidateAmounts(m v1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range fields.SortedKeys(m) {
		q := m[name]
		if q.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), q.String(), notNegative))
		}
		errs = append(errs, fields.Invalid(path.Key(string(name)), string(name), validation.IsQualifiedName(string(name)))...)
	}
	return errs
}

// validateResources checks a container's or (pod) a pod's requests and limits
// (ValidateContainerResourceRequirements, validatePodResourceRequirements). What
// cannot be overcommitted has a limit, and requests just that; huge pages alone are
// refused, since a container can't live on them. Limits come first in the errors, each list
// sorted by name.
func validateResources(r *v1.ResourceRequirements, path *field.Path, pod bool) field.ErrorList {
	var errs field.ErrorList
	for _, name := range fields.SortedKeys(r.Limits) {
		errs = append(errs, validateQuantity(name, r.Limits[name], path.Child("limits").Key(string(name)), pod)...)
	}
	pages, native := false, false
	for _, name := range fields.SortedKeys(r.Requests) {
		p := path.Child("requests")
		q := r.Requests[name]
		errs = append(errs, validateQuantity(name, q, p.Key(string(name)), pod)...)
		pages = pages || isHugePages(name)
		native = native || name == v1.ResourceCPU || name == v1.ResourceMemory
		limit, limited := r.Limits[name]
		switch {
		// What cannot be overcommitted is requested in full.
		case limited && (IsExtended(name) || isHugePages(name)) && q.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(p, q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && q.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(p, q.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		case !limited && (IsExtended(name) || isHugePages(name)):
			errs = append(errs, field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources"))
		}
	}
	if pages && !native && !pod {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return errs
}

// validateQuantity is validateResourceName with ValidateResourceQuantityValue. At
// the level of a pod only cpu, memory and huge pages mean something. A name without a slash is
// one of Kubernetes' own, of which there are few.
func validateQuantity(name v1.ResourceName, q resource.Quantity, path *field.Path, pod bool) field.ErrorList {
	var errs field.ErrorList
	switch {
	case name == v1.ResourceCPU, name == v1.ResourceMemory, isHugePages(name):
	case pod:
		errs = append(errs, field.NotSupported(path, name, []string{"cpu", "hugepages-", "memory"}))
	case name == v1.ResourceEphemeralStorage, IsExtended(name):
	default:
		errs = append(errs, fields.Invalid(path, string(name), validation.IsQualifiedName(string(name)))...)
		if !strings.Contains(string(name), "/") {
			errs = append(errs, field.Invalid(path, string(name), "must be a standard resource for containers"))
		} else {
			errs = append(errs, field.Invalid(path, string(name), "doesn't follow extended resource name standard"))
		}
	}
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), notNegative))
	}
	// Devices are counted.
	if IsExtended(name) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be an integer"))
	}
	if isHugePages(name) && q.Sign() > 0 {
		// Pages are whole.
		if size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix)); err == nil && size.Value() > 0 && q.Value()%size.Value() != 0 {
			errs = append(errs, field.Invalid(path, q.String(), fmt.Sprintf("must be a multiple of %s", size.String())))
		}
	}
	return errs
}
