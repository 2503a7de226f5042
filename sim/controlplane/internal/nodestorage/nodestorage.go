// Package nodestorage binds each claim of a volume, at once and whatever it asks for, to
// a new volume on the disk of the node that its pod runs on. It stands for upstream's
// pkg/controller/volume/persistentvolume and a provisioner, of which it has the results:
// a PersistentVolume with the claim's reference, both Bound; the volume goes after its
// claim. It also makes the claims of generic ephemeral volumes, as upstream's
// pkg/controller/volume/ephemeral does.
//
// Storage classes, sizes, access modes and volumes that somebody made beforehand decide
// nothing here, except that a claim which names a volume gets that one.
package nodestorage

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/utils/ptr"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// Driver is what kubelets know the volumes by.
const Driver = "node-storage.drydock.dev"

// The annotations of what is bound (component-helpers/storage/volume).
const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	bound         = "pv.kubernetes.io/bound-by-controller"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Controller binds claims.
type Controller struct {
	api *apiserver.Component
	// claims have the keys of claims, pods those of pods with ephemeral volumes, volumes
	// the names of volumes whose claims are gone.
	claims, pods, volumes *controller.Queue
}

// New starts the controller.
func New(opts controller.Options) *Controller {
	c := &Controller{api: opts.API}
	queue := func(name string, sync func(context.Context, controller.Key) error) *controller.Queue {
		return controller.NewQueue(controller.QueueOptions{Group: opts.Group, Name: name, Workers: 1, Delay: c.api.Delivery, Sync: sync})
	}
	c.claims, c.pods, c.volumes = queue("claims", c.bind), queue("ephemeral volumes", c.claim), queue("released volumes", c.release)
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
	srv.OnChange(func(ch apiserver.Change) {
		if ch.Type != watch.Added {
			return
		}
		for i := range ch.New.(*v1.Pod).Spec.Volumes {
			if ch.New.(*v1.Pod).Spec.Volumes[i].Ephemeral != nil {
				c.pods.Add(controller.KeyOf(ch.New))
				return
			}
		}
	}, apiserver.KindPod)
	return c
}

// bind gives a claim its volume.
func (c *Controller) bind(ctx context.Context, key controller.Key) error {
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](c.api, apiserver.KindPersistentVolumeClaim, key)
	if !ok || claim.DeletionTimestamp != nil || claim.Status.Phase == v1.ClaimBound {
		return nil
	}
	pv, err := c.volumeOf(ctx, claim)
	if err != nil {
		return fmt.Errorf("volume of claim %s: %w", key, err)
	}
	if claim.Spec.VolumeName == "" {
		next := claim.DeepCopy()
		next.Spec.VolumeName = pv.Name
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, bindCompleted, "yes")
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, bound, "yes")
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

// volumeOf returns the volume that a claim names, or a new one, bound.
func (c *Controller) volumeOf(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	name := claim.Spec.VolumeName
	if name == "" {
		name = "pvc-" + string(claim.UID)
	}
	pv, ok := controller.Lookup[*v1.PersistentVolume](c.api, apiserver.KindPersistentVolume, controller.Key{Name: name})
	var err error
	switch {
	case !ok && claim.Spec.VolumeName != "":
		return nil, fmt.Errorf("persistentvolume %q not found", name)
	case !ok:
		if pv, err = controller.Create(ctx, c.api, newVolume(claim, name)); err != nil {
			return nil, err
		}
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "":
		next := pv.DeepCopy()
		next.Spec.ClaimRef = reference(claim)
		if pv, err = controller.Update(ctx, c.api, next, ""); err != nil {
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
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: Driver}},
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
	if !ok {
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

// claim makes the claims of a pod's ephemeral volumes, which go with the pod.
func (c *Controller) claim(ctx context.Context, key controller.Key) error {
	pod, ok := controller.Lookup[*v1.Pod](c.api, apiserver.KindPod, key)
	if !ok || pod.DeletionTimestamp != nil {
		return nil
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral == nil {
			continue
		}
		t := v.Ephemeral.VolumeClaimTemplate
		made := &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, v), Labels: t.Labels, Annotations: t.Annotations,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, v1.SchemeGroupVersion.WithKind("Pod"))},
			},
			Spec: t.Spec,
		}
		if _, err := controller.Create(ctx, c.api, made); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("claim of pod %s's volume %s: %w", key, v.Name, err)
		}
	}
	return nil
}
