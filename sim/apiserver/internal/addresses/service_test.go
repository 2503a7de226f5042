package addresses

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// service is one of a type; edit may change its spec.
func service(t v1.ServiceType, edit func(*v1.ServiceSpec)) *v1.Service {
	svc := &v1.Service{Spec: v1.ServiceSpec{
		Type: t, Selector: map[string]string{"app": "a"},
		Ports: []v1.ServicePort{{Name: "a", Port: 80, Protocol: v1.ProtocolTCP}, {Name: "b", Port: 80, Protocol: v1.ProtocolUDP}},
	}}
	svc.Name = "s"
	if t == v1.ServiceTypeLoadBalancer {
		svc.Spec.AllocateLoadBalancerNodePorts = new(true)
	}
	if edit != nil {
		edit(&svc.Spec)
	}
	return svc
}

func TestCreate(t *testing.T) {
	single, prefer, both := v1.IPFamilyPolicySingleStack, v1.IPFamilyPolicyPreferDualStack, v1.IPFamilyPolicyRequireDualStack
	for _, tc := range []struct {
		name     string
		typ      v1.ServiceType
		edit     func(*v1.ServiceSpec)
		want     string // of the error
		ip       bool
		families []v1.IPFamily
		policy   *v1.IPFamilyPolicy
		ports    int // that differ
	}{
		{name: "cluster IP", typ: v1.ServiceTypeClusterIP, ip: true, families: []v1.IPFamily{"IPv4"}, policy: &single},
		{name: "one port for both protocols", typ: v1.ServiceTypeNodePort, ip: true, families: []v1.IPFamily{"IPv4"}, policy: &single, ports: 1},
		{name: "the port that is asked for further down", typ: v1.ServiceTypeNodePort, ip: true, families: []v1.IPFamily{"IPv4"}, policy: &single, ports: 1,
			edit: func(s *v1.ServiceSpec) { s.Ports[1].NodePort = 30005 }},
		{name: "health of nodes", typ: v1.ServiceTypeLoadBalancer, ip: true, families: []v1.IPFamily{"IPv4"}, policy: &single, ports: 2,
			edit: func(s *v1.ServiceSpec) { s.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal }},
		{name: "balanced without node ports", typ: v1.ServiceTypeLoadBalancer, ip: true, families: []v1.IPFamily{"IPv4"}, policy: &single,
			edit: func(s *v1.ServiceSpec) { s.AllocateLoadBalancerNodePorts = new(false) }},
		{name: "headless", typ: v1.ServiceTypeClusterIP, families: []v1.IPFamily{"IPv4"}, policy: &single, edit: func(s *v1.ServiceSpec) { s.ClusterIP = "None" }},
		{name: "headless without a selector", typ: v1.ServiceTypeClusterIP, families: []v1.IPFamily{"IPv4", "IPv6"}, policy: &both,
			edit: func(s *v1.ServiceSpec) { s.ClusterIP, s.Selector = "None", nil }},
		{name: "external name", typ: v1.ServiceTypeExternalName},
		{name: "prefers two families", typ: v1.ServiceTypeClusterIP, ip: true, families: []v1.IPFamily{"IPv4"}, policy: &prefer,
			edit: func(s *v1.ServiceSpec) { s.IPFamilyPolicy = &prefer }},
		{name: "requires two families", typ: v1.ServiceTypeClusterIP, want: "not configured for dual-stack", edit: func(s *v1.ServiceSpec) { s.IPFamilyPolicy = &both }},
		{name: "of the other family", typ: v1.ServiceTypeClusterIP, want: "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
			edit: func(s *v1.ServiceSpec) { s.IPFamilies = []v1.IPFamily{"IPv6"} }},
		{name: "an address of the other family", typ: v1.ServiceTypeClusterIP, want: "IPv6 is not configured on this cluster", edit: func(s *v1.ServiceSpec) { s.ClusterIP = "fd00::1" }},
		{name: "an address that is taken", typ: v1.ServiceTypeClusterIP, want: "failed to allocate IP 10.96.0.9: provided IP is already allocated",
			edit: func(s *v1.ServiceSpec) { s.ClusterIP = "10.96.0.9" }},
		{name: "an address elsewhere", typ: v1.ServiceTypeClusterIP, want: "does not match the current range", edit: func(s *v1.ServiceSpec) { s.ClusterIP = "10.97.0.1" }},
		{name: "the broadcast's address", typ: v1.ServiceTypeClusterIP, want: "does not match the current range", edit: func(s *v1.ServiceSpec) { s.ClusterIP = "10.96.255.255" }},
		{name: "a port that is taken", typ: v1.ServiceTypeNodePort, want: "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated",
			edit: func(s *v1.ServiceSpec) { s.Ports[0].NodePort = 30001 }},
		{name: "a port out of the range", typ: v1.ServiceTypeNodePort, want: "The range of valid ports is 30000-32767", edit: func(s *v1.ServiceSpec) { s.Ports[0].NodePort = 80 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := NewPool(1)
			p.Stored(service(v1.ServiceTypeNodePort, func(s *v1.ServiceSpec) {
				s.ClusterIPs = []string{"10.96.0.9"}
				s.Ports[0].NodePort = 30001
			}))
			svc := service(tc.typ, tc.edit)
			err := p.Create(svc, false)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s := svc.Spec
			if a, ok := parse(s.ClusterIP); ok != tc.ip || ok && (!p.holds(a) || a.Less(p.ip(lowIPs))) {
				t.Errorf("cluster IP %q", s.ClusterIP)
			}
			if !slices.Equal(s.IPFamilies, tc.families) || (s.IPFamilyPolicy == nil) != (tc.policy == nil) || tc.policy != nil && *s.IPFamilyPolicy != *tc.policy {
				t.Errorf("families %v, policy %v", s.IPFamilies, s.IPFamilyPolicy)
			}
			ports := nodePorts(svc)
			slices.Sort(ports)
			if n := len(slices.Compact(ports)); n != tc.ports {
				t.Errorf("%d node ports, want %d", n, tc.ports)
			}
		})
	}
}

