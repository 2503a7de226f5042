package persistentvolume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelper "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Reasons of events (pkg/controller/volume/events).
const (
	reasonFailedBinding        = "FailedBinding"
	reasonVolumeMismatch       = "VolumeMismatch"
	reasonProvisioningFailed   = "ProvisioningFailed"
	reasonExternalProvisioning = "ExternalProvisioning"
	reasonWaitForFirstConsumer = "WaitForFirstConsumer"
	reasonWaitForPodScheduled  = "WaitForPodScheduled"
	reasonVolumeFailedDelete   = "VolumeFailedDelete"
	reasonVolumeFailedRecycle  = "VolumeFailedRecycle"
)

func (c *Controller) syncClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	switch {
	case metav1.HasAnnotation(claim.ObjectMeta, volumehelper.AnnBindCompleted):
		return c.syncBoundClaim(ctx, claim)
	case claim.Spec.VolumeName != "":
		return c.syncNamingClaim(ctx, claim)
	}
	delay, err := delays(c.api, claim)
	if err != nil {
		return err
	}
	pv, err := c.match(claim, delay)
	if err != nil {
		return fmt.Errorf("error finding PV for claim %q: %w", controller.KeyOf(claim), err)
	}
	if pv != nil {
		return c.bind(ctx, pv, claim)
	}
	return c.syncUnmatchedClaim(ctx, claim, delay)
}

// match finds the volume for a claim that fits best: among those of the fewest access modes
// the smallest (findByClaim).
func (c *Controller) match(claim *v1.PersistentVolumeClaim, delay bool) (*v1.PersistentVolume, error) {
	var fits []*v1.PersistentVolume
	for _, name := range c.index.candidates(controller.KeyOf(claim)) {
		if pv, ok := c.lookupVolume(name); ok && volumehelper.CheckAccessModes(claim, pv) {
			fits = append(fits, pv)
		}
	}
	slices.SortStableFunc(fits, func(a, b *v1.PersistentVolume) int { return len(a.Spec.AccessModes) - len(b.Spec.AccessModes) })
	for len(fits) > 0 {
		modes := fits[0].Spec.AccessModes
		same := len(fits)
		if i := slices.IndexFunc(fits, func(pv *v1.PersistentVolume) bool { return len(pv.Spec.AccessModes) != len(modes) }); i >= 0 {
			same = i
		}
		pv, err := volumehelper.FindMatchingVolume(claim, fits[:same], nil, nil, delay, true)
		if err != nil || pv != nil {
			return pv, err //nolint:wrapcheck // The caller says what for.
		}
		fits = fits[same:]
	}
	return nil, nil
}

// syncUnmatchedClaim has a volume provisioned for a claim, or says for what it waits.
func (c *Controller) syncUnmatchedClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, delay bool) error {
	if assigned, err := c.assignDefaultClass(ctx, claim); assigned || err != nil {
		return err
	}
	switch class := volumehelper.GetPersistentVolumeClaimClass(claim); {
	case delay && !volumehelper.IsDelayBindingProvisioning(claim):
		c.tellDelayed(claim)
	case class != "":
		return c.provision(ctx, claim, class)
	default:
		c.event(claim, v1.EventTypeNormal, reasonFailedBinding, "no persistent volumes available for this claim and no storage class is set")
	}
	_, err := c.updateClaimStatus(ctx, claim, v1.ClaimPending, nil)
	return err
}

// tellDelayed says that a claim waits for a pod to be placed.
func (c *Controller) tellDelayed(claim *v1.PersistentVolumeClaim) {
	var pods []string
	for _, p := range c.api.Server().Store().PodsInNamespace(claim.Namespace) {
		if p.Spec.NodeName == "" && !controller.PodTerminated(p) && slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return controller.ClaimOf(p, &v) == claim.Name }) {
			pods = append(pods, p.Name)
		}
	}
	switch len(pods) {
	case 0:
		c.event(claim, v1.EventTypeNormal, reasonWaitForFirstConsumer, "waiting for first consumer to be created before binding")
	case 1:
		c.event(claim, v1.EventTypeNormal, reasonWaitForPodScheduled, "waiting for pod "+pods[0]+" to be scheduled")
	default:
		c.event(claim, v1.EventTypeNormal, reasonWaitForPodScheduled, "waiting for pods "+strings.Join(pods, ",")+" to be scheduled")
	}
}

// provision tells the external provisioner of a claim, by an annotation.
func (c *Controller) provision(ctx context.Context, claim *v1.PersistentVolumeClaim, name string) error {
	class, ok := controller.Lookup[*storagev1.StorageClass](c.api, apiserver.KindStorageClass, controller.Key{Name: name})
	switch {
	case !ok:
		c.event(claim, v1.EventTypeWarning, reasonProvisioningFailed, apierrors.NewNotFound(storagev1.Resource("storageclass"), name).Error())
		return nil
	case strings.HasPrefix(class.Provisioner, "kubernetes.io/"):
		c.event(claim, v1.EventTypeWarning, reasonProvisioningFailed, fmt.Sprintf("no volume plugin matched name: %s", class.Provisioner))
		return nil
	}
	if claim.Annotations[volumehelper.AnnStorageProvisioner] != class.Provisioner {
		next := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, volumehelper.AnnBetaStorageProvisioner, class.Provisioner)
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, volumehelper.AnnStorageProvisioner, class.Provisioner)
		var err error
		if next, err = controller.Update(ctx, c.api, next, ""); err != nil {
			c.event(claim, v1.EventTypeWarning, reasonProvisioningFailed, fmt.Sprintf("Error saving claim: %v", err))
			return fmt.Errorf("claim %s: %w", controller.KeyOf(claim), err)
		}
		claim = next
	}
	c.event(claim, v1.EventTypeNormal, reasonExternalProvisioning, fmt.Sprintf("Waiting for a volume to be created either by the external provisioner '%s' "+
		"or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.", class.Provisioner))
	return nil
}

