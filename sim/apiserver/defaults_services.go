package apiserver

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// setEndpointSliceDefaults is that of pkg/apis/discovery/v1/defaults.go.
func setEndpointSliceDefaults(es *discoveryv1.EndpointSlice) {
	for i := range es.Ports {
		setPtr(&es.Ports[i].Name, "")
		setPtr(&es.Ports[i].Protocol, v1.ProtocolTCP)
	}
}

// setHPADefaults is that of pkg/apis/autoscaling/v2/defaults.go. The window of a
// scale down stays open: the controller's flag decides it.
func setHPADefaults(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	setPtr(&hpa.Spec.MinReplicas, int32(1))
	if len(hpa.Spec.Metrics) == 0 {
		utilization := int32(80)
		hpa.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   v1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &utilization},
			},
		}}
	}
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
	selectMax := autoscalingv2.MaxChangePolicySelect
	return completeRules(rules, autoscalingv2.HPAScalingRules{
		SelectPolicy: &selectMax,
		Policies:     []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}},
	})
}

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
