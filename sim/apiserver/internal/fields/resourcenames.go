package fields

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names of resources, as quotas and limit ranges have them (pkg/apis/core/helper).

// objectCounts are the resources that count objects.
var objectCounts = []v1.ResourceName{
	v1.ResourcePods, v1.ResourceQuotas, v1.ResourceServices, v1.ResourceReplicationControllers, v1.ResourceSecrets,
	v1.ResourceConfigMaps, v1.ResourcePersistentVolumeClaims, v1.ResourceServicesNodePorts, v1.ResourceServicesLoadBalancers,
}

// amounts are the resources, other than counts, that a quota is of.
var amounts = []v1.ResourceName{
	v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage,
	v1.ResourceRequestsCPU, v1.ResourceRequestsMemory, v1.ResourceRequestsStorage, v1.ResourceRequestsEphemeralStorage,
	v1.ResourceLimitsCPU, v1.ResourceLimitsMemory, v1.ResourceLimitsEphemeralStorage,
}

// NativeResource reports whether a resource is Kubernetes' own.
func NativeResource(name v1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}

// ExtendedResource reports whether a resource is a device plugin's, say.
func ExtendedResource(name v1.ResourceName) bool {
	if NativeResource(name) || strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// HugePages reports whether a resource is a size of huge pages.
func HugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// OvercommitAllowed reports whether a limit may be above its request.
func OvercommitAllowed(name v1.ResourceName) bool { return NativeResource(name) && !HugePages(name) }

// IntegerResource reports whether there is no half of a resource.
func IntegerResource(name v1.ResourceName) bool {
	return slices.Contains(objectCounts, name) || ExtendedResource(name)
}

// QuotaResource reports whether a name without a domain is one that quotas are of.
func QuotaResource(name v1.ResourceName) bool {
	return slices.Contains(objectCounts, name) || slices.Contains(amounts, name) ||
		HugePages(name) || strings.HasPrefix(string(name), v1.ResourceRequestsHugePagesPrefix)
}

// ResourceName is validateResourceName (pkg/apis/core/validation).
func ResourceName(name v1.ResourceName, path *field.Path) field.ErrorList {
	if errs := Invalid(path, string(name), validation.IsQualifiedName(string(name))); len(errs) > 0 {
		return errs
	}
	if !strings.Contains(string(name), "/") && !QuotaResource(name) && name != v1.ResourceStorage {
		return field.ErrorList{field.Invalid(path, string(name), "must be a standard resource type or fully qualified")}
	}
	return nil
}

// ContainerResourceName is validateContainerResourceName.
func ContainerResourceName(name v1.ResourceName, path *field.Path) field.ErrorList {
	errs := ResourceName(name, path)
	switch {
	case !strings.Contains(string(name), "/"):
		if name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage && !HugePages(name) {
			errs = append(errs, field.Invalid(path, string(name), "must be a standard resource for containers"))
		}
	case !NativeResource(name) && !ExtendedResource(name):
		errs = append(errs, field.Invalid(path, string(name), "doesn't follow extended resource name standard"))
	}
	return errs
}

// QuotaResourceName is ValidateResourceQuotaResourceName.
func QuotaResourceName(name v1.ResourceName, path *field.Path) field.ErrorList {
	errs := ResourceName(name, path)
	if !strings.Contains(string(name), "/") && !QuotaResource(name) {
		errs = append(errs, field.Invalid(path, string(name), "must be a standard resource for quota"))
	}
	return errs
}

// Quantity is ValidateResourceQuantityValue.
func Quantity(name v1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be greater than or equal to 0"))
	}
	if IntegerResource(name) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be an integer"))
	}
	return errs
}
