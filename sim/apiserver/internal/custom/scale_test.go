package custom

import (
	"math"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestValidateScale: what a scale is made of fits into one.
func TestValidateScale(t *testing.T) {
	object := func(spec, status int64, selector any) map[string]any {
		return map[string]any{"spec": map[string]any{"replicas": spec}, "status": map[string]any{"replicas": status, "selector": selector}}
	}
	for _, tc := range []struct {
		name       string
		o          map[string]any
		statusOnly bool
		want       string
	}{
		{"nothing", nil, false, ""},
		{"the most", object(math.MaxInt32, math.MaxInt32, "a=b"), false, ""},
		{"more", object(math.MaxInt32+1, 0, ""), false, ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"},
		{"less than none", object(0, -1, ""), false, ".status.replicas: Invalid value: -1: should be a non-negative integer"},
		{"a status alone", object(-1, 0, ""), true, ""},
		{"no number", map[string]any{"spec": map[string]any{"replicas": "3"}}, false, ".spec.replicas: Invalid value: 0"},
		{"no selector", object(0, 0, int64(3)), false, ".status.selector: Invalid value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: new(".status.selector")}
			err := validateScale(tc.o, s, tc.statusOnly).ToAggregate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want one with %q", err, tc.want)
			}
		})
	}
	if errs := validateScale(object(-1, -1, ""), nil, false); len(errs) > 0 {
		t.Errorf("without a scale: %v", errs)
	}
}
