package kinds

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// clusterIPsOf are a service's addresses. Where the store gives none, a manifest may
// say only the first.
func clusterIPsOf(svc *v1.Service) []string {
	if s := &svc.Spec; len(s.ClusterIPs) > 0 || s.ClusterIP == "" {
		return s.ClusterIPs
	}
	return []string{svc.Spec.ClusterIP}
}

// isHeadless reports whether a service is to have no address.
func isHeadless(svc *v1.Service) bool {
	ips := clusterIPsOf(svc)
	return len(ips) == 1 && ips[0] == v1.ClusterIPNone
}

// ValidateClusterIPs checks a service's addresses and their families, before they are
// given as well as after (ValidateServiceClusterIPsRelatedFields). old is nil of a new
// service; its addresses are not checked again.
func ValidateClusterIPs(svc, old *v1.Service) field.ErrorList {
	s := &svc.Spec
	if s.Type == v1.ServiceTypeExternalName {
		return nil
	}
	path, ips := field.NewPath("spec", "clusterIPs"), clusterIPsOf(svc)
	var errs field.ErrorList
	switch {
	case len(ips) == 0:
	case s.ClusterIP == "":
		errs = append(errs, field.Invalid(path, ips, "must be empty when `clusterIP` is not specified"))
	case ips[0] != s.ClusterIP:
		errs = append(errs, field.Invalid(path, ips, "first value must match `clusterIP`"))
	}
	errs = append(errs, validateFamilies(s, field.NewPath("spec"))...)
	wrong := validateIPs(ips, old, path)
	if len(ips) > 2 {
		errs = append(errs, field.Invalid(path, ips, "may only hold up to 2 values"))
	}
	if len(wrong) > 0 { // nothing can be said of their families
		return append(errs, wrong...)
	}
	if dual, _ := netutils.IsDualStackIPStrings(ips); len(ips) > 1 && !dual {
		errs = append(errs, field.Invalid(path, ips, "may specify no more than one IP for each IP family"))
	}
	for i, ip := range ips {
		if isHeadless(svc) || i >= len(s.IPFamilies) {
			break
		}
		family := v1.IPv4Protocol
		if netutils.IsIPv6String(ip) {
			family = v1.IPv6Protocol
		}
		if want := s.IPFamilies[i]; want != family && (want == v1.IPv4Protocol || want == v1.IPv6Protocol) {
			errs = append(errs, field.Invalid(path.Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%v]`", want, i)))
		}
	}
	return errs
}

// validateIPs checks each of a service's addresses.
func validateIPs(ips []string, old *v1.Service, path *field.Path) field.ErrorList {
	var had []string
	if old != nil {
		had = old.Spec.ClusterIPs
	}
	var errs field.ErrorList
	for i, ip := range ips {
		switch {
		case i > 0 || ip != v1.ClusterIPNone:
			errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, had)...)
		case len(ips) > 1:
			errs = append(errs, field.Invalid(path, ips, "'None' must be the first and only value"))
		}
	}
	return errs
}

// validateFamilies checks a service's families and their policy, each by itself.
func validateFamilies(s *v1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	families := []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	for i, f := range s.IPFamilies {
		at := path.Child("ipFamilies").Index(i)
		if !slices.Contains(families, f) {
			errs = append(errs, field.NotSupported(at, f, families))
		}
		if slices.Contains(s.IPFamilies[:i], f) {
			errs = append(errs, field.Duplicate(at, f))
		}
	}
	policies := []v1.IPFamilyPolicy{v1.IPFamilyPolicyPreferDualStack, v1.IPFamilyPolicyRequireDualStack, v1.IPFamilyPolicySingleStack}
	if p := s.IPFamilyPolicy; p != nil && !slices.Contains(policies, *p) {
		errs = append(errs, field.NotSupported(path.Child("ipFamilyPolicy"), *p, policies))
	}
	return errs
}

// keepsAddresses reports whether an update is between two types with addresses.
func keepsAddresses(svc, old *v1.Service) bool {
	return svc.Spec.Type != v1.ServiceTypeExternalName && old.Spec.Type != v1.ServiceTypeExternalName
}

// validateClusterIPsUpdate lets a service get a second address and lose it again; the
// first one stays (validateUpgradeDowngradeClusterIPs).
func validateClusterIPsUpdate(svc, old *v1.Service) field.ErrorList {
	if !keepsAddresses(svc, old) || isHeadless(svc) && isHeadless(old) {
		return nil
	}
	path, policy := field.NewPath("spec", "clusterIPs"), svc.Spec.IPFamilyPolicy
	ips, were := clusterIPsOf(svc), clusterIPsOf(old)
	if len(were) > 0 && len(ips) == 0 {
		return field.ErrorList{field.Invalid(path.Index(0), ips, "primary clusterIP can not be unset")}
	}
	var errs field.ErrorList
	for i, ip := range were {
		if i < len(ips) && ip != ips[i] && (i == 0 || len(ips) == len(were)) {
			errs = append(errs, field.Invalid(path.Index(i), ips, "may not change once set"))
		}
	}
	if len(were) > 1 && len(ips) == 1 && (policy == nil || *policy != v1.IPFamilyPolicySingleStack) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), policy, "must be set to 'SingleStack' when releasing the secondary clusterIP"))
	}
	return errs
}

// validateFamiliesUpdate is the same for families
// (validateUpgradeDowngradeIPFamilies). Those of headless services may change.
func validateFamiliesUpdate(svc, old *v1.Service) field.ErrorList {
	if !keepsAddresses(svc, old) || isHeadless(svc) || isHeadless(old) {
		return nil
	}
	path, policy := field.NewPath("spec", "ipFamilies").Index(0), svc.Spec.IPFamilyPolicy
	list, were := svc.Spec.IPFamilies, old.Spec.IPFamilies
	var errs field.ErrorList
	switch {
	case len(list) == len(were):
		for i := range list {
			if list[i] != were[i] {
				errs = append(errs, field.Invalid(path, list, "may not change once set"))
			}
		}
		return errs
	case len(list) > 0 && len(were) > 0 && list[0] != were[0]:
		errs = append(errs, field.Invalid(path, svc.Spec.ClusterIPs, "may not change once set"))
	}
	if len(were) > 1 && len(list) == 1 && (policy == nil || *policy != v1.IPFamilyPolicySingleStack) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), policy, "must be set to 'SingleStack' when releasing the secondary ipFamily"))
	}
	return errs
}
