// Package nodestorage binds claims of volumes, at once and whatever they ask for, each to a new
// volume on the disk of the node that its pod runs on. It stands in for upstream's
// pkg/controller/volume/persistentvolume and a provisioner where the cluster has none, and has
// their results: a PersistentVolume with the claim's reference, both Bound; the volume goes
// after its claim.
//
// What sizes, access modes and classes say decides nothing here. Which claims are bound so says
// Takes.
package nodestorage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	volumehelper "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Driver is what kubelets know the volumes by.
const Driver = "node-storage.drydock.dev"

// Controller binds claims.
type Controller struct {
	opts controller.Options
	api  *apiserver.Component
	// claims have the keys of claims, volumes the names of volumes whose claims are gone.
	claims, volumes *controller.Queue
}

// Takes reports whether a claim that is not bound is for this package: nobody in the cluster
// provisions volumes, there is no class of the name that the claim asks for, and no volume that
// somebody made would do for it. In a simulation that is closed also one of a class whose
// provisioner is no driver that there is.
func Takes(opts controller.Options, claim *v1.PersistentVolumeClaim) bool {
	store := opts.API.Server().Store()
	if name := claim.Spec.VolumeName; name != "" {
		pv, _ := store.Lookup(apiserver.KindPersistentVolume, "", name).(*v1.PersistentVolume)
		return pv != nil && Owns(pv)
	}
	if metav1.HasAnnotation(claim.ObjectMeta, volumehelper.AnnBindCompleted) {
		return false
	}
	own, ok := store.Lookup(apiserver.KindStorageClass, "", volumehelper.GetPersistentVolumeClaimClass(claim)).(*storagev1.StorageClass)
	if ok && provisionerOf(opts, own) != absent || !ok && provisions(opts) {
		return false
	}
	return !slices.ContainsFunc(apiserver.Objects[*v1.PersistentVolume](store, apiserver.KindPersistentVolume), func(pv *v1.PersistentVolume) bool { return !Owns(pv) && wouldDo(pv, claim) })
}

// provisioner is what is to be expected of the one that a class names.
type provisioner int

const (
	// inTree are upstream's own names, under which nobody provisions, but volumes that somebody
	// made are bound.
	inTree provisioner = iota
	// present is one that provisions, or may come to.
	present
	// absent is one that there is none of, and can't be.
	absent
)

func provisionerOf(opts controller.Options, c *storagev1.StorageClass) provisioner {
	switch {
	case strings.HasPrefix(c.Provisioner, "kubernetes.io/"):
		return inTree
	case opts.Closed && opts.API.Server().Store().Lookup(apiserver.KindCSIDriver, "", c.Provisioner) == nil:
		return absent
	}
	return present
}

// provisions reports whether somebody in the cluster provisions volumes.
func provisions(opts controller.Options) bool {
	return slices.ContainsFunc(apiserver.Objects[*storagev1.StorageClass](opts.API.Server().Store(), apiserver.KindStorageClass), func(c *storagev1.StorageClass) bool {
		return provisionerOf(opts, c) == present
	})
}

// warn says whose place this package takes, if a claim's class names a provisioner.
func (c *Controller) warn(claim *v1.PersistentVolumeClaim) {
	class, ok := controller.Lookup[*storagev1.StorageClass](c.opts.API, apiserver.KindStorageClass, controller.Key{Name: volumehelper.GetPersistentVolumeClaimClass(claim)})
	if ok && c.opts.Warn != nil {
		c.opts.Warn(fmt.Sprintf("StorageClass %s: there is no provisioner %s in the simulation: its claims get directories of their nodes (state one: storage: [{driver: %s}], and the nodes' drivers)",
			class.Name, class.Provisioner, class.Provisioner))
	}
}

// Owns reports whether a volume was made by this package.
func Owns(pv *v1.PersistentVolume) bool { return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == Driver }

// wouldDo reports whether a claim could be bound to a volume, now or once it is available.
func wouldDo(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) bool {
	if pv.Spec.ClaimRef != nil {
		return volumehelper.IsVolumeBoundToClaim(pv, claim)
	}
	free := *pv
	free.Status.Phase = v1.VolumeAvailable
	found, err := volumehelper.FindMatchingVolume(claim, []*v1.PersistentVolume{&free}, nil, nil, false, true)
	return err == nil && found != nil && volumehelper.CheckAccessModes(claim, pv)
}

