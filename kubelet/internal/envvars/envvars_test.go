package envvars

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func service(namespace, name, ip string, ports ...v1.ServicePort) *v1.Service {
	s := &v1.Service{Spec: v1.ServiceSpec{ClusterIP: ip, Ports: ports}}
	s.Namespace, s.Name = namespace, name
	return s
}

func text(list []v1.EnvVar) string {
	var out []string
	for _, v := range list {
		out = append(out, v.Name+"="+v.Value)
	}
	return strings.Join(out, "\n")
}

func TestFromServices(t *testing.T) {
	got := text(FromServices([]*v1.Service{
		service("ns", "super-ipv6", "2001:db8::1", v1.ServicePort{Name: "u-d-p", Port: 8082, Protocol: v1.ProtocolUDP}, v1.ServicePort{Name: "t", Port: 80, Protocol: v1.ProtocolTCP}),
		service("ns", "empty", "1.2.3.4"),
	}))
	want := `SUPER_IPV6_PORT=udp://[2001:db8::1]:8082
SUPER_IPV6_PORT_8082_UDP=udp://[2001:db8::1]:8082
SUPER_IPV6_PORT_8082_UDP_ADDR=2001:db8::1
SUPER_IPV6_PORT_8082_UDP_PORT=8082
SUPER_IPV6_PORT_8082_UDP_PROTO=udp
SUPER_IPV6_PORT_80_TCP=tcp://[2001:db8::1]:80
SUPER_IPV6_PORT_80_TCP_ADDR=2001:db8::1
SUPER_IPV6_PORT_80_TCP_PORT=80
SUPER_IPV6_PORT_80_TCP_PROTO=tcp
SUPER_IPV6_SERVICE_HOST=2001:db8::1
SUPER_IPV6_SERVICE_PORT=8082
SUPER_IPV6_SERVICE_PORT_T=80
SUPER_IPV6_SERVICE_PORT_U_D_P=8082`
	if got != want {
		t.Errorf("%s", got)
	}
}

func TestForPod(t *testing.T) {
	port := v1.ServicePort{Port: 1}
	all := []*v1.Service{
		service("default", "kubernetes", "10.0.0.1", port), service("default", "other", "10.0.0.2", port),
		service("own", "kubernetes", "10.0.0.3", port), service("own", "headless", "None", port),
	}
	for _, tc := range []struct {
		namespace string
		links     bool
		want      string
	}{
		{"default", true, "KUBERNETES=10.0.0.1 OTHER=10.0.0.2"},
		{"default", false, "KUBERNETES=10.0.0.1"},
		{"own", true, "KUBERNETES=10.0.0.3"},
		{"own", false, "KUBERNETES=10.0.0.1"},
		{"third", true, "KUBERNETES=10.0.0.1"},
	} {
		var hosts []string
		for _, v := range ForPod(all, tc.namespace, tc.links) {
			if name, ok := strings.CutSuffix(v.Name, "_SERVICE_HOST"); ok {
				hosts = append(hosts, name+"="+v.Value)
			}
		}
		if got := strings.Join(hosts, " "); got != tc.want {
			t.Errorf("%s, links %t: %s", tc.namespace, tc.links, got)
		}
	}
}
