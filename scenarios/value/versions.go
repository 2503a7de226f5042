package value

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// olderVersion makes an object of a version that a cluster serves beside the one that it
// stores; nil if there is no such version of the kind.
func olderVersion(version, kind string) func() runtime.Object {
	if version == autoscalingv1.SchemeGroupVersion.String() && kind == "HorizontalPodAutoscaler" {
		return func() runtime.Object { return &autoscalingv1.HorizontalPodAutoscaler{} }
	}
	return nil
}

// currentVersion is an object in the version that the API has; pkg/apis/autoscaling/v1
// converts as it does.
func currentVersion(obj runtime.Object) runtime.Object {
	old, ok := obj.(*autoscalingv1.HorizontalPodAutoscaler)
	if !ok {
		return obj
	}
	out := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: old.Kind},
		ObjectMeta: old.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(old.Spec.ScaleTargetRef),
			MinReplicas:    old.Spec.MinReplicas, MaxReplicas: old.Spec.MaxReplicas,
		},
	}
	if cpu := old.Spec.TargetCPUUtilizationPercentage; cpu != nil {
		out.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: v1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: cpu},
		}}}
	}
	return out
}
