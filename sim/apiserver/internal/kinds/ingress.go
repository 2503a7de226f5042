package kinds

import (
	"fmt"
	"slices"
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

// Ingress is the kind of ingresses. No traffic is routed here: who simulates an
// ingress controller writes the status as a client.
const Ingress kind.Kind = "Ingress"

// ingress returns the row of Ingress (pkg/registry/networking/ingress/strategy.go).
func ingress() *kind.Info {
	return &kind.Info{
		Kind: Ingress, Group: "networking.k8s.io", Version: "v1", Resource: "ingresses", ShortNames: []string{"ing"}, Namespaced: true,
		Inert: kind.InertAlways,
		Strategy: &kind.Typed[networkingv1.Ingress, *networkingv1.Ingress]{
			CountsSpec: true,
			Halves: kind.SpecAndStatus(func(i *networkingv1.Ingress) (*networkingv1.IngressSpec, *networkingv1.IngressStatus) {
				return &i.Spec, &i.Status
			}),
			Check:       validateNewIngress,
			CheckUpdate: validateIngressUpdate,
			Warn:        ingressWarnings,
			Table:       ingressTable(),
		},
	}
}

func ingressTable() []kind.Column[networkingv1.Ingress] {
	type ing = networkingv1.Ingress
	return []kind.Column[ing]{
		kind.NameColumn[ing](),
		{Name: "Class", Type: "string", Description: "The name of the IngressClass resource that should be used for additional configuration",
			Cell: func(i *ing, _ time.Time) any {
				if i.Spec.IngressClassName == nil {
					return none
				}
				return *i.Spec.IngressClassName
			}},
		{Name: "Hosts", Type: "string", Description: "Hosts that incoming requests are matched against before the ingress rule",
			Cell: func(i *ing, _ time.Time) any { return ingressHosts(i.Spec.Rules) }},
		{Name: "Address", Type: "string", Description: "Address is a list containing ingress points for the load-balancer",
			Cell: func(i *ing, _ time.Time) any { return ingressAddresses(i.Status.LoadBalancer.Ingress) }},
		{Name: "Ports", Type: "string", Description: "Ports of TLS configurations that open", Cell: func(i *ing, _ time.Time) any {
			if len(i.Spec.TLS) > 0 {
				return "80, 443"
			}
			return "80"
		}},
		kind.AgeColumn[ing](),
	}
}

// maxShownHosts is how many hosts a table has room for.
const maxShownHosts = 3

// ingressHosts is formatHosts: who has more rules than there is room for is told how
// many more.
func ingressHosts(rules []networkingv1.IngressRule) string {
	var hosts []string
	for i, r := range rules {
		if len(hosts) == maxShownHosts {
			return fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(rules)-maxShownHosts)
		}
		if rules[i].Host != "" {
			hosts = append(hosts, r.Host)
		}
	}
	if len(hosts) == 0 {
		return "*"
	}
	return strings.Join(hosts, ",")
}

