package kinds

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Endpoints is the kind of what endpoint slices are made after.
const Endpoints kind.Kind = "Endpoints"

// endpoints returns the row of Endpoints (pkg/registry/core/endpoint/strategy.go).
func endpoints() *kind.Info {
	type eps = v1.Endpoints
	return &kind.Info{
		Kind: Endpoints, Meta: kind.MetaAgain, Version: "v1", Resource: "endpoints", ShortNames: []string{"ep"},
		Namespaced: true, CreatesOnUpdate: true, Inert: kind.InertAlways,
		Strategy: &kind.Typed[eps, *eps]{
			Defaults: func(e *eps) {
				for i := range e.Subsets {
					for j := range e.Subsets[i].Ports {
						fields.Default(&e.Subsets[i].Ports[j].Protocol, v1.ProtocolTCP)
					}
				}
			},
			Check: validateEndpoints,
			CheckUpdate: func(e, old *eps, _ string) field.ErrorList {
				errs := validateEndpoints(e)
				// What was taken once is kept.
				if len(errs) > 0 && equality.Semantic.DeepEqual(e.Subsets, old.Subsets) {
					return nil
				}
				return errs
			},
			Warn: func(e, _ *eps, _ string) []string {
				var out []string
				for i := range e.Subsets {
					p := field.NewPath("subsets").Index(i)
					for j, a := range e.Subsets[i].Addresses {
						out = append(out, validation.GetWarningsForIP(p.Child("addresses").Index(j).Child("ip"), a.IP)...)
					}
					for j, a := range e.Subsets[i].NotReadyAddresses {
						out = append(out, validation.GetWarningsForIP(p.Child("notReadyAddresses").Index(j).Child("ip"), a.IP)...)
					}
				}
				return out
			},
			Table: []kind.Column[eps]{
				kind.NameColumn[eps](),
				{Name: "Endpoints", Type: "string", Description: eps{}.SwaggerDoc()["subsets"], Cell: func(e *eps, _ time.Time) any { return endpointsCell(e) }},
				kind.AgeColumn[eps](),
			},
		},
	}
}

// endpointsCell shows the first three endpoints, and how many more there are
// (formatEndpoints).
func endpointsCell(e *v1.Endpoints) string {
	if len(e.Subsets) == 0 {
		return "<none>"
	}
	const most = 3
	var list []string
	for i := range e.Subsets {
		s := &e.Subsets[i]
		for _, a := range s.Addresses {
			if len(s.Ports) == 0 { // of a headless service
				list = append(list, a.IP)
			}
		}
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				list = append(list, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:most], ","), more)
	}
	return strings.Join(list, ",")
}

// validateEndpoints is ValidateEndpoints.
func validateEndpoints(e *v1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	for i := range e.Subsets {
		s, p := &e.Subsets[i], field.NewPath("subsets").Index(i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(p, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range s.Addresses {
			errs = append(errs, validateEndpointAddress(&s.Addresses[j], p.Child("addresses").Index(j))...)
		}
		for j := range s.NotReadyAddresses {
			errs = append(errs, validateEndpointAddress(&s.NotReadyAddresses[j], p.Child("notReadyAddresses").Index(j))...)
		}
		for j := range s.Ports {
			port, q := &s.Ports[j], p.Child("ports").Index(j)
			switch {
			case port.Name != "":
				errs = append(errs, fields.DNSLabel(port.Name, q.Child("name"))...)
			case len(s.Ports) > 1:
				errs = append(errs, field.Required(q.Child("name"), ""))
			}
			errs = append(errs, fields.Port(port.Port, q.Child("port"))...)
			errs = append(errs, fields.OneOf(port.Protocol, q.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
			if a := port.AppProtocol; a != nil {
				errs = append(errs, fields.Invalid(q.Child("appProtocol"), *a, validation.IsQualifiedName(*a))...)
			}
		}
	}
	return errs
}

func validateEndpointAddress(a *v1.EndpointAddress, p *field.Path) field.ErrorList {
	ip := p.Child("ip")
	errs := validation.IsValidIPForLegacyField(ip, a.IP, true, nil)
	if a.Hostname != "" {
		errs = append(errs, fields.DNSLabel(a.Hostname, p.Child("hostname"))...)
	}
	if a.NodeName != nil {
		errs = append(errs, fields.DNSName(*a.NodeName, p.Child("nodeName"))...)
	}
	return append(errs, validateEndpointIP(a.IP, ip)...)
}

// validateEndpointIP refuses addresses that mean another machine to each who uses
// them (ValidateEndpointIP).
func validateEndpointIP(text string, p *field.Path) field.ErrorList {
	ip := netutils.ParseIPSloppy(text)
	if ip == nil {
		return field.ErrorList{field.Invalid(p, text, "must be a valid IP address")}
	}
	var errs field.ErrorList
	for _, bad := range []struct {
		is   bool
		text string
	}{
		{ip.IsUnspecified(), fmt.Sprintf("may not be unspecified (%v)", text)},
		{ip.IsLoopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"},
		{ip.IsLinkLocalUnicast(), "may not be in the link-local range (169.254.0.0/16, fe80::/10)"},
		{ip.IsLinkLocalMulticast(), "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"},
	} {
		if bad.is {
			errs = append(errs, field.Invalid(p, text, bad.text))
		}
	}
	return errs
}
