package kinds

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// EndpointSlice is the kind of endpoint slices. They have no status and no spec:
// all but metadata is what its generation counts, and labels.
const EndpointSlice kind.Kind = "EndpointSlice"

// endpointSlice returns the row of EndpointSlice
// (pkg/registry/discovery/endpointslice/strategy.go).
func endpointSlice() *kind.Info {
	return &kind.Info{
		Kind: EndpointSlice, Watch: kind.Whole, Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", Namespaced: true,
		Meta: kind.MetaAsNew,
		Strategy: &kind.Typed[discoveryv1.EndpointSlice, *discoveryv1.EndpointSlice]{
			Defaults: setEndpointSliceDefaults,
			Reset:    func(es *discoveryv1.EndpointSlice) { dropTopology(es, nil) },
			Keep: func(es, old *discoveryv1.EndpointSlice, sub string) bool {
				dropTopology(es, old)
				return sub == ""
			},
			Generation: func(es, old *discoveryv1.EndpointSlice, sub string) bool {
				return !(es.AddressType == old.AddressType && equality.Semantic.DeepEqual(es.Endpoints, old.Endpoints) &&
					equality.Semantic.DeepEqual(es.Ports, old.Ports) && equality.Semantic.DeepEqual(es.Labels, old.Labels))
			},
			Check: func(es *discoveryv1.EndpointSlice) field.ErrorList { return validateEndpointSlice(es, nil) },
			CheckUpdate: func(es, old *discoveryv1.EndpointSlice, _ string) field.ErrorList {
				return append(validateEndpointSlice(es, old), fields.Immutable(es.AddressType, old.AddressType, field.NewPath("addressType"))...)
			},
			Warn: func(es, old *discoveryv1.EndpointSlice, _ string) []string {
				if es.AddressType == discoveryv1.AddressTypeFQDN {
					if old != nil {
						return nil
					}
					return []string{"spec.addressType: FQDN endpoints are deprecated"}
				}
				var out []string
				for i := range es.Endpoints {
					for j, a := range es.Endpoints[i].Addresses {
						out = append(out, validation.GetWarningsForIP(field.NewPath("endpoints").Index(i).Child("addresses").Index(j), a)...)
					}
				}
				return out
			},
			Table: endpointSliceTable(),
		},
	}
}

func endpointSliceTable() []kind.Column[discoveryv1.EndpointSlice] {
	type slice = discoveryv1.EndpointSlice
	doc := slice{}.SwaggerDoc()
	return []kind.Column[slice]{
		kind.NameColumn[slice](),
		{Name: "AddressType", Type: "string", Description: doc["addressType"], Cell: func(es *slice, _ time.Time) any { return string(es.AddressType) }},
		{Name: "Ports", Type: "string", Description: doc["ports"], Cell: func(es *slice, _ time.Time) any {
			var list []string
			for _, p := range es.Ports {
				switch {
				case p.Port != nil:
					list = append(list, strconv.Itoa(int(*p.Port)))
				case p.Name != nil:
					list = append(list, *p.Name)
				default:
					list = append(list, "*")
				}
			}
			return firstOf(list)
		}},
		{Name: "Endpoints", Type: "string", Description: doc["endpoints"], Cell: func(es *slice, _ time.Time) any {
			var list []string
			for i := range es.Endpoints {
				list = append(list, es.Endpoints[i].Addresses...)
			}
			return firstOf(list)
		}},
		kind.AgeColumn[slice](),
	}
}

// firstOf is how tables show a list that may be long: three of it, and how many more
// there are (listWithMoreString).
func firstOf(list []string) string {
	const most = 3
	switch n := len(list); {
	case n == 0:
		return "<unset>"
	case n > most:
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:most], ","), n-most)
	}
	return strings.Join(list, ",")
}

