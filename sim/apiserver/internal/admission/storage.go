package admission

import (
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// Finalizers that keep volumes and claims while something uses them
// (pkg/volume/util/finalizer.go).
const (
	VolumeProtection = "kubernetes.io/pv-protection"
	ClaimProtection  = "kubernetes.io/pvc-protection"
)

// defaultStorageClass gives a claim that names no class the default one, of several
// the newest (plugin/pkg/admission/storage/storageclass/setdefault).
func (p *Plugins) defaultStorageClass(r *Request) error {
	claim := r.Object.(*v1.PersistentVolumeClaim)
	if _, ok := claim.Annotations[v1.BetaStorageClassAnnotation]; ok || claim.Spec.StorageClassName != nil {
		return nil
	}
	var class *storagev1.StorageClass
	p.cluster.Each(kinds.StorageClass, func(o kind.Object) bool {
		class = kinds.BetterDefault(class, o.(*storagev1.StorageClass))
		return true
	})
	if class != nil {
		claim.Spec.StorageClassName = new(class.Name)
	}
	return nil
}

// newer reports whether one default wins over another: the later one, of those of one
// second the first by name.
func newer(a, b kind.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return bt.Before(&at) || bt.Equal(&at) && a.GetName() < b.GetName()
}

// protectStorage has a new volume or claim stay while something uses it
// (plugin/pkg/admission/storage/storageobjectinuseprotection).
func protectStorage(r *Request) error {
	f := VolumeProtection
	if r.Kind.Kind == kinds.PersistentVolumeClaim {
		f = ClaimProtection
	}
	if list := r.Object.GetFinalizers(); !slices.Contains(list, f) {
		r.Object.SetFinalizers(append(slices.Clip(list), f))
	}
	return nil
}

// validateClaimResize lets only those claims grow that are bound, and whose class
// allows it (plugin/pkg/admission/storage/persistentvolume/resize).
func (p *Plugins) validateClaimResize(r *Request) error {
	claim, old := r.Object.(*v1.PersistentVolumeClaim), r.Old.(*v1.PersistentVolumeClaim)
	size := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if size.Cmp(old.Spec.Resources.Requests[v1.ResourceStorage]) <= 0 {
		return nil
	}
	refuse := func(text string) error {
		return apierrors.NewForbidden(r.Kind.GroupResource(), claim.Name, errors.New(text))
	}
	if old.Status.Phase != v1.ClaimBound {
		return refuse("Only bound persistent volume claims can be expanded")
	}
	name := kinds.ClassOfClaim(claim)
	class, ok := p.cluster.Lookup(kinds.StorageClass, "", name).(*storagev1.StorageClass)
	if name == "" || name != kinds.ClassOfClaim(old) || !ok || class.AllowVolumeExpansion == nil || !*class.AllowVolumeExpansion {
		return refuse("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	}
	return nil
}
