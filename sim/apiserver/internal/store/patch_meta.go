package store

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// MetaPatch is what controllers change of any object's metadata.
type MetaPatch struct {
	// OwnerReferences, when not nil, replace the object's. They are shared.
	OwnerReferences *[]metav1.OwnerReference
	// RemoveFinalizer, when not "", is taken off the finalizers; an object that
	// is being deleted goes with its last one.
	RemoveFinalizer string
}

// PatchMeta patches an object's metadata. It makes no new version when nothing
// changes. Errors: NotFound; Conflict when the object has another UID.
func (s *Store) PatchMeta(k kind.Kind, namespace, name string, uid types.UID, p MetaPatch) error {
	old, err := s.Get(k, namespace, name)
	if err != nil {
		return err
	}
	if uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(s.info(k).GroupResource(), name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	in := s.info(k)
	c := in.Copy(old)
	changed := false
	if p.OwnerReferences != nil {
		c.SetOwnerReferences(*p.OwnerReferences)
		changed = true
	}
	if i := slices.Index(c.GetFinalizers(), p.RemoveFinalizer); i >= 0 {
		c.SetFinalizers(slices.Delete(slices.Clone(c.GetFinalizers()), i, i+1))
		changed = true
	}
	switch period := c.GetDeletionGracePeriodSeconds(); {
	case !changed:
	case len(c.GetFinalizers()) == 0 && c.GetDeletionTimestamp() != nil && (period == nil || *period == 0):
		s.remove(in, old, "patch")
	default:
		s.commit(watch.Modified, k, old, c, "patch", "")
	}
	return nil
}

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
		s.remove(in, old, "patch")
		return &c, nil
	}
	s.commit(watch.Modified, kinds.Pod, old, &c, "patch", "")
	return &c, nil
}
