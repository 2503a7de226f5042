// Package api has what all who reckon with eviction thresholds share: the
// eviction manager, the node's allocatable resources, and validation. It mirrors
// upstream's pkg/kubelet/eviction/api.
package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// ThresholdValue is a quantity, or a share of the capacity.
type ThresholdValue struct {
	Quantity *resource.Quantity
	// Percentage is from 0 to 1; it counts if there is no Quantity.
	Percentage float32
}

// Of returns the quantity that the value is of a capacity (GetThresholdQuantity),
// at most what an int64 holds.
func (v *ThresholdValue) Of(capacity int64) resource.Quantity {
	if v.Quantity != nil {
		return v.Quantity.DeepCopy()
	}
	n := int64(math.MaxInt64)
	if f := float64(capacity) * float64(v.Percentage); f < math.MaxInt64 {
		n = int64(f)
	}
	return *resource.NewQuantity(n, resource.BinarySI)
}

// Equal reports whether values are the same, whatever the capacity.
func (v *ThresholdValue) Equal(o *ThresholdValue) bool {
	if v.Quantity != nil && o.Quantity != nil {
		return v.Quantity.Cmp(*o.Quantity) == 0
	}
	return v.Quantity == nil && o.Quantity == nil && v.Percentage == o.Percentage
}

// ParseThreshold reads the threshold of a signal, which is for the error only;
// false means that it switches the signal off. The error's text is upstream's
// (pkg/kubelet/eviction/helpers.go, parseThresholdStatement).
func ParseThreshold(signal, text string) (v ThresholdValue, on bool, err error) {
	if text == "0%" || text == "100%" {
		return v, false, nil
	}
	if strings.HasSuffix(text, "%") {
		share, err := parsePercentage(text)
		switch {
		case err != nil:
			return v, false, err
		case share < 0:
			return v, false, fmt.Errorf("eviction percentage threshold %v must be >= 0%%: %s", signal, text)
		case share > 1:
			return v, false, fmt.Errorf("eviction percentage threshold %v must be <= 100%%: %s", signal, text)
		}
		return ThresholdValue{Percentage: share}, true, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return v, false, err
	}
	if q.Sign() <= 0 {
		return v, false, fmt.Errorf("eviction threshold %v must be positive: %s", signal, text)
	}
	return ThresholdValue{Quantity: &q}, true, nil
}

// ParseMinimumReclaim reads the minimum reclaim of a signal, as ParseThreshold
// reads its threshold (parseMinimumReclaims).
func ParseMinimumReclaim(signal, text string) (ThresholdValue, error) {
	if strings.HasSuffix(text, "%") {
		share, err := parsePercentage(text)
		if err != nil {
			return ThresholdValue{}, err
		}
		if share <= 0 {
			return ThresholdValue{}, fmt.Errorf("eviction percentage minimum reclaim %v must be positive: %s", signal, text)
		}
		return ThresholdValue{Percentage: share}, nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return ThresholdValue{}, err
	}
	if q.Sign() < 0 {
		return ThresholdValue{}, fmt.Errorf("negative eviction minimum reclaim specified for %v", signal)
	}
	return ThresholdValue{Quantity: &q}, nil
}

func parsePercentage(text string) (float32, error) {
	f, err := strconv.ParseFloat(strings.TrimRight(text, "%"), 32)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) { // upstream takes them for numbers
		err = fmt.Errorf("%q is no percentage", text)
	}
	if err != nil {
		return 0, err
	}
	return float32(f) / 100, nil
}
