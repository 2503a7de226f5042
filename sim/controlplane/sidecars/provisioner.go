package sidecars

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	volumehelper "k8s.io/component-helpers/storage/volume"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// fsTypeParameter is that of a class which says what file system its volumes get.
const fsTypeParameter = "csi.storage.k8s.io/fstype"

// provisioner makes volumes for claims, and deletes those that were released.
type provisioner struct {
	*sidecar
	claims, volumes *controller.Queue
}

func startProvisioner(s *sidecar) {
	p := &provisioner{sidecar: s}
	p.claims, p.volumes = s.queue("claims", p.syncClaim), s.queue("volumes", p.syncVolume)
	srv := s.api.Server()
	srv.OnChange(func(ch apiserver.Change) {
		if claim := ch.New.(*v1.PersistentVolumeClaim); ch.Type != watch.Deleted && p.wants(claim) {
			p.claims.Add(controller.KeyOf(claim))
		}
	}, apiserver.KindPersistentVolumeClaim)
	srv.OnChange(func(ch apiserver.Change) {
		if pv := ch.New.(*v1.PersistentVolume); ch.Type != watch.Deleted && p.mine(pv) {
			p.volumes.Add(controller.KeyOf(pv))
		}
	}, apiserver.KindPersistentVolume)
	for _, claim := range apiserver.Objects[*v1.PersistentVolumeClaim](srv.Store(), apiserver.KindPersistentVolumeClaim) {
		if p.wants(claim) {
			p.claims.Add(controller.KeyOf(claim))
		}
	}
	for _, pv := range apiserver.Objects[*v1.PersistentVolume](srv.Store(), apiserver.KindPersistentVolume) {
		if p.mine(pv) {
			p.volumes.Add(controller.KeyOf(pv))
		}
	}
}

// wants reports whether a claim wants a volume of the driver (shouldProvision).
func (p *provisioner) wants(claim *v1.PersistentVolumeClaim) bool {
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Annotations[volumehelper.AnnStorageProvisioner] != p.driver.DriverName() {
		return false
	}
	class := p.class(claim)
	return class == nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer || volumehelper.IsDelayBindingProvisioning(claim)
}

func (p *provisioner) mine(pv *v1.PersistentVolume) bool {
	return pv.Annotations[volumehelper.AnnDynamicallyProvisioned] == p.driver.DriverName()
}

func (p *provisioner) class(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	class, _ := controller.Lookup[*storagev1.StorageClass](p.api, apiserver.KindStorageClass, controller.Key{Name: volumehelper.GetPersistentVolumeClaimClass(claim)})
	return class
}

// syncClaim makes a claim's volume.
func (p *provisioner) syncClaim(ctx context.Context, key controller.Key) error {
	claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](p.api, apiserver.KindPersistentVolumeClaim, key)
	if !ok || !p.wants(claim) {
		return nil
	}
	name := "pvc-" + string(claim.UID)
	if _, ok := controller.Lookup[*v1.PersistentVolume](p.api, apiserver.KindPersistentVolume, controller.Key{Name: name}); ok {
		return nil
	}
	class := p.class(claim)
	if class == nil {
		err := apierrors.NewNotFound(storagev1.Resource("storageclass"), volumehelper.GetPersistentVolumeClaimClass(claim))
		p.event(claim, v1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return err
	}
	p.event(claim, v1.EventTypeNormal, "Provisioning", fmt.Sprintf("External provisioner is provisioning volume for claim %q", key))
	zones, err := p.zones(claim, class)
	var zone string
	if err == nil {
		zone, err = p.driver.CreateVolume(ctx, name, storage(claim.Spec.Resources.Requests), zones)
	}
	if err != nil {
		p.event(claim, v1.EventTypeWarning, "ProvisioningFailed", fmt.Sprintf("failed to provision volume with StorageClass %q: %v", class.Name, err))
		if status.Code(err) == codes.ResourceExhausted && volumehelper.IsDelayBindingProvisioning(claim) {
			return p.reschedule(ctx, key)
		}
		return fmt.Errorf("claim %s: %w", key, err)
	}
	if _, err := controller.Create(ctx, p.api, p.volumeFor(claim, class, name, zone)); err != nil && !apierrors.IsAlreadyExists(err) {
		p.event(claim, v1.EventTypeWarning, "ProvisioningFailed", fmt.Sprintf("Error saving claim: %v", err))
		return fmt.Errorf("volume of claim %s: %w", key, err)
	}
	p.event(claim, v1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume "+name)
	return nil
}

// reschedule has the scheduler look for another node: where the pod was to run there is no
// room (ProvisioningReschedule).
func (p *provisioner) reschedule(ctx context.Context, key controller.Key) error {
	_, err := edit(ctx, p.sidecar, apiserver.KindPersistentVolumeClaim, key, "", func(c *v1.PersistentVolumeClaim) bool {
		_, ok := c.Annotations[volumehelper.AnnSelectedNode]
		delete(c.Annotations, volumehelper.AnnSelectedNode)
		return ok
	})
	return err
}

// zones are those where a claim's volume may be, the best first: the zone of the node that was
// selected, else all that the class allows, in turn for claims of a StatefulSet
// (GenerateAccessibilityRequirements).
func (p *provisioner) zones(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) ([]string, error) {
	key := p.driver.TopologyKey()
	if key == "" {
		return []string{""}, nil
	}
	srv := p.api.Server()
	if name := claim.Annotations[volumehelper.AnnSelectedNode]; name != "" {
		csiNode, ok := srv.Store().Lookup(apiserver.KindCSINode, "", name).(*storagev1.CSINode)
		node := srv.Node(name)
		if !ok || node == nil || !slices.ContainsFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool {
			return d.Name == p.driver.DriverName() && slices.Contains(d.TopologyKeys, key)
		}) {
			return nil, fmt.Errorf("error generating accessibility requirements: no topology key found on CSINode %s", name)
		}
		return []string{node.Labels[key]}, nil
	}
	var zones []string
	for _, n := range srv.Nodes() {
		if zone := n.Labels[key]; zone != "" && !slices.Contains(zones, zone) && allowed(class.AllowedTopologies, key, zone) {
			zones = append(zones, zone)
		}
	}
	if len(zones) == 0 {
		return nil, errors.New("error generating accessibility requirements: no available topology found")
	}
	slices.Sort(zones)
	first := turn(claim.Name) % uint32(len(zones))
	return slices.Concat(zones[first:], zones[:first]), nil
}

