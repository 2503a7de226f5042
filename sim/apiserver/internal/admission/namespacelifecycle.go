package admission

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// Namespace reports whether a namespace is there and not about to end
// (the plugin NamespaceLifecycle). It is asked of evictions and bindings too, which
// are created. Errors: NotFound; Forbidden with the cause NamespaceTerminating.
func (p *Plugins) Namespace(in *kind.Info, namespace, name string) error {
	ns := p.cluster.Namespace(namespace)
	if ns == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	// The cause tells controllers to give up rather than to try again.
	if ns.Status.Phase == v1.NamespaceTerminating {
		err := apierrors.NewForbidden(in.GroupResource(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: v1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace"})
		return err
	}
	return nil
}