// New starts the controller.
func New(opts controller.Options) *Controller {
	c := &Controller{opts: opts, api: opts.API}
	queue := func(name string, sync func(context.Context, controller.Key) error) *controller.Queue {
		return controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: name, Workers: 1, Delay: c.api.Delivery, Sync: sync})
	}
	c.claims, c.volumes = queue("claims", c.bind), queue("released volumes", c.release)
	srv := c.api.Server()
	srv.OnChange(func(ch apiserver.Change) {
		claim := ch.New.(*v1.PersistentVolumeClaim)
		switch {
		case ch.Type != watch.Deleted && claim.Status.Phase != v1.ClaimBound:
			c.claims.Add(controller.KeyOf(claim))
		case ch.Type == watch.Deleted && claim.Spec.VolumeName != "":
			c.volumes.Add(controller.Key{Name: claim.Spec.VolumeName})
		}
	}, apiserver.KindPersistentVolumeClaim)
	// A volume that is taken or gone may have been the one that a claim waited for.
	srv.OnChange(func(ch apiserver.Change) {
		was, _ := ch.Old.(*v1.PersistentVolume)
		if was == nil || Owns(was) || provisions(opts) {
			return
		}
		for _, claim := range apiserver.Objects[*v1.PersistentVolumeClaim](srv.Store(), apiserver.KindPersistentVolumeClaim) {
			if claim.Status.Phase == v1.ClaimPending && wouldDo(was, claim) {
				c.claims.Add(controller.KeyOf(claim))
			}
		}
	}, apiserver.KindPersistentVolume)
	return c
}

// bind gives a claim its volume.
func (c *Controller) bind(ctx context.Context, key controller.Key) error {
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key)
	if !ok || claim.DeletionTimestamp != nil || claim.Status.Phase == v1.ClaimBound || !Takes(c.opts, claim) {
		return nil
	}
	c.warn(claim)
	pv, err := c.volumeOf(ctx, claim)
	if err != nil {
		return fmt.Errorf("volume of claim %s: %w", key, err)
	}
	if claim.Spec.VolumeName == "" {
		next := claim.DeepCopy()
		next.Spec.VolumeName = pv.Name
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, volumehelper.AnnBindCompleted, "yes")
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, volumehelper.AnnBoundByController, "yes")
		if claim, err = controller.Update(ctx, c.api, next, ""); err != nil {
			return fmt.Errorf("claim %s: %w", key, err)
		}
	}
	next := claim.DeepCopy()
	next.Status.Phase, next.Status.AccessModes, next.Status.Capacity = v1.ClaimBound, pv.Spec.AccessModes, pv.Spec.Capacity
	if _, err := controller.Update(ctx, c.api, next, "status"); err != nil {
		return fmt.Errorf("claim %s: %w", key, err)
	}
	return nil
}

// volumeOf returns a claim's volume, which is made if it is not there, bound.
func (c *Controller) volumeOf(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	name := "pvc-" + string(claim.UID)
	pv, ok := controller.Lookup[*v1.PersistentVolume](c.api, apiserver.KindPersistentVolume, controller.Key{Name: name})
	if !ok {
		var err error
		if pv, err = controller.Create(ctx, c.api, newVolume(claim, name)); err != nil {
			return nil, err
		}
	}
	if pv.Status.Phase == v1.VolumeBound {
		return pv, nil
	}
	return c.setPhase(ctx, pv, v1.VolumeBound)
}

// setPhase writes a volume's phase.
func (c *Controller) setPhase(ctx context.Context, pv *v1.PersistentVolume, phase v1.PersistentVolumePhase) (*v1.PersistentVolume, error) {
	next := pv.DeepCopy()
	next.Status.Phase = phase
	return controller.Update(ctx, c.api, next, "status")
}

func reference(claim *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{APIVersion: "v1", Kind: string(apiserver.KindPersistentVolumeClaim), Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion}
}

// newVolume is a volume made for a claim.
func newVolume(claim *v1.PersistentVolumeClaim, name string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{volumehelper.AnnDynamicallyProvisioned: Driver}},
		Spec: v1.PersistentVolumeSpec{
			Capacity:    v1.ResourceList{v1.ResourceStorage: claim.Spec.Resources.Requests[v1.ResourceStorage]},
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			StorageClassName:              ptr.Deref(claim.Spec.StorageClassName, ""),
			ClaimRef:                      reference(claim),
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: Driver, VolumeHandle: name}},
		},
	}
}

// release takes a volume away whose claim is gone, unless it is to stay.
func (c *Controller) release(ctx context.Context, key controller.Key) error {
	pv, ok := controller.Lookup[*v1.PersistentVolume](c.api, apiserver.KindPersistentVolume, key)
	if !ok || !Owns(pv) {
		return nil
	}
	if pv.Status.Phase == v1.VolumeBound {
		var err error
		if pv, err = c.setPhase(ctx, pv, v1.VolumeReleased); err != nil {
			return fmt.Errorf("volume %s: %w", key.Name, err)
		}
	}
	if pv.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete || pv.DeletionTimestamp != nil {
		return nil
	}
	if err := controller.Delete(ctx, c.api, pv, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("volume %s: %w", key.Name, err)
	}
	return nil
}
