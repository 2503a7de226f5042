package kinds

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// maxAffinitySeconds is the longest that a service remembers a client's address
// (pkg/apis/core/types.go MaxClientIPServiceAffinitySeconds).
const maxAffinitySeconds = 86400

const onlyBalanced = "may only be used when `type` is 'LoadBalancer'"

// validateService is ValidateServiceCreate.
func validateService(s *v1.Service) field.ErrorList { return validateServiceAfter(s, nil) }

// validateServiceUpdate is ValidateServiceUpdate, and ValidateServiceStatusUpdate of
// the status.
func validateServiceUpdate(s, old *v1.Service, sub string) field.ErrorList {
	if sub == "status" {
		return validateBalancers(s, old)
	}
	errs := validateClusterIPsUpdate(s, old)
	errs = append(errs, validateFamiliesUpdate(s, old)...)
	spec := field.NewPath("spec")
	if s.Spec.Type == v1.ServiceTypeLoadBalancer && old.Spec.Type == v1.ServiceTypeLoadBalancer && !samePtr(s.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
		errs = append(errs, field.Invalid(spec.Child("loadBalancerClass"), s.Spec.LoadBalancerClass, "may not change once set"))
	}
	errs = append(errs, validateBalancerClass(&s.Spec, spec.Child("loadBalancerClass"))...)
	if checksHealth(&s.Spec) && checksHealth(&old.Spec) && s.Spec.HealthCheckNodePort != old.Spec.HealthCheckNodePort {
		errs = append(errs, field.Forbidden(spec.Child("healthCheckNodePort"), "field is immutable"))
	}
	return append(errs, validateServiceAfter(s, old)...)
}

func samePtr[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// validateServiceAfter is validateService. Addresses that the old service has are
// not checked again.
func validateServiceAfter(svc, old *v1.Service) field.ErrorList {
	s, path := &svc.Spec, field.NewPath("spec")
	errs := validateTopologyMode(svc)
	// Only what needs no port to be found may have none.
	if len(s.Ports) == 0 && !isHeadless(svc) && s.Type != v1.ServiceTypeExternalName {
		errs = append(errs, field.Required(path.Child("ports"), ""))
	}
	errs = append(errs, validateServiceType(svc, path)...)
	errs = append(errs, validateServicePorts(s, path.Child("ports"))...)
	errs = append(errs, metavalidation.ValidateLabels(s.Selector, path.Child("selector"))...)
	errs = append(errs, validateAffinity(s, path)...)
	errs = append(errs, ValidateClusterIPs(svc, old)...)
	var externalIPs []string
	if old != nil {
		externalIPs = old.Spec.ExternalIPs
	}
	for i, ip := range s.ExternalIPs {
		at := path.Child("externalIPs").Index(i)
		if bad := validation.IsValidIPForLegacyField(at, ip, true, externalIPs); len(bad) > 0 {
			errs = append(errs, bad...)
		} else {
			errs = append(errs, fields.EndpointIP(at, ip)...)
		}
	}
	errs = append(errs, validateSourceRanges(svc, old)...)
	if s.AllocateLoadBalancerNodePorts != nil && s.Type != v1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(path.Child("allocateLoadBalancerNodePorts"), onlyBalanced))
	}
	errs = append(errs, validateBalancerClass(s, path.Child("loadBalancerClass"))...)
	errs = append(errs, validateTrafficPolicies(s, path)...)
	if t := s.TrafficDistribution; t != nil {
		near := []string{v1.ServiceTrafficDistributionPreferClose, v1.ServiceTrafficDistributionPreferSameZone, v1.ServiceTrafficDistributionPreferSameNode}
		if !slices.Contains(near, *t) {
			errs = append(errs, field.NotSupported(path.Child("trafficDistribution"), *t, near))
		}
	}
	return errs
}

