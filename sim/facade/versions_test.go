package facade

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	autoscalingapply "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestAutoscalerViews writes an autoscaler by both of its versions: what v1 has no
// fields for is kept.
func TestAutoscalerViews(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		clients := kubernetes.NewForConfigOrDie(config)
		two, one := clients.AutoscalingV2().HorizontalPodAutoscalers("default"), clients.AutoscalingV1().HorizontalPodAutoscalers("default")
		w, err := one.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := two.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}, MaxReplicas: 3,
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(7))}},
			Metrics: []autoscalingv2.MetricSpec{
				{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: v1.ResourceMemory,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("1Gi"))}}},
				{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: v1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))}}},
			}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := (<-w.ResultChan()).Object.(*autoscalingv1.HorizontalPodAutoscaler); !ok || got.UID != made.UID {
			t.Errorf("watched %v", got)
		}
		w.Stop()
		list, err := one.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.ResourceVersion == "" {
			t.Fatalf("list %v, %v", list, err)
		}
		got := list.Items[0]
		if p := got.Spec.TargetCPUUtilizationPercentage; p == nil || *p != 50 || *got.Spec.MinReplicas != 1 {
			t.Errorf("read as v1: %+v", got.Spec)
		}
		for name, want := range map[string]string{
			"metrics":  `[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]`,
			"behavior": `"ScaleDown":{"StabilizationWindowSeconds":7,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null}`,
		} {
			if text := got.Annotations["autoscaling.alpha.kubernetes.io/"+name]; !strings.Contains(text, want) {
				t.Errorf("annotation %s: %s, want %s", name, text, want)
			}
		}
		if _, err := one.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(`{"spec":{"targetCPUUtilizationPercentage":70}}`), metav1.PatchOptions{FieldManager: "old"}); err != nil {
			t.Fatal(err)
		}
		apply := autoscalingapply.HorizontalPodAutoscaler("a", "default").WithSpec(autoscalingapply.HorizontalPodAutoscalerSpec().WithMaxReplicas(9))
		if _, err := one.Apply(t.Context(), apply, metav1.ApplyOptions{FieldManager: "applier", Force: true}); err != nil {
			t.Fatal(err)
		}
		now, err := two.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s := now.Spec; s.MaxReplicas != 9 || len(s.Metrics) != 2 || s.Metrics[0].Resource.Name != v1.ResourceMemory || *s.Metrics[1].Resource.Target.AverageUtilization != 70 ||
			s.Behavior == nil || *s.Behavior.ScaleDown.StabilizationWindowSeconds != 7 || len(now.Annotations) != 0 {
			t.Errorf("after writes as v1: %+v %v", s, now.Annotations)
		}
		now.Spec.MaxReplicas = 10
		if now, err = two.Update(t.Context(), now, metav1.UpdateOptions{FieldManager: "new"}); err != nil {
			t.Fatal(err)
		}
		var managers []string
		for _, m := range now.ManagedFields {
			managers = append(managers, fmt.Sprint(m.Manager, " ", m.APIVersion, " ", strings.Contains(m.FieldsV1.String(), "maxReplicas")))
		}
		slices.Sort(managers)
		// Who applied 9 doesn't own 10, though it spoke another version.
		if want := []string{"facade.test autoscaling/v2 false", "new autoscaling/v2 true", "old autoscaling/v1 false"}; !slices.Equal(managers, want) {
			t.Errorf("managers %q, want %q", managers, want)
		}
	})
}

// TestEventViews: who comes by events.k8s.io is checked by other rules, and selects by
// other names.
func TestEventViews(t *testing.T) {
	inBubble(t, func(t *testing.T, config *rest.Config) {
		clients := kubernetes.NewForConfigOrDie(config)
		events := clients.EventsV1().Events("default")
		ev := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Regarding: v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"}, Reason: "r", Action: "a",
			Note: "n", Type: "Normal", ReportingController: "example.com/c", ReportingInstance: "i", EventTime: metav1.NowMicro()}
		bad := ev.DeepCopy()
		bad.DeprecatedCount, bad.Series = 1, &eventsv1.EventSeries{Count: 1}
		_, err := events.Create(t.Context(), bad, metav1.CreateOptions{})
		for _, want := range []string{"count: Invalid value: \"\": needs to be unset", "series.count: Invalid value: \"\": should be at least 2", "series.lastObservedTime: Required value"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if ev, err = events.Create(t.Context(), ev, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ev.Note = "other"
		if _, err := events.Update(t.Context(), ev, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "message: Invalid value: \"other\": field is immutable") {
			t.Errorf("update: %v", err)
		}
		list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=p"})
		if err != nil || len(list.Items) != 1 || list.Items[0].Note != "n" {
			t.Errorf("list %v, %v", list, err)
		}
		old, err := clients.CoreV1().Events("default").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || old.Message != "n" || old.InvolvedObject.Name != "p" {
			t.Errorf("as core/v1: %v, %v", old, err)
		}
		old.Message = "other" // which core/v1 allows
		if _, err := clients.CoreV1().Events("default").Update(t.Context(), old, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	})
}