// What a service had is free when it is gone, what it keeps stays.
func TestUpdate(t *testing.T) {
	p := NewPool(1)
	old := service(v1.ServiceTypeNodePort, nil)
	if err := p.Create(old, false); err != nil {
		t.Fatal(err)
	}
	p.Stored(old)
	same := service(v1.ServiceTypeNodePort, func(s *v1.ServiceSpec) { s.Ports = append(s.Ports, v1.ServicePort{Name: "c", Port: 81}) })
	if err := p.Update(same, old, false); err != nil {
		t.Fatal(err)
	}
	if s := same.Spec; s.ClusterIP != old.Spec.ClusterIP || s.Ports[0].NodePort != old.Spec.Ports[0].NodePort || s.Ports[2].NodePort == 0 || s.Ports[2].NodePort == s.Ports[0].NodePort {
		t.Errorf("an update that says nothing of addresses got %+v of %+v", s, old.Spec)
	}
	p.Gone(old)
	if len(p.ips)+len(p.ports) > 0 {
		t.Errorf("%v and %v are taken by nobody", p.ips, p.ports)
	}
}

// Ports that an update asks for are taken once each, and of no other service.
func TestUpdatedPorts(t *testing.T) {
	asks := func(ports ...v1.ServicePort) func(*v1.ServiceSpec) {
		return func(s *v1.ServiceSpec) { s.Ports = ports }
	}
	port := func(name string, number, nodePort int32) v1.ServicePort {
		return v1.ServicePort{Name: name, Port: number, NodePort: nodePort, Protocol: v1.ProtocolTCP}
	}
	for _, tc := range []struct {
		name string
		edit func(*v1.ServiceSpec)
		want string
	}{
		{"free", asks(port("a", 80, 30010), port("b", 81, 30011)), ""},
		{"twice", asks(port("a", 80, 30010), port("b", 81, 30010)), "duplicate nodePort: {TCP 30010}"},
		{"another service's", asks(port("a", 80, 30001)), "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := NewPool(1)
			p.Stored(service(v1.ServiceTypeNodePort, func(s *v1.ServiceSpec) { s.Ports[0].NodePort = 30001 }))
			old := service(v1.ServiceTypeNodePort, nil)
			if err := p.Create(old, false); err != nil {
				t.Fatal(err)
			}
			p.Stored(old)
			err := p.Update(service(v1.ServiceTypeNodePort, tc.edit), old, false)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	// The port for health is not one of the service's own.
	p := NewPool(1)
	err := p.Create(service(v1.ServiceTypeLoadBalancer, func(s *v1.ServiceSpec) {
		s.Ports[0].NodePort, s.ExternalTrafficPolicy, s.HealthCheckNodePort = 30010, v1.ServiceExternalTrafficPolicyLocal, 30010
	}), false)
	if err == nil || !strings.Contains(err.Error(), "failed to allocate requested HealthCheck NodePort 30010: provided port is already allocated") {
		t.Errorf("got %v", err)
	}
}

// A seed gives in one order, whatever is tried for show in between, and all there is.
func TestDraws(t *testing.T) {
	given := func(dry bool) (out []int32) {
		p := NewPool(7)
		for {
			svc := service(v1.ServiceTypeNodePort, nil)
			if dry {
				if err := p.Create(svc.DeepCopy(), true); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Create(svc, false); err != nil {
				if !strings.Contains(err.Error(), "range is full") {
					t.Fatal(err)
				}
				return out
			}
			p.Stored(svc)
			out = append(out, svc.Spec.Ports[0].NodePort)
		}
	}
	plain := given(false)
	if !slices.Equal(plain, given(true)) {
		t.Error("dry runs change what is given")
	}
	const upper = lastPort - firstPort + 1 - lowPorts
	if low := slices.IndexFunc(plain, func(n int32) bool { return n < firstPort+lowPorts }); low != upper || len(plain) != upper+lowPorts {
		t.Errorf("%d ports, the first of the lower band after %d", len(plain), low)
	}
}
