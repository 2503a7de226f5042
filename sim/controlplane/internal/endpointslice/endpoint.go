package endpointslice

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// addressTypes returns the families of a service's slices. A service without families is one of
// IPv4: the simulated API has no default for the field.
func addressTypes(svc *v1.Service) []discoveryv1.AddressType {
	var out []discoveryv1.AddressType
	for _, f := range svc.Spec.IPFamilies {
		if f == v1.IPv6Protocol {
			out = append(out, discoveryv1.AddressTypeIPv6)
		} else {
			out = append(out, discoveryv1.AddressTypeIPv4)
		}
	}
	if len(out) == 0 {
		out = append(out, discoveryv1.AddressTypeIPv4)
	}
	return out
}

// podAddress returns the pod's first address of a family; "" when it has none. The family of an
// address shows by its colon.
func podAddress(pod *v1.Pod, family discoveryv1.AddressType) string {
	is := func(ip string) bool {
		return ip != "" && strings.Contains(ip, ":") == (family == discoveryv1.AddressTypeIPv6)
	}
	for _, ip := range pod.Status.PodIPs {
		if is(ip.IP) {
			return ip.IP
		}
	}
	if len(pod.Status.PodIPs) == 0 && is(pod.Status.PodIP) {
		return pod.Status.PodIP
	}
	return ""
}

// belongs reports whether a pod may be among the endpoints of a service
// (util/controller_utils.go ShouldPodBeInEndpoints with includeTerminating). One
// that terminates stays until its containers have ended, since it may still
// serve. A pod without an address cannot be reached. One that failed or succeeded never comes
// back.
func belongs(pod *v1.Pod) bool {
	return !controller.PodTerminated(pod) && (pod.Status.PodIP != "" || len(pod.Status.PodIPs) > 0)
}

// endpointOf returns a pod's endpoint (utils.go podToEndpoint). node may be nil. serving is
// readiness whatever the deletion, ready is serving and not terminating: consumers that know only
// ready drain a pod that terminates, those that know serving may still use it (KEP-1672).
func endpointOf(svc *v1.Service, pod *v1.Pod, node *v1.Node, address string) discoveryv1.Endpoint {
	serving := controller.PodReady(pod)
	terminating := pod.DeletionTimestamp != nil
	// StatefulSets' peers need to find each other before they are ready.
	ready := svc.Spec.PublishNotReadyAddresses || serving && !terminating
	ep := discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &v1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if pod.Spec.NodeName != "" {
		name := pod.Spec.NodeName
		ep.NodeName = &name
	}
	if node != nil {
		if zone := node.Labels[v1.LabelTopologyZone]; zone != "" {
			ep.Zone = &zone
		}
	}
	// Only then has the pod a DNS name of its own below the service's.
	if pod.Spec.Hostname != "" && pod.Spec.Subdomain == svc.Name && pod.Namespace == svc.Namespace {
		name := pod.Spec.Hostname
		ep.Hostname = &name
	}
	return ep
}

// portsOf returns the ports that a pod offers to a service; those that it does not
// have are left out (utils.go getEndpointPorts). Endpoints with different ports cannot share a
// slice, since a slice's ports are for all of its endpoints.
func portsOf(svc *v1.Service, pod *v1.Pod) []discoveryv1.EndpointPort {
	out := make([]discoveryv1.EndpointPort, 0, len(svc.Spec.Ports))
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		number, ok := findPort(pod, p)
		if !ok {
			continue
		}
		name, protocol := p.Name, p.Protocol
		out = append(out, discoveryv1.EndpointPort{Name: &name, Port: &number, Protocol: &protocol, AppProtocol: p.AppProtocol})
	}
	return out
}

// findPort is the port of a pod that a service's targetPort names
// (k8s.io/component-helpers FindPort); restartable init containers count too. A number is taken
// as it is, whether or not a container declares it.
func findPort(pod *v1.Pod, p *v1.ServicePort) (int32, bool) {
	if p.TargetPort.Type == intstr.Int {
		return p.TargetPort.IntVal, true
	}
	named := func(c *v1.Container) (int32, bool) {
		for i := range c.Ports {
			if c.Ports[i].Name == p.TargetPort.StrVal && c.Ports[i].Protocol == p.Protocol {
				return c.Ports[i].ContainerPort, true
			}
		}
		return 0, false
	}
	for i := range pod.Spec.Containers {
		if n, ok := named(&pod.Spec.Containers[i]); ok {
			return n, true
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		// Sidecars run as long as the pod (KEP-753); other init containers serve nothing.
		if c.RestartPolicy == nil || *c.RestartPolicy != v1.ContainerRestartPolicyAlways {
			continue
		}
		if n, ok := named(c); ok {
			return n, true
		}
	}
	return 0, false
}

// samePorts reports whether two lists have the same ports, in any order. Both lists come from one
// service, so neither has a port twice.
func samePorts(a, b []discoveryv1.EndpointPort) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !slices.ContainsFunc(b, func(p discoveryv1.EndpointPort) bool { return samePort(&a[i], &p) }) {
			return false
		}
	}
	return true
}

// samePort compares what fields point to.
func samePort(a, b *discoveryv1.EndpointPort) bool {
	return same(a.Name, b.Name) && same(a.Port, b.Port) && same(a.Protocol, b.Protocol) && same(a.AppProtocol, b.AppProtocol)
}

// same reports whether both are nil or point to equal values.
func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// sameEndpoint reports whether nothing of an endpoint has changed. Hints are compared elsewhere,
// after they were computed.
func sameEndpoint(a, b *discoveryv1.Endpoint) bool {
	return slices.Equal(a.Addresses, b.Addresses) && same(a.NodeName, b.NodeName) && same(a.Zone, b.Zone) && same(a.Hostname, b.Hostname) &&
		same(a.Conditions.Ready, b.Conditions.Ready) && same(a.Conditions.Serving, b.Conditions.Serving) &&
		same(a.Conditions.Terminating, b.Conditions.Terminating)
}

// endpointKey is what an endpoint is found again by: its pod, address and host
// name (util/endpoint.. hashEndpoint: a change of the conditions is an update). Two endpoints of
// one key are one whose conditions changed.
type endpointKey struct {
	uid, address, hostname string
}

// keyOf is an endpoint's key.
func keyOf(ep *discoveryv1.Endpoint) endpointKey {
	k := endpointKey{}
	if ep.TargetRef != nil {
		k.uid = string(ep.TargetRef.UID)
	}
	if len(ep.Addresses) > 0 {
		k.address = ep.Addresses[0]
	}
	if ep.Hostname != nil {
		k.hostname = *ep.Hostname
	}
	return k
}

// comparePods orders pods by name. All are of one namespace.
func comparePods(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) }
