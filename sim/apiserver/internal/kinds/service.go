package kinds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Service is the kind of services. Every node watches all of them, for the
// environment of its pods. Addresses are given to them by the store, where clients
// come in; nothing here routes by them.
const Service kind.Kind = "Service"

// service returns the row of Service (pkg/registry/core/service/strategy.go). Its
// rules are servicerules.go and serviceips.go.
func service() *kind.Info {
	return &kind.Info{
		Kind: Service, Version: "v1", Resource: "services", ShortNames: []string{"svc"}, Categories: []string{"all"},
		ReturnsDeleted: true, CreatesOnUpdate: true, Namespaced: true, CheckName: apivalidation.NameIsDNSLabel, Watch: kind.Whole,
		Strategy: &kind.Typed[v1.Service, *v1.Service]{
			Defaults: setServiceDefaults,
			Halves:   kind.SpecAndStatus(func(s *v1.Service) (*v1.ServiceSpec, *v1.ServiceStatus) { return &s.Spec, &s.Status }),
			Keep: func(s, old *v1.Service, sub string) bool {
				switch sub {
				case "":
					s.Status = old.Status
					dropOfOtherType(s, &old.Spec)
				case "status":
					s.Spec = old.Spec
				default:
					return false
				}
				return true
			},
			Fields: func(s *v1.Service) selectable.Set {
				return selectable.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
			},
			Check:       validateService,
			CheckUpdate: validateServiceUpdate,
			Warn:        warningsOfService,
			Table:       serviceTable(),
		},
	}
}

