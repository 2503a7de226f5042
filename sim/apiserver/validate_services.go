package apiserver

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// Limits of endpoint slices (pkg/apis/discovery/validation/validation.go).
const (
	maxSlicePorts        = 20000
	maxSliceEndpoints    = 1000
	maxEndpointAddresses = 100
)

func validateEndpointSlice(es *discoveryv1.EndpointSlice) field.ErrorList {
	p := field.NewPath("addressType")
	if es.AddressType == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	errs := oneOf(es.AddressType, p, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
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
		name := *es.Ports[i].Name // defaulted
		if name != "" {
			errs = append(errs, dnsLabel(name, q.Child("name"))...)
		}
		if names[name] {
			errs = append(errs, field.Duplicate(q.Child("name"), name))
		}
		names[name] = true
		errs = append(errs, oneOf(*es.Ports[i].Protocol, q.Child("protocol"), v1.ProtocolSCTP, v1.ProtocolTCP, v1.ProtocolUDP)...)
	}
	return errs
}

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
		errs = append(errs, dnsLabel(*ep.Hostname, p.Child("hostname"))...)
	}
	if ep.NodeName != nil {
		for _, msg := range validation.IsDNS1123Subdomain(*ep.NodeName) {
			errs = append(errs, field.Invalid(p.Child("nodeName"), *ep.NodeName, msg))
		}
	}
	return errs
}

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

// Limits of the rules of autoscaling (pkg/apis/autoscaling/validation/validation.go).
const (
	maxPolicyPeriodSeconds = 1800
	maxStabilizationWindow = 3600
	atLeastOne, aboveZero  = "must be greater than or equal to 1", "must be greater than 0"
	greaterThanZero        = "must be greater than zero"
)

func validateHPA(hpa *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	spec, p := &hpa.Spec, field.NewPath("spec")
	var errs field.ErrorList
	least := int32(1)
	if spec.MinReplicas != nil {
		least = *spec.MinReplicas
	}
	if least < 1 {
		errs = append(errs, field.Invalid(p.Child("minReplicas"), least, atLeastOne))
	}
	if spec.MaxReplicas < 1 {
		errs = append(errs, field.Invalid(p.Child("maxReplicas"), spec.MaxReplicas, aboveZero))
	}
	if spec.MaxReplicas < least {
		errs = append(errs, field.Invalid(p.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	ref := p.Child("scaleTargetRef")
	for _, part := range []struct{ name, value string }{{"kind", spec.ScaleTargetRef.Kind}, {"name", spec.ScaleTargetRef.Name}} {
		if part.value == "" {
			errs = append(errs, field.Required(ref.Child(part.name), ""))
		} else {
			for _, msg := range path.IsValidPathSegmentName(part.value) {
				errs = append(errs, field.Invalid(ref.Child(part.name), part.value, msg))
			}
		}
	}
	for i := range spec.Metrics {
		errs = append(errs, validateMetric(&spec.Metrics[i], p.Child("metrics").Index(i))...)
	}
	if b := spec.Behavior; b != nil {
		errs = append(errs, validateScalingRules(b.ScaleUp, p.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateScalingRules(b.ScaleDown, p.Child("behavior", "scaleDown"))...)
	}
	return errs
}

func validateMetric(m *autoscalingv2.MetricSpec, p *field.Path) field.ErrorList {
	if m.Type == "" {
		return field.ErrorList{field.Required(p.Child("type"), "must specify a metric source type")}
	}
	errs := oneOf(m.Type, p.Child("type"), autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType,
		autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType)
	var named []string
	var expected string
	source := func(is bool, name string, typ autoscalingv2.MetricSourceType) {
		if is {
			named = append(named, name)
		}
		if m.Type == typ {
			expected = name
			if !is {
				errs = append(errs, field.Required(p.Child(name), "must populate information for the given metric source"))
			}
		}
	}
	source(m.Object != nil, "object", autoscalingv2.ObjectMetricSourceType)
	source(m.External != nil, "external", autoscalingv2.ExternalMetricSourceType)
	source(m.Pods != nil, "pods", autoscalingv2.PodsMetricSourceType)
	source(m.Resource != nil, "resource", autoscalingv2.ResourceMetricSourceType)
	source(m.ContainerResource != nil, "containerResource", autoscalingv2.ContainerResourceMetricSourceType)
	for _, name := range named {
		if name != expected {
			errs = append(errs, field.Forbidden(p.Child(name), "must populate the given metric source only"))
		}
	}
	if r := m.Resource; r != nil {
		errs = append(errs, validateResourceMetric(string(r.Name), &r.Target, p.Child("resource"))...)
	}
	if r := m.ContainerResource; r != nil {
		q := p.Child("containerResource")
		if r.Container == "" {
			errs = append(errs, field.Required(q.Child("container"), "must specify a container"))
		}
		errs = append(errs, validateResourceMetric(string(r.Name), &r.Target, q)...)
	}
	return errs
}

func validateResourceMetric(name string, t *autoscalingv2.MetricTarget, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(p.Child("name"), "must specify a resource name"))
	}
	q := p.Child("target")
	if t.Type == "" {
		errs = append(errs, field.Required(q.Child("type"), "must specify a metric target type"))
	} else {
		errs = append(errs, oneOf(t.Type, q.Child("type"), autoscalingv2.AverageValueMetricType, autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType)...)
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(q.Child("value"), t.Value, "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(q.Child("averageValue"), t.AverageValue, "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(q.Child("averageUtilization"), t.AverageUtilization, aboveZero))
	}
	if t.AverageUtilization == nil && t.AverageValue == nil {
		errs = append(errs, field.Required(q.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	}
	if t.AverageUtilization != nil && t.AverageValue != nil {
		errs = append(errs, field.Forbidden(q.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func validateScalingRules(r *autoscalingv2.HPAScalingRules, p *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil {
		q := p.Child("stabilizationWindowSeconds")
		if *w < 0 {
			errs = append(errs, field.Invalid(q, *w, "must be greater than or equal to zero"))
		}
		if *w > maxStabilizationWindow {
			errs = append(errs, field.Invalid(q, *w, fmt.Sprintf("must be less than or equal to %v", maxStabilizationWindow)))
		}
	}
	if s := r.SelectPolicy; s != nil {
		errs = append(errs, oneOf(*s, p.Child("selectPolicy"), autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)...)
	}
	policies := p.Child("policies")
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(policies, "must specify at least one Policy"))
	}
	for i := range r.Policies {
		pol, q := &r.Policies[i], policies.Index(i)
		errs = append(errs, oneOf(pol.Type, q.Child("type"), autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)...)
		if pol.Value <= 0 {
			errs = append(errs, field.Invalid(q.Child("value"), pol.Value, greaterThanZero))
		}
		if pol.PeriodSeconds <= 0 {
			errs = append(errs, field.Invalid(q.Child("periodSeconds"), pol.PeriodSeconds, greaterThanZero))
		}
		if pol.PeriodSeconds > maxPolicyPeriodSeconds {
			errs = append(errs, field.Invalid(q.Child("periodSeconds"), pol.PeriodSeconds, fmt.Sprintf("must be less than or equal to %v", maxPolicyPeriodSeconds)))
		}
	}
	if t := r.Tolerance; t != nil && t.Sign() < 0 {
		errs = append(errs, field.Invalid(p.Child("tolerance"), t.String(), "must be greater than or equal to zero"))
	}
	return errs
}
