package kinds

import (
	"time"

	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// NetworkPolicy is the kind of network policies. Pods here have no traffic that one
// could refuse.
const NetworkPolicy kind.Kind = "NetworkPolicy"

// networkPolicy returns the row of NetworkPolicy
// (pkg/registry/networking/networkpolicy/strategy.go).
func networkPolicy() *kind.Info {
	return &kind.Info{
		Kind: NetworkPolicy, Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies", ShortNames: []string{"netpol"}, Namespaced: true,
		Inert: kind.InertAlways,
		Strategy: &kind.Typed[networkingv1.NetworkPolicy, *networkingv1.NetworkPolicy]{
			Defaults: setNetworkPolicyDefaults,
			Generation: func(p, old *networkingv1.NetworkPolicy, _ string) bool {
				return !equality.Semantic.DeepEqual(p.Spec, old.Spec)
			},
			Check: func(p *networkingv1.NetworkPolicy) field.ErrorList { return validateNetworkPolicy(p, nil) },
			CheckUpdate: func(p, old *networkingv1.NetworkPolicy, _ string) field.ErrorList {
				return validateNetworkPolicy(p, old)
			},
			Warn: func(p, _ *networkingv1.NetworkPolicy, _ string) []string { return policyWarnings(&p.Spec) },
			Table: []kind.Column[networkingv1.NetworkPolicy]{
				kind.NameColumn[networkingv1.NetworkPolicy](),
				{Name: "Pod-Selector", Type: "string", Description: networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"],
					Cell: func(p *networkingv1.NetworkPolicy, _ time.Time) any {
						return metav1.FormatLabelSelector(&p.Spec.PodSelector)
					}},
				kind.AgeColumn[networkingv1.NetworkPolicy](),
			},
		},
	}
}

// setNetworkPolicyDefaults is that of pkg/apis/networking/v1/defaults.go.
func setNetworkPolicyDefaults(p *networkingv1.NetworkPolicy) {
	s := &p.Spec
	for i := range s.Ingress {
		setPolicyPortDefaults(s.Ingress[i].Ports)
	}
	for i := range s.Egress {
		setPolicyPortDefaults(s.Egress[i].Ports)
	}
	if len(s.PolicyTypes) == 0 {
		s.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Egress) > 0 {
			s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

func setPolicyPortDefaults(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		fields.DefaultPtr(&ports[i].Protocol, v1.ProtocolTCP)
	}
}

// validateNetworkPolicy is ValidateNetworkPolicy, or with an old one
// ValidateNetworkPolicyUpdate: ranges that stood in it may stay.
func validateNetworkPolicy(p, old *networkingv1.NetworkPolicy) field.ErrorList {
	spec := field.NewPath("spec")
	var had []string
	var selectors metavalidation.LabelSelectorValidationOptions
	if old != nil {
		had = policyRanges(&old.Spec)
		selectors.AllowInvalidLabelValueInSelector = len(metavalidation.ValidateLabelSelector(&old.Spec.PodSelector, selectors, nil)) > 0
	}
	errs := metavalidation.ValidateLabelSelector(&p.Spec.PodSelector, selectors, spec.Child("podSelector"))
	rule := func(ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, path *field.Path, side string) {
		for i := range ports {
			errs = append(errs, validatePolicyPort(&ports[i], path.Child("ports").Index(i))...)
		}
		for i := range peers {
			errs = append(errs, validatePolicyPeer(&peers[i], had, selectors, path.Child(side).Index(i))...)
		}
	}
	for i, r := range p.Spec.Ingress {
		rule(r.Ports, r.From, spec.Child("ingress").Index(i), "from")
	}
	for i, r := range p.Spec.Egress {
		rule(r.Ports, r.To, spec.Child("egress").Index(i), "to")
	}
	types := spec.Child("policyTypes")
	if len(p.Spec.PolicyTypes) > 2 {
		return append(errs, field.Invalid(types, p.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range p.Spec.PolicyTypes {
		if t != networkingv1.PolicyTypeIngress && t != networkingv1.PolicyTypeEgress {
			errs = append(errs, field.NotSupported(types.Index(i), t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}))
		}
	}
	return errs
}

// validatePolicyPort is ValidateNetworkPolicyPort.
func validatePolicyPort(p *networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t := p.Protocol; t != nil && *t != v1.ProtocolTCP && *t != v1.ProtocolUDP && *t != v1.ProtocolSCTP {
		errs = append(errs, field.NotSupported(path.Child("protocol"), *t, []v1.Protocol{v1.ProtocolTCP, v1.ProtocolUDP, v1.ProtocolSCTP}))
	}
	end := path.Child("endPort")
	switch {
	case p.Port == nil && p.EndPort != nil:
		errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
	case p.Port == nil:
	case p.Port.Type == intstr.String:
		if p.EndPort != nil {
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
		}
		errs = append(errs, fields.Invalid(path.Child("port"), p.Port.StrVal, validation.IsValidPortName(p.Port.StrVal))...)
	default:
		errs = append(errs, fields.Port(p.Port.IntVal, path.Child("port"))...)
		if p.EndPort == nil {
			break
		}
		if *p.EndPort < p.Port.IntVal { // upstream shows the port
			errs = append(errs, field.Invalid(end, p.Port.IntVal, "must be greater than or equal to `port`"))
		}
		errs = append(errs, fields.Port(*p.EndPort, end)...)
	}
	return errs
}

// validatePolicyPeer is ValidateNetworkPolicyPeer: pods, or a range of addresses.
func validatePolicyPeer(p *networkingv1.NetworkPolicyPeer, had []string, selectors metavalidation.LabelSelectorValidationOptions, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.PodSelector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(p.PodSelector, selectors, path.Child("podSelector"))...)
	}
	if p.NamespaceSelector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(p.NamespaceSelector, selectors, path.Child("namespaceSelector"))...)
	}
	if p.IPBlock != nil {
		errs = append(errs, validateIPBlock(p.IPBlock, had, path.Child("ipBlock"))...)
	}
	switch pods := p.PodSelector != nil || p.NamespaceSelector != nil; {
	case !pods && p.IPBlock == nil:
		errs = append(errs, field.Required(path, "must specify a peer"))
	case pods && p.IPBlock != nil:
		errs = append(errs, field.Forbidden(path, "may not specify both ipBlock and another peer"))
	}
	return errs
}