// ingressAddresses is ingressLoadBalancerStatusStringer of a wide table, which is what
// servers make.
func ingressAddresses(points []networkingv1.IngressLoadBalancerIngress) string {
	var out []string
	for _, p := range points {
		if p.IP != "" {
			out = append(out, p.IP)
		} else if p.Hostname != "" {
			out = append(out, p.Hostname)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// annotationIngressClass is what named the class before the spec did.
const annotationIngressClass = "kubernetes.io/ingress.class"

// ingressWarnings are told of classes that are named as of old, and of addresses that
// are written oddly.
func ingressWarnings(i, old *networkingv1.Ingress, sub string) []string {
	if _, ok := i.Annotations[annotationIngressClass]; ok && old == nil && i.Spec.IngressClassName == nil {
		return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", annotationIngressClass)}
	}
	var out []string
	for n, p := range i.Status.LoadBalancer.Ingress {
		if sub == "status" && p.IP != "" {
			out = append(out, validation.GetWarningsForIP(field.NewPath("status", "loadBalancer", "ingress").Index(n), p.IP)...)
		}
	}
	return out
}

// validateNewIngress is ValidateIngressCreate (pkg/apis/networking/validation).
func validateNewIngress(i *networkingv1.Ingress) field.ErrorList {
	errs := validateIngress(i, nil)
	class := i.Spec.IngressClassName
	if old, ok := i.Annotations[annotationIngressClass]; ok && class != nil && old != *class {
		errs = append(errs, field.Invalid(field.NewPath("annotations").Child(annotationIngressClass), old, "must match `ingressClassName` when both are specified"))
	}
	return errs
}

// validateIngressUpdate is ValidateIngressUpdate and ValidateIngressStatusUpdate.
func validateIngressUpdate(i, old *networkingv1.Ingress, sub string) field.ErrorList {
	if sub != "" {
		return validateIngressStatus(i, old)
	}
	return validateIngress(i, old)
}

// validateIngress is validateIngress. What an old one got away with, it may keep.
func validateIngress(i, old *networkingv1.Ingress) field.ErrorList {
	spec, path := &i.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(path, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, validateIngressBackend(spec.DefaultBackend, path.Child("defaultBackend"))...)
	}
	loose := old != nil && slices.ContainsFunc(old.Spec.Rules, func(r networkingv1.IngressRule) bool {
		return strings.Contains(r.Host, "*") && len(validateIngressPaths(r.HTTP, nil)) > 0
	})
	for n, r := range spec.Rules {
		p := path.Child("rules").Index(n)
		errs = append(errs, validateIngressHost(r.Host, p.Child("host"))...)
		if !strings.Contains(r.Host, "*") || !loose {
			errs = append(errs, validateIngressPaths(r.HTTP, p.Child("http"))...)
		}
	}
	badSecret := func(t networkingv1.IngressTLS) bool {
		return t.SecretName != "" && len(apivalidation.NameIsDNSSubdomain(t.SecretName, false)) > 0
	}
	loose = old != nil && slices.ContainsFunc(old.Spec.TLS, badSecret)
	for n, t := range spec.TLS {
		p := path.Child("tls").Index(n)
		for h, host := range t.Hosts {
			errs = append(errs, validateHostname(host, p.Child("hosts").Index(h))...)
		}
		if !loose && badSecret(t) {
			errs = append(errs, fields.DNSName(t.SecretName, p.Child("secretName"))...)
		}
	}
	if spec.IngressClassName != nil {
		errs = append(errs, fields.DNSName(*spec.IngressClassName, path.Child("ingressClassName"))...)
	}
	return errs
}

// validateIngressHost checks a rule's host, if it has one.
func validateIngressHost(host string, path *field.Path) field.ErrorList {
	if host == "" {
		return nil
	}
	var errs field.ErrorList
	if netutils.ParseIPSloppy(host) != nil {
		errs = append(errs, field.Invalid(path, host, "must be a DNS name, not an IP address"))
	}
	return append(errs, validateHostname(host, path)...)
}

// validateHostname requires a name of hosts, whose first label may be a star.
func validateHostname(host string, path *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return fields.Invalid(path, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return fields.DNSName(host, path)
}

// validateIngressPaths is validateHTTPIngressRuleValue.
func validateIngressPaths(http *networkingv1.HTTPIngressRuleValue, path *field.Path) field.ErrorList {
	if http == nil {
		return nil
	}
	paths := path.Child("paths")
	if len(http.Paths) == 0 {
		return field.ErrorList{field.Required(paths, "")}
	}
	var errs field.ErrorList
	for i := range http.Paths {
		p, at := &http.Paths[i], paths.Index(i)
		if p.PathType == nil {
			errs = append(errs, field.Required(at.Child("pathType"), "pathType must be specified"))
			continue
		}
		errs = append(errs, validateIngressPath(p.Path, *p.PathType, at)...)
		errs = append(errs, validateIngressBackend(&p.Backend, at.Child("backend"))...)
	}
	return errs
}

// validateIngressPath checks a path by its type: only who looks at a path as such
// minds what is in it.
func validateIngressPath(p string, typ networkingv1.PathType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("path")
	switch typ {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !strings.HasPrefix(p, "/") {
			errs = append(errs, field.Invalid(at, p, "must be an absolute path"))
		}
		for _, seq := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p, seq) {
				errs = append(errs, field.Invalid(at, p, fmt.Sprintf("must not contain '%s'", seq)))
			}
		}
		for _, end := range []string{"/..", "/."} {
			if strings.HasSuffix(p, end) {
				errs = append(errs, field.Invalid(at, p, fmt.Sprintf("cannot end with '%s'", end)))
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p != "" && !strings.HasPrefix(p, "/") {
			errs = append(errs, field.Invalid(at, p, "must be an absolute path"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("pathType"), typ, []networkingv1.PathType{
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix}))
	}
	return errs
}

// validateIngressBackend requires a service's port, or another object.
func validateIngressBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return validateTypedReference(b.Resource.APIGroup, b.Resource.Kind, b.Resource.Name, path.Child("resource"))
	case b.Service == nil:
		return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
	}
	var errs field.ErrorList
	name := path.Child("service", "name")
	if b.Service.Name == "" {
		errs = append(errs, field.Required(name, ""))
	} else { // by the gate RelaxedServiceNameValidation, which is on
		errs = append(errs, fields.DNSLabel(b.Service.Name, name)...)
	}
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, fields.Invalid(path.Child("service", "port", "name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs, fields.Port(port.Number, path.Child("service", "port", "number"))...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

// validateIngressStatus is ValidateIngressLoadBalancerStatus.
func validateIngressStatus(i, old *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	var had []string
	for _, p := range old.Status.LoadBalancer.Ingress {
		had = append(had, p.IP)
	}
	for n, p := range i.Status.LoadBalancer.Ingress {
		path := field.NewPath("status", "loadBalancer", "ingress").Index(n)
		if p.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(path.Child("ip"), p.IP, strictAddresses, had)...)
		}
		if p.Hostname != "" {
			errs = append(errs, fields.DNSName(p.Hostname, path.Child("hostname"))...)
			if netutils.ParseIPSloppy(p.Hostname) != nil {
				errs = append(errs, field.Invalid(path.Child("hostname"), p.Hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}
