package kinds

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/asjson"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// PersistentVolume is the kind of volumes that outlive pods.
const PersistentVolume kind.Kind = "PersistentVolume"

// persistentVolume returns the row of PersistentVolume
// (pkg/registry/core/persistentvolume/strategy.go).
func persistentVolume() *kind.Info {
	return &kind.Info{
		Kind: PersistentVolume, Meta: kind.MetaAsNewTwice, Version: "v1", Resource: "persistentvolumes", ShortNames: []string{"pv"},
		ReturnsDeleted: true, ResetFields: map[string][]string{"status": {"spec"}},
		Strategy: &kind.Typed[v1.PersistentVolume, *v1.PersistentVolume]{
			Defaults: setPersistentVolumeDefaults,
			Halves: kind.SpecAndStatus(func(pv *v1.PersistentVolume) (*v1.PersistentVolumeSpec, *v1.PersistentVolumeStatus) {
				return &pv.Spec, &pv.Status
			}),
			Reset: func(pv *v1.PersistentVolume) { pv.Status = v1.PersistentVolumeStatus{Phase: v1.VolumePending} },
			Stored: func(now time.Time, pv *v1.PersistentVolume) {
				pv.Status.LastPhaseTransitionTime = new(asjson.Time(now))
			},
			Updated:     stampVolumePhase,
			Check:       validatePersistentVolume,
			CheckUpdate: validatePersistentVolumeUpdate,
			Warn:        persistentVolumeWarnings,
			Table:       persistentVolumeTable(),
		},
	}
}

func persistentVolumeTable() []kind.Column[v1.PersistentVolume] {
	type volume = v1.PersistentVolume
	spec, status := v1.PersistentVolumeSpec{}.SwaggerDoc(), v1.PersistentVolumeStatus{}.SwaggerDoc()
	return []kind.Column[volume]{
		kind.NameColumn[volume](),
		{Name: "Capacity", Type: "string", Description: spec["capacity"], Cell: func(pv *volume, _ time.Time) any {
			q := pv.Spec.Capacity[v1.ResourceStorage]
			return q.String()
		}},
		{Name: "Access Modes", Type: "string", Description: spec["accessModes"], Cell: func(pv *volume, _ time.Time) any { return accessModes(pv.Spec.AccessModes) }},
		{Name: "Reclaim Policy", Type: "string", Description: spec["persistentVolumeReclaimPolicy"], Cell: func(pv *volume, _ time.Time) any {
			return string(pv.Spec.PersistentVolumeReclaimPolicy)
		}},
		{Name: "Status", Type: "string", Description: status["phase"], Cell: func(pv *volume, _ time.Time) any {
			if pv.DeletionTimestamp != nil {
				return "Terminating"
			}
			return string(pv.Status.Phase)
		}},
		{Name: "Claim", Type: "string", Description: spec["claimRef"], Cell: func(pv *volume, _ time.Time) any {
			if c := pv.Spec.ClaimRef; c != nil {
				return c.Namespace + "/" + c.Name
			}
			return ""
		}},
		{Name: "StorageClass", Type: "string", Description: "StorageClass of the pv", Cell: func(pv *volume, _ time.Time) any {
			if class, ok := pv.Annotations[v1.BetaStorageClassAnnotation]; ok {
				return class
			}
			return pv.Spec.StorageClassName
		}},
		{Name: "VolumeAttributesClass", Type: "string", Description: "VolumeAttributesClass of the pv", Cell: func(pv *volume, _ time.Time) any {
			return orUnset(pv.Spec.VolumeAttributesClassName)
		}},
		{Name: "Reason", Type: "string", Description: status["reason"], Cell: func(pv *volume, _ time.Time) any { return pv.Status.Reason }},
		kind.AgeColumn[volume](),
		{Name: "VolumeMode", Type: "string", Description: spec["volumeMode"], Priority: 1, Cell: func(pv *volume, _ time.Time) any { return orUnset(pv.Spec.VolumeMode) }},
	}
}

// orUnset is how tables show an optional text.
func orUnset[T ~string](v *T) string {
	if v == nil {
		return "<unset>"
	}
	return string(*v)
}

