package kinds

import (
	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	selectable "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Service is the kind of services. Every node watches all of them, for the
// environment of its pods. No address is given to them: nothing here routes by it.
const Service kind.Kind = "Service"

// service returns the row of Service (pkg/registry/core/service/strategy.go). Its
// name is a DNS-1035 label, so that it can be a part of an environment variable's
// name.
func service() *kind.Info {
	return &kind.Info{
		Kind: Service, Version: "v1", Resource: "services", ReturnsDeleted: true, CreatesOnUpdate: true, Namespaced: true, CheckName: apivalidation.NameIsDNS1035Label, Watch: kind.Whole,
		Strategy: &kind.Typed[v1.Service, *v1.Service]{
			Defaults: setServiceDefaults,
			Reset:    func(s *v1.Service) { s.Status = v1.ServiceStatus{} },
			// No controller here writes a service's status.
			Keep: func(s, old *v1.Service, sub string) bool {
				if sub == "" {
					s.Status = old.Status
				}
				return true
			},
			Fields: func(s *v1.Service) selectable.Set {
				return selectable.Set{"spec.clusterIP": s.Spec.ClusterIP, "spec.type": string(s.Spec.Type)}
			},
			Check: validateService,
		},
	}
}

// setServiceDefaults is SetDefaults_Service without what a service's addresses
// need.
func setServiceDefaults(svc *v1.Service) {
	s := &svc.Spec
	fields.Default(&s.SessionAffinity, v1.ServiceAffinityNone)
	fields.Default(&s.Type, v1.ServiceTypeClusterIP)
	for i := range s.Ports {
		p := &s.Ports[i]
		fields.Default(&p.Protocol, v1.ProtocolTCP)
		// The pods' port is the service's, unless it is named.
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	// An external name has no traffic of its own.
	if s.Type != v1.ServiceTypeExternalName {
		fields.DefaultPtr(&s.InternalTrafficPolicy, v1.ServiceInternalTrafficPolicyCluster)
	}
}

// validateService is ValidateService without addresses. Ports need names as soon as
// there are two, since endpoints go by them; a headless service may have none.
func validateService(s *v1.Service) field.ErrorList {
	spec := field.NewPath("spec")
	errs := fields.OneOf(s.Spec.Type, spec.Child("type"), v1.ServiceTypeClusterIP, v1.ServiceTypeExternalName, v1.ServiceTypeLoadBalancer, v1.ServiceTypeNodePort)
	// Only what needs no port to be found may have none.
	if len(s.Spec.Ports) == 0 && s.Spec.ClusterIP != v1.ClusterIPNone && s.Spec.Type != v1.ServiceTypeExternalName {
		errs = append(errs, field.Required(spec.Child("ports"), ""))
	}
	if s.Spec.Type == v1.ServiceTypeExternalName {
		errs = append(errs, fields.DNSName(s.Spec.ExternalName, spec.Child("externalName"))...)
	}
	names := map[string]bool{}
	for i, p := range s.Spec.Ports {
		path := spec.Child("ports").Index(i)
		switch {
		case p.Name == "" && len(s.Spec.Ports) > 1:
			errs = append(errs, field.Required(path.Child("name"), ""))
		case p.Name != "":
			errs = append(errs, fields.DNSLabel(p.Name, path.Child("name"))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		errs = append(errs, fields.Port(p.Port, path.Child("port"))...)
		errs = append(errs, fields.OneOf(p.Protocol, path.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
	}
	if t := s.Spec.TrafficDistribution; t != nil {
		errs = append(errs, fields.OneOf(*t, spec.Child("trafficDistribution"), v1.ServiceTrafficDistributionPreferClose,
			v1.ServiceTrafficDistributionPreferSameZone, v1.ServiceTrafficDistributionPreferSameNode)...)
	}
	return append(errs, metavalidation.ValidateLabels(s.Spec.Selector, spec.Child("selector"))...)
}
