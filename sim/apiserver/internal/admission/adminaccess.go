package admission

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateAdminAccess lets claims ask for access to devices in use only in namespaces
// that are labelled for it. Upstream's strategies look at the namespace
// (pkg/registry/resource/utils.go AuthorizedForAdmin); here only admission reads other
// objects, so that a claim with other mistakes is told of those first.
func (p *Plugins) validateAdminAccess(r *Request) error {
	var requests []resourcev1.DeviceRequest
	switch o := r.Object.(type) {
	case *resourcev1.ResourceClaim:
		requests = o.Spec.Devices.Requests
	case *resourcev1.ResourceClaimTemplate:
		requests = o.Spec.Spec.Devices.Requests
	}
	for i, req := range requests {
		if req.Exactly == nil || req.Exactly.AdminAccess == nil || !*req.Exactly.AdminAccess {
			continue
		}
		ns := p.cluster.Namespace(r.Namespace)
		if ns != nil && ns.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true" {
			return nil
		}
		path := field.NewPath("spec", "devices", "requests").Index(i).Child("adminAccess")
		return apierrors.NewInvalid(r.Kind.GroupKind(), r.Name, field.ErrorList{field.Forbidden(path,
			fmt.Sprintf("admin access to devices requires the `%s: true` label on the containing namespace", resourcev1.DRAAdminNamespaceLabelKey))})
	}
	return nil
}
