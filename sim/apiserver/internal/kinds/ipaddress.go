package kinds

import (
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// IPAddress is the kind of addresses that are in use by services.
const IPAddress kind.Kind = "IPAddress"

// ipAddress returns the row of IPAddress (pkg/registry/networking/ipaddress/strategy.go).
// Its name is the address.
func ipAddress() *kind.Info {
	type address = networkingv1.IPAddress
	return &kind.Info{
		Kind: IPAddress, Group: "networking.k8s.io", Version: "v1", Resource: "ipaddresses", ShortNames: []string{"ip"}, CheckName: addressName,
		Inert: kind.InertAlways,
		Strategy: &kind.Typed[address, *address]{
			Check: validateIPAddress,
			CheckUpdate: func(a, old *address, _ string) field.ErrorList {
				return append(validateIPAddress(a), fields.Immutable(a.Spec.ParentRef, old.Spec.ParentRef, field.NewPath("spec", "parentRef"))...)
			},
			Table: []kind.Column[address]{
				kind.NameColumn[address](),
				{Name: "ParentRef", Type: "string", Description: networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"], Cell: func(a *address, _ time.Time) any {
					return parentName(a.Spec.ParentRef)
				}},
				{Cell: kind.AgeColumn[address]().Cell},
			},
		},
	}
}

// addressName is ValidateIPAddressName.
func addressName(name string, _ bool) []string {
	var out []string
	for _, err := range validation.IsValidIP(nil, name) {
		out = append(out, err.Detail)
	}
	return out
}

// parentName is whose an address is: "services/default/web".
func parentName(ref *networkingv1.ParentReference) string {
	if ref == nil {
		return none
	}
	out := strings.ToLower(schema.GroupResource{Group: ref.Group, Resource: ref.Resource}.String())
	if ref.Namespace != "" {
		out += "/" + ref.Namespace
	}
	return out + "/" + ref.Name
}

// validateIPAddress is validateIPAddressParentReference. The group of services is "".
func validateIPAddress(a *networkingv1.IPAddress) field.ErrorList {
	ref, path := a.Spec.ParentRef, field.NewPath("spec", "parentRef")
	if ref == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if ref.Group != "" {
		errs = append(errs, fields.DNSName(ref.Group, path.Child("group"))...)
	}
	errs = append(errs, validatePathSegment(ref.Resource, path.Child("resource"))...)
	errs = append(errs, validatePathSegment(ref.Name, path.Child("name"))...)
	if ref.Namespace != "" {
		errs = append(errs, fields.Invalid(path.Child("namespace"), ref.Namespace, content.IsPathSegmentName(ref.Namespace))...)
	}
	return errs
}
