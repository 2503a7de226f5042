package admission

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// validateResize is the plugin PodResizeValidator: it refuses a resize that the pod's node could never hold
// (upstream: an admission plugin since v1.36, kubernetes/kubernetes pull 136043).
func (p *Plugins) validateResize(r *Request) error {
	pod := r.Object.(*v1.Pod)
	if pod.Spec.NodeName == "" || pod.Generation == r.Old.GetGeneration() {
		return nil
	}
	node := p.cluster.Node(pod.Spec.NodeName)
	if node == nil {
		return forbidden(pod, fmt.Sprintf("node %q not found", pod.Spec.NodeName))
	}
	if os, ok := node.Labels[v1.LabelOSStable]; ok && os != string(v1.Linux) {
		return forbiddenFor(pod, fmt.Sprintf("pod resize is only supported on linux nodes, node %q is %q", node.Name, os), "UnsupportedPlatform")
	}
	requests, allocatable := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}), node.Status.Allocatable
	var lacks []string
	if want, has := requests.Cpu(), allocatable.Cpu(); want.Cmp(*has) > 0 {
		lacks = append(lacks, fmt.Sprintf("cpu, requested: %d, allocatable: %d", want.MilliValue(), has.MilliValue()))
	}
	if want, has := requests.Memory(), allocatable.Memory(); want.Cmp(*has) > 0 {
		lacks = append(lacks, fmt.Sprintf("memory, requested: %d, allocatable: %d", want.Value(), has.Value()))
	}
	if len(lacks) == 0 {
		return nil
	}
	return forbiddenFor(pod, "node didn't have enough allocatable resources: "+strings.Join(lacks, "; "), "NodeCapacity")
}

// forbiddenFor is forbidden with a cause, by which autoscalers tell what to do.
func forbiddenFor(pod *v1.Pod, text string, cause metav1.CauseType) error {
	err := apierrors.NewForbidden(pods, Name(pod), fmt.Errorf("%s", text))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	return err
}
