package kinds

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// HorizontalPodAutoscaler is the kind of horizontal autoscalers, in autoscaling/v2.
// It has no generation, as upstream's has none.
const HorizontalPodAutoscaler kind.Kind = "HorizontalPodAutoscaler"

// horizontalPodAutoscaler returns the row of HorizontalPodAutoscaler
// (pkg/registry/autoscaling/horizontalpodautoscaler).
func horizontalPodAutoscaler() *kind.Info {
	return &kind.Info{
		Kind: HorizontalPodAutoscaler, Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers", Namespaced: true,
		Views: []kind.View{hpaView()},
		Strategy: &kind.Typed[autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscaler]{
			Defaults: setHPADefaults,
			Halves: kind.SpecAndStatus(func(hpa *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscalerSpec, *autoscalingv2.HorizontalPodAutoscalerStatus) {
				return &hpa.Spec, &hpa.Status
			}),
			Check: validateHPA,
		},
	}
}

// Limits of the rules of autoscaling (pkg/apis/autoscaling/validation/validation.go).
const (
	maxPolicyPeriodSeconds = 1800
	maxStabilizationWindow = 3600
	atLeastOne, aboveZero  = "must be greater than or equal to 1", "must be greater than 0"
	greaterThanZero        = "must be greater than zero"
)

// setHPADefaults is that of pkg/apis/autoscaling/v2/defaults.go. The window of a
// scale down stays open: the controller's flag decides it.
func setHPADefaults(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	fields.DefaultPtr(&hpa.Spec.MinReplicas, int32(1))
	// Eighty percent of the requested CPU, as autoscaling/v1 had it.
	if len(hpa.Spec.Metrics) == 0 {
		hpa.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   v1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			},
		}}
	}
	// Rules are completed only where there are any: without, the controller's own
	// apply.
	if b := hpa.Spec.Behavior; b != nil {
		c := *b
		c.ScaleUp, c.ScaleDown = ScaleUpRules(b.ScaleUp), ScaleDownRules(b.ScaleDown)
		hpa.Spec.Behavior = &c
	}
}

// ScaleUpRules completes the rules of a HorizontalPodAutoscaler for scaling up: no
// window, and the more of 4 pods and 100 % per 15 s.
func ScaleUpRules(rules *autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	window, selectMax := int32(0), autoscalingv2.MaxChangePolicySelect
	return completeRules(rules, autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: &window, SelectPolicy: &selectMax,
		Policies: []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
		},
	})
}

// ScaleDownRules completes the rules for scaling down: 100 % per 15 s, and the
// window of the controller's flag (nil).
func ScaleDownRules(rules *autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	return completeRules(rules, autoscalingv2.HPAScalingRules{
		SelectPolicy: new(autoscalingv2.MaxChangePolicySelect),
		Policies:     []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}},
	})
}

// completeRules returns def with what rules say. rules themselves stay as they are:
// a manifest may be applied again.
func completeRules(rules *autoscalingv2.HPAScalingRules, def autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	if rules == nil {
		return &def
	}
	if rules.SelectPolicy != nil {
		def.SelectPolicy = rules.SelectPolicy
	}
	if rules.StabilizationWindowSeconds != nil {
		def.StabilizationWindowSeconds = rules.StabilizationWindowSeconds
	}
	if rules.Policies != nil {
		def.Policies = rules.Policies
	}
	def.Tolerance = rules.Tolerance
	return &def
}

