package endpointslice

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// TestSlicesOfOthers: what somebody else does to a service's slice is mended a second later.
func TestSlicesOfOthers(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	t.Cleanup(l.Close)
	srv := apiserver.New(apiserver.Options{Loop: l})
	New(Options{Options: controller.Options{Group: l.NewGroup("manager"), API: srv.Component("endpointslice-controller", -1, 0)}})
	ok := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(d time.Duration) { ok(nil, l.RunUntil(l.Now().Add(d))) }
	slices := func() []*discoveryv1.EndpointSlice {
		return apiserver.Objects[*discoveryv1.EndpointSlice](srv.Store(), apiserver.KindEndpointSlice)
	}
	edit := func(labels map[string]string) {
		es := slices()[0].DeepCopy()
		es.Labels = labels
		ok(srv.Update(es, ""))
	}
	const service = discoveryv1.LabelServiceName
	ok(srv.Create(&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{{Port: 80}}}}))
	run(10 * time.Second)

	ok(nil, srv.Delete(apiserver.KindEndpointSlice, "default", slices()[0].Name, metav1.DeleteOptions{}))
	if run(990 * time.Millisecond); len(slices()) != 0 {
		t.Error("a slice that was deleted is there again within a second")
	}
	if run(200 * time.Millisecond); len(slices()) != 1 {
		t.Error("a slice that was deleted is not made again")
	}

	edit(map[string]string{service: "web", discoveryv1.LabelManagedBy: managedBy, "by": "hand"})
	if run(990 * time.Millisecond); slices()[0].Labels["by"] != "hand" {
		t.Error("a label was taken off within a second")
	}
	if run(200 * time.Millisecond); slices()[0].Labels["by"] != "" {
		t.Error("a label was not taken off")
	}
	edit(map[string]string{service: "other", discoveryv1.LabelManagedBy: managedBy})
	if run(10 * time.Second); len(slices()) != 2 {
		t.Errorf("%d slices; the service has lost its own", len(slices()))
	}
}