// validateTopologyMode checks that an annotation and its old name don't contradict each
// other.
func validateTopologyMode(svc *v1.Service) field.ErrorList {
	mode, ok := svc.Annotations[v1.AnnotationTopologyMode]
	hints, old := svc.Annotations[v1.DeprecatedAnnotationTopologyAwareHints]
	if !ok || !old || mode == hints {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(v1.AnnotationTopologyMode), mode,
		fmt.Sprintf("must match annotations[%s] when both are specified", v1.DeprecatedAnnotationTopologyAwareHints))}
}

// validateServiceType checks the type, and what it says of other fields.
func validateServiceType(svc *v1.Service, path *field.Path) field.ErrorList {
	s := &svc.Spec
	errs := fields.OneOf(s.Type, path.Child("type"), v1.ServiceTypeClusterIP, v1.ServiceTypeExternalName, v1.ServiceTypeLoadBalancer, v1.ServiceTypeNodePort)
	if hasNodePorts(s) && isHeadless(svc) {
		errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(0), v1.ClusterIPNone, fmt.Sprintf("may not be set to 'None' for %s services", s.Type)))
	}
	if s.Type != v1.ServiceTypeExternalName {
		return errs
	}
	const no = "may not be set for ExternalName services"
	if len(clusterIPsOf(svc)) > 0 {
		errs = append(errs, field.Forbidden(path.Child("clusterIPs"), no))
	}
	if len(s.IPFamilies) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ipFamilies"), no))
	}
	if s.IPFamilyPolicy != nil {
		errs = append(errs, field.Forbidden(path.Child("ipFamilyPolicy"), no))
	}
	name := strings.TrimSuffix(s.ExternalName, ".")
	if name == "" {
		return append(errs, field.Required(path.Child("externalName"), ""))
	}
	return append(errs, fields.DNSName(name, path.Child("externalName"))...)
}