// strictAddresses is the gate StrictIPCIDRValidation, which is on: no leading zeros,
// no bits behind a mask.
const strictAddresses = true

// validateIPBlock is ValidateIPBlock.
func validateIPBlock(b *networkingv1.IPBlock, had []string, path *field.Path) field.ErrorList {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(path.Child("cidr"), "")}
	}
	errs := validation.IsValidCIDRForLegacyField(path.Child("cidr"), b.CIDR, strictAddresses, had)
	_, whole, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return errs
	}
	for i, text := range b.Except {
		at := path.Child("except").Index(i)
		errs = append(errs, validation.IsValidCIDRForLegacyField(at, text, strictAddresses, had)...)
		_, part, err := netutils.ParseCIDRSloppy(text)
		if err != nil {
			continue
		}
		of, _ := whole.Mask.Size()
		length, _ := part.Mask.Size()
		if !whole.Contains(part.IP) || of >= length {
			errs = append(errs, field.Invalid(at, text, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// policyWarnings are told of ranges that are written oddly.
func policyWarnings(s *networkingv1.NetworkPolicySpec) []string {
	var out []string
	peers := func(peers []networkingv1.NetworkPolicyPeer, path *field.Path) {
		for i, p := range peers {
			if p.IPBlock == nil {
				continue
			}
			at := path.Index(i).Child("ipBlock")
			out = append(out, validation.GetWarningsForCIDR(at.Child("cidr"), p.IPBlock.CIDR)...)
			for n, text := range p.IPBlock.Except {
				out = append(out, validation.GetWarningsForCIDR(at.Child("except").Index(n), text)...)
			}
		}
	}
	for i, r := range s.Ingress {
		peers(r.From, field.NewPath("spec", "ingress").Index(i).Child("from"))
	}
	for i, r := range s.Egress {
		peers(r.To, field.NewPath("spec", "egress").Index(i).Child("to"))
	}
	return out
}

// policyRanges are all ranges of addresses that stand in a policy.
func policyRanges(s *networkingv1.NetworkPolicySpec) []string {
	var out []string
	add := func(peers []networkingv1.NetworkPolicyPeer) {
		for _, p := range peers {
			if p.IPBlock != nil {
				out = append(append(out, p.IPBlock.CIDR), p.IPBlock.Except...)
			}
		}
	}
	for _, r := range s.Ingress {
		add(r.From)
	}
	for _, r := range s.Egress {
		add(r.To)
	}
	return out
}