// accessModes is how tables show the ways in which a volume is accessed
// (GetAccessModesAsString).
func accessModes(modes []v1.PersistentVolumeAccessMode) string {
	var out []string
	for _, m := range []struct {
		mode v1.PersistentVolumeAccessMode
		text string
	}{{v1.ReadWriteOnce, "RWO"}, {v1.ReadOnlyMany, "ROX"}, {v1.ReadWriteMany, "RWX"}, {v1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(modes, m.mode) {
			out = append(out, m.text)
		}
	}
	return strings.Join(out, ",")
}

// setPersistentVolumeDefaults is SetDefaults_PersistentVolume with those of its
// sources.
func setPersistentVolumeDefaults(pv *v1.PersistentVolume) {
	fields.Default(&pv.Status.Phase, v1.VolumePending)
	fields.Default(&pv.Spec.PersistentVolumeReclaimPolicy, v1.PersistentVolumeReclaimRetain)
	fields.DefaultPtr(&pv.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	setVolumeSourceDefaults(&pv.Spec.PersistentVolumeSource)
}

// stampVolumePhase notes when a volume's phase changed, unless who changed it has.
func stampVolumePhase(now time.Time, pv, old *v1.PersistentVolume, sub string) {
	at := &pv.Status.LastPhaseTransitionTime
	switch was := old.Status.LastPhaseTransitionTime; {
	case sub != "status":
	case pv.Status.Phase == old.Status.Phase:
		if *at == nil {
			*at = was
		}
	case *at == nil || (*at).Equal(was):
		*at = new(asjson.Time(now))
	}
}

func validatePersistentVolume(pv *v1.PersistentVolume) field.ErrorList {
	errs := validateVolumeSpec(&pv.Spec, pv.Name, false, field.NewPath("spec"))
	// Options in the annotation are for sources that mount by them.
	if _, ok := pv.Annotations[v1.MountOptionAnnotation]; ok && !takesMountOptions(&pv.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations", v1.MountOptionAnnotation), "may not specify mount options for this volume type"))
	}
	return errs
}

// validateVolumeSpec is ValidatePersistentVolumeSpec. An inline one stands in a
// VolumeAttachment, for a volume that is no object of its own.
func validateVolumeSpec(s *v1.PersistentVolumeSpec, name string, inline bool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	const here = "may not be specified in the context of inline volumes"
	if inline {
		if s.ClaimRef != nil {
			errs = append(errs, field.Forbidden(p.Child("claimRef"), here))
		}
		if len(s.Capacity) > 0 {
			errs = append(errs, field.Forbidden(p.Child("capacity"), here))
		}
		if s.CSI == nil {
			errs = append(errs, field.Required(p.Child("csi"), "has to be specified in the context of inline volumes"))
		}
	}
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(p.Child("accessModes"), ""))
	}
	errs = append(errs, podspec.ValidateAccessModes(s.AccessModes, p.Child("accessModes"))...)
	if !inline {
		errs = append(errs, validateVolumeCapacity(s.Capacity, p.Child("capacity"))...)
	}
	switch policy := s.PersistentVolumeReclaimPolicy; {
	case policy == "":
	case !inline:
		errs = append(errs, fields.Supported(policy, p.Child("persistentVolumeReclaimPolicy"),
			v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRecycle, v1.PersistentVolumeReclaimRetain)...)
	case policy != v1.PersistentVolumeReclaimRetain:
		errs = append(errs, field.Forbidden(p.Child("persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes"))
	}
	if a := s.NodeAffinity; a != nil {
		switch {
		case inline:
			errs = append(errs, field.Forbidden(p.Child("nodeAffinity"), here))
		case a.Required == nil:
			errs = append(errs, field.Required(p.Child("nodeAffinity", "required"), "must specify required node constraints"))
		default:
			errs = append(errs, podspec.ValidateNodeSelector(a.Required, p.Child("nodeAffinity", "required"))...)
		}
	}
	errs = append(errs, validateVolumeSources(s, name, p)...)
	// It would empty the whole machine.
	if h := s.HostPath; h != nil && path.Clean(h.Path) == "/" && s.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(p.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
	}
	if s.StorageClassName != "" {
		if inline {
			errs = append(errs, field.Forbidden(p.Child("storageClassName"), here))
		} else {
			errs = append(errs, fields.DNSName(s.StorageClassName, p.Child("storageClassName"))...)
		}
	}
	if m := s.VolumeMode; m != nil {
		switch {
		case !inline:
			errs = append(errs, fields.Supported(*m, p.Child("volumeMode"), v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem)...)
		case *m != v1.PersistentVolumeFilesystem:
			errs = append(errs, field.Forbidden(p.Child("volumeMode"), "may not specify volumeMode other than Filesystem in the context of inline volumes"))
		}
	}
	if n := s.VolumeAttributesClassName; n != nil && !inline {
		if *n == "" {
			errs = append(errs, field.Required(p.Child("volumeAttributesClassName"), "an empty string is disallowed"))
		} else {
			errs = append(errs, fields.DNSName(*n, p.Child("volumeAttributesClassName"))...)
		}
		if s.CSI == nil {
			errs = append(errs, field.Required(p.Child("csi"), "has to be specified when using volumeAttributesClassName"))
		}
	}
	return errs
}

// validateVolumeCapacity requires a size, and nothing else.
func validateVolumeCapacity(c v1.ResourceList, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c) == 0 {
		errs = append(errs, field.Required(p, ""))
	}
	if _, ok := c[v1.ResourceStorage]; !ok || len(c) > 1 {
		errs = append(errs, field.NotSupported(p, c, []v1.ResourceName{v1.ResourceStorage}))
	}
	for _, name := range fields.SortedKeys(c) {
		q := c[name]
		errs = append(errs, validateBasicQuantity(q, p.Key(string(name)))...)
		errs = append(errs, podspec.PositiveQuantity(q, p.Key(string(name)))...)
	}
	return errs
}

