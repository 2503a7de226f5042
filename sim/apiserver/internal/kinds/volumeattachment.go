package kinds

import (
	"math"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// VolumeAttachment is the kind of wishes that a volume be attached to a node, on
// which the driver's attacher acts.
const VolumeAttachment kind.Kind = "VolumeAttachment"

// volumeAttachment returns the row of VolumeAttachment
// (pkg/registry/storage/volumeattachment/strategy.go).
func volumeAttachment() *kind.Info {
	return &kind.Info{
		Kind: VolumeAttachment, Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments",
		NeedsVersion: true, ReturnsDeleted: true,
		Strategy: &kind.Typed[storagev1.VolumeAttachment, *storagev1.VolumeAttachment]{
			Defaults: func(a *storagev1.VolumeAttachment) {
				if s := a.Spec.Source.InlineVolumeSpec; s != nil {
					setVolumeSourceDefaults(&s.PersistentVolumeSource)
				}
			},
			Halves: kind.SpecAndStatus(func(a *storagev1.VolumeAttachment) (*storagev1.VolumeAttachmentSpec, *storagev1.VolumeAttachmentStatus) {
				return &a.Spec, &a.Status
			}),
			Keep: func(a, old *storagev1.VolumeAttachment, sub string) bool {
				switch sub {
				case "":
					a.Status = old.Status
				case "status":
					a.Spec = old.Spec
					metav1.ResetObjectMetaForStatus(&a.ObjectMeta, &old.ObjectMeta)
				default:
					return false
				}
				return true
			},
			Check: validateVolumeAttachment,
			CheckUpdate: func(a, old *storagev1.VolumeAttachment, _ string) field.ErrorList {
				return append(validateVolumeAttachment(a), fields.Immutable(a.Spec, old.Spec, field.NewPath("spec"))...)
			},
			Table: volumeAttachmentTable(),
		},
	}
}

func volumeAttachmentTable() []kind.Column[storagev1.VolumeAttachment] {
	type attachment = storagev1.VolumeAttachment
	spec := storagev1.VolumeAttachmentSpec{}.SwaggerDoc()
	return []kind.Column[attachment]{
		kind.NameColumn[attachment](),
		{Name: "Attacher", Type: "string", Format: "name", Description: spec["attacher"], Cell: func(a *attachment, _ time.Time) any { return a.Spec.Attacher }},
		{Name: "PV", Type: "string", Description: storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"], Cell: func(a *attachment, _ time.Time) any {
			if n := a.Spec.Source.PersistentVolumeName; n != nil {
				return *n
			}
			return ""
		}},
		{Name: "Node", Type: "string", Description: spec["nodeName"], Cell: func(a *attachment, _ time.Time) any { return a.Spec.NodeName }},
		{Name: "Attached", Type: "boolean", Description: storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"], Cell: func(a *attachment, _ time.Time) any { return a.Status.Attached }},
		kind.AgeColumn[attachment](),
	}
}

// Limits of what is said of an attachment (pkg/apis/storage/validation/validation.go).
const (
	maxAttachmentBytes  = 256 << 10
	maxAttachmentErrors = 1024
)

// validateVolumeAttachment is ValidateVolumeAttachment.
func validateVolumeAttachment(a *storagev1.VolumeAttachment) field.ErrorList {
	spec, status := field.NewPath("spec"), field.NewPath("status")
	errs := validateDriverName(a.Spec.Attacher, spec.Child("attacher"))
	const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	source := spec.Child("source")
	switch s := a.Spec.Source; {
	case s.InlineVolumeSpec == nil && s.PersistentVolumeName == nil:
		errs = append(errs, field.Required(source, one))
	case s.InlineVolumeSpec != nil && s.PersistentVolumeName != nil:
		errs = append(errs, field.Forbidden(source, one))
	case s.InlineVolumeSpec != nil:
		errs = append(errs, validateVolumeSpec(s.InlineVolumeSpec, "", true, source.Child("inlineVolumeSpec"))...)
	case *s.PersistentVolumeName == "":
		errs = append(errs, field.Required(source.Child("persistentVolumeName"), "must specify non empty persistentVolumeName"))
	}
	errs = append(errs, fields.DNSName(a.Spec.NodeName, spec.Child("nodeName"))...)
	size := 0
	for k, v := range a.Status.AttachmentMetadata { //drydock:unordered sums up
		size += len(k) + len(v)
	}
	if size > maxAttachmentBytes {
		errs = append(errs, field.TooLong(status.Child("attachmentMetadata"), "", maxAttachmentBytes))
	}
	errs = append(errs, validateVolumeError(a.Status.AttachError, status.Child("attachError"))...)
	errs = append(errs, validateVolumeError(a.Status.DetachError, status.Child("detachError"))...)
	if n := a.Spec.Source.PersistentVolumeName; n != nil {
		errs = append(errs, fields.DNSName(*n, source.Child("persistentVolumeName"))...)
	}
	return errs
}

func validateVolumeError(e *storagev1.VolumeError, p *field.Path) field.ErrorList {
	if e == nil {
		return nil
	}
	var errs field.ErrorList
	if len(e.Message) > maxAttachmentErrors {
		errs = append(errs, field.TooLong(p.Child("message"), "", maxAttachmentBytes)) // upstream names the other limit
	}
	if e.ErrorCode != nil && *e.ErrorCode < 0 {
		errs = append(errs, field.Invalid(p.Child("errorCode"), *e.ErrorCode, validation.InclusiveRangeError(0, math.MaxInt32)))
	}
	return errs
}
