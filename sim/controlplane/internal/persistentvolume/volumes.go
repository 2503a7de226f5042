package persistentvolume

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	volumehelper "k8s.io/component-helpers/storage/volume"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// syncVolume decides what becomes of a volume.
func (c *Controller) syncVolume(ctx context.Context, pv *v1.PersistentVolume) error {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		_, err := c.updatePhase(ctx, pv, v1.VolumeAvailable)
		return err
	}
	claim, err := c.claimOf(ctx, pv)
	switch {
	case err != nil:
		return err
	case claim == nil:
		return c.released(ctx, pv)
	case claim.Spec.VolumeName == "":
		if volumehelper.CheckVolumeModeMismatches(&claim.Spec, &pv.Spec) {
			c.event(pv, v1.EventTypeWarning, reasonVolumeMismatch, fmt.Sprintf("Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.", claim.Name))
			c.event(claim, v1.EventTypeWarning, reasonVolumeMismatch, fmt.Sprintf("Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode.", pv.Name))
			return nil
		}
		c.claims.Add(controller.KeyOf(claim)) // which binds itself
		return nil
	case claim.Spec.VolumeName == pv.Name:
		_, err := c.updatePhase(ctx, pv, v1.VolumeBound)
		return err
	case metav1.HasAnnotation(pv.ObjectMeta, volumehelper.AnnDynamicallyProvisioned) && pv.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete:
		return c.released(ctx, pv) // it was made for a claim that got another one
	}
	return c.unbind(ctx, pv)
}

// claimOf is the claim that a volume is bound to; nil: it is gone. The API is asked before a
// volume is taken for released.
func (c *Controller) claimOf(ctx context.Context, pv *v1.PersistentVolume) (*v1.PersistentVolumeClaim, error) {
	ref := pv.Spec.ClaimRef
	key := controller.Key{Namespace: ref.Namespace, Name: ref.Name}
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key)
	if ok && claim.UID == ref.UID {
		return claim, nil
	}
	if !ok && (pv.Status.Phase == v1.VolumeReleased || pv.Status.Phase == v1.VolumeFailed) {
		return nil, nil
	}
	claim, err := controller.Get[*v1.PersistentVolumeClaim](ctx, c.api, apiserver.KindPersistentVolumeClaim, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("claim %s: %w", key, err)
	case claim.UID != ref.UID:
		return nil, nil
	}
	return claim, nil
}

// released has a volume do without its claim, as its reclaim policy says.
func (c *Controller) released(ctx context.Context, pv *v1.PersistentVolume) error {
	if pv.Status.Phase != v1.VolumeReleased && pv.Status.Phase != v1.VolumeFailed {
		var err error
		if pv, err = c.updatePhase(ctx, pv, v1.VolumeReleased); err != nil {
			return err
		}
	}
	switch pv.Spec.PersistentVolumeReclaimPolicy {
	case v1.PersistentVolumeReclaimRetain:
		return nil
	case v1.PersistentVolumeReclaimDelete:
		return c.delete(ctx, pv)
	case v1.PersistentVolumeReclaimRecycle:
		return c.failed(ctx, pv, reasonVolumeFailedRecycle, "No recycler plugin found for the volume!")
	}
	return c.failed(ctx, pv, "VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
}

// delete takes away a volume that no external provisioner is to take away.
func (c *Controller) delete(ctx context.Context, pv *v1.PersistentVolume) error {
	provisioner := pv.Annotations[volumehelper.AnnDynamicallyProvisioned]
	switch {
	case provisioner != "" && !strings.HasPrefix(provisioner, "kubernetes.io/"), pv.Spec.CSI != nil:
		return nil
	case pv.Spec.HostPath == nil:
		return c.failed(ctx, pv, reasonVolumeFailedDelete, fmt.Sprintf("error getting deleter volume plugin for volume %q: no deletable volume plugin matched", pv.Name))
	case !strings.HasPrefix(pv.Spec.HostPath.Path, "/tmp/") || len(pv.Spec.HostPath.Path) == len("/tmp/"):
		return c.failed(ctx, pv, reasonVolumeFailedDelete, "host_path deleter only supports /tmp/.+ but received provided "+pv.Spec.HostPath.Path)
	}
	if err := controller.Delete(ctx, c.api, pv, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("volume %s: %w", pv.Name, err)
	}
	return nil
}

func (c *Controller) failed(ctx context.Context, pv *v1.PersistentVolume, reason, message string) error {
	if pv.Status.Phase == v1.VolumeFailed {
		return nil
	}
	next := pv.DeepCopy()
	next.Status.Message = message
	is, err := c.updatePhase(ctx, next, v1.VolumeFailed)
	if err == nil {
		c.event(is, v1.EventTypeWarning, reason, message)
	}
	return err
}

// bind writes a binding into a volume and a claim, the volume first. What is written
// already is left.
func (c *Controller) bind(ctx context.Context, pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) error {
	next, dirty, err := volumehelper.GetBindVolumeToClaim(pv, claim)
	if err != nil {
		return fmt.Errorf("volume %s: %w", pv.Name, err)
	}
	if dirty {
		if pv, err = controller.Update(ctx, c.api, next, ""); err != nil {
			return fmt.Errorf("volume %s: %w", next.Name, err)
		}
	}
	if pv, err = c.updatePhase(ctx, pv, v1.VolumeBound); err != nil {
		return err
	}
	if claim, err = c.bindClaim(ctx, claim, pv.Name); err != nil {
		return err
	}
	_, err = c.updateClaimStatus(ctx, claim, v1.ClaimBound, pv)
	return err
}

// bindClaim has a claim name its volume.
func (c *Controller) bindClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, volume string) (*v1.PersistentVolumeClaim, error) {
	if claim.Spec.VolumeName == volume && metav1.HasAnnotation(claim.ObjectMeta, volumehelper.AnnBindCompleted) {
		return claim, nil
	}
	next := claim.DeepCopy()
	if claim.Spec.VolumeName != volume {
		next.Spec.VolumeName = volume
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, volumehelper.AnnBoundByController, "yes")
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, volumehelper.AnnBindCompleted, "yes")
	is, err := controller.Update(ctx, c.api, next, "")
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", controller.KeyOf(claim), err)
	}
	return is, nil
}

