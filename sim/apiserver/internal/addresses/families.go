package addresses

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// invalid is the answer to a service with mistakes; nil: there are none.
func invalid(svc *v1.Service, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind(string(kinds.Service)).GroupKind(), svc.Name, errs)
}

// setFamilies completes a service's families and their policy (initIPFamilyFields). old
// is nil of a new service. It returns the mistakes of which others would only follow.
func setFamilies(svc, old *v1.Service) error {
	s := &svc.Spec
	if s.Type == v1.ServiceTypeExternalName || prefersAsBefore(svc, old) {
		return nil
	}
	bare := s.ClusterIP == v1.ClusterIPNone && len(s.Selector) == 0 // who knows what families its endpoints have
	switch {
	case s.IPFamilyPolicy != nil:
	case old != nil && old.Spec.IPFamilyPolicy != nil:
		s.IPFamilyPolicy = old.Spec.IPFamilyPolicy
	case bare:
		s.IPFamilyPolicy = new(v1.IPFamilyPolicyRequireDualStack)
	default:
		s.IPFamilyPolicy = new(v1.IPFamilyPolicySingleStack)
	}
	if err := invalid(svc, kinds.ValidateClusterIPs(svc, old)); err != nil {
		return err
	}
	single := *s.IPFamilyPolicy == v1.IPFamilyPolicySingleStack
	errs := reduceFamilies(s, old, single)
	path := field.NewPath("spec")
	if single && len(s.ClusterIPs) == 2 {
		errs = append(errs, field.Invalid(path.Child("ipFamilyPolicy"), s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	if single && len(s.IPFamilies) == 2 {
		errs = append(errs, field.Invalid(path.Child("ipFamilyPolicy"), s.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	if err := invalid(svc, append(errs, inferFamilies(s, path)...)); err != nil {
		return err
	}
	if bare {
		setBareFamilies(s, single)
		return nil
	}
	if *s.IPFamilyPolicy == v1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(path.Child("ipFamilyPolicy"), s.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, f := range s.IPFamilies {
		if f != v1.IPv4Protocol {
			errs = append(errs, field.Invalid(path.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []v1.IPFamily{v1.IPv4Protocol}
	}
	return invalid(svc, errs)
}

// reduceFamilies takes the second address and family from a service that is to have
// one, and refuses to of one that doesn't say so.
func reduceFamilies(s *v1.ServiceSpec, old *v1.Service, single bool) (errs field.ErrorList) {
	if old == nil {
		return nil
	}
	was, policy := &old.Spec, field.NewPath("spec", "ipFamilyPolicy")
	if single {
		if len(s.ClusterIPs) > 1 && slices.Equal(s.ClusterIPs, was.ClusterIPs) {
			s.ClusterIPs = s.ClusterIPs[:1:1]
		}
		if len(s.IPFamilies) > 1 && slices.Equal(s.IPFamilies, was.IPFamilies) {
			s.IPFamilies = s.IPFamilies[:1:1]
		}
		return nil
	}
	if len(s.ClusterIPs) != 0 && len(s.ClusterIPs) < len(was.ClusterIPs) {
		errs = append(errs, field.Invalid(policy, s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"))
	}
	if len(s.IPFamilies) != 0 && len(s.IPFamilies) < len(was.IPFamilies) {
		errs = append(errs, field.Invalid(policy, s.IPFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"))
	}
	return errs
}

// inferFamilies adds the families of addresses that were asked for.
func inferFamilies(s *v1.ServiceSpec, path *field.Path) (errs field.ErrorList) {
	for i, ip := range s.ClusterIPs {
		switch {
		case ip == v1.ClusterIPNone:
			return errs
		case i < len(s.IPFamilies):
		case netutils.IsIPv6String(ip):
			errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(i), s.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", v1.IPv6Protocol)))
		default:
			s.IPFamilies = append(slices.Clip(s.IPFamilies), v1.IPv4Protocol)
		}
	}
	return errs
}

// setBareFamilies is for headless services without a selector, which may have families
// that the cluster has not.
func setBareFamilies(s *v1.ServiceSpec, single bool) {
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []v1.IPFamily{v1.IPv4Protocol}
	}
	if single || len(s.IPFamilies) > 1 {
		return
	}
	other := v1.IPv4Protocol
	if s.IPFamilies[0] == v1.IPv4Protocol {
		other = v1.IPv6Protocol
	}
	s.IPFamilies = append(slices.Clip(s.IPFamilies), other)
}

// prefersAsBefore reports whether a service has preferred two families all the time and
// says nothing new of addresses: it keeps what it has
// (isMatchingPreferDualStackClusterIPFields).
func prefersAsBefore(svc, old *v1.Service) bool {
	if old == nil {
		return false
	}
	s, was := &svc.Spec, &old.Spec
	prefers := func(p *v1.IPFamilyPolicy) bool { return p != nil && *p == v1.IPFamilyPolicyPreferDualStack }
	return prefers(s.IPFamilyPolicy) && (was.IPFamilyPolicy == nil || prefers(was.IPFamilyPolicy)) &&
		s.Type == was.Type && s.Type != v1.ServiceTypeExternalName &&
		slices.Equal(s.ClusterIPs, was.ClusterIPs) && slices.Equal(s.IPFamilies, was.IPFamilies)
}