// validateHPA is ValidateHorizontalPodAutoscaler without the gate HPAScaleToZero,
// which is off. That the target exists and has a scale, the controller finds out.
func validateHPA(hpa *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	spec, p := &hpa.Spec, field.NewPath("spec")
	var errs field.ErrorList
	// What nil means, for a manifest that nobody has defaulted.
	least := int32(1)
	if spec.MinReplicas != nil {
		least = *spec.MinReplicas
	}
	if least < 1 {
		errs = append(errs, field.Invalid(p.Child("minReplicas"), least, atLeastOne))
	}
	if spec.MaxReplicas < 1 {
		errs = append(errs, field.Invalid(p.Child("maxReplicas"), spec.MaxReplicas, aboveZero))
	}
	if spec.MaxReplicas < least {
		errs = append(errs, field.Invalid(p.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	ref := p.Child("scaleTargetRef")
	for _, part := range []struct{ name, value string }{{"kind", spec.ScaleTargetRef.Kind}, {"name", spec.ScaleTargetRef.Name}} {
		if part.value == "" {
			errs = append(errs, field.Required(ref.Child(part.name), ""))
		} else {
			errs = append(errs, fields.Invalid(ref.Child(part.name), part.value, path.IsValidPathSegmentName(part.value))...)
		}
	}
	for i := range spec.Metrics {
		errs = append(errs, validateMetric(&spec.Metrics[i], p.Child("metrics").Index(i))...)
	}
	if b := spec.Behavior; b != nil {
		errs = append(errs, validateScalingRules(b.ScaleUp, p.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateScalingRules(b.ScaleDown, p.Child("behavior", "scaleDown"))...)
	}
	return errs
}

// validateMetric is validateMetricSpec: the one source that the type names, and no
// other. Sources that nothing here measures are only looked at for that.
func validateMetric(m *autoscalingv2.MetricSpec, p *field.Path) field.ErrorList {
	if m.Type == "" {
		return field.ErrorList{field.Required(p.Child("type"), "must specify a metric source type")}
	}
	errs := fields.OneOf(m.Type, p.Child("type"), autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType,
		autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType)
	var named []string
	var expected string
	source := func(is bool, name string, typ autoscalingv2.MetricSourceType) {
		if is {
			named = append(named, name)
		}
		if m.Type == typ {
			expected = name
			if !is {
				errs = append(errs, field.Required(p.Child(name), "must populate information for the given metric source"))
			}
		}
	}
	source(m.Object != nil, "object", autoscalingv2.ObjectMetricSourceType)
	source(m.External != nil, "external", autoscalingv2.ExternalMetricSourceType)
	source(m.Pods != nil, "pods", autoscalingv2.PodsMetricSourceType)
	source(m.Resource != nil, "resource", autoscalingv2.ResourceMetricSourceType)
	source(m.ContainerResource != nil, "containerResource", autoscalingv2.ContainerResourceMetricSourceType)
	for _, name := range named {
		if name != expected {
			errs = append(errs, field.Forbidden(p.Child(name), "must populate the given metric source only"))
		}
	}
	if r := m.Resource; r != nil {
		errs = append(errs, validateResourceMetric(string(r.Name), &r.Target, p.Child("resource"))...)
	}
	if r := m.ContainerResource; r != nil {
		q := p.Child("containerResource")
		if r.Container == "" {
			errs = append(errs, field.Required(q.Child("container"), "must specify a container"))
		}
		errs = append(errs, validateResourceMetric(string(r.Name), &r.Target, q)...)
	}
	return errs
}

// validateResourceMetric is validateResourceSource and
// validateContainerResourceSource: the target is a utilization or an amount per
// pod.
func validateResourceMetric(name string, t *autoscalingv2.MetricTarget, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(p.Child("name"), "must specify a resource name"))
	}
	q := p.Child("target")
	if t.Type == "" {
		errs = append(errs, field.Required(q.Child("type"), "must specify a metric target type"))
	} else {
		errs = append(errs, fields.OneOf(t.Type, q.Child("type"), autoscalingv2.AverageValueMetricType, autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType)...)
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(q.Child("value"), t.Value, "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(q.Child("averageValue"), t.AverageValue, "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(q.Child("averageUtilization"), t.AverageUtilization, aboveZero))
	}
	if t.AverageUtilization == nil && t.AverageValue == nil {
		errs = append(errs, field.Required(q.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	}
	if t.AverageUtilization != nil && t.AverageValue != nil {
		errs = append(errs, field.Forbidden(q.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

// validateScalingRules is validateScalingRules. They come defaulted, so a list of
// policies that is still empty was written so.
func validateScalingRules(r *autoscalingv2.HPAScalingRules, p *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil {
		q := p.Child("stabilizationWindowSeconds")
		if *w < 0 {
			errs = append(errs, field.Invalid(q, *w, "must be greater than or equal to zero"))
		}
		if *w > maxStabilizationWindow {
			errs = append(errs, field.Invalid(q, *w, fmt.Sprintf("must be less than or equal to %v", maxStabilizationWindow)))
		}
	}
	if s := r.SelectPolicy; s != nil {
		errs = append(errs, fields.OneOf(*s, p.Child("selectPolicy"), autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect)...)
	}
	policies := p.Child("policies")
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(policies, "must specify at least one Policy"))
	}
	for i := range r.Policies {
		pol, q := &r.Policies[i], policies.Index(i)
		errs = append(errs, fields.OneOf(pol.Type, q.Child("type"), autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy)...)
		if pol.Value <= 0 {
			errs = append(errs, field.Invalid(q.Child("value"), pol.Value, greaterThanZero))
		}
		if pol.PeriodSeconds <= 0 {
			errs = append(errs, field.Invalid(q.Child("periodSeconds"), pol.PeriodSeconds, greaterThanZero))
		}
		if pol.PeriodSeconds > maxPolicyPeriodSeconds {
			errs = append(errs, field.Invalid(q.Child("periodSeconds"), pol.PeriodSeconds, fmt.Sprintf("must be less than or equal to %v", maxPolicyPeriodSeconds)))
		}
	}
	if t := r.Tolerance; t != nil && t.Sign() < 0 {
		errs = append(errs, field.Invalid(p.Child("tolerance"), t.String(), "must be greater than or equal to zero"))
	}
	return errs
}
