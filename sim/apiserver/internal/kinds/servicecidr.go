package kinds

import (
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// ServiceCIDR is the kind of ranges that services may have their addresses from.
const ServiceCIDR kind.Kind = "ServiceCIDR"

// serviceCIDR returns the row of ServiceCIDR
// (pkg/registry/networking/servicecidr/strategy.go).
func serviceCIDR() *kind.Info {
	type cidr = networkingv1.ServiceCIDR
	return &kind.Info{
		Kind: ServiceCIDR, Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs", Inert: kind.InertAlways,
		Strategy: &kind.Typed[cidr, *cidr]{
			Halves: kind.SpecAndStatus(func(c *cidr) (*networkingv1.ServiceCIDRSpec, *networkingv1.ServiceCIDRStatus) {
				return &c.Spec, &c.Status
			}),
			Check:       func(c *cidr) field.ErrorList { return validateServiceRanges(c.Spec.CIDRs) },
			CheckUpdate: validateServiceCIDRUpdate,
			Table: []kind.Column[cidr]{
				kind.NameColumn[cidr](),
				{Name: "CIDRs", Type: "string", Description: networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"], Cell: func(c *cidr, _ time.Time) any {
					return strings.Join(c.Spec.CIDRs, ",")
				}},
				kind.AgeColumn[cidr](),
			},
		},
	}
}

// validateServiceRanges is validateServiceCIDRSpec: a range, or one of each family.
func validateServiceRanges(cidrs []string) field.ErrorList {
	path := field.NewPath("spec", "cidrs")
	switch {
	case len(cidrs) == 0:
		return field.ErrorList{field.Required(path, "at least one CIDR required")}
	case len(cidrs) > 2:
		return field.ErrorList{field.Invalid(path, fields.GoNames(&networkingv1.ServiceCIDRSpec{CIDRs: cidrs}), "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	for i, c := range cidrs {
		errs = append(errs, validation.IsValidCIDR(path.Index(i), c)...)
	}
	if len(cidrs) == 2 && netutils.IPFamilyOfCIDRString(cidrs[0]) == netutils.IPFamilyOfCIDRString(cidrs[1]) && netutils.IPFamilyOfCIDRString(cidrs[0]) != netutils.IPFamilyUnknown {
		errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
	}
	return errs
}

// validateServiceCIDRUpdate is ValidateServiceCIDRUpdate: a second range may be added,
// nothing else changes.
func validateServiceCIDRUpdate(c, old *networkingv1.ServiceCIDR, sub string) field.ErrorList {
	if sub != "" {
		return nil
	}
	path := field.NewPath("spec", "cidrs")
	now, was := c.Spec.CIDRs, old.Spec.CIDRs
	if len(now) != len(was) && (len(was) != 1 || len(now) != 2) {
		return field.ErrorList{field.Invalid(path, now, apivalidation.FieldImmutableErrorMsg)}
	}
	var errs field.ErrorList
	for i := range was {
		if now[i] != was[i] {
			errs = append(errs, field.Invalid(path.Index(i), now[i], apivalidation.FieldImmutableErrorMsg))
		}
	}
	if len(now) > len(was) {
		errs = append(errs, validateServiceRanges(now)...)
	}
	return errs
}
