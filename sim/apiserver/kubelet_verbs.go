package apiserver

import (
	"fmt"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// PatchPodStatus applies the difference base -> status to the stored pod's
// status, as a strategic merge patch on the status subresource would. uid ""
// means any. It makes no new version when nothing changes. Errors: NotFound;
// Conflict when the pod has another UID.
func (s *Store) PatchPodStatus(now time.Time, namespace, name string, uid types.UID, base, status *v1.PodStatus) (*v1.Pod, error) {
	return s.patchPodStatus(namespace, name, uid, base, status, nil)
}

// patchPodStatus is PatchPodStatus. room, if not nil, is a pod that has nothing
// but status in it: it becomes the stored one if the patch makes it say just that,
// which spares a status and whoever sent it the comparison with what comes back.
// One with a name has been taken already, by a request that was made again.
func (s *Store) patchPodStatus(namespace, name string, uid types.UID, base, status *v1.PodStatus, room *v1.Pod) (*v1.Pod, error) {
	old, ok := s.pods.get(namespace, name)
	if !ok {
		return nil, apierrors.NewNotFound(KindPod.info().gr(), name)
	}
	if uid != "" && uid != old.UID {
		return nil, apierrors.NewConflict(KindPod.info().gr(), name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.UID))
	}
	if base == nil {
		base = &old.Status
	}
	merged, changed := mergePodStatus(&old.Status, base, status)
	if !changed {
		return old, nil
	}
	c := room
	if c == nil || c.Name != "" || !onePodStatus(&merged, &c.Status) {
		c = &v1.Pod{Status: merged}
	}
	c.TypeMeta, c.ObjectMeta, c.Spec = old.TypeMeta, old.ObjectMeta, old.Spec
	s.commit(watch.Modified, KindPod, old, c, "patch", "status")
	return c, nil
}

// onePodStatus tells whether two statuses are the same down to the memory of
// their lists and maps.
func onePodStatus(a, b *v1.PodStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Phase == b.Phase && a.Message == b.Message && a.Reason == b.Reason &&
		a.NominatedNodeName == b.NominatedNodeName && a.HostIP == b.HostIP && a.PodIP == b.PodIP && a.Resize == b.Resize && a.QOSClass == b.QOSClass &&
		(a.StartTime == b.StartTime || a.StartTime != nil && b.StartTime != nil && *a.StartTime == *b.StartTime) &&
		oneList(a.Conditions, b.Conditions) && oneList(a.HostIPs, b.HostIPs) && oneList(a.PodIPs, b.PodIPs) &&
		oneList(a.InitContainerStatuses, b.InitContainerStatuses) && oneList(a.ContainerStatuses, b.ContainerStatuses) &&
		oneList(a.EphemeralContainerStatuses, b.EphemeralContainerStatuses) &&
		oneList(a.ResourceClaimStatuses, b.ResourceClaimStatuses) && a.ExtendedResourceClaimStatus == b.ExtendedResourceClaimStatus &&
		oneList(a.NodeAllocatableResourceClaimStatuses, b.NodeAllocatableResourceClaimStatuses) &&
		a.Resources == b.Resources && reflect.ValueOf(a.AllocatedResources).Pointer() == reflect.ValueOf(b.AllocatedResources).Pointer()
}

// oneList tells whether two lists are one.
func oneList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 && (a == nil) == (b == nil) || len(a) > 0 && &a[0] == &b[0])
}

// PatchNode applies the difference base -> node of labels, annotations and
// status to the stored node, as a patch on the status subresource would. It
// makes no new version when nothing changes. Errors: NotFound; Conflict when
// node names another UID than the stored one.
func (s *Store) PatchNode(now time.Time, name string, base, node *v1.Node) (*v1.Node, error) {
	old, ok := s.nodes.get("", name)
	if !ok {
		return nil, apierrors.NewNotFound(KindNode.info().gr(), name)
	}
	if base == nil {
		base = old
	}
	if base.UID != node.UID && node.UID != "" && node.UID != old.UID {
		return nil, apierrors.NewConflict(KindNode.info().gr(), name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", node.UID, old.UID))
	}
	status, changed := mergeNodeStatus(&old.Status, &base.Status, &node.Status)
	labels, relabelled := mergeStringMap(old.Labels, base.Labels, node.Labels)
	annotations, annotated := mergeStringMap(old.Annotations, base.Annotations, node.Annotations)
	if !changed && !relabelled && !annotated {
		return old, nil
	}
	c := *old
	c.Status, c.Labels, c.Annotations = status, labels, annotations
	s.commit(watch.Modified, KindNode, old, &c, "patch", "status")
	return &c, nil
}