// validateServicePorts checks ports, which need names as soon as there are two, since
// endpoints go by them.
func validateServicePorts(s *v1.ServiceSpec, path *field.Path) field.ErrorList {
	type portOf struct {
		protocol v1.Protocol
		port     int32
	}
	var errs field.ErrorList
	names, ports, nodePorts := map[string]bool{}, map[portOf]bool{}, map[portOf]bool{}
	for i := range s.Ports {
		p, at := &s.Ports[i], path.Index(i)
		switch {
		case p.Name == "" && len(s.Ports) > 1:
			errs = append(errs, field.Required(at.Child("name"), ""))
		case p.Name != "":
			errs = append(errs, fields.DNSLabel(p.Name, at.Child("name"))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		errs = append(errs, fields.Port(p.Port, at.Child("port"))...)
		errs = append(errs, fields.OneOf(p.Protocol, at.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
		errs = append(errs, fields.PortOrName(p.TargetPort, at.Child("targetPort"))...)
		if p.AppProtocol != nil {
			errs = append(errs, fields.QualifiedName(*p.AppProtocol, at.Child("appProtocol"))...)
		}
		if p.NodePort != 0 && s.Type == v1.ServiceTypeClusterIP {
			errs = append(errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		if key := (portOf{p.Protocol, p.NodePort}); p.NodePort != 0 {
			if nodePorts[key] {
				errs = append(errs, field.Duplicate(at.Child("nodePort"), p.NodePort))
			}
			nodePorts[key] = true
		}
		key := portOf{p.Protocol, p.Port}
		if ports[key] {
			errs = append(errs, field.Duplicate(at, fields.GoNames(v1.ServicePort{Protocol: p.Protocol, Port: p.Port})))
		}
		ports[key] = true
	}
	return errs
}

// validateAffinity checks how a client's connections keep together.
func validateAffinity(s *v1.ServiceSpec, path *field.Path) field.ErrorList {
	errs := fields.OneOf(s.SessionAffinity, path.Child("sessionAffinity"), v1.ServiceAffinityClientIP, v1.ServiceAffinityNone)
	config := path.Child("sessionAffinityConfig")
	switch c := s.SessionAffinityConfig; {
	case s.SessionAffinity == v1.ServiceAffinityNone && c != nil:
		errs = append(errs, field.Forbidden(config, fmt.Sprintf("must not be set when session affinity is %s", v1.ServiceAffinityNone)))
	case s.SessionAffinity != v1.ServiceAffinityClientIP || c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil: // the config is defaulted
	case *c.ClientIP.TimeoutSeconds <= 0 || *c.ClientIP.TimeoutSeconds > maxAffinitySeconds:
		errs = append(errs, field.Invalid(config.Child("clientIP", "timeoutSeconds"), *c.ClientIP.TimeoutSeconds, fmt.Sprintf("must be greater than 0 and less than %d", maxAffinitySeconds)))
	}
	return errs
}

// validateSourceRanges checks whom a balancer lets in, a field or an annotation.
func validateSourceRanges(svc, old *v1.Service) field.ErrorList {
	path, ranges := field.NewPath("spec", "LoadBalancerSourceRanges"), svc.Spec.LoadBalancerSourceRanges
	at, before := path.Index, []string(nil)
	if old != nil {
		for _, r := range old.Spec.LoadBalancerSourceRanges {
			before = append(before, strings.TrimSpace(r))
		}
	}
	var errs field.ErrorList
	if len(ranges) == 0 {
		text, ok := svc.Annotations[v1.AnnotationLoadBalancerSourceRangesKey]
		if !ok {
			return nil
		}
		path = field.NewPath("metadata", "annotations").Key(v1.AnnotationLoadBalancerSourceRangesKey)
		at, before = func(int) *field.Path { return path }, nil
		same := old != nil && old.Annotations[v1.AnnotationLoadBalancerSourceRangesKey] == text
		if text = strings.TrimSpace(text); text != "" && !same {
			ranges = strings.Split(text, ",")
		}
	}
	if svc.Spec.Type != v1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(path, onlyBalanced))
	}
	for i, r := range ranges {
		errs = append(errs, validation.IsValidCIDRForLegacyField(at(i), strings.TrimSpace(r), true, before)...)
	}
	return errs
}

func validateBalancerClass(s *v1.ServiceSpec, path *field.Path) field.ErrorList {
	switch {
	case s.LoadBalancerClass == nil:
		return nil
	case s.Type != v1.ServiceTypeLoadBalancer:
		return field.ErrorList{field.Forbidden(path, onlyBalanced)}
	}
	return fields.QualifiedName(*s.LoadBalancerClass, path)
}

// validateTrafficPolicies checks where traffic may go. That a port for checks of health
// is there where one is needed, the store sees to where it gives any.
func validateTrafficPolicies(s *v1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	external, health := path.Child("externalTrafficPolicy"), path.Child("healthCheckNodePort")
	if reachedFromOutside(s) {
		errs = append(errs, fields.OneOf(s.ExternalTrafficPolicy, external, v1.ServiceExternalTrafficPolicyCluster, v1.ServiceExternalTrafficPolicyLocal)...)
	} else if s.ExternalTrafficPolicy != "" {
		errs = append(errs, field.Invalid(external, s.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	switch n := s.HealthCheckNodePort; {
	case n == 0:
	case checksHealth(s):
		errs = append(errs, fields.Port(n, health)...)
	default:
		errs = append(errs, field.Invalid(health, n, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	if p := s.InternalTrafficPolicy; p != nil {
		if valid := []v1.ServiceInternalTrafficPolicy{v1.ServiceInternalTrafficPolicyCluster, v1.ServiceInternalTrafficPolicyLocal}; !slices.Contains(valid, *p) {
			errs = append(errs, field.NotSupported(path.Child("internalTrafficPolicy"), *p, valid))
		}
	}
	return errs
}

// validateBalancers is ValidateLoadBalancerStatus.
func validateBalancers(svc, old *v1.Service) field.ErrorList {
	path := field.NewPath("status", "loadBalancer", "ingress")
	list := svc.Status.LoadBalancer.Ingress
	if svc.Spec.Type != v1.ServiceTypeLoadBalancer && len(list) > 0 {
		return field.ErrorList{field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	var before []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			before = append(before, in.IP)
		}
	}
	var errs field.ErrorList
	for i, in := range list {
		at := path.Index(i)
		if in.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(at.Child("ip"), in.IP, true, before)...)
		}
		modes := []v1.LoadBalancerIPMode{v1.LoadBalancerIPModeProxy, v1.LoadBalancerIPModeVIP}
		switch {
		case in.IPMode == nil && in.IP != "":
			errs = append(errs, field.Required(at.Child("ipMode"), "must be specified when `ip` is set"))
		case in.IPMode != nil && in.IP == "":
			errs = append(errs, field.Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set"))
		case in.IPMode != nil && !slices.Contains(modes, *in.IPMode):
			errs = append(errs, field.NotSupported(at.Child("ipMode"), *in.IPMode, modes))
		}
		if in.Hostname != "" {
			errs = append(errs, fields.DNSName(in.Hostname, at.Child("hostname"))...)
			if netutils.ParseIPSloppy(in.Hostname) != nil {
				errs = append(errs, field.Invalid(at.Child("hostname"), in.Hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}

// warningsOfService is GetWarningsForService.
func warningsOfService(svc, _ *v1.Service, sub string) []string {
	s, path := &svc.Spec, field.NewPath("spec")
	var out []string
	if sub == "status" {
		for i, in := range svc.Status.LoadBalancer.Ingress {
			if in.IP != "" {
				out = append(out, validation.GetWarningsForIP(field.NewPath("status", "loadBalancer", "ingress").Index(i), in.IP)...)
			}
		}
		return out
	}
	if _, ok := svc.Annotations[v1.DeprecatedAnnotationTopologyAwareHints]; ok {
		out = append(out, fmt.Sprintf("annotation %s is deprecated, please use %s instead", v1.DeprecatedAnnotationTopologyAwareHints, v1.AnnotationTopologyMode))
	}
	headless := isHeadless(svc)
	if !headless {
		for i, ip := range s.ClusterIPs {
			out = append(out, validation.GetWarningsForIP(path.Child("clusterIPs").Index(i), ip)...)
		}
	}
	external := s.Type == v1.ServiceTypeExternalName
	for _, w := range []struct {
		is   bool
		text string
	}{
		{headless && s.LoadBalancerIP != "", "spec.loadBalancerIP is ignored for headless services"},
		{headless && len(s.ExternalIPs) > 0, "spec.externalIPs is ignored for headless services"},
		{headless && s.SessionAffinity != v1.ServiceAffinityNone, "spec.SessionAffinity is ignored for headless services"},
	} {
		if w.is {
			out = append(out, w.text)
		}
	}
	for i, ip := range s.ExternalIPs {
		out = append(out, validation.GetWarningsForIP(path.Child("externalIPs").Index(i), ip)...)
	}
	if len(s.ExternalIPs) > 0 && !headless && !external {
		out = append(out, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if s.LoadBalancerIP != "" {
		out = append(out, validation.GetWarningsForIP(path.Child("loadBalancerIP"), s.LoadBalancerIP)...)
	}
	for i, r := range s.LoadBalancerSourceRanges {
		out = append(out, validation.GetWarningsForCIDR(path.Child("loadBalancerSourceRanges").Index(i), r)...)
	}
	if external && len(s.ExternalIPs) > 0 {
		out = append(out, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	}
	if !external && s.ExternalName != "" {
		out = append(out, `spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if t := s.TrafficDistribution; t != nil && *t == v1.ServiceTrafficDistributionPreferClose {
		out = append(out, fmt.Sprintf("spec.trafficDistribution: %q is deprecated; use %q", v1.ServiceTrafficDistributionPreferClose, v1.ServiceTrafficDistributionPreferSameZone))
	}
	return out
}