// persistentVolumeWarnings tells of what is deprecated (GetWarningsForPersistentVolume).
func persistentVolumeWarnings(pv, _ *v1.PersistentVolume, sub string) []string {
	if sub != "" {
		return nil
	}
	var out []string
	annotations := field.NewPath("metadata", "annotations")
	if _, ok := pv.Annotations[v1.BetaStorageClassAnnotation]; ok {
		out = append(out, annotations.Key(v1.BetaStorageClassAnnotation).String()+`: deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	if _, ok := pv.Annotations[v1.MountOptionAnnotation]; ok {
		out = append(out, annotations.Key(v1.MountOptionAnnotation).String()+`: deprecated since v1.31; use "mountOptions" attribute instead`)
	}
	s := &pv.Spec
	if s.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRecycle {
		out = append(out, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	if a := s.NodeAffinity; a != nil && a.Required != nil {
		for i, t := range a.Required.NodeSelectorTerms {
			p := field.NewPath("spec", "nodeAffinity", "required", "nodeSelectorTerms").Index(i)
			for j, e := range t.MatchExpressions {
				if text := podspec.DeprecatedNodeLabel(e.Key); text != "" {
					out = append(out, fmt.Sprintf("%s: %s is %s", p.Child("matchExpressions").Index(j).Child("key"), e.Key, text))
				}
			}
		}
	}
	for _, src := range []struct {
		set  bool
		text string
	}{
		{s.CephFS != nil, "spec.cephfs: deprecated in v1.28, non-functional in v1.31+"},
		{s.PhotonPersistentDisk != nil, "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"},
		{s.ScaleIO != nil, "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+"},
		{s.StorageOS != nil, "spec.storageOS: deprecated in v1.22, non-functional in v1.25+"},
		{s.Glusterfs != nil, "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+"},
		{s.RBD != nil, "spec.rbd: deprecated in v1.28, non-functional in v1.31+"},
	} {
		if src.set {
			out = append(out, src.text)
		}
	}
	return out
}

// validatePersistentVolumeUpdate is ValidatePersistentVolumeUpdate. Upstream checks
// the new object twice, and so each mistake of it is a cause twice.
func validatePersistentVolumeUpdate(pv, old *v1.PersistentVolume, sub string) field.ErrorList {
	if sub == "status" {
		return nil
	}
	errs := validatePersistentVolume(pv)
	errs = append(errs, validateVolumeSpec(&pv.Spec, pv.Name, false, field.NewPath("spec"))...)
	source := pv.Spec.PersistentVolumeSource
	// This one may come later.
	if csi, was := source.CSI, old.Spec.CSI; csi != nil && was != nil && was.ControllerExpandSecretRef == nil && csi.ControllerExpandSecretRef != nil {
		source.CSI = new(*csi)
		source.CSI.ControllerExpandSecretRef = nil
	}
	if !equality.Semantic.DeepEqual(source, old.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n"+fields.Diff(old.Spec.PersistentVolumeSource, source)))
	}
	errs = append(errs, fields.Immutable(pv.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	if was := old.Spec.NodeAffinity; was != nil && !equality.Semantic.DeepEqual(pv.Spec.NodeAffinity, withGALabels(was, pv.Spec.NodeAffinity)) {
		errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), fields.GoNames(pv.Spec.NodeAffinity), "field is immutable, except for updating from beta label to GA"))
	}
	if old.Spec.VolumeAttributesClassName != nil && pv.Spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "volumeAttributesClassName"), "update from non-nil value to nil is forbidden"))
	}
	return errs
}

// withGALabels is an affinity with those labels of nodes renamed that have other
// names by now, where the new affinity renames them.
func withGALabels(old, now *v1.VolumeNodeAffinity) *v1.VolumeNodeAffinity {
	names := map[string]string{
		v1.LabelFailureDomainBetaZone:   v1.LabelTopologyZone,
		v1.LabelFailureDomainBetaRegion: v1.LabelTopologyRegion,
		"beta.kubernetes.io/os":         v1.LabelOSStable,
		"beta.kubernetes.io/arch":       v1.LabelArchStable,
		v1.LabelInstanceType:            v1.LabelInstanceTypeStable,
	}
	out := old.DeepCopy()
	if out.Required == nil || now == nil || now.Required == nil {
		return out
	}
	for i := range min(len(out.Required.NodeSelectorTerms), len(now.Required.NodeSelectorTerms)) {
		was, is := out.Required.NodeSelectorTerms[i].MatchExpressions, now.Required.NodeSelectorTerms[i].MatchExpressions
		for j := range min(len(was), len(is)) {
			if ga, ok := names[was[j].Key]; ok && is[j].Key == ga {
				was[j].Key = ga
			}
		}
	}
	return out
}
