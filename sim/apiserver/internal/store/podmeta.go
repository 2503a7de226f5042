package store

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// PatchPodMeta changes a pod's metadata as a controller's patch does: owner
// references, finalizers, labels, annotations. edit gets a copy of the struct
// whose fields it may replace. A pod that is being deleted goes with its last
// finalizer. Errors: NotFound; Conflict when uid is not "" and not the pod's.
func (s *Store) PatchPodMeta(now time.Time, namespace, name string, uid types.UID, edit func(*metav1.ObjectMeta)) (*v1.Pod, error) {
	in := s.info(kinds.Pod)
	old := s.Pod(namespace, name)
	if old == nil {
		return nil, apierrors.NewNotFound(in.GroupResource(), name)
	}
	if uid != "" && uid != old.UID {
		return nil, apierrors.NewConflict(in.GroupResource(), name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.UID))
	}
	c := *old
	edit(&c.ObjectMeta)
	if len(c.Finalizers) == 0 && c.DeletionTimestamp != nil && c.DeletionGracePeriodSeconds != nil && *c.DeletionGracePeriodSeconds == 0 {
		s.remove(in, &c, "patch")
		return &c, nil
	}
	s.commit(watch.Modified, kinds.Pod, old, &c, "patch", "")
	return &c, nil
}
