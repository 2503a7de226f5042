package sidecars

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// nodeIDAnnotation is what the attacher calls the node to the driver.
const nodeIDAnnotation = "csi.alpha.kubernetes.io/node-id"

// attacher acts on VolumeAttachments.
type attacher struct {
	*sidecar
	attachments, volumes *controller.Queue
	finalizer            string
}

func startAttacher(s *sidecar) {
	a := &attacher{sidecar: s, finalizer: s.finalizerOf("external-attacher/")}
	a.attachments, a.volumes = s.queue("attachments", a.sync), s.queue("attached volumes", a.syncVolume)
	srv := s.api.Server()
	add := func(va *storagev1.VolumeAttachment) {
		if va.Spec.Attacher == s.driver.DriverName() {
			a.attachments.Add(controller.KeyOf(va))
		}
	}
	srv.OnChange(func(ch apiserver.Change) {
		va := ch.New.(*storagev1.VolumeAttachment)
		if ch.Type != watch.Deleted {
			add(va)
		} else if name := va.Spec.Source.PersistentVolumeName; name != nil {
			a.volumes.Add(controller.Key{Name: *name})
		}
	}, apiserver.KindVolumeAttachment)
	srv.OnChange(func(ch apiserver.Change) {
		if pv := ch.New.(*v1.PersistentVolume); ch.Type == watch.Modified && pv.DeletionTimestamp != nil && slices.Contains(pv.Finalizers, a.finalizer) {
			a.volumes.Add(controller.KeyOf(pv))
		}
	}, apiserver.KindPersistentVolume)
	for _, va := range apiserver.Objects[*storagev1.VolumeAttachment](srv.Store(), apiserver.KindVolumeAttachment) {
		add(va)
	}
}

func (a *attacher) sync(ctx context.Context, key controller.Key) error {
	va, ok := controller.Lookup[*storagev1.VolumeAttachment](a.api, apiserver.KindVolumeAttachment, key)
	if !ok {
		return nil
	}
	pv, node, err := a.meant(va)
	switch {
	case va.DeletionTimestamp != nil:
		if !slices.Contains(va.Finalizers, a.finalizer) {
			return nil
		}
		if pv != nil {
			if err := a.driver.DetachVolume(ctx, pv.Spec.CSI.VolumeHandle, va.Spec.NodeName); err != nil {
				return a.failed(ctx, key, err, true)
			}
		}
		_, err := edit(ctx, a.sidecar, apiserver.KindVolumeAttachment, key, "", func(va *storagev1.VolumeAttachment) bool {
			n := len(va.Finalizers)
			va.Finalizers = slices.DeleteFunc(va.Finalizers, func(f string) bool { return f == a.finalizer })
			return len(va.Finalizers) < n
		})
		return err
	case va.Status.Attached:
		return nil
	case err != nil:
		return a.failed(ctx, key, err, false)
	}
	return a.attach(ctx, key, pv, node)
}

// attach attaches a volume, and says so; both the attachment and the volume are kept until it
// is detached.
func (a *attacher) attach(ctx context.Context, key controller.Key, pv *v1.PersistentVolume, node string) error {
	_, err := edit(ctx, a.sidecar, apiserver.KindPersistentVolume, controller.KeyOf(pv), "", func(pv *v1.PersistentVolume) bool {
		if slices.Contains(pv.Finalizers, a.finalizer) || pv.DeletionTimestamp != nil {
			return false
		}
		pv.Finalizers = append(pv.Finalizers, a.finalizer)
		return true
	})
	if err == nil {
		_, err = edit(ctx, a.sidecar, apiserver.KindVolumeAttachment, key, "", func(va *storagev1.VolumeAttachment) bool {
			if slices.Contains(va.Finalizers, a.finalizer) {
				return false
			}
			va.Finalizers = append(va.Finalizers, a.finalizer)
			metav1.SetMetaDataAnnotation(&va.ObjectMeta, nodeIDAnnotation, node)
			return true
		})
	}
	if err != nil {
		return err
	}
	va, ok := controller.Lookup[*storagev1.VolumeAttachment](a.api, apiserver.KindVolumeAttachment, key)
	if !ok {
		return nil
	}
	if err := a.driver.AttachVolume(ctx, pv.Spec.CSI.VolumeHandle, va.Spec.NodeName); err != nil {
		return a.failed(ctx, key, err, false)
	}
	_, err = edit(ctx, a.sidecar, apiserver.KindVolumeAttachment, key, "status", func(va *storagev1.VolumeAttachment) bool {
		va.Status = storagev1.VolumeAttachmentStatus{Attached: true}
		return true
	})
	return err
}

// meant are the volume of an attachment, and the driver's name for its node.
func (a *attacher) meant(va *storagev1.VolumeAttachment) (*v1.PersistentVolume, string, error) {
	name := va.Spec.Source.PersistentVolumeName
	if name == nil {
		return nil, "", fmt.Errorf("attachment %s names no volume", va.Name)
	}
	pv, ok := controller.Lookup[*v1.PersistentVolume](a.api, apiserver.KindPersistentVolume, controller.Key{Name: *name})
	if !ok || pv.Spec.CSI == nil {
		return nil, "", fmt.Errorf("persistentvolume %q not found", *name)
	}
	csiNode, ok := controller.Lookup[*storagev1.CSINode](a.api, apiserver.KindCSINode, controller.Key{Name: va.Spec.NodeName})
	if ok {
		for _, d := range csiNode.Spec.Drivers {
			if d.Name == a.driver.DriverName() {
				return pv, d.NodeID, nil
			}
		}
		return pv, "", fmt.Errorf("CSINode %s does not contain driver %s", va.Spec.NodeName, a.driver.DriverName())
	}
	return pv, "", fmt.Errorf("node %q has no NodeID annotation", va.Spec.NodeName)
}

// failed writes an error into an attachment, and returns it.
func (a *attacher) failed(ctx context.Context, key controller.Key, err error, detaching bool) error {
	e := &storagev1.VolumeError{Time: controller.WireTime(a.g.Loop().Now()), Message: err.Error()}
	_, failed := edit(ctx, a.sidecar, apiserver.KindVolumeAttachment, key, "status", func(va *storagev1.VolumeAttachment) bool {
		if detaching {
			va.Status.DetachError = e
		} else {
			va.Status.AttachError = e
		}
		return true
	})
	if failed != nil {
		return failed
	}
	return fmt.Errorf("attachment %s: %w", key.Name, err)
}

// syncVolume lets go of a volume that is being deleted and has no attachment any more.
func (a *attacher) syncVolume(ctx context.Context, key controller.Key) error {
	for _, va := range apiserver.Objects[*storagev1.VolumeAttachment](a.api.Server().Store(), apiserver.KindVolumeAttachment) {
		if name := va.Spec.Source.PersistentVolumeName; name != nil && *name == key.Name {
			return nil
		}
	}
	_, err := edit(ctx, a.sidecar, apiserver.KindPersistentVolume, key, "", func(pv *v1.PersistentVolume) bool {
		n := len(pv.Finalizers)
		if pv.DeletionTimestamp != nil {
			pv.Finalizers = slices.DeleteFunc(pv.Finalizers, func(f string) bool { return f == a.finalizer })
		}
		return len(pv.Finalizers) < n
	})
	return err
}
