package operator

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Finalizer keeps a shop until the operator has cleaned up after it.
const Finalizer = "example.com/shop"

// again is how often a shop is looked at though nothing has changed.
const again = 30 * time.Second

// Reconciler makes of a shop what its spec says.
type Reconciler struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.steps(ctx, req, r.greeting, r.cleanUp)
}

// step is a part of what is done for a shop.
type step func(ctx context.Context, shop *Shop) error

// steps does all that is to be done for a shop.
func (r *Reconciler) steps(ctx context.Context, req ctrl.Request, greeting, cleanUp step) (ctrl.Result, error) {
	shop := &Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !shop.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, cleanUp(ctx, shop)
	}
	if controllerutil.AddFinalizer(shop, Finalizer) {
		return ctrl.Result{}, r.Update(ctx, shop) // which has it looked at again
	}
	if err := greeting(ctx, shop); err != nil {
		return ctrl.Result{}, err
	}
	ready, err := r.pods(ctx, shop)
	if err != nil {
		return ctrl.Result{}, err
	}
	status := ShopStatus{Ready: ready, ObservedGeneration: shop.Generation}
	if shop.Status != status {
		shop.Status = status
		if err := r.Status().Update(ctx, shop); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// greeting writes the shop's greeting where its pods read it.
func (r *Reconciler) greeting(ctx context.Context, shop *Shop) error {
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		cm.Labels = map[string]string{"shop": shop.Name}
		cm.Data = map[string]string{"greeting": shop.Spec.Greeting}
		return controllerutil.SetControllerReference(shop, cm, r.Scheme())
	})
	return err
}

// pods has the shop's pods run, and returns how many are ready.
func (r *Reconciler) pods(ctx context.Context, shop *Shop) (int32, error) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: shop.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		labels := map[string]string{"shop": shop.Name}
		d.Spec.Replicas = ptr.To(shop.Spec.Replicas)
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		if len(d.Spec.Template.Spec.Containers) == 0 {
			d.Spec.Template.Spec.Containers = []v1.Container{{Name: "app", Image: "app:1"}}
		}
		return controllerutil.SetControllerReference(shop, d, r.Scheme())
	})
	return d.Status.ReadyReplicas, err
}

// cleanUp lets a shop go. Its Deployment and ConfigMap go with it, as it owns them.
func (r *Reconciler) cleanUp(ctx context.Context, shop *Shop) error {
	if !controllerutil.RemoveFinalizer(shop, Finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Update(ctx, shop))
}
