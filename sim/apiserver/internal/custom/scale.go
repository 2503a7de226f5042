package custom

import (
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// splitPath takes a path like .spec.replicas apart.
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// selectorPath is where a scale's selector is; "" without one.
func selectorPath(s *apiextensionsv1.CustomResourceSubresourceScale) string {
	if s.LabelSelectorPath == nil {
		return ""
	}
	return *s.LabelSelectorPath
}

// newScale is the subresource scale of a version (pkg/registry/customresource/etcd.go,
// ScaleREST).
func newScale(s *apiextensionsv1.CustomResourceSubresourceScale) *kind.CustomScale {
	replicas := splitPath(s.SpecReplicasPath)
	return &kind.CustomScale{
		Replicas: replicas,
		Of: func(o kind.Object) (*autoscalingv1.Scale, error) {
			want, ok, err := unstructured.NestedInt64(content(o), replicas...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.SpecReplicasPath, err)
			}
			have, _, err := unstructured.NestedInt64(content(o), splitPath(s.StatusReplicasPath)...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.StatusReplicasPath, err)
			}
			var selector string
			if path := selectorPath(s); path != "" {
				if selector, _, err = unstructured.NestedString(content(o), splitPath(path)...); err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
			}
			if !ok {
				want = kind.UnsetReplicas
			}
			return &autoscalingv1.Scale{
				TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
				ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp()},
				Spec:       autoscalingv1.ScaleSpec{Replicas: int32(want)},
				Status:     autoscalingv1.ScaleStatus{Replicas: int32(have), Selector: selector},
			}, nil
		},
		Set: func(o kind.Object, n int32) error {
			return unstructured.SetNestedField(content(o), int64(n), replicas...)
		},
	}
}

// validateScale checks the fields that a scale is made of (ValidateScaleSpec,
// ValidateScaleStatus); with a status only, those of the status.
func validateScale(o map[string]any, s *apiextensionsv1.CustomResourceSubresourceScale, statusOnly bool) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	number := func(path string) {
		switch n, _, err := unstructured.NestedInt64(o, splitPath(path)...); {
		case err != nil:
			errs = append(errs, field.Invalid(field.NewPath(path), n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs, field.Invalid(field.NewPath(path), n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	if !statusOnly {
		number(s.SpecReplicasPath)
	}
	number(s.StatusReplicasPath)
	if path := selectorPath(s); path != "" {
		if text, _, err := unstructured.NestedString(o, splitPath(path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path), text, err.Error()))
		}
	}
	return errs
}
