package controlplane

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// TestReplicationController: it keeps its pods as a ReplicaSet does, and tells of them.
func TestReplicationController(t *testing.T) {
	r := newRig(t, 1)
	rc := &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	rc.Spec.Replicas = new(int32(3))
	rc.Spec.Template = &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "x"}}}}
	r.create(rc)
	r.run(10 * time.Second)
	stored := r.srv.Store().Lookup(apiserver.KindReplicationController, "default", "web").(*v1.ReplicationController)
	if st := stored.Status; st.Replicas != 3 || st.ReadyReplicas != 3 || st.AvailableReplicas != 3 || st.FullyLabeledReplicas != 3 || st.ObservedGeneration != 1 {
		t.Errorf("status %+v, want three of all", st)
	}
	next := stored.DeepCopy()
	next.Spec.Replicas = new(int32(1))
	if _, err := r.srv.Update(next, ""); err != nil {
		t.Fatal(err)
	}
	r.run(10 * time.Second)
	pods := r.srv.Store().PodsInNamespace("default")
	if len(pods) != 1 || !metav1.IsControlledBy(pods[0], stored) {
		t.Errorf("%d pods after scaling down, want one of the controller's", len(pods))
	}
	version := r.srv.Store().Version()
	r.run(time.Minute)
	if now := r.srv.Store().Version(); now != version {
		t.Errorf("%d writes of a controller that has what it wants", now-version)
	}
}

// TestClaimProtection: a claim stays while a pod on a node names it, and goes when the
// pod has gone; a volume stays while it is bound.
func TestClaimProtection(t *testing.T) {
	r := newRig(t, 1)
	spec := v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}}
	spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	for _, name := range []string{"used", "unused"} {
		r.create(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: spec})
	}
	r.create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1.PodSpec{
		Containers: []v1.Container{{Name: "a", Image: "x"}},
		Volumes:    []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "used"}}}},
	}})
	r.run(5 * time.Second)
	has := func(name string) bool {
		return r.srv.Store().Lookup(apiserver.KindPersistentVolumeClaim, "default", name) != nil
	}
	for _, name := range []string{"used", "unused"} {
		if err := r.srv.Delete(apiserver.KindPersistentVolumeClaim, "default", name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if !has(name) {
			t.Errorf("claim %s went at once", name)
		}
	}
	r.run(5 * time.Second)
	if !has("used") || has("unused") {
		t.Errorf("used claim there: %t, unused: %t; want true, false", has("used"), has("unused"))
	}
	if err := r.srv.Delete(apiserver.KindPod, "default", "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(10 * time.Second)
	if has("used") {
		t.Error("claim stays after its pod")
	}
}

// TestEndpoints: where clients come in, services have Endpoints of their pods, and lose
// them; before, nothing is written.
func TestEndpoints(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 1})
	t.Cleanup(l.Close)
	r := &rig{t: t, l: l, srv: apiserver.New(apiserver.Options{Loop: l})}
	r.srv.OnChange(r.kubelet)
	r.cp = New(r.srv, Options{Disable: slices.DeleteFunc(Names(), func(n string) bool { return n == "endpoints-controller" })})
	r.fate = func(p *v1.Pod) (v1.PodPhase, bool) { return v1.PodRunning, p.Name != "b" }
	r.create(&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: v1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []v1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "tls", Port: 443, TargetPort: intstr.FromInt32(8443)}},
	}})
	for i, name := range []string{"b", "a"} {
		r.create(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "x"}}}})
		r.run(2 * time.Second)
		pod := r.srv.Pod("default", name)
		st := *pod.Status.DeepCopy()
		st.PodIP = fmt.Sprintf("10.0.0.%d", i+1)
		st.PodIPs = []v1.PodIP{{IP: st.PodIP}}
		if _, err := r.srv.PatchPodStatus("default", name, pod.UID, &pod.Status, &st); err != nil {
			t.Fatal(err)
		}
	}
	get := func() *v1.Endpoints {
		e, _ := r.srv.Store().Lookup(apiserver.KindEndpoints, "default", "web").(*v1.Endpoints)
		return e
	}
	r.run(5 * time.Second)
	if get() != nil {
		t.Fatal("Endpoints without a client")
	}
	r.srv.OpenDoor()
	r.run(5 * time.Second)
	e := get()
	if e == nil || len(e.Subsets) != 1 || len(e.Subsets[0].Ports) != 2 || len(e.Subsets[0].Addresses) != 1 || len(e.Subsets[0].NotReadyAddresses) != 1 ||
		e.Subsets[0].Addresses[0].IP != "10.0.0.2" || e.Subsets[0].Addresses[0].TargetRef.Name != "a" || e.Labels["endpoints.kubernetes.io/managed-by"] != "endpoint-controller" {
		t.Fatalf("Endpoints %+v, want one subset of two ports, with pod a ready and pod b not", e)
	}
	version := r.srv.Store().Version()
	r.run(time.Minute)
	if now := r.srv.Store().Version(); now != version {
		t.Errorf("%d writes of Endpoints that are as they should be", now-version)
	}
	if err := r.srv.Delete(apiserver.KindPod, "default", "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Second)
	if e := get(); len(e.Subsets) != 1 || len(e.Subsets[0].NotReadyAddresses) != 0 {
		t.Errorf("Endpoints %+v, want no pod b", e.Subsets)
	}
	if err := r.srv.Delete(apiserver.KindService, "default", "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Second)
	if get() != nil {
		t.Error("Endpoints stay after their service")
	}
}

func (r *rig) create(obj apiserver.Object) {
	r.t.Helper()
	if _, err := r.srv.Create(obj); err != nil {
		r.t.Fatal(err)
	}
}
