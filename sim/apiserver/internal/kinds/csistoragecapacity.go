package kinds

import (
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// CSIStorageCapacity is the kind of what drivers of CSI can still provision, by
// class and part of the cluster. The scheduler here doesn't read it.
const CSIStorageCapacity kind.Kind = "CSIStorageCapacity"

// csiStorageCapacity returns the row of CSIStorageCapacity
// (pkg/registry/storage/csistoragecapacity/strategy.go).
func csiStorageCapacity() *kind.Info {
	type capacity = storagev1.CSIStorageCapacity
	doc := capacity{}.SwaggerDoc()
	return &kind.Info{
		Kind: CSIStorageCapacity, Group: "storage.k8s.io", Version: "v1", Resource: "csistoragecapacities",
		Namespaced: true, NeedsVersion: true,
		Strategy: &kind.Typed[capacity, *capacity]{
			Check: validateStorageCapacity,
			CheckUpdate: func(c, old *capacity, _ string) field.ErrorList {
				errs := validateStorageCapacity(c)
				errs = append(errs, fields.Immutable(c.NodeTopology, old.NodeTopology, field.NewPath("nodeTopology"))...)
				return append(errs, fields.Immutable(c.StorageClassName, old.StorageClassName, field.NewPath("storageClassName"))...)
			},
			Warn: func(c, _ *capacity, _ string) []string {
				return topologyWarnings(c.NodeTopology, field.NewPath("nodeTopology"))
			},
			Table: []kind.Column[capacity]{
				kind.NameColumn[capacity](),
				{Name: "StorageClassName", Type: "string", Description: doc["storageClassName"], Cell: func(c *capacity, _ time.Time) any { return c.StorageClassName }},
				{Name: "Capacity", Type: "string", Description: doc["capacity"], Cell: func(c *capacity, _ time.Time) any {
					if c.Capacity == nil {
						return "<unset>"
					}
					return c.Capacity.String()
				}},
			},
		},
	}
}

// topologyWarnings tells of labels that nodes no longer have (GetWarningsForNodeSelector).
func topologyWarnings(s *metav1.LabelSelector, p *field.Path) []string {
	if s == nil {
		return nil
	}
	var out []string
	for i, e := range s.MatchExpressions {
		if text := podspec.DeprecatedNodeLabel(e.Key); text != "" {
			out = append(out, fmt.Sprintf("%s: %s is %s", p.Child("matchExpressions").Index(i).Child("key"), e.Key, text))
		}
	}
	for _, key := range fields.SortedKeys(s.MatchLabels) {
		if text := podspec.DeprecatedNodeLabel(key); text != "" {
			out = append(out, fmt.Sprintf("%s: %s", p.Child("matchLabels").Child(key), text))
		}
	}
	return out
}

// validateStorageCapacity is ValidateCSIStorageCapacity.
func validateStorageCapacity(c *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := metavalidation.ValidateLabelSelector(c.NodeTopology, metavalidation.LabelSelectorValidationOptions{}, field.NewPath("nodeTopology"))
	errs = append(errs, fields.DNSName(c.StorageClassName, field.NewPath("storageClassName"))...)
	if q := c.Capacity; q != nil && q.Sign() < 0 {
		errs = append(errs, field.Invalid(field.NewPath("capacity"), q.String(), "must be greater than or equal to 0"))
	}
	return errs
}
