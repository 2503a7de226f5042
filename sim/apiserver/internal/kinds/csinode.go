package kinds

import (
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// CSINode is the kind of what drivers of CSI know of a node. A kubelet makes its
// node's with the first driver that registers.
const CSINode kind.Kind = "CSINode"

// csiNode returns the row of CSINode (pkg/registry/storage/csinode/strategy.go).
func csiNode() *kind.Info {
	return &kind.Info{
		Kind: CSINode, Group: "storage.k8s.io", Version: "v1", Resource: "csinodes",
		NeedsVersion: true, ReturnsDeleted: true,
		Strategy: &kind.Typed[storagev1.CSINode, *storagev1.CSINode]{
			Check:       validateCSINode,
			CheckUpdate: validateCSINodeUpdate,
			Table: []kind.Column[storagev1.CSINode]{
				kind.NameColumn[storagev1.CSINode](),
				{Name: "Drivers", Type: "integer", Description: "Drivers indicates the number of CSI drivers registered on the node", Cell: func(n *storagev1.CSINode, _ time.Time) any {
					return int64(len(n.Spec.Drivers))
				}},
				kind.AgeColumn[storagev1.CSINode](),
			},
		},
	}
}

// maxNodeID bounds a driver's name for a node (pkg/apis/storage/validation).
const maxNodeID = 256

// validateCSINode is ValidateCSINode.
func validateCSINode(n *storagev1.CSINode) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range n.Spec.Drivers {
		d, p := &n.Spec.Drivers[i], field.NewPath("spec", "drivers").Index(i)
		errs = append(errs, validateDriverName(d.Name, p.Child("name"))...)
		errs = append(errs, required(p, "nodeID", d.NodeID)...)
		if len(d.NodeID) > maxNodeID {
			errs = append(errs, field.Invalid(p.Child("nodeID"), d.NodeID, fmt.Sprintf("must be %d characters or less", maxNodeID)))
		}
		if a := d.Allocatable; a != nil {
			errs = append(errs, fields.NonNegativePtr(a.Count, p.Child("allocatable", "count"))...)
		}
		if seen[d.Name] {
			errs = append(errs, field.Duplicate(p.Child("name"), d.Name))
		}
		seen[d.Name] = true
		keys := map[string]bool{}
		for _, k := range d.TopologyKeys {
			if k == "" {
				errs = append(errs, field.Required(p, ""))
			}
			if keys[k] {
				errs = append(errs, field.Duplicate(p, k))
			}
			keys[k] = true
			errs = append(errs, fields.Invalid(p, k, validation.IsQualifiedName(k))...)
		}
	}
	return errs
}

// validateCSINodeUpdate is ValidateCSINodeUpdate: of a driver that is there, only
// what it can hold changes.
func validateCSINodeUpdate(n, old *storagev1.CSINode, _ string) field.ErrorList {
	errs := validateCSINode(n)
	for _, was := range old.Spec.Drivers {
		for _, d := range n.Spec.Drivers {
			if d.Name != was.Name {
				continue
			}
			d.Allocatable, was.Allocatable = nil, nil
			errs = append(errs, fields.Immutable(&d, &was, field.NewPath("spec", "drivers"))...)
		}
	}
	return errs
}
