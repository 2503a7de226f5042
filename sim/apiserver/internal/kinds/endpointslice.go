package kinds

import (
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// EndpointSlice is the kind of endpoint slices. They have no status and no spec:
// endpoints and ports are what its generation counts.
const EndpointSlice kind.Kind = "EndpointSlice"

// endpointSlice returns the row of EndpointSlice
// (pkg/registry/discovery/endpointslice/strategy.go).
func endpointSlice() *kind.Info {
	return &kind.Info{
		Kind: EndpointSlice, Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", Namespaced: true,
		Strategy: &kind.Typed[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{
			Defaults: setEndpointSliceDefaults,
			Generation: func(es, old *discoveryv1.EndpointSlice, sub string) bool { // endpoints and ports are its spec
				return sub == "" && !(equality.Semantic.DeepEqual(es.Endpoints, old.Endpoints) && equality.Semantic.DeepEqual(es.Ports, old.Ports))
			},
			Check: validateEndpointSlice,
			CheckUpdate: func(es, old *discoveryv1.EndpointSlice, _ string) field.ErrorList {
				return append(validateEndpointSlice(es), fields.Immutable(es.AddressType, old.AddressType, field.NewPath("addressType"))...)
			},
		},
	}
}

// Limits of endpoint slices (pkg/apis/discovery/validation/validation.go).
const (
	maxSlicePorts        = 20000
	maxSliceEndpoints    = 1000
	maxEndpointAddresses = 100
)

// setEndpointSliceDefaults is that of pkg/apis/discovery/v1/defaults.go.
func setEndpointSliceDefaults(es *discoveryv1.EndpointSlice) {
	for i := range es.Ports {
		// The one port of a service has no name, but the field is not optional for
		// readers.
		fields.DefaultPtr(&es.Ports[i].Name, "")
		fields.DefaultPtr(&es.Ports[i].Protocol, v1.ProtocolTCP)
	}
}

// validateEndpointSlice is ValidateEndpointSlice. All addresses of one are of one
// family, so that a proxy need not look at each.
func validateEndpointSlice(es *discoveryv1.EndpointSlice) field.ErrorList {
	p := field.NewPath("addressType")
	if es.AddressType == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	errs := fields.OneOf(es.AddressType, p, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	endpoints := field.NewPath("endpoints")
	if len(es.Endpoints) > maxSliceEndpoints {
		errs = append(errs, field.TooMany(endpoints, len(es.Endpoints), maxSliceEndpoints))
	}
	for i := range es.Endpoints {
		errs = append(errs, validateEndpoint(&es.Endpoints[i], es.AddressType, endpoints.Index(i))...)
	}
	ports := field.NewPath("ports")
	if len(es.Ports) > maxSlicePorts {
		errs = append(errs, field.TooMany(ports, len(es.Ports), maxSlicePorts))
	}
	names := map[string]bool{}
	for i := range es.Ports {
		q := ports.Index(i)
		// Ports go by their names, of which one may be empty.
		name := *es.Ports[i].Name // defaulted
		if name != "" {
			errs = append(errs, fields.DNSLabel(name, q.Child("name"))...)
		}
		if names[name] {
			errs = append(errs, field.Duplicate(q.Child("name"), name))
		}
		names[name] = true
		errs = append(errs, fields.OneOf(*es.Ports[i].Protocol, q.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
	}
	return errs
}

// validateEndpoint is validateEndpoints for one of them.
func validateEndpoint(ep *discoveryv1.Endpoint, family discoveryv1.AddressType, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	addresses := p.Child("addresses")
	switch n := len(ep.Addresses); {
	case n == 0:
		errs = append(errs, field.Required(addresses, "must contain at least 1 address"))
	case n > maxEndpointAddresses:
		errs = append(errs, field.TooMany(addresses, n, maxEndpointAddresses))
	}
	for i, a := range ep.Addresses {
		q := addresses.Index(i)
		switch family {
		case discoveryv1.AddressTypeIPv4:
			errs = append(errs, addressOf(q, a, false)...)
		case discoveryv1.AddressTypeIPv6:
			errs = append(errs, addressOf(q, a, true)...)
		case discoveryv1.AddressTypeFQDN:
			errs = append(errs, validation.IsFullyQualifiedDomainName(q, a)...)
		}
	}
	if ep.Hostname != nil {
		errs = append(errs, fields.DNSLabel(*ep.Hostname, p.Child("hostname"))...)
	}
	if ep.NodeName != nil {
		errs = append(errs, fields.Invalid(p.Child("nodeName"), *ep.NodeName, validation.IsDNS1123Subdomain(*ep.NodeName))...)
	}
	return errs
}

// addressOf requires an address of one family.
func addressOf(p *field.Path, a string, v6 bool) field.ErrorList {
	if errs := validation.IsValidIP(p, a); len(errs) > 0 {
		return errs
	}
	switch {
	case v6 && !netutils.IsIPv6String(a):
		return field.ErrorList{field.Invalid(p, a, "must be a valid IPv6 address")}
	case !v6 && !netutils.IsIPv4String(a):
		return field.ErrorList{field.Invalid(p, a, "must be a valid IPv4 address")}
	}
	return nil
}
