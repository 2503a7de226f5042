package kinds

import (
	"fmt"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// LimitRange is the kind of limits on what single pods, containers and claims of a
// namespace ask for. Admission reads it into pods: it defaults and refuses.
const LimitRange kind.Kind = "LimitRange"

// limitRange returns the row of LimitRange (pkg/registry/core/limitrange/strategy.go).
func limitRange() *kind.Info {
	return &kind.Info{
		Kind: LimitRange, Meta: kind.MetaAsNew, Version: "v1", Resource: "limitranges", CreatesOnUpdate: true, ShortNames: []string{"limits"}, Namespaced: true,
		ReadByAdmission: true,
		Strategy: &kind.Typed[v1.LimitRange, *v1.LimitRange]{
			Defaults: func(l *v1.LimitRange) {
				for i := range l.Spec.Limits {
					setLimitDefaults(&l.Spec.Limits[i])
				}
			},
			Check: validateLimitRange,
		},
	}
}

// setLimitDefaults has a container's limits be the highest allowed, and its requests
// its limits, or the lowest allowed (SetDefaults_LimitRangeItem).
func setLimitDefaults(item *v1.LimitRangeItem) {
	if item.Type != v1.LimitTypeContainer {
		return
	}
	item.Default = withDefaults(item.Default, item.Max)
	item.DefaultRequest = withDefaults(withDefaults(item.DefaultRequest, item.Default), item.Min)
}

// withDefaults returns a list with what another has beyond it.
func withDefaults(list, other v1.ResourceList) v1.ResourceList {
	out := maps.Clone(other)
	if out == nil {
		out = v1.ResourceList{}
	}
	maps.Copy(out, list)
	return out
}

// validateLimitRange is ValidateLimitRange (pkg/apis/core/validation/validation.go).
func validateLimitRange(l *v1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[v1.LimitType]()
	for i := range l.Spec.Limits {
		item, path := &l.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, validateLimitType(item.Type, path.Child("type"))...)
		if seen.Has(item.Type) {
			errs = append(errs, field.Duplicate(path.Child("type"), item.Type))
		}
		seen.Insert(item.Type)
		errs = append(errs, validateLimitNames(item, path)...)
		errs = append(errs, validateLimitAmounts(item, path)...)
	}
	return errs
}

func validateLimitType(t v1.LimitType, path *field.Path) field.ErrorList {
	if errs := fields.Invalid(path, t, validation.IsQualifiedName(string(t))); len(errs) > 0 {
		return errs
	}
	standard := t == v1.LimitTypePod || t == v1.LimitTypeContainer || t == v1.LimitTypePersistentVolumeClaim
	if !standard && !strings.Contains(string(t), "/") {
		return field.ErrorList{field.Invalid(path, t, "must be a standard limit type or fully qualified")}
	}
	return nil
}

// validateLimitNames checks which resources an item may be about.
func validateLimitNames(item *v1.LimitRangeItem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := func(list v1.ResourceList, child string) {
		for _, name := range fields.SortedKeys(list) {
			at := path.Child(child).Key(string(name))
			if item.Type == v1.LimitTypePod || item.Type == v1.LimitTypeContainer {
				errs = append(errs, fields.ContainerResourceName(name, at)...)
			} else {
				errs = append(errs, fields.ResourceName(name, at)...)
			}
		}
	}
	names(item.Max, "max")
	names(item.Min, "min")
	if item.Type != v1.LimitTypePod {
		names(item.Default, "default")
		names(item.DefaultRequest, "defaultRequest")
	} else {
		if len(item.Default) > 0 {
			errs = append(errs, field.Forbidden(path.Child("default"), "may not be specified when `type` is 'Pod'"))
		}
		if len(item.DefaultRequest) > 0 {
			errs = append(errs, field.Forbidden(path.Child("defaultRequest"), "may not be specified when `type` is 'Pod'"))
		}
	}
	if item.Type == v1.LimitTypePersistentVolumeClaim {
		_, low := item.Min[v1.ResourceStorage]
		_, high := item.Max[v1.ResourceStorage]
		if !low && !high {
			errs = append(errs, field.Required(path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	names(item.MaxLimitRequestRatio, "maxLimitRequestRatio")
	return errs
}

// validateLimitAmounts checks that an item's amounts can be kept at once.
func validateLimitAmounts(item *v1.LimitRangeItem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	defaults, requests := item.Default, item.DefaultRequest
	if item.Type == v1.LimitTypePod {
		defaults, requests = nil, nil
	}
	names := sets.New[v1.ResourceName]()
	for _, list := range []v1.ResourceList{item.Max, item.Min, defaults, requests, item.MaxLimitRequestRatio} {
		names.Insert(fields.SortedKeys(list)...)
	}
	for _, name := range sets.List(names) {
		low, hasLow := item.Min[name]
		high, hasHigh := item.Max[name]
		limit, hasLimit := defaults[name]
		request, hasRequest := requests[name]
		ratio, hasRatio := item.MaxLimitRequestRatio[name]
		wrong := func(child string, q resource.Quantity, format string, args ...any) {
			errs = append(errs, field.Invalid(path.Child(child).Key(string(name)), q.String(), fmt.Sprintf(format, args...)))
		}
		if hasLow && hasHigh && low.Cmp(high) > 0 {
			wrong("min", low, "min value %s is greater than max value %s", &low, &high)
		}
		if hasRequest && hasLow && low.Cmp(request) > 0 {
			wrong("defaultRequest", request, "min value %s is greater than default request value %s", &low, &request)
		}
		if hasRequest && hasHigh && request.Cmp(high) > 0 {
			wrong("defaultRequest", request, "default request value %s is greater than max value %s", &request, &high)
		}
		if hasRequest && hasLimit && request.Cmp(limit) > 0 {
			wrong("defaultRequest", request, "default request value %s is greater than default limit value %s", &request, &limit)
		}
		if hasLimit && hasLow && low.Cmp(limit) > 0 {
			wrong("default", low, "min value %s is greater than default value %s", &low, &limit)
		}
		if hasLimit && hasHigh && limit.Cmp(high) > 0 {
			wrong("default", high, "default value %s is greater than max value %s", &limit, &high)
		}
		if hasRatio && ratio.Cmp(resource.MustParse("1")) < 0 {
			wrong("maxLimitRequestRatio", ratio, "ratio %s is less than 1", &ratio)
		}
		if hasRatio && hasLow && hasHigh {
			if is, most := ratio.AsApproximateFloat64(), ratioOf(high, low); is > most {
				wrong("maxLimitRequestRatio", ratio, "ratio %s is greater than max/min = %f", &ratio, most)
			}
		}
		if !fields.OvercommitAllowed(name) && hasLimit && hasRequest && limit.Cmp(request) != 0 {
			wrong("defaultRequest", request, "default value %s must equal to defaultRequest value %s in %s", &limit, &request, name)
		}
	}
	return errs
}

// ratioOf is how often one amount has another, in thousandths where those fit.
func ratioOf(a, b resource.Quantity) float64 {
	if a.Value() < resource.MaxMilliValue && b.Value() < resource.MaxMilliValue {
		return float64(a.MilliValue()) / float64(b.MilliValue())
	}
	return float64(a.Value()) / float64(b.Value())
}
