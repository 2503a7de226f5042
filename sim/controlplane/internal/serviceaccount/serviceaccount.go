// Package serviceaccount gives each namespace what its pods need to call the API: an
// account named default, and the config map kube-root-ca.crt that says whom to trust. It
// mirrors upstream's pkg/controller/serviceaccount and
// pkg/controller/certificates/rootcacertpublisher.
//
// Both write in the instant of the namespace, without a client's latency: upstream's
// admission waits up to two seconds for a default account, so that nobody sees a
// namespace without, and here it doesn't wait. Neither does anything where no client
// comes in ([apiserver.Server.OnDoor]).
package serviceaccount

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Controller makes one object in each namespace, and makes it again.
type Controller struct {
	srv  *apiserver.Server
	user string
	kind apiserver.Kind
	want func(namespace string) apiserver.Object
	// same reports whether an object need not be written again.
	same func(is, want apiserver.Object) bool
}

// NewAccounts starts the service account controller.
func NewAccounts(opts controller.Options) *Controller {
	return start(opts, "service-account-controller", &Controller{
		kind: apiserver.KindServiceAccount,
		want: func(namespace string) apiserver.Object {
			return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
		},
		same: func(apiserver.Object, apiserver.Object) bool { return true },
	})
}

// rootCADescription is what the config map's annotation kubernetes.io/description says.
const rootCADescription = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."

// NewRootCA starts the publisher of the root certificate.
func NewRootCA(opts controller.Options) *Controller {
	srv := opts.API.Server()
	return start(opts, "root-ca-cert-publisher", &Controller{
		kind: apiserver.KindConfigMap,
		want: func(namespace string) apiserver.Object {
			return &v1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt", Annotations: map[string]string{"kubernetes.io/description": rootCADescription}},
				Data:       map[string]string{"ca.crt": string(srv.Authority().PEM())},
			}
		},
		same: func(is, want apiserver.Object) bool {
			return equality.Semantic.DeepEqual(is.(*v1.ConfigMap).Data, want.(*v1.ConfigMap).Data) && len(is.GetAnnotations()) > 0
		},
	})
}

func start(opts controller.Options, user string, c *Controller) *Controller {
	c.srv, c.user = opts.API.Server(), "system:serviceaccount:kube-system:"+user
	group := opts.Group
	c.srv.OnDoor(func() {
		if group.Dead() {
			return
		}
		list, _ := c.srv.List(apiserver.KindNamespace, "") // the kind is served
		for _, ns := range list {
			c.sync(ns.GetName())
		}
	})
	c.srv.OnChange(func(ch apiserver.Change) {
		switch {
		case !c.srv.DoorOpen():
		case ch.Kind == apiserver.KindNamespace:
			c.sync(ch.New.GetName())
		case ch.New.GetName() == c.want("").GetName():
			c.sync(ch.New.GetNamespace())
		}
	}, apiserver.KindNamespace, c.kind)
	return c
}

// sync makes the object of a namespace that is not about to end.
func (c *Controller) sync(namespace string) {
	ns, ok := c.srv.Store().Lookup(apiserver.KindNamespace, "", namespace).(*v1.Namespace)
	if !ok || ns.Status.Phase != v1.NamespaceActive {
		return
	}
	want := c.want(namespace)
	c.srv.Calling(apiserver.CallerNamed(c.user), func() {
		is := c.srv.Store().Lookup(c.kind, namespace, want.GetName())
		switch {
		case is == nil:
			_, _ = c.srv.Create(want) // refused by a policy: tried again when the namespace changes
		case !c.same(is, want):
			_, _ = c.srv.Update(want, "")
		}
	})
}
