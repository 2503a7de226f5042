package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/podspec"
)

// HorizontalPodAutoscaler is the kind of horizontal autoscalers, in autoscaling/v2.
// It has no generation, as upstream's has none.
const HorizontalPodAutoscaler kind.Kind = "HorizontalPodAutoscaler"

// horizontalPodAutoscaler returns the row of HorizontalPodAutoscaler
// (pkg/registry/autoscaling/horizontalpodautoscaler).
func horizontalPodAutoscaler() *kind.Info {
	return &kind.Info{
		Kind: HorizontalPodAutoscaler, Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers", ShortNames: []string{"hpa"}, Categories: []string{"all"}, Namespaced: true,
		Views: []kind.View{hpaView()},
		Strategy: &kind.Typed[autoscalingv2.HorizontalPodAutoscaler, *autoscalingv2.HorizontalPodAutoscaler]{
			Defaults: setHPADefaults,
			Halves: kind.SpecAndStatus(func(hpa *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscalerSpec, *autoscalingv2.HorizontalPodAutoscalerStatus) {
				return &hpa.Spec, &hpa.Status
			}),
			Check:       func(hpa *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList { return validateHPA(hpa, nil, "") },
			CheckUpdate: validateHPA,
			Table:       hpaTable(),
		},
	}
}

// Limits of the rules of autoscaling (pkg/apis/autoscaling/validation/validation.go).
const (
	maxPolicyPeriodSeconds = 1800
	maxStabilizationWindow = 3600
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

// validateHPA is ValidateHorizontalPodAutoscaler, or with an old one
// ValidateHorizontalPodAutoscalerUpdate, without the gate HPAScaleToZero, which is off.
// That the target exists and has a scale, the controller finds out.
func validateHPA(hpa, old *autoscalingv2.HorizontalPodAutoscaler, sub string) field.ErrorList {
	if sub != "" {
		return validateCounts(0, count{"currentReplicas", hpa.Status.CurrentReplicas}, count{"desiredReplicas", hpa.Status.DesiredReplicas})
	}
	spec, p := &hpa.Spec, field.NewPath("spec")
	var errs field.ErrorList
	least := int32(1)
	if old != nil && old.Spec.MinReplicas != nil {
		least = min(least, *old.Spec.MinReplicas)
	}
	if n := spec.MinReplicas; n != nil && *n < least {
		errs = append(errs, field.Invalid(p.Child("minReplicas"), *n, fmt.Sprintf("must be greater than or equal to %d", least)))
	}
	switch most := p.Child("maxReplicas"); {
	case spec.MaxReplicas == 0:
		errs = append(errs, field.Required(most, "must be set and greater than 0"))
	case spec.MaxReplicas < 0:
		errs = append(errs, field.Invalid(most, spec.MaxReplicas, "must be greater than or equal to 1"))
	}
	if n := spec.MinReplicas; n != nil && spec.MaxReplicas < *n {
		errs = append(errs, field.Invalid(p.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	ref := p.Child("scaleTargetRef")
	errs = append(errs, validateScaled(spec.ScaleTargetRef, ref)...)
	// What was so already may stay without a group.
	if t := spec.ScaleTargetRef; old == nil || old.Spec.ScaleTargetRef.APIVersion != t.APIVersion || old.Spec.ScaleTargetRef.Kind != t.Kind {
		errs = append(errs, validateScaledVersion(t, t.Kind == string(ReplicationController), ref)...)
	}
	errs = append(errs, validateMetrics(spec, old, p.Child("metrics"))...)
	if b := spec.Behavior; b != nil {
		errs = append(errs, validateScalingRules(b.ScaleUp, p.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateScalingRules(b.ScaleDown, p.Child("behavior", "scaleDown"))...)
	}
	return errs
}

// validateScaled is ValidateCrossVersionObjectReference but for the version.
func validateScaled(ref autoscalingv2.CrossVersionObjectReference, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct{ name, value string }{{"kind", ref.Kind}, {"name", ref.Name}} {
		if part.value == "" {
			errs = append(errs, field.Required(p.Child(part.name), ""))
		} else {
			errs = append(errs, fields.Invalid(p.Child(part.name), part.value, path.IsValidPathSegmentName(part.value))...)
		}
	}
	return errs
}

// validateScaledVersion is ValidateAPIVersion. Only some kinds have no group.
func validateScaledVersion(ref autoscalingv2.CrossVersionObjectReference, groupless bool, p *field.Path) field.ErrorList {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err == nil && !groupless && gv.Group == "" {
		err = errors.New("apiVersion must specify API group")
	}
	if err != nil {
		return field.ErrorList{field.Invalid(p.Child("apiVersion"), ref.APIVersion, err.Error())}
	}
	return nil
}

// validateMetrics is validateMetrics: what is measured by the pods' own use can't bring
// them back when there are none.
func validateMetrics(spec *autoscalingv2.HorizontalPodAutoscalerSpec, old *autoscalingv2.HorizontalPodAutoscaler, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	badBefore := old != nil && slices.ContainsFunc(old.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil && len(validateScaledVersion(m.Object.DescribedObject, true, p)) > 0
	})
	elsewhere := false
	for i := range spec.Metrics {
		m := &spec.Metrics[i]
		errs = append(errs, validateMetric(m, badBefore, p.Index(i))...)
		elsewhere = elsewhere || m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 && !elsewhere {
		errs = append(errs, field.Forbidden(p, "must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	return errs
}

// validateMetric is validateMetricSpec: the one source that the type names, and no
// other. Of several only the first is looked at.
func validateMetric(m *autoscalingv2.MetricSpec, anyVersion bool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	sources := []struct {
		typ   autoscalingv2.MetricSourceType
		name  string
		is    bool
		check func(p *field.Path) field.ErrorList
	}{
		{autoscalingv2.ObjectMetricSourceType, "object", m.Object != nil, func(p *field.Path) field.ErrorList { return validateObjectMetric(m.Object, anyVersion, p) }},
		{autoscalingv2.ExternalMetricSourceType, "external", m.External != nil, func(p *field.Path) field.ErrorList { return validateExternalMetric(m.External, p) }},
		{autoscalingv2.PodsMetricSourceType, "pods", m.Pods != nil, func(p *field.Path) field.ErrorList { return validatePodsMetric(m.Pods, p) }},
		{autoscalingv2.ResourceMetricSourceType, "resource", m.Resource != nil, func(p *field.Path) field.ErrorList { return validateResourceMetric(m.Resource, p) }},
		{autoscalingv2.ContainerResourceMetricSourceType, "containerResource", m.ContainerResource != nil, func(p *field.Path) field.ErrorList { return validateContainerMetric(m.ContainerResource, p) }},
	}
	types := []autoscalingv2.MetricSourceType{autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType,
		autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType}
	if m.Type == "" {
		errs = append(errs, field.Required(p.Child("type"), "must specify a metric source type"))
	}
	if !slices.Contains(types, m.Type) { // upstream says so twice
		bad := field.NotSupported(p.Child("type"), m.Type, types)
		errs = append(errs, bad, bad)
	}
	present := 0
	for _, s := range sources {
		if s.is {
			if present++; present == 1 {
				errs = append(errs, s.check(p.Child(s.name))...)
			}
		} else if s.typ == m.Type {
			errs = append(errs, field.Required(p.Child(s.name), "must populate information for the given metric source"))
		}
	}
	for _, s := range sources {
		if s.is && present > 1 && s.typ != m.Type {
			errs = append(errs, field.Forbidden(p.Child(s.name), "must populate the given metric source only"))
		}
	}
	return errs
}

func validateObjectMetric(m *autoscalingv2.ObjectMetricSource, anyVersion bool, p *field.Path) field.ErrorList {
	of, t := p.Child("describedObject"), &m.Target
	errs := validateScaled(m.DescribedObject, of)
	if !anyVersion {
		errs = append(errs, validateScaledVersion(m.DescribedObject, true, of)...)
	}
	errs = append(errs, validateMetricName(m.Metric.Name, p.Child("metric"))...)
	errs = append(errs, validateMetricTarget(t, p.Child("target"))...)
	if t.Value == nil && t.AverageValue == nil {
		errs = append(errs, field.Required(p.Child("target", "averageValue"), "must set either a target value or averageValue"))
	}
	return errs
}

func validateExternalMetric(m *autoscalingv2.ExternalMetricSource, p *field.Path) field.ErrorList {
	t := &m.Target
	errs := validateMetricName(m.Metric.Name, p.Child("metric"))
	errs = append(errs, validateMetricTarget(t, p.Child("target"))...)
	if t.Value == nil && t.AverageValue == nil {
		errs = append(errs, field.Required(p.Child("target", "averageValue"), "must set either a target value for metric or a per-pod target"))
	}
	if t.Value != nil && t.AverageValue != nil {
		errs = append(errs, field.Forbidden(p.Child("target", "value"), "may not set both a target value for metric and a per-pod target"))
	}
	return errs
}

func validatePodsMetric(m *autoscalingv2.PodsMetricSource, p *field.Path) field.ErrorList {
	errs := validateMetricName(m.Metric.Name, p.Child("metric"))
	errs = append(errs, validateMetricTarget(&m.Target, p.Child("target"))...)
	if m.Target.AverageValue == nil {
		errs = append(errs, field.Required(p.Child("target", "averageValue"), "must specify a positive target averageValue"))
	}
	return errs
}

func validateResourceMetric(m *autoscalingv2.ResourceMetricSource, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Name == "" {
		errs = append(errs, field.Required(p.Child("name"), "must specify a resource name"))
	}
	return append(errs, validateUse(&m.Target, p.Child("target"))...)
}

func validateContainerMetric(m *autoscalingv2.ContainerResourceMetricSource, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.Name == "" {
		errs = append(errs, field.Required(p.Child("name"), "must specify a resource name"))
	} else {
		errs = append(errs, validateContainerResource(m.Name, p.Child("name"))...)
	}
	if m.Container == "" {
		errs = append(errs, field.Required(p.Child("container"), "must specify a container"))
	} else {
		errs = append(errs, fields.DNSLabel(m.Container, p.Child("container"))...)
	}
	return append(errs, validateUse(&m.Target, p.Child("target"))...)
}

// validateContainerResource is ValidateContainerResourceName: what containers have by
// themselves, or what is named for its maker.
func validateContainerResource(name v1.ResourceName, p *field.Path) field.ErrorList {
	errs := fields.QualifiedName(string(name), p)
	switch {
	case name == v1.ResourceCPU, name == v1.ResourceMemory, name == v1.ResourceEphemeralStorage, strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix):
	case !strings.Contains(string(name), "/"):
		if len(errs) == 0 {
			errs = append(errs, field.Invalid(p, name, "must be a standard resource type or fully qualified"))
		}
		errs = append(errs, field.Invalid(p, name, "must be a standard resource for containers"))
	case !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix) && !podspec.IsExtended(name):
		errs = append(errs, field.Invalid(p, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// validateUse checks the target of a resource: a utilization or an amount per pod.
func validateUse(t *autoscalingv2.MetricTarget, p *field.Path) field.ErrorList {
	errs := validateMetricTarget(t, p)
	if t.AverageUtilization == nil && t.AverageValue == nil {
		errs = append(errs, field.Required(p.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	}
	if t.AverageUtilization != nil && t.AverageValue != nil {
		errs = append(errs, field.Forbidden(p.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func validateMetricName(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p.Child("name"), "must specify a metric name")}
	}
	return fields.Invalid(p.Child("name"), name, path.IsValidPathSegmentName(name))
}

// validateMetricTarget checks what all targets have in common.
func validateMetricTarget(t *autoscalingv2.MetricTarget, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Type == "" {
		errs = append(errs, field.Required(p.Child("type"), "must specify a metric target type"))
	}
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		errs = append(errs, field.Invalid(p.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if t.Value != nil && t.Value.Sign() != 1 {
		errs = append(errs, field.Invalid(p.Child("value"), t.Value, "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() != 1 {
		errs = append(errs, field.Invalid(p.Child("averageValue"), t.AverageValue, "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(p.Child("averageUtilization"), t.AverageUtilization, "must be greater than 0"))
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

func hpaTable() []kind.Column[autoscalingv2.HorizontalPodAutoscaler] {
	type hpa = autoscalingv2.HorizontalPodAutoscaler
	doc := autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()
	return []kind.Column[hpa]{
		kind.NameColumn[hpa](),
		textColumn("Reference", doc["scaleTargetRef"], func(h *hpa) string { return h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name }),
		textColumn("Targets", doc["metrics"], hpaTargets),
		textColumn("MinPods", doc["minReplicas"], func(h *hpa) string {
			if h.Spec.MinReplicas == nil {
				return "<unset>"
			}
			return fmt.Sprint(*h.Spec.MinReplicas)
		}),
		numberColumn("MaxPods", "string", doc["maxReplicas"], func(h *hpa) int32 { return h.Spec.MaxReplicas }),
		numberColumn("Replicas", "string", autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()["currentReplicas"], func(h *hpa) int32 { return h.Status.CurrentReplicas }),
		kind.AgeColumn[hpa](),
	}
}

// hpaTargets are the first two metrics of an autoscaler, as they are and as they should
// be (formatHPAMetrics).
func hpaTargets(h *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(h.Spec.Metrics) == 0 {
		return none
	}
	const most = 2
	var list []string
	for i := range h.Spec.Metrics[:min(len(h.Spec.Metrics), most)] {
		var is autoscalingv2.MetricStatus
		if i < len(h.Status.CurrentMetrics) {
			is = h.Status.CurrentMetrics[i]
		}
		list = append(list, hpaTarget(&h.Spec.Metrics[i], &is))
	}
	text := strings.Join(list, ", ")
	if n := len(h.Spec.Metrics); n > most {
		return fmt.Sprintf("%s + %d more...", text, n-most)
	}
	return text
}

// hpaTarget is one metric. Its status may not be there yet.
func hpaTarget(m *autoscalingv2.MetricSpec, is *autoscalingv2.MetricStatus) string {
	var now autoscalingv2.MetricValueStatus
	switch m.Type {
	case autoscalingv2.ExternalMetricSourceType:
		if is.External != nil {
			now = is.External.Current
		}
		return valueOrAverage(m.External.Target, now)
	case autoscalingv2.ObjectMetricSourceType:
		if is.Object != nil {
			now = is.Object.Current
		}
		return valueOrAverage(m.Object.Target, now)
	case autoscalingv2.PodsMetricSourceType:
		if is.Pods != nil {
			now = is.Pods.Current
		}
		return quantityText(now.AverageValue) + "/" + m.Pods.Target.AverageValue.String()
	case autoscalingv2.ResourceMetricSourceType:
		if is.Resource != nil {
			now = is.Resource.Current
		}
		return string(m.Resource.Name) + ": " + averageOrUse(m.Resource.Target, now)
	case autoscalingv2.ContainerResourceMetricSourceType:
		if is.ContainerResource != nil {
			now = is.ContainerResource.Current
		}
		return string(m.ContainerResource.Name) + ": " + averageOrUse(m.ContainerResource.Target, now)
	}
	return "<unknown type>"
}

func valueOrAverage(t autoscalingv2.MetricTarget, now autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return quantityText(now.AverageValue) + "/" + t.AverageValue.String() + " (avg)"
	}
	return quantityText(now.Value) + "/" + t.Value.String()
}

func averageOrUse(t autoscalingv2.MetricTarget, now autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return quantityText(now.AverageValue) + "/" + t.AverageValue.String()
	}
	percent := func(n *int32, without string) string {
		if n == nil {
			return without
		}
		return fmt.Sprintf("%d%%", *n)
	}
	return percent(now.AverageUtilization, unknown) + "/" + percent(t.AverageUtilization, "<auto>")
}

// unknown is what tables say of what nobody has measured yet.
const unknown = "<unknown>"

func quantityText(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return q.String()
}
