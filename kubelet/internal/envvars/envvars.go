// Package envvars makes the environment variables by which a container finds
// the services of its namespace. It mirrors upstream's pkg/kubelet/envvars.
package envvars

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// masterService is the service that every pod is told of, whatever its
// enableServiceLinks says.
const masterService = "kubernetes"

// ForPod returns the variables of the services that a pod of the namespace is
// told of: with links those of the namespace, and always "kubernetes" of
// "default" unless the namespace has, with links, one of that name itself.
// Services without a cluster IP have none. The result is sorted by name.
func ForPod(services []*v1.Service, namespace string, links bool) []v1.EnvVar {
	chosen := map[string]*v1.Service{}
	for _, s := range services {
		switch {
		case s.Spec.ClusterIP == "" || s.Spec.ClusterIP == v1.ClusterIPNone || len(s.Spec.Ports) == 0:
		case s.Namespace == namespace && links:
			chosen[s.Name] = s
		case s.Namespace == metav1.NamespaceDefault && s.Name == masterService:
			if chosen[s.Name] == nil {
				chosen[s.Name] = s
			}
		}
	}
	list := make([]*v1.Service, 0, len(chosen))
	for _, s := range chosen { //drydock:unordered sorted below
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *v1.Service) int { return cmp.Compare(a.Name, b.Name) })
	return FromServices(list)
}

// FromServices returns the variables of the services, sorted by name; of two
// of one name the last stays.
func FromServices(services []*v1.Service) []v1.EnvVar {
	var out []v1.EnvVar
	add := func(name, value string) { out = append(out, v1.EnvVar{Name: name, Value: value}) }
	for _, s := range services {
		if len(s.Spec.Ports) == 0 {
			continue
		}
		prefix := variableName(s.Name)
		add(prefix+"_SERVICE_HOST", s.Spec.ClusterIP)
		add(prefix+"_SERVICE_PORT", decimal(s.Spec.Ports[0].Port))
		for i := range s.Spec.Ports {
			if p := &s.Spec.Ports[i]; p.Name != "" {
				add(prefix+"_SERVICE_PORT_"+variableName(p.Name), decimal(p.Port))
			}
		}
		addLinks(add, prefix, s)
	}
	return sortedLast(out)
}

// addLinks adds the variables that Docker's links once had.
func addLinks(add func(name, value string), prefix string, s *v1.Service) {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		protocol := string(v1.ProtocolTCP)
		if p.Protocol != "" {
			protocol = string(p.Protocol)
		}
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(s.Spec.ClusterIP, decimal(p.Port))
		if i == 0 {
			add(prefix+"_PORT", url)
		}
		port := prefix + "_PORT_" + decimal(p.Port) + "_" + strings.ToUpper(protocol)
		add(port, url)
		add(port+"_PROTO", strings.ToLower(protocol))
		add(port+"_PORT", decimal(p.Port))
		add(port+"_ADDR", s.Spec.ClusterIP)
	}
}

func variableName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }

func decimal(n int32) string { return strconv.Itoa(int(n)) }

func sortedLast(list []v1.EnvVar) []v1.EnvVar {
	slices.SortStableFunc(list, func(a, b v1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	out := list[:0]
	for i := range list {
		if i+1 < len(list) && list[i+1].Name == list[i].Name {
			continue
		}
		out = append(out, list[i])
	}
	return out
}
