package apiserver

import (
	"fmt"
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
	c := *old
	c.Status = merged
	s.commit(watch.Modified, KindPod, old, &c, "patch", "status")
	return &c, nil
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