// setServiceDefaults is SetDefaults_Service.
func setServiceDefaults(svc *v1.Service) {
	s := &svc.Spec
	fields.Default(&s.SessionAffinity, v1.ServiceAffinityNone)
	switch c := s.SessionAffinityConfig; {
	case s.SessionAffinity == v1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case s.SessionAffinity == v1.ServiceAffinityClientIP && (c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil):
		s.SessionAffinityConfig = &v1.SessionAffinityConfig{ClientIP: &v1.ClientIPConfig{TimeoutSeconds: new(v1.DefaultClientIPServiceAffinitySeconds)}}
	}
	fields.Default(&s.Type, v1.ServiceTypeClusterIP)
	for i := range s.Ports {
		p := &s.Ports[i]
		fields.Default(&p.Protocol, v1.ProtocolTCP)
		// The pods' port is the service's, unless it is named.
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if reachedFromOutside(s) {
		fields.Default(&s.ExternalTrafficPolicy, v1.ServiceExternalTrafficPolicyCluster)
	}
	// An external name has no traffic of its own.
	switch s.Type {
	case v1.ServiceTypeClusterIP, v1.ServiceTypeNodePort, v1.ServiceTypeLoadBalancer:
		fields.DefaultPtr(&s.InternalTrafficPolicy, v1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type != v1.ServiceTypeLoadBalancer {
		return
	}
	fields.DefaultPtr(&s.AllocateLoadBalancerNodePorts, true)
	for i := range svc.Status.LoadBalancer.Ingress {
		if in := &svc.Status.LoadBalancer.Ingress[i]; in.IP != "" {
			fields.DefaultPtr(&in.IPMode, v1.LoadBalancerIPModeVIP)
		}
	}
}

// reachedFromOutside is ExternallyAccessible of pkg/api/service.
func reachedFromOutside(s *v1.ServiceSpec) bool {
	return hasNodePorts(s) || s.Type == v1.ServiceTypeClusterIP && len(s.ExternalIPs) > 0
}

func hasNodePorts(s *v1.ServiceSpec) bool {
	return s.Type == v1.ServiceTypeNodePort || s.Type == v1.ServiceTypeLoadBalancer
}

// checksHealth is NeedsHealthCheck of pkg/api/service.
func checksHealth(s *v1.ServiceSpec) bool {
	return s.Type == v1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
}

// dropOfOtherType takes from a service what it had as one of another type and has no
// use for any more, as far as the update leaves it as it was (dropTypeDependentFields).
// What an update adds, the rules refuse.
func dropOfOtherType(svc *v1.Service, was *v1.ServiceSpec) {
	s := &svc.Spec
	if s.Type == v1.ServiceTypeExternalName && was.Type != v1.ServiceTypeExternalName {
		if s.ClusterIP == was.ClusterIP && slices.Equal(s.ClusterIPs, was.ClusterIPs) {
			s.ClusterIP, s.ClusterIPs = "", nil
		}
		if slices.Equal(s.IPFamilies, was.IPFamilies) {
			s.IPFamilies = nil
		}
		dropSame(&s.IPFamilyPolicy, was.IPFamilyPolicy)
	}
	if hasNodePorts(was) && !hasNodePorts(s) && addsNoNodePort(s.Ports, was.Ports) {
		s.Ports = slices.Clone(s.Ports)
		for i := range s.Ports {
			s.Ports[i].NodePort = 0
		}
	}
	if checksHealth(was) && !checksHealth(s) && s.HealthCheckNodePort == was.HealthCheckNodePort {
		s.HealthCheckNodePort = 0
	}
	if s.Type != v1.ServiceTypeLoadBalancer {
		if was.Type == v1.ServiceTypeLoadBalancer {
			dropSame(&s.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts)
			dropSame(&s.LoadBalancerClass, was.LoadBalancerClass)
		}
		svc.Status.LoadBalancer = v1.LoadBalancerStatus{}
	}
	if reachedFromOutside(was) && !reachedFromOutside(s) && s.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		s.ExternalTrafficPolicy = ""
	}
}

// dropSame empties a field that is what it was.
func dropSame[T comparable](p **T, was *T) {
	if *p != nil && was != nil && **p == *was {
		*p = nil
	}
}

func addsNoNodePort(ports, were []v1.ServicePort) bool {
	for _, p := range ports {
		if p.NodePort != 0 && !slices.ContainsFunc(were, func(w v1.ServicePort) bool { return w.NodePort == p.NodePort }) {
			return false
		}
	}
	return true
}

func serviceTable() []kind.Column[v1.Service] {
	doc := v1.ServiceSpec{}.SwaggerDoc()
	return []kind.Column[v1.Service]{
		kind.NameColumn[v1.Service](),
		{Name: "Type", Type: "string", Description: doc["type"], Cell: func(s *v1.Service, _ time.Time) any { return string(s.Spec.Type) }},
		{Name: "Cluster-IP", Type: "string", Description: doc["clusterIP"], Cell: func(s *v1.Service, _ time.Time) any {
			if ips := clusterIPsOf(s); len(ips) > 0 {
				return ips[0]
			}
			return none
		}},
		{Name: "External-IP", Type: "string", Description: doc["externalIPs"], Cell: func(s *v1.Service, _ time.Time) any { return externalIPText(s) }},
		{Name: "Port(s)", Type: "string", Description: doc["ports"], Cell: func(s *v1.Service, _ time.Time) any { return portsText(s.Spec.Ports) }},
		kind.AgeColumn[v1.Service](),
		{Name: "Selector", Type: "string", Description: doc["selector"], Priority: 1, Cell: func(s *v1.Service, _ time.Time) any {
			return labels.FormatLabels(s.Spec.Selector)
		}},
	}
}

// externalIPText is getServiceExternalIP.
func externalIPText(svc *v1.Service) string {
	list := svc.Spec.ExternalIPs
	empty := none
	switch svc.Spec.Type {
	case v1.ServiceTypeExternalName:
		return svc.Spec.ExternalName
	case v1.ServiceTypeLoadBalancer:
		empty = "<pending>"
		var at []string
		for _, in := range svc.Status.LoadBalancer.Ingress {
			if in.IP != "" {
				at = append(at, in.IP)
			} else if in.Hostname != "" {
				at = append(at, in.Hostname)
			}
		}
		slices.Sort(at)
		list = append(slices.Compact(at), list...)
	}
	if len(list) == 0 {
		return empty
	}
	return strings.Join(list, ",")
}

func portsText(ports []v1.ServicePort) string {
	if len(ports) == 0 {
		return none
	}
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			list[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
	}
	return strings.Join(list, ",")
}