// Limits of endpoint slices (pkg/apis/discovery/validation/validation.go).
const (
	maxSlicePorts        = 20000
	maxSliceEndpoints    = 1000
	maxEndpointAddresses = 100
	maxEndpointTopology  = 16
	maxEndpointHints     = 8
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

// dropTopology takes out a field that once said where endpoints are, unless no
// endpoint changes (dropTopologyOnV1).
func dropTopology(es, old *discoveryv1.EndpointSlice) {
	if !slices.ContainsFunc(es.Endpoints, func(ep discoveryv1.Endpoint) bool { return ep.DeprecatedTopology != nil }) ||
		old != nil && equality.Semantic.DeepEqual(es.Endpoints, old.Endpoints) {
		return
	}
	es.Endpoints = slices.Clone(es.Endpoints)
	for i := range es.Endpoints {
		es.Endpoints[i].DeprecatedTopology = nil
	}
}

// validateEndpointSlice is ValidateEndpointSlice. All addresses of one are of one
// family, so that a proxy need not look at each. Endpoints that were taken once are
// kept.
func validateEndpointSlice(es, old *discoveryv1.EndpointSlice) field.ErrorList {
	errs := fields.OneOf(es.AddressType, field.NewPath("addressType"), discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	errs = append(errs, validateSlicePorts(es.Ports, field.NewPath("ports"))...)
	bad := each(es.Endpoints, maxSliceEndpoints, field.NewPath("endpoints"), func(ep *discoveryv1.Endpoint, p *field.Path) field.ErrorList {
		return validateEndpoint(ep, es.AddressType, p)
	})
	if len(bad) > 0 && (old == nil || !equality.Semantic.DeepEqual(es.Endpoints, old.Endpoints)) {
		errs = append(errs, bad...)
	}
	return errs
}

// validateSlicePorts checks ports, which go by their names, of which one may be empty.
func validateSlicePorts(ports []discoveryv1.EndpointPort, path *field.Path) field.ErrorList {
	names := map[string]bool{}
	return each(ports, maxSlicePorts, path, func(port *discoveryv1.EndpointPort, p *field.Path) field.ErrorList {
		var errs field.ErrorList
		name := *port.Name // defaulted
		if name != "" {
			errs = append(errs, fields.DNSLabel(name, p.Child("name"))...)
		}
		if names[name] {
			errs = append(errs, field.Duplicate(p.Child("name"), name))
		}
		names[name] = true
		errs = append(errs, fields.Supported(*port.Protocol, p.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
		if a := port.AppProtocol; a != nil {
			errs = append(errs, fields.Invalid(p.Child("appProtocol"), *a, validation.IsQualifiedName(*a))...)
		}
		return errs
	})
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
		switch family {
		case discoveryv1.AddressTypeIPv4:
			errs = append(errs, addressOf(addresses, i, a, false)...)
		case discoveryv1.AddressTypeIPv6:
			errs = append(errs, addressOf(addresses, i, a, true)...)
		case discoveryv1.AddressTypeFQDN:
			errs = append(errs, validation.IsFullyQualifiedDomainName(addresses.Index(i), a)...)
		}
	}
	if ep.NodeName != nil && !fields.PlainSubdomain(*ep.NodeName) {
		errs = append(errs, fields.DNSName(*ep.NodeName, p.Child("nodeName"))...)
	}
	if t := ep.DeprecatedTopology; len(t) > 0 {
		if len(t) > maxEndpointTopology {
			errs = append(errs, field.TooMany(p.Child("deprecatedTopology"), len(t), maxEndpointTopology))
		}
		errs = append(errs, metavalidation.ValidateLabels(t, p.Child("deprecatedTopology"))...)
	}
	if ep.Hostname != nil {
		errs = append(errs, fields.DNSLabel(*ep.Hostname, p.Child("hostname"))...)
	}
	if h := ep.Hints; h != nil {
		errs = append(errs, validateHints(h, p.Child("hints"))...)
	}
	return errs
}

// validateHints checks for whom an endpoint is meant.
func validateHints(h *discoveryv1.EndpointHints, p *field.Path) field.ErrorList {
	zones, nodes := p.Child("forZones"), p.Child("forNodes")
	seen := map[string]bool{}
	errs := each(h.ForZones, maxEndpointHints, zones, func(z *discoveryv1.ForZone, p *field.Path) field.ErrorList {
		var errs field.ErrorList
		p = p.Child("name")
		if seen[z.Name] {
			errs = append(errs, field.Duplicate(p, z.Name))
		}
		seen[z.Name] = true
		return append(errs, fields.Invalid(p, z.Name, validation.IsValidLabelValue(z.Name))...)
	})
	if len(h.ForZones) > maxEndpointHints {
		return errs
	}
	clear(seen)
	return append(errs, each(h.ForNodes, maxEndpointHints, nodes, func(n *discoveryv1.ForNode, p *field.Path) field.ErrorList {
		var errs field.ErrorList
		p = p.Child("name")
		if seen[n.Name] {
			errs = append(errs, field.Duplicate(p, n.Name))
		}
		seen[n.Name] = true
		return append(errs, fields.DNSName(n.Name, p)...)
	})...)
}

// addressOf requires an address of one family that means one machine to all. Nearly
// all are such, and are found to be so without a path.
func addressOf(list *field.Path, i int, a string, v6 bool) field.ErrorList {
	ip, err := netip.ParseAddr(a)
	if err == nil && ip.Is6() == v6 && !ip.Is4In6() && (!v6 || ip.String() == a) &&
		!ip.IsUnspecified() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !ip.IsLinkLocalMulticast() {
		return nil
	}
	p := list.Index(i)
	if v6 {
		if errs := validation.IsValidIP(p, a); len(errs) > 0 {
			return errs
		}
	} else if errs := validation.IsValidIPForLegacyField(p, a, true, nil); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	switch { // upstream names the list
	case v6 && !netutils.IsIPv6String(a):
		errs = append(errs, field.Invalid(list, a, "must be an IPv6 address"))
	case !v6 && !netutils.IsIPv4String(a):
		errs = append(errs, field.Invalid(list, a, "must be an IPv4 address"))
	}
	return append(errs, validateEndpointIP(a, p)...)
}
