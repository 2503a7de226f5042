package addresses

import (
	"fmt"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Create completes a new service, which has its defaults and is not checked yet: what
// can't be given is an error of its own. Dry is for show.
func (p *Pool) Create(svc *v1.Service, dry bool) error {
	c, s := p.claim(dry), &svc.Spec
	s.Ports = slices.Clone(s.Ports) // written to
	if s.ClusterIP != "" && len(s.ClusterIPs) == 0 {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	if err := setFamilies(svc, nil); err != nil {
		return err
	}
	if err := c.clusterIP(svc); err != nil {
		return err
	}
	if hasNodePorts(s) {
		if err := c.newPorts(svc); err != nil {
			return err
		}
	}
	if checksHealth(s) {
		if err := c.healthPort(s); err != nil {
			return err
		}
	}
	dropTraffic(s)
	return nil
}

// Update completes a service that is to take old's place, in the same way.
func (p *Pool) Update(svc, old *v1.Service, dry bool) error {
	c, s := p.claim(dry), &svc.Spec
	s.Ports = slices.Clone(s.Ports)
	keepGiven(s, &old.Spec)
	syncClusterIPs(s, &old.Spec)
	if err := setFamilies(svc, old); err != nil {
		return err
	}
	if old.Spec.Type == v1.ServiceTypeExternalName {
		if err := c.clusterIP(svc); err != nil {
			return err
		}
	}
	if hasNodePorts(s) {
		if err := c.changedPorts(svc, old); err != nil {
			return err
		}
	}
	if checksHealth(s) && !checksHealth(&old.Spec) {
		if err := c.healthPort(s); err != nil {
			return err
		}
	}
	dropTraffic(s)
	return nil
}

// dropTraffic takes the policy of its traffic from an external name, which has none.
// Upstream does so whenever one is read. A wrong one is left for the rules.
func dropTraffic(s *v1.ServiceSpec) {
	p := s.InternalTrafficPolicy
	if s.Type == v1.ServiceTypeExternalName && p != nil && (*p == v1.ServiceInternalTrafficPolicyCluster || *p == v1.ServiceInternalTrafficPolicyLocal) {
		s.InternalTrafficPolicy = nil
	}
}

func hasNodePorts(s *v1.ServiceSpec) bool {
	return s.Type == v1.ServiceTypeNodePort || s.Type == v1.ServiceTypeLoadBalancer
}

// givesNodePorts reports whether a service gets node ports that it doesn't ask for.
func givesNodePorts(s *v1.ServiceSpec) bool {
	return s.Type == v1.ServiceTypeNodePort || s.Type == v1.ServiceTypeLoadBalancer && (s.AllocateLoadBalancerNodePorts == nil || *s.AllocateLoadBalancerNodePorts)
}

// checksHealth reports whether balancers ask nodes whether they have endpoints of a
// service.
func checksHealth(s *v1.ServiceSpec) bool {
	return s.Type == v1.ServiceTypeLoadBalancer && s.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
}

// clusterIP takes the address that a service asks for, or any. Services with one have
// one family, the cluster's.
func (c *claim) clusterIP(svc *v1.Service) error {
	s := &svc.Spec
	if s.Type == v1.ServiceTypeExternalName || len(s.ClusterIPs) > 0 && s.ClusterIPs[0] == v1.ClusterIPNone {
		return nil
	}
	if len(s.ClusterIPs) > 0 && s.ClusterIPs[0] != "" {
		a, ok := parse(s.ClusterIPs[0])
		if !ok {
			return apierrors.NewInternalError(fmt.Errorf("failed to parse service IP %q", s.ClusterIPs[0]))
		}
		if err := c.takeIP(a); err != nil {
			return invalid(svc, field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs"), s.ClusterIPs, fmt.Sprintf("failed to allocate IP %v: %v", s.ClusterIPs[0], err))})
		}
		s.ClusterIP = s.ClusterIPs[0]
		return nil
	}
	a, err := c.drawIP()
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", svc.Name, err))
	}
	s.ClusterIP, s.ClusterIPs = a.String(), []string{a.String()}
	return nil
}

// errNodePort is about a port that was asked for.
func errNodePort(svc *v1.Service, i int, n int32, err error) error {
	return invalid(svc, field.ErrorList{field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), n, err.Error())})
}

// errNoNodePort says that there is none left.
func errNoNodePort(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
}

