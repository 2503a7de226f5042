package facade

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
)

// autoManaged is the label of what is registered without anybody asking for it:
// "onstart", or "true" for what comes and goes with definitions
// (kube-aggregator, pkg/controllers/autoregister).
const autoManaged = "kube-aggregator.kubernetes.io/automanaged"

// registerAPIs has an APIService for each group and version that is served, and none for
// those of definitions that are gone. It is called on the API's loop, or before it runs.
func (f *Facade) registerAPIs() {
	api := f.o.API
	kinds, _ := f.kinds.all()
	served := map[schema.GroupVersion]bool{}
	for _, k := range kinds {
		gv := k.scope.Kind.GroupVersion()
		if served[gv] || gv.Group == apiregistrationv1.GroupName { // the list doesn't list itself
			continue
		}
		served[gv] = true
		if api.Store().Lookup(apiserver.KindAPIService, "", nameOfAPI(gv)) == nil {
			_, err := api.Create(localAPI(gv, k.row.CustomKind != ""))
			registered(err)
		}
	}
	all := slices.Clone(apiserver.Objects[*apiregistrationv1.APIService](api.Store(), apiserver.KindAPIService))
	for _, s := range all {
		if s.Labels[autoManaged] == "true" && s.Spec.Service == nil && !served[schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version}] {
			registered(api.Delete(apiserver.KindAPIService, "", s.Name, metav1.DeleteOptions{}))
		}
	}
}

// registered takes note of a registration. One that is refused by a policy is missing
// from the list, as it would be upstream, which tries again.
func registered(err error) {
	if err != nil && apierrors.IsInvalid(err) {
		panic(err) // a fault of localAPI
	}
}

func nameOfAPI(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// localAPI is the APIService of a group and version, custom ones being those of
// definitions.
func localAPI(gv schema.GroupVersion, custom bool) *apiregistrationv1.APIService {
	group, version := apiPriorities(gv)
	managed := "onstart"
	if custom {
		group, version, managed = 1000, 100, "true"
	}
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: nameOfAPI(gv), Labels: map[string]string{autoManaged: managed}},
		Spec:       apiregistrationv1.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: group, VersionPriority: version},
	}
}

// apiPriorities are the priorities of a group and of its version among the group's
// (pkg/controlplane/apiserver/aggregator.go, cmd/kube-apiserver/app/aggregator.go).
func apiPriorities(gv schema.GroupVersion) (group, version int32) {
	version = 15
	switch gv.Group {
	case "":
		return 18000, 1
	case "apps":
		group = 17800
	case "events.k8s.io":
		group = 17750
	case "authentication.k8s.io":
		group = 17700
	case "authorization.k8s.io":
		group = 17600
	case "autoscaling":
		group = 17500
		if gv.Version == "v2" {
			version = 30
		}
	case "batch":
		group = 17400
	case "certificates.k8s.io":
		group = 17300
	case "networking.k8s.io":
		group = 17200
	case "policy":
		group = 17100
	case "rbac.authorization.k8s.io":
		group = 17000
	case "storage.k8s.io":
		group = 16800
	case "apiextensions.k8s.io", "admissionregistration.k8s.io":
		group = 16700
	case "scheduling.k8s.io":
		group = 16600
	case "coordination.k8s.io":
		group = 16500
	case "node.k8s.io":
		group = 16300
	case "discovery.k8s.io":
		group = 16200
	case "resource.k8s.io":
		group, version = 16200, 21
	case "flowcontrol.apiserver.k8s.io":
		group, version = 16100, 21
	default:
		group = 1000
	}
	return group, version
}
