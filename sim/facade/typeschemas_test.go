package facade

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// TestGoSchemas: who manages which fields is the same with and without what goSchemas
// spares.
func TestGoSchemas(t *testing.T) {
	pod := func(ports ...v1.ContainerPort) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"x/y"}}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i", Ports: ports}}}}
	}
	deployment := func(replicas int32, containers ...v1.Container) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"n": string('a' + replicas)}}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Template: v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: containers}},
		}}
	}
	for name, steps := range map[string][]runtime.Object{
		"lease": {
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("x")}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("y"), LeaseTransitions: ptr.To[int32](1)}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "v"}}, Spec: coordinationv1.LeaseSpec{LeaseTransitions: ptr.To[int32](1)}},
		},
		"deployment": {
			deployment(1, v1.Container{Name: "a"}), deployment(2, v1.Container{Name: "a", Image: "b"}, v1.Container{Name: "b"}),
			deployment(2, v1.Container{Name: "b"}, v1.Container{Name: "c", Env: []v1.EnvVar{{Name: "e", Value: "1"}, {Name: "e", Value: "2"}}}),
			deployment(3, v1.Container{Name: "b"}),
		},
		"pod with the same port twice": {
			pod(v1.ContainerPort{ContainerPort: 80}), pod(v1.ContainerPort{ContainerPort: 80}, v1.ContainerPort{ContainerPort: 80, Name: "again"}),
			pod(v1.ContainerPort{ContainerPort: 80}, v1.ContainerPort{ContainerPort: 81, Protocol: v1.ProtocolUDP}), pod(),
		},
		"service": {
			&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80}}}},
			&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80, Name: "x"}, {Port: 80, Protocol: v1.ProtocolUDP}}, ExternalIPs: []string{"1.2.3.4", "1.2.3.4"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain := applyconfigurations.NewTypeConverter(scheme.Scheme)
			want, got := manageAll(t, plain, steps), manageAll(t, newGoSchemas(plain), steps)
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

// manageAll has objects follow one another, each by one of two managers, then applies the
// first one again, and returns who manages what after each step.
func manageAll(t *testing.T, c managedfields.TypeConverter, steps []runtime.Object) (out [][]metav1.ManagedFieldsEntry) {
	gvks, _, err := scheme.Scheme.ObjectKinds(steps[0])
	if err != nil {
		t.Fatal(err)
	}
	gvk := gvks[0]
	m, err := managedfields.NewDefaultFieldManager(c, scheme.Scheme, scheme.Scheme, scheme.Scheme, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	live, err := scheme.Scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	live.GetObjectKind().SetGroupVersionKind(gvk)
	note := func(obj runtime.Object, err error) {
		a, aerr := meta.Accessor(obj)
		if aerr != nil {
			t.Fatalf("%v, %v", aerr, err)
		}
		entries := a.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		if err != nil {
			entries = []metav1.ManagedFieldsEntry{{Manager: err.Error()}}
		}
		out, live = append(out, entries), obj
	}
	for i, step := range steps {
		obj := step.DeepCopyObject()
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		a, err := meta.Accessor(live)
		if err != nil {
			t.Fatal(err)
		}
		to, err := meta.Accessor(obj)
		if err != nil {
			t.Fatal(err)
		}
		to.SetManagedFields(a.GetManagedFields())
		note(m.Update(live, obj, []string{"one", "two"}[i%2]))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(steps[0])
	if err != nil {
		t.Fatal(err)
	}
	patch := &unstructured.Unstructured{Object: content}
	patch.SetGroupVersionKind(gvk)
	note(m.Apply(live, patch, "applier", true))
	return out
}
