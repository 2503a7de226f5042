package clusterapi

import (
	"context"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// NewScheme returns a scheme with what the controllers read and write.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// controllerName is what Cluster API's program calls itself.
const controllerName = "cluster-api-controller-manager"

// cacheOptions are made once, since they take the name of the program's informers, of which
// client-go wants one for the whole process. Cluster API's program makes one manager; here one
// follows another.
var cacheOptions = sync.OnceValue(func() cache.Options {
	scheme, err := NewScheme()
	if err != nil {
		panic(err) // a mistake of the libraries
	}
	return setup.ManagerCacheOptions(scheme, controllerName, "", 10*time.Minute)
})

// NewManager returns a manager with Cluster API's controllers, set up as its program does.
func NewManager(ctx context.Context, cfg *rest.Config) (manager.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "controller-leader-election-capi", LeaderElectionNamespace: "default",
		Cache:      cacheOptions(),
		Logger:     klog.Background(), // which the test shows
		Client:     setup.ManagerClientOptions(),
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // a second manager comes after a crash
	})
	if err != nil {
		return nil, err
	}
	if err := index.AddDefaultIndexes(ctx, mgr); err != nil {
		return nil, err
	}
	secrets, err := setup.CreateSecretCachingClient(mgr)
	if err != nil {
		return nil, err
	}
	o := controller.Options{MaxConcurrentReconciles: 10}
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: secrets, Cache: setup.ClusterCacheCacheOptions(), Client: setup.ClusterCacheClientOptions(controllerName, 20, 30),
	}, o)
	if err != nil {
		return nil, err
	}
	client, reader := mgr.GetClient(), mgr.GetAPIReader()
	for _, r := range []interface {
		SetupWithManager(context.Context, ctrl.Manager, controller.Options) error
	}{
		&machine.Reconciler{Client: client, APIReader: reader, ClusterCache: clusters, RemoteConditionsGracePeriod: 5 * time.Minute},
		&machineset.Reconciler{Client: client, APIReader: reader, ClusterCache: clusters},
		&machinedeployment.Reconciler{Client: client, APIReader: reader},
		&machinehealthcheck.Reconciler{Client: client, ClusterCache: clusters},
	} {
		if err := r.SetupWithManager(ctx, mgr, o); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}