// newPorts takes the node ports of a new service (initNodePorts). What listens on one
// port by two protocols has one node port.
func (c *claim) newPorts(svc *v1.Service) error {
	s, of := &svc.Spec, map[int32]int32{} // by the service's ports
	for i := range s.Ports {
		port := &s.Ports[i]
		if port.NodePort == 0 && !givesNodePorts(s) {
			continue
		}
		shared := of[port.Port]
		if shared != 0 && port.NodePort == 0 {
			port.NodePort = shared
		}
		if shared != 0 && port.NodePort == shared {
			continue
		}
		want := port.NodePort
		if shared == 0 { // one further down may ask for it
			want = askedFor(s.Ports, port.Port)
		}
		var err error
		if want == 0 {
			if want, err = c.drawPort(); err != nil {
				return errNoNodePort(err)
			}
		} else if err = c.takePort(want); err != nil {
			return errNodePort(svc, i, want, err)
		}
		if shared == 0 {
			port.NodePort, of[port.Port] = want, want
		}
	}
	return nil
}

// askedFor is the first node port that is asked for with a port of the service.
func askedFor(ports []v1.ServicePort, port int32) int32 {
	for i := range ports {
		if ports[i].Port == port && ports[i].NodePort != 0 {
			return ports[i].NodePort
		}
	}
	return 0
}

// changedPorts takes the node ports that a service has not had before
// (updateNodePorts).
func (c *claim) changedPorts(svc, old *v1.Service) error {
	type portOf struct {
		protocol v1.Protocol
		port     int32
	}
	s, had, has := &svc.Spec, map[int32]bool{}, map[portOf]bool{}
	for i := range old.Spec.Ports {
		had[old.Spec.Ports[i].NodePort] = true
	}
	for i := range s.Ports {
		port := &s.Ports[i]
		if port.NodePort == 0 && !givesNodePorts(s) {
			continue
		}
		var err error
		switch {
		case port.NodePort == 0:
			if port.NodePort, err = c.drawPort(); err != nil {
				return errNoNodePort(err)
			}
		case !had[port.NodePort] && !c.taken[port.NodePort]:
			if err = c.takePort(port.NodePort); err != nil {
				return errNodePort(svc, i, port.NodePort, err)
			}
		}
		key := portOf{port.Protocol, port.NodePort}
		if has[key] {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: fmt.Sprintf("duplicate nodePort: {%s %d}", key.protocol, key.port)}}
		}
		has[key] = true
	}
	return nil
}

// healthPort takes the port on which balancers ask for a node's health
// (allocHealthCheckNodePort).
func (c *claim) healthPort(s *v1.ServiceSpec) error {
	if n := s.HealthCheckNodePort; n != 0 {
		if err := c.takePort(n); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %v", n, err))
		}
		return nil
	}
	n, err := c.drawPort()
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a HealthCheck NodePort %v: %v", n, err))
	}
	s.HealthCheckNodePort = n
	return nil
}

// keepGiven puts in what the service was given before and an update leaves out
// (patchAllocatedValues): a manifest may be applied twice.
func keepGiven(s, was *v1.ServiceSpec) {
	if s.Type != v1.ServiceTypeExternalName && was.Type != v1.ServiceTypeExternalName {
		if s.ClusterIP == "" {
			s.ClusterIP = was.ClusterIP
		}
		if len(s.ClusterIPs) == 0 {
			s.ClusterIPs = was.ClusterIPs
		}
	}
	if givesNodePorts(s) && givesNodePorts(was) {
		keepNodePorts(s.Ports, was.Ports)
	}
	if checksHealth(s) && checksHealth(was) && s.HealthCheckNodePort == 0 {
		s.HealthCheckNodePort = was.HealthCheckNodePort
	}
}

// keepNodePorts goes by the names of ports. A node port that another port has now is
// not kept.
func keepNodePorts(ports, were []v1.ServicePort) {
	named, before, now := map[string]int32{}, map[int32]bool{}, map[int32]bool{}
	for i := range were {
		named[were[i].Name] = were[i].NodePort
		before[were[i].NodePort] = true
	}
	for i := range ports {
		now[ports[i].NodePort] = true
	}
	for i := range ports {
		n := named[ports[i].Name]
		if ports[i].NodePort == 0 && !(n != 0 && before[n] && now[n]) {
			ports[i].NodePort = n
		}
	}
}

// syncClusterIPs has the list of addresses follow the one that old clients know
// (normalizeClusterIPs).
func syncClusterIPs(s, was *v1.ServiceSpec) {
	if len(s.ClusterIPs) == 0 && s.ClusterIP == was.ClusterIP {
		s.ClusterIPs = was.ClusterIPs
	}
	if s.ClusterIP == was.ClusterIP || !slices.Equal(s.ClusterIPs, was.ClusterIPs) {
		return
	}
	s.ClusterIPs = nil
	if s.ClusterIP != "" {
		s.ClusterIPs = []string{s.ClusterIP}
	}
}