// assignDefaultClass gives a claim without a class the cluster's default one, which came
// after it.
func (c *Controller) assignDefaultClass(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, error) {
	if volumehelper.PersistentVolumeClaimHasClass(claim) {
		return false, nil
	}
	class := apiserver.DefaultStorageClass(c.api.Server().Store())
	if class == "" {
		return false, nil
	}
	next := claim.DeepCopy()
	next.Spec.StorageClassName = &class
	if _, err := controller.Update(ctx, c.api, next, ""); err != nil {
		return false, fmt.Errorf("can't update PersistentVolumeClaim[%q]: %w", controller.KeyOf(claim), err)
	}
	return true, nil
}

// syncNamingClaim binds a claim that names its volume, if that may be.
func (c *Controller) syncNamingClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	pv, ok := c.lookupVolume(claim.Spec.VolumeName)
	switch {
	case !ok:
	case pv.Spec.ClaimRef == nil:
		err := satisfies(pv, claim)
		if err == "" {
			return c.bind(ctx, pv, claim)
		}
		c.event(claim, v1.EventTypeWarning, reasonVolumeMismatch, fmt.Sprintf("Cannot bind to requested volume %q: %s", pv.Name, err))
	case volumehelper.IsVolumeBoundToClaim(pv, claim):
		return c.bind(ctx, pv, claim)
	default:
		c.event(claim, v1.EventTypeWarning, reasonFailedBinding, fmt.Sprintf("volume %q already bound to a different claim.", pv.Name))
		if metav1.HasAnnotation(claim.ObjectMeta, volumehelper.AnnBoundByController) {
			return fmt.Errorf("invalid binding of claim %q to volume %q", controller.KeyOf(claim), pv.Name)
		}
	}
	_, err := c.updateClaimStatus(ctx, claim, v1.ClaimPending, nil)
	return err
}

// satisfies is why a volume is not what a claim asks for; "" if it is
// (checkVolumeSatisfyClaim).
func satisfies(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) string {
	has, wants := pv.Spec.Capacity[v1.ResourceStorage], claim.Spec.Resources.Requests[v1.ResourceStorage]
	switch {
	case pv.DeletionTimestamp != nil:
		return fmt.Sprintf("the volume is marked for deletion %q", pv.Name)
	case has.Value() < wants.Value():
		return "requested PV is too small"
	case volumehelper.GetPersistentVolumeClass(pv) != volumehelper.GetPersistentVolumeClaimClass(claim):
		return "storageClassName does not match"
	case ptr.Deref(pv.Spec.VolumeAttributesClassName, "") != ptr.Deref(claim.Spec.VolumeAttributesClassName, ""):
		return "volumeAttributesClassName does not match"
	case volumehelper.CheckVolumeModeMismatches(&claim.Spec, &pv.Spec):
		return "incompatible volumeMode"
	case !volumehelper.CheckAccessModes(claim, pv):
		return "incompatible accessMode"
	}
	return ""
}

// syncBoundClaim looks whether a bound claim still has its volume.
func (c *Controller) syncBoundClaim(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	if claim.Spec.VolumeName == "" {
		return c.lost(ctx, claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	}
	pv, ok := c.lookupVolume(claim.Spec.VolumeName)
	switch {
	case !ok:
		return c.lost(ctx, claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case pv.Spec.ClaimRef == nil, pv.Spec.ClaimRef.UID == claim.UID:
		return c.bind(ctx, pv, claim)
	}
	return c.lost(ctx, claim, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
}

func (c *Controller) lost(ctx context.Context, claim *v1.PersistentVolumeClaim, reason, message string) error {
	if claim.Status.Phase == v1.ClaimLost {
		return nil
	}
	claim, err := c.updateClaimStatus(ctx, claim, v1.ClaimLost, nil)
	if err == nil {
		c.event(claim, v1.EventTypeWarning, reason, message)
	}
	return err
}

// updateClaimStatus writes a claim's phase, and what it has of its volume; nil: it has none.
// What a bound claim has is not touched any more: it may be smaller than the volume until
// the file system has grown.
func (c *Controller) updateClaimStatus(ctx context.Context, claim *v1.PersistentVolumeClaim, phase v1.PersistentVolumeClaimPhase, pv *v1.PersistentVolume) (*v1.PersistentVolumeClaim, error) {
	next := claim.DeepCopy()
	next.Status.Phase = phase
	if pv == nil {
		next.Status.AccessModes, next.Status.Capacity, next.Status.CurrentVolumeAttributesClassName = nil, nil, nil
	} else {
		next.Status.AccessModes = pv.Spec.AccessModes
		if claim.Status.Phase != phase {
			next.Status.Capacity = pv.Spec.Capacity
		}
		if claim.Status.Phase == v1.ClaimPending && phase == v1.ClaimBound {
			next.Status.CurrentVolumeAttributesClassName = pv.Spec.VolumeAttributesClassName
		}
	}
	if equality.Semantic.DeepEqual(&claim.Status, &next.Status) {
		return claim, nil
	}
	is, err := controller.Update(ctx, c.api, next, "status")
	if err != nil {
		return nil, fmt.Errorf("status of claim %s: %w", controller.KeyOf(claim), err)
	}
	return is, nil
}

func (c *Controller) event(obj apiserver.Object, kind, reason, message string) {
	c.recorder.Event(controller.Reference(obj), kind, reason, message)
}
