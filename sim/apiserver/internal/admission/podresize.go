package admission

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	resourcehelper "k8s.io/component-helpers/resource"
)

// validateResize is the plugin PodResizeValidator: it refuses a resize that the pod's node could never hold
// (upstream: an admission plugin since v1.36, kubernetes/kubernetes pull 136043).
func (p *Plugins) validateResize(pod *v1.Pod) error {
	node := p.cluster.Node(pod.Spec.NodeName)
	if node == nil {
		return nil
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		want, have := requests[name], node.Status.Allocatable[name]
		if !have.IsZero() && want.Cmp(have) > 0 {
			return apierrors.NewForbidden(pods, pod.Name, fmt.Errorf("the resize asks for %s %s, more than node %s can allocate (%s)", want.String(), name, node.Name, have.String()))
		}
	}
	return nil
}
