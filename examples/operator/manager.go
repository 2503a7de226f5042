package operator

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Options are the operator's.
type Options struct {
	// Concurrent is how many shops are seen to at once. 0 means 1.
	Concurrent int
	// SameName has a second manager in this process have the same controller, as tests
	// want.
	SameName bool
	// Webhooks, if set, is the server at which shops are defaulted and checked.
	Webhooks webhook.Server
}

// NewManager returns a manager with the operator's controller. It waits until it leads.
func NewManager(config *rest.Config, o Options) (manager.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	options := managerOptions(scheme)
	options.WebhookServer = o.Webhooks
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	if o.Webhooks != nil {
		if err := addWebhooks(mgr); err != nil {
			return nil, err
		}
	}
	return mgr, owning(mgr).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(o.Concurrent, 1), SkipNameValidation: &o.SameName}).
		Complete(&Reconciler{mgr.GetClient()})
}

func managerOptions(scheme *runtime.Scheme) ctrl.Options {
	return ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "shop-operator", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
	}
}

// owning is a controller of shops and of what they own.
func owning(mgr manager.Manager) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).For(&Shop{}).Owns(&appsv1.Deployment{}).Owns(&v1.ConfigMap{})
}
