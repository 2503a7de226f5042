package operator

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// webhooks fill in what a shop doesn't say, and refuse what it can't be.
type webhooks struct{}

// addWebhooks has a manager's webhook server answer about shops.
func addWebhooks(mgr manager.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &Shop{}).WithDefaulter(webhooks{}).WithValidator(webhooks{}).Complete()
}

// Default implements admission.Defaulter.
func (webhooks) Default(_ context.Context, shop *Shop) error {
	if shop.Spec.Greeting == "" {
		shop.Spec.Greeting = "welcome to " + shop.Name
	}
	return nil
}

// ValidateCreate implements admission.Validator.
func (webhooks) ValidateCreate(_ context.Context, shop *Shop) (admission.Warnings, error) {
	if shop.Spec.Replicas > maxReplicas {
		return nil, fmt.Errorf("a shop has at most %d replicas", maxReplicas)
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator: shops don't shrink to nothing at once.
func (w webhooks) ValidateUpdate(ctx context.Context, old, shop *Shop) (admission.Warnings, error) {
	if shop.Spec.Replicas == 0 && old.Spec.Replicas > 1 {
		return nil, fmt.Errorf("%s has %d replicas: close it by way of one", shop.Name, old.Spec.Replicas)
	}
	return w.ValidateCreate(ctx, shop)
}

// ValidateDelete implements admission.Validator.
func (webhooks) ValidateDelete(context.Context, *Shop) (admission.Warnings, error) { return nil, nil }

// maxReplicas is how many pods a shop may have.
const maxReplicas = 20