func allowed(terms []v1.TopologySelectorTerm, key, zone string) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t v1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(e v1.TopologySelectorLabelRequirement) bool {
			return e.Key == key && !slices.Contains(e.Values, zone)
		})
	})
}

// turn is a hash of a claim's name, and for those that end in an ordinal that of what is before
// it, so that claims of a StatefulSet go round the zones (getPVCNameHashAndIndexOffset).
func turn(name string) uint32 {
	offset := uint32(0)
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		if n, err := strconv.ParseUint(name[i+1:], 10, 32); err == nil {
			name, offset = name[:i], uint32(n)
			if k := strings.LastIndexByte(name, '-'); k >= 0 {
				name = name[k+1:]
			}
		}
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32() + offset
}

// volumeFor is the PersistentVolume of a volume that was made.
func (p *provisioner) volumeFor(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, name, zone string) *v1.PersistentVolume {
	driver := p.driver.DriverName()
	fsType := class.Parameters[fsTypeParameter]
	if fsType == "" && (claim.Spec.VolumeMode == nil || *claim.Spec.VolumeMode == v1.PersistentVolumeFilesystem) {
		fsType = "ext4"
	}
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	pv := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			volumehelper.AnnDynamicallyProvisioned:                       driver,
			"volume.kubernetes.io/provisioner-deletion-secret-name":      "",
			"volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
		}},
		Spec: v1.PersistentVolumeSpec{
			Capacity:    v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(size.Value(), size.Format)},
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, MountOptions: class.MountOptions,
			StorageClassName: class.Name,
			ClaimRef: &v1.ObjectReference{
				APIVersion: "v1", Kind: string(apiserver.KindPersistentVolumeClaim), Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: name, FSType: fsType,
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": driver},
			}},
		},
	}
	if class.ReclaimPolicy != nil {
		pv.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete {
		pv.Finalizers = []string{volumehelper.PVDeletionProtectionFinalizer}
	}
	if zone != "" {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: p.driver.TopologyKey(), Operator: v1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	return pv
}

// syncVolume deletes a volume that was released and is not to stay.
func (p *provisioner) syncVolume(ctx context.Context, key controller.Key) error {
	pv, ok := controller.Lookup[*v1.PersistentVolume](p.api, apiserver.KindPersistentVolume, key)
	if !ok || !p.mine(pv) || pv.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete {
		return nil
	}
	released := pv.Status.Phase == v1.VolumeReleased || pv.Status.Phase == v1.VolumeFailed
	if !released || !slices.Contains(pv.Finalizers, volumehelper.PVDeletionProtectionFinalizer) {
		return nil
	}
	err := p.attachedTo(pv)
	if err == nil {
		err = p.driver.DeleteVolume(ctx, pv.Spec.CSI.VolumeHandle)
	}
	if err != nil {
		p.event(pv, v1.EventTypeWarning, "VolumeFailedDelete", err.Error())
		return fmt.Errorf("volume %s: %w", key.Name, err)
	}
	if pv.DeletionTimestamp == nil {
		if err := controller.Delete(ctx, p.api, pv, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("volume %s: %w", key.Name, err)
		}
	}
	_, err = edit(ctx, p.sidecar, apiserver.KindPersistentVolume, key, "", func(pv *v1.PersistentVolume) bool {
		n := len(pv.Finalizers)
		pv.Finalizers = slices.DeleteFunc(pv.Finalizers, func(f string) bool { return f == volumehelper.PVDeletionProtectionFinalizer })
		return len(pv.Finalizers) < n
	})
	return err
}

// attachedTo is the error that a volume is still attached.
func (p *provisioner) attachedTo(pv *v1.PersistentVolume) error {
	for _, va := range apiserver.Objects[*storagev1.VolumeAttachment](p.api.Server().Store(), apiserver.KindVolumeAttachment) {
		if name := va.Spec.Source.PersistentVolumeName; name != nil && *name == pv.Name {
			return fmt.Errorf("persistentvolume %s is still attached to node %s", pv.Name, va.Spec.NodeName)
		}
	}
	return nil
}
