package store

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/merge"
)

// PatchPodStatus applies the difference base -> status to the stored pod's
// status, as a strategic merge patch on the status subresource would. uid ""
// means any. It makes no new version when nothing changes. Errors: NotFound;
// Conflict when the pod has another UID.
func (s *Store) PatchPodStatus(now time.Time, namespace, name string, uid types.UID, base, status *v1.PodStatus) (*v1.Pod, error) {
	return s.PatchPodStatusIn(namespace, name, uid, base, status, nil)
}

// PatchPodStatusIn is PatchPodStatus. room, if not nil, is a pod that has nothing
// but status in it: it becomes the stored one if the patch makes it say just that,
// which spares a status and whoever sent it the comparison with what comes back.
// One with a name has been taken already, by a request that was made again.
func (s *Store) PatchPodStatusIn(namespace, name string, uid types.UID, base, status *v1.PodStatus, room *v1.Pod) (*v1.Pod, error) {
	old := s.Pod(namespace, name)
	if old == nil {
		return nil, apierrors.NewNotFound(s.info(kinds.Pod).GroupResource(), name)
	}
	if uid != "" && uid != old.UID {
		return nil, apierrors.NewConflict(s.info(kinds.Pod).GroupResource(), name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.UID))
	}
	if base == nil {
		base = &old.Status
	}
	merged, changed := merge.PodStatus(&old.Status, base, status)
	if !changed {
		return old, nil
	}
	// The kubelet's own pod becomes the stored one if it says just what the patch
	// makes: neither side compares the two again.
	c := room
	if c == nil || c.Name != "" || !merge.OnePodStatus(&merged, &c.Status) {
		c = &v1.Pod{Status: merged}
	}
	c.TypeMeta, c.ObjectMeta, c.Spec = old.TypeMeta, old.ObjectMeta, old.Spec
	s.commit(watch.Modified, kinds.Pod, old, c, "patch", "status")
	return c, nil
}

// PatchNode applies the difference base -> node of labels, annotations and
// status to the stored node, as a patch on the status subresource would. It
// makes no new version when nothing changes. Errors: NotFound; Conflict when
// node names another UID than the stored one.
func (s *Store) PatchNode(now time.Time, name string, base, node *v1.Node) (*v1.Node, error) {
	old := s.Node(name)
	if old == nil {
		return nil, apierrors.NewNotFound(s.info(kinds.Node).GroupResource(), name)
	}
	base = cmp.Or(base, old)
	if base.UID != node.UID && node.UID != "" && node.UID != old.UID {
		return nil, apierrors.NewConflict(s.info(kinds.Node).GroupResource(), name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", node.UID, old.UID))
	}
	status, changed := merge.NodeStatus(&old.Status, &base.Status, &node.Status)
	labels, relabelled := merge.StringMap(old.Labels, base.Labels, node.Labels)
	annotations, annotated := merge.StringMap(old.Annotations, base.Annotations, node.Annotations)
	if !changed && !relabelled && !annotated {
		return old, nil
	}
	c := *old
	c.Status, c.Labels, c.Annotations = status, labels, annotations
	s.commit(watch.Modified, kinds.Node, old, &c, "patch", "status")
	return &c, nil
}

// PatchNodeTaints replaces a node's taints. They must be valid, and are shared.
// Errors: NotFound; Conflict when the node has another resource version.
func (s *Store) PatchNodeTaints(now time.Time, name, resourceVersion string, taints []v1.Taint) (*v1.Node, error) {
	in := s.info(kinds.Node)
	old := s.Node(name)
	if old == nil {
		return nil, apierrors.NewNotFound(in.GroupResource(), name)
	}
	if resourceVersion != "" && resourceVersion != old.ResourceVersion {
		return nil, errModified(in, name)
	}
	c := *old
	c.Spec.Taints = taints
	s.commit(watch.Modified, kinds.Node, old, &c, "patch", "")
	return &c, nil
}