// unbind takes back a binding to a claim that got another volume. One that a user wrote stays,
// without the claim's UID.
func (c *Controller) unbind(ctx context.Context, pv *v1.PersistentVolume) error {
	next := pv.DeepCopy()
	if metav1.HasAnnotation(pv.ObjectMeta, volumehelper.AnnBoundByController) {
		next.Spec.ClaimRef = nil
		delete(next.Annotations, volumehelper.AnnBoundByController)
	} else {
		next.Spec.ClaimRef.UID = ""
	}
	is, err := controller.Update(ctx, c.api, next, "")
	if err != nil {
		return fmt.Errorf("volume %s: %w", pv.Name, err)
	}
	_, err = c.updatePhase(ctx, is, v1.VolumeAvailable)
	return err
}

func (c *Controller) updatePhase(ctx context.Context, pv *v1.PersistentVolume, phase v1.PersistentVolumePhase) (*v1.PersistentVolume, error) {
	if pv.Status.Phase == phase {
		return pv, nil
	}
	next := pv.DeepCopy()
	next.Status.Phase = phase
	if phase != v1.VolumeFailed {
		next.Status.Message = ""
	}
	is, err := controller.Update(ctx, c.api, next, "status")
	if err != nil {
		return nil, fmt.Errorf("status of volume %s: %w", pv.Name, err)
	}
	return is, nil
}

// classes implements storagelisters.StorageClassLister.
type classes struct {
	storagelisters.StorageClassListerExpansion
	api *apiserver.Component
}

// List implements storagelisters.StorageClassLister.
func (l classes) List(labels.Selector) ([]*storagev1.StorageClass, error) {
	return apiserver.Objects[*storagev1.StorageClass](l.api.Server().Store(), apiserver.KindStorageClass), nil
}

// Get implements storagelisters.StorageClassLister.
func (l classes) Get(name string) (*storagev1.StorageClass, error) {
	class, ok := controller.Lookup[*storagev1.StorageClass](l.api, apiserver.KindStorageClass, controller.Key{Name: name})
	if !ok {
		return nil, apierrors.NewNotFound(storagev1.Resource("storageclass"), name)
	}
	return class, nil
}

// delays reports whether a claim waits until its pod is placed.
func delays(api *apiserver.Component, claim *v1.PersistentVolumeClaim) (bool, error) {
	return volumehelper.IsDelayBindingMode(claim, classes{api: api}) //nolint:wrapcheck // It names the class.
}
