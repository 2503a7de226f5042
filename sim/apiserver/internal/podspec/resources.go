package podspec

import (
	"fmt"
	"slices"
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
	if isNative(name) || strings.HasPrefix(string(name), "requests.") {
		return false
	}
	return len(validation.IsQualifiedName("requests."+string(name))) == 0
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
	for name, q := range m { //drydock:unordered only finds out whether there is an error
		if q.Sign() < 0 || isWhole(name) && q.MilliValue()%1000 != 0 {
			return validateAmounts(m, path)
		}
	}
	return nil
}

func validateAmounts(m v1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range fields.SortedKeys(m) {
		errs = append(errs, validateAmount(name, m[name], path.Child(string(name)))...)
	}
	return errs
}

// validateAmount is ValidateResourceQuantityValue.
func validateAmount(name v1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), notNegative))
	}
	if isWhole(name) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q, "must be an integer"))
	}
	return errs
}

// validateResources checks a container's or (pod) a pod's requests and limits
// (ValidateContainerResourceRequirements, validatePodResourceRequirements). What
// cannot be overcommitted has a limit, and requests just that; huge pages alone are
// refused, since a container can't live on them. Limits come first in the errors, each list
// sorted by name.
func (c *checker) validateResources(r *v1.ResourceRequirements, path *field.Path, pod bool) field.ErrorList {
	if len(r.Limits)+len(r.Requests)+len(r.Claims) == 0 {
		return nil
	}
	errs := validateAmountsOf(r.Limits, pod, path.Child("limits"))
	p := path.Child("requests")
	errs = append(errs, validateAmountsOf(r.Requests, pod, p)...)
	for _, name := range fields.SortedKeys(r.Requests) {
		q := r.Requests[name]
		limit, limited := r.Limits[name]
		hard := IsExtended(name) || isHugePages(name)
		switch {
		// What cannot be overcommitted is requested in full.
		case limited && hard && q.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(p, q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && q.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(p, q.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		case !limited && hard:
			errs = append(errs, field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources"))
		}
	}
	pages, native := false, false
	for _, l := range [...]v1.ResourceList{r.Limits, r.Requests} {
		for name := range l { //drydock:unordered finds out what there is
			pages = pages || isHugePages(name)
			native = native || name == v1.ResourceCPU || name == v1.ResourceMemory
		}
	}
	if pages && !native {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return append(errs, c.validateClaimRefs(r.Claims, path.Child("claims"))...)
}

// validateAmountsOf checks names and quantities. Pages are whole.
func validateAmountsOf(l v1.ResourceList, pod bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range fields.SortedKeys(l) {
		q, p := l[name], path.Key(string(name))
		errs = append(errs, validateResourceName(name, pod, p)...)
		errs = append(errs, validateAmount(name, q, p)...)
		if isHugePages(name) && !wholePages(name, q) {
			errs = append(errs, field.Invalid(p, q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name)))
		}
	}
	return errs
}

// wholePages is IsHugePageResourceValueDivisible.
func wholePages(name v1.ResourceName, q resource.Quantity) bool {
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix))
	return err == nil && size.Sign() > 0 && size.MilliValue()%1000 == 0 && q.Value()%size.Value() == 0
}

// isNative reports whether a resource is Kubernetes' own (helper.IsNativeResource).
func isNative(name v1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), "kubernetes.io/")
}

// isStandard reports whether a name without a slash is one of those that quotas or
// containers know (helper.IsStandardResourceName).
func isStandard(name v1.ResourceName) bool {
	switch name {
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourceRequestsCPU, v1.ResourceRequestsMemory, v1.ResourceRequestsEphemeralStorage,
		v1.ResourceLimitsCPU, v1.ResourceLimitsMemory, v1.ResourceLimitsEphemeralStorage, v1.ResourceStorage, v1.ResourceRequestsStorage:
		return true
	}
	return isCounted(name) || isHugePages(name) || strings.HasPrefix(string(name), v1.ResourceRequestsHugePagesPrefix)
}

// isCounted reports whether a name is that of objects that quotas count.
func isCounted(name v1.ResourceName) bool {
	switch name {
	case v1.ResourcePods, v1.ResourceQuotas, v1.ResourceServices, v1.ResourceReplicationControllers, v1.ResourceSecrets, v1.ResourceConfigMaps,
		v1.ResourcePersistentVolumeClaims, v1.ResourceServicesNodePorts, v1.ResourceServicesLoadBalancers:
		return true
	}
	return false
}

