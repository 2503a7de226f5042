package clients

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Shop is a custom resource: a number of pods.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ShopSpec   `json:"spec"`
	Status ShopStatus `json:"status,omitzero"`
}

// ShopSpec is what a shop should have.
type ShopSpec struct {
	Pods int `json:"pods"`
}

// ShopStatus is what a shop has.
type ShopStatus struct {
	Running int `json:"running"`
}

// DeepCopyObject implements runtime.Object.
func (s *Shop) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// ShopList is a list of shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Shop `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *ShopList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Shop))
	}
	return &out
}

var shops = schema.GroupVersion{Group: "example.com", Version: "v1"}

// shopScheme has shops and what is built in.
func shopScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	s.AddKnownTypes(shops, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(s, shops)
	return s
}

// shopDefinition is the definition of shops.
func shopDefinition() *apiextensionsv1.CustomResourceDefinition {
	number := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	part := func(field string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: number}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shops.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: shops.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shops", Kind: "Shop"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: shops.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": part("pods"), "status": part("running")},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// shopReconciler makes a shop's pods, and says how many of them run.
type shopReconciler struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (r shopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	running := 0
	for i := range shop.Spec.Pods {
		p := pod(fmt.Sprintf("%s-%d", shop.Name, i))
		p.Namespace = shop.Namespace
		if err := controllerutil.SetControllerReference(shop, p, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, p); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, err
		}
		if err := r.Get(ctx, client.ObjectKeyFromObject(p), p); err == nil && p.Status.Phase == v1.PodRunning {
			running++
		}
	}
	if shop.Status.Running == running {
		return ctrl.Result{}, nil
	}
	shop.Status.Running = running
	return ctrl.Result{}, r.Status().Update(ctx, shop)
}

// TestManager has a manager of controller-runtime see to a custom resource, whose pods
// go with it.
func TestManager(t *testing.T) {
	config := start(t).Config()
	ctx := within(t, time.Minute)
	scheme := shopScheme(t)
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, shopDefinition()); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "the definition is established", func() bool {
		def := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: "shops.example.com"}, def); err != nil {
			return false
		}
		for _, cond := range def.Status.Conditions {
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "shops", LeaderElectionNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&Shop{}).Owns(&v1.Pod{}).Complete(shopReconciler{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	managerCtx, stop := context.WithCancel(ctx)
	go func() { ended <- manager.Start(managerCtx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	}()

	shop := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "corner"}, Spec: ShopSpec{Pods: 2}}
	if err := c.Create(ctx, shop); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "two pods run", func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(shop), shop) == nil && shop.Status.Running == 2
	})
	if err := c.Delete(ctx, shop); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "the pods are collected", func() bool {
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "corner-0"}, &v1.Pod{})
		return apierrors.IsNotFound(err)
	})
}

// until waits for something to be so.
func until(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) { return ok(), nil })
	if err != nil {
		t.Fatalf("not in time: %s", what)
	}
}
