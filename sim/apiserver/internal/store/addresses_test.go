package store

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// Services get addresses only where clients come in, those that were there before too;
// what is refused takes nothing.
func TestGiveAddresses(t *testing.T) {
	s := New(Options{Seed: 3})
	now := s.opts.Start
	create := func(name string, port int32) (*v1.Service, error) {
		svc := &v1.Service{Spec: v1.ServiceSpec{Type: v1.ServiceTypeNodePort, Ports: []v1.ServicePort{{Port: 80, NodePort: port}}}}
		svc.Name = name
		obj, err := s.Create(now, svc)
		if err != nil {
			return nil, err
		}
		return obj.(*v1.Service), nil
	}
	before, err := create("before", 0)
	if err != nil || before.Spec.ClusterIP != "" || before.Spec.Ports[0].NodePort != 0 {
		t.Fatalf("got %+v, %v", before, err)
	}
	s.GiveAddresses(now)
	before = s.Lookup(kinds.Service, "default", "before").(*v1.Service)
	api := s.Lookup(kinds.Service, "default", "kubernetes").(*v1.Service)
	if before.Spec.ClusterIP == "" || before.Spec.Ports[0].NodePort == 0 || api.Spec.ClusterIP != "10.96.0.1" {
		t.Fatalf("got %+v and %+v", before.Spec, api.Spec)
	}
	if s.Lookup(kinds.Endpoints, "default", "kubernetes") == nil || s.Lookup(kinds.EndpointSlice, "default", "kubernetes") == nil {
		t.Error("the API has no endpoints")
	}
	for _, name := range []string{"Refused", "taken", "again"} {
		_, err := create(name, 30100)
		if name == "taken" != (err == nil) || err != nil && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.DryRun(func() {
		if _, err := create("dry", 30101); err != nil {
			t.Error(err)
		}
	})
	if _, err := create("real", 30101); err != nil {
		t.Error(err)
	}
	ep := &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	if _, err := s.Create(now, ep); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(now, kinds.Service, "default", "taken", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if s.Lookup(kinds.Endpoints, "default", "taken") != nil {
		t.Error("a service's endpoints outlive it")
	}
	if _, err := create("again", 30100); err != nil {
		t.Errorf("a port of a service that is gone: %v", err)
	}
}