// isWhole reports whether there are only whole units of a resource
// (helper.IsIntegerResourceName).
func isWhole(name v1.ResourceName) bool { return isCounted(name) || IsExtended(name) }

// validateResourceName is validateContainerResourceName, or (pod) validatePodResourceName.
// At the level of a pod only cpu, memory and huge pages mean something. A name without a
// slash is one of Kubernetes' own, of which there are few.
func validateResourceName(name v1.ResourceName, pod bool, path *field.Path) field.ErrorList {
	switch {
	case name == v1.ResourceCPU, name == v1.ResourceMemory, name == v1.ResourceEphemeralStorage && !pod:
		return nil
	}
	plain := !strings.Contains(string(name), "/")
	errs := fields.Invalid(path, name, validation.IsQualifiedName(string(name)))
	if len(errs) == 0 && plain && !isStandard(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	switch {
	case pod && len(errs) > 0:
	case pod && !isHugePages(name):
		errs = append(errs, field.NotSupported(path, name, []v1.ResourceName{v1.ResourceCPU, v1.ResourceHugePagesPrefix, v1.ResourceMemory}))
	case pod:
	case plain && !isHugePages(name):
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
	case !plain && !isNative(name) && !IsExtended(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// ValidateOverhead checks what a runtime takes for itself. It is checked as limits are
// (validateOverhead).
func ValidateOverhead(l v1.ResourceList, path *field.Path) field.ErrorList {
	c := checker{spec: &v1.PodSpec{}}
	return c.validateResources(&v1.ResourceRequirements{Limits: l}, path, false)
}

// validateClaims checks a pod's claims to devices (validatePodResourceClaims).
func (c *checker) validateClaims(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	list := c.spec.ResourceClaims
	for i := range list {
		claim, p := &list[i], path.Index(i)
		if c.pod != nil && IsMirror(c.pod) {
			errs = append(errs, field.Forbidden(field.NewPath(""), "static pods do not support resource claims"))
			continue
		}
		switch {
		case claim.Name == "":
			errs = append(errs, field.Required(p.Child("name"), ""))
		case slices.ContainsFunc(list[:i], func(o v1.PodResourceClaim) bool { return o.Name == claim.Name }):
			errs = append(errs, field.Duplicate(p.Child("name"), claim.Name))
		default:
			errs = append(errs, fields.DNSLabel(claim.Name, p.Child("name"))...)
		}
		switch one, two := claim.ResourceClaimName, claim.ResourceClaimTemplateName; {
		case one != nil && two != nil:
			errs = append(errs, field.Invalid(p, fields.GoNames(claim), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		case one == nil && two == nil:
			errs = append(errs, field.Invalid(p, fields.GoNames(claim), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		if n := claim.ResourceClaimName; n != nil {
			errs = append(errs, fields.DNSName(*n, p.Child("resourceClaimName"))...)
		}
		if n := claim.ResourceClaimTemplateName; n != nil {
			errs = append(errs, fields.DNSName(*n, p.Child("resourceClaimTemplateName"))...)
		}
	}
	return errs
}

// validateClaimRefs checks which of the pod's claims, or of their requests, a container
// uses: each once, as a whole or by its requests (validateResourceClaimNames).
func (c *checker) validateClaimRefs(list []v1.ResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var names []string
	for _, claim := range c.spec.ResourceClaims {
		if claim.Name != "" {
			names = append(names, claim.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	seen := map[string]bool{}
	for i, r := range list {
		p := path.Index(i)
		if r.Name == "" {
			errs = append(errs, field.Required(p, ""))
			continue
		}
		key := r.Name
		if r.Request != "" && !seen[r.Name] {
			errs = append(errs, fields.DNSLabel(r.Request, p.Child("request"))...)
			key += "/" + r.Request
		}
		switch {
		case seen[key]:
			errs = append(errs, field.Duplicate(p, key))
		case r.Request == "":
			for k := range seen { //drydock:unordered each makes the same error
				if strings.HasPrefix(k, r.Name+"/") {
					errs = append(errs, field.Duplicate(p, r.Name))
				}
			}
		}
		seen[key] = true
		if !slices.Contains(names, r.Name) {
			err := field.NotFound(p, r.Name)
			err.Detail = "must be one of the names in pod.spec.resourceClaims: " + strings.Join(names, ", ")
			if len(names) == 0 {
				err.Detail = "must be one of the names in pod.spec.resourceClaims which is empty"
			}
			errs = append(errs, err)
		}
	}
	return errs
}
