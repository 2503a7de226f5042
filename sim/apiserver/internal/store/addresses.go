package store

import (
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/addresses"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

const (
	// apiService is the service of the API itself, in the namespace default.
	apiService = "kubernetes"
	apiPort    = 6443
	// apiAddress is where the API is said to be: an address of RFC 5737, at which
	// nothing is. Clients come in elsewhere, and a loopback address may not stand in
	// an endpoint slice.
	apiAddress = "192.0.2.1"
)

// GiveAddresses has services given cluster IPs, families and node ports from now on,
// those that are stored already too, and makes the service of the API itself with its
// endpoints, as kube-apiserver does when it starts
// (pkg/controlplane/controller/kubernetesservice). The seed decides which. Without,
// services have what their manifests say: addresses would enter the environment of
// pods, and so traces, and nothing here routes by them; only clients look at them.
// What can't be given is left: a service that asks for a second family stays as it is.
func (s *Store) GiveAddresses(now time.Time) {
	if s.addresses != nil {
		return
	}
	s.addresses = addresses.NewPool(s.seed)
	list := append([]*v1.Service(nil), tableOf[*v1.Service](s.State, kinds.Service).View()...)
	for _, svc := range list {
		s.addresses.Stored(svc)
	}
	createAPIService(s, now)
	for _, svc := range list {
		c := svc.DeepCopy()
		s.addresses.Gone(svc)
		if err := s.addresses.Create(c, false); err != nil || equality.Semantic.DeepEqual(c, svc) {
			s.addresses.Stored(svc)
			continue
		}
		s.commit(watch.Modified, kinds.Service, svc, c, "update", "")
	}
}

// createAPIService makes the service kubernetes, which has the first address, and its
// endpoints, of the old kind too, unless a scenario has made its own.
func createAPIService(s *Store, now time.Time) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: apiService}
	svc := &v1.Service{ObjectMeta: meta, Spec: v1.ServiceSpec{
		ClusterIP: s.addresses.First(),
		Ports:     []v1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(apiPort)}},
	}}
	svc.Labels = map[string]string{"component": "apiserver", "provider": "kubernetes"}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{apiAddress}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:     []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(apiPort)), Protocol: new(v1.ProtocolTCP)}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: apiService}
	old := &v1.Endpoints{ObjectMeta: meta, Subsets: []v1.EndpointSubset{{
		Addresses: []v1.EndpointAddress{{IP: apiAddress}},
		Ports:     []v1.EndpointPort{{Name: "https", Port: apiPort, Protocol: v1.ProtocolTCP}},
	}}}
	old.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"}
	for _, obj := range []kind.Object{svc, slice, old} {
		if s.Lookup(s.kinds.Of(obj).Kind, meta.Namespace, meta.Name) == nil {
			s.Create(now, obj) //nolint:errcheck // one of the scenario's has the address
		}
	}
}

// giveAddresses completes a service that is to be stored, where services are given
// addresses. old is nil of a new one.
func giveAddresses(s *Store, obj, old kind.Object) error {
	if s.addresses == nil {
		return nil
	}
	svc, ok := obj.(*v1.Service)
	if !ok {
		return nil
	}
	if was, ok := old.(*v1.Service); ok {
		return s.addresses.Update(svc, was, s.dry)
	}
	return s.addresses.Create(svc, s.dry)
}

// noteAddresses has the pool know what the services that are stored have.
func (s *State) noteAddresses(typ watch.EventType, old kind.Object, svc *v1.Service) {
	if was, ok := old.(*v1.Service); ok {
		s.addresses.Gone(was)
	}
	if typ != watch.Deleted {
		s.addresses.Stored(svc)
	}
}
