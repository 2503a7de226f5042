package podautoscaler

import (
	"context"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/ground/loop"
	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// used are the metrics of pods by their names.
type used map[string][]ContainerMetrics

func (u used) Watch(string, func(*v1.Pod) bool) func() { return func() {} }

func (u used) PodMetrics(pod *v1.Pod) (PodMetrics, bool) {
	list, ok := u[pod.Name]
	return PodMetrics{Timestamp: t0, Window: 15 * time.Second, Containers: list}, ok
}

// requesting is a pod of two containers and what they and the whole request of CPU.
func requesting(name, a, b string, whole v1.ResourceList) *v1.Pod {
	list := func(cpu string) v1.ResourceRequirements {
		if cpu == "" {
			return v1.ResourceRequirements{}
		}
		return v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, Labels: map[string]string{"app": "web"}}}
	p.Spec.Containers = []v1.Container{{Name: "a", Image: "a:1", Resources: list(a)}, {Name: "b", Image: "b:1", Resources: list(b)}}
	if whole != nil {
		p.Spec.Resources = &v1.ResourceRequirements{Requests: whole}
	}
	return p
}

// TestPodRequests holds what a share is of to upstream's calculateRequests.
func TestPodRequests(t *testing.T) {
	cpu := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	memory := v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
	for _, c := range []struct {
		name      string
		pod       *v1.Pod
		container string
		want      int64
		err       string
	}{
		{name: "all containers", pod: requesting("p", "100m", "200m", nil), want: 300},
		{name: "one of them", pod: requesting("p", "100m", "", nil), container: "a", want: 100},
		{name: "one without", pod: requesting("p", "100m", "", nil), err: "missing request for cpu in container b of Pod p"},
		{name: "one that is not there", pod: requesting("p", "100m", "200m", nil), container: "c", err: "container c not found in Pod p"},
		{name: "the whole", pod: requesting("p", "100m", "", cpu), want: 1000},
		{name: "the whole, of something else", pod: requesting("p", "100m", "", memory), want: 100},
		{name: "the whole, and nobody says how much", pod: requesting("p", "", "", memory), err: "missing pod-level request for cpu in Pod p"},
		{name: "a named container goes before the whole", pod: requesting("p", "100m", "", cpu), container: "a", want: 100},
	} {
		got, err := podRequests([]*v1.Pod{c.pod}, c.container, v1.ResourceCPU)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != c.err || got["p"] != c.want {
			t.Errorf("%s: %d, error %q; want %d, error %q", c.name, got["p"], said, c.want, c.err)
		}
	}
}

// TestResource holds the names, units and errors of resource metrics to upstream's.
func TestResource(t *testing.T) {
	running := func(p *v1.Pod, ago time.Duration, ready v1.ConditionStatus) *v1.Pod {
		start := metav1.Time{Time: t0.Add(-ago)}
		p.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &start, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: ready, LastTransitionTime: start}}}
		return p
	}
	q := resource.MustParse("100Mi")
	share := int32(50)
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &q}
	utilization := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &share}
	both := []ContainerMetrics{{"a", 50, 300 << 20}, {"b", 10, 20 << 20}}
	for _, c := range []struct {
		name      string
		resource  v1.ResourceName
		container string
		target    autoscalingv2.MetricTarget
		pods      []*v1.Pod
		used      used
		want      int32
		says      string
		value     string
		err       string
	}{
		{name: "memory is told in powers of two", resource: v1.ResourceMemory, target: average, pods: []*v1.Pod{running(requesting("p", "", "", nil), time.Hour, v1.ConditionTrue)},
			used: used{"p": both}, want: 4, says: "memory resource", value: "320Mi"},
		{name: "a container's plain value is named like the pod's", resource: v1.ResourceMemory, container: "a", target: average, pods: []*v1.Pod{running(requesting("p", "", "", nil), time.Hour, v1.ConditionTrue)},
			used: used{"p": both}, want: 3, says: "memory resource", value: "300Mi"},
		{name: "its utilization is not", resource: v1.ResourceCPU, container: "a", target: utilization, pods: []*v1.Pod{running(requesting("p", "100m", "", nil), time.Hour, v1.ConditionTrue)},
			used: used{"p": both}, want: 1, says: "cpu container resource utilization (percentage of request)", value: "50m"},
		{name: "a pod whose metrics lack the container has none", resource: v1.ResourceMemory, container: "a", target: average,
			pods: []*v1.Pod{running(requesting("p", "", "", nil), time.Hour, v1.ConditionTrue), running(requesting("q", "", "", nil), time.Hour, v1.ConditionTrue)},
			used: used{"p": both, "q": both[1:]}, want: 3, says: "memory resource", value: "300Mi"},
		{name: "that pods are young is told before that they request nothing", resource: v1.ResourceCPU, target: utilization, pods: []*v1.Pod{running(requesting("p", "", "", nil), time.Second, v1.ConditionFalse)},
			used: used{"p": both}, err: "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)"},
		{name: "nothing is requested", resource: v1.ResourceCPU, target: utilization, pods: []*v1.Pod{running(requesting("p", "", "", nil), time.Hour, v1.ConditionTrue)},
			used: used{"p": both}, err: "failed to get cpu utilization: missing request for cpu in container a of Pod p"},
	} {
		r := &evaluation{c: &Controller{metrics: c.used}, hpa: &autoscalingv2.HorizontalPodAutoscaler{}, now: t0}
		n, says, value, err := r.resource(c.resource, c.container, &c.target, int32(len(c.pods)), c.pods)
		said, mean := "", ""
		if err != nil {
			said = err.Error()
		}
		if value.AverageValue != nil {
			mean = value.AverageValue.String()
		}
		if said != c.err || n != c.want || says != c.says || mean != c.value {
			t.Errorf("%s: %d by %q, %s, error %q; want %d by %q, %s, error %q", c.name, n, says, mean, said, c.want, c.says, c.value, c.err)
		}
	}
}

// TestLook holds which metric decides, where statuses stand when one has failed, and that a write
// of the target between the reading of its scale and the writing of it does no harm.
func TestLook(t *testing.T) {
	l := loop.New(loop.Options{Name: "api", Seed: 5})
	defer l.Close()
	srv := apiserver.New(apiserver.Options{Loop: l})
	api := srv.Component("horizontal-pod-autoscaler", -1, 0)
	figures := &Figures{}
	figures.Set(Figure{Namespace: "default", Name: "few", Value: 2000})
	figures.Set(Figure{Namespace: "default", Name: "queue", Value: 3000})
	New(Options{Options: controller.Options{Group: l.NewGroup("manager"), API: api}, Figures: figures})
	one := resource.MustParse("1")
	external := func(name string) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: name}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &one}}}
	}
	replicas := int32(1)
	rc := v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1.ReplicationControllerSpec{Replicas: &replicas, Selector: map[string]string{"app": "web"},
		Template: &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: "a:1"}}}}}}
	if _, err := srv.Create(&rc); err != nil {
		t.Fatal(err)
	}
	hpa := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "ReplicationController", Name: "web"}, MaxReplicas: 5,
		Metrics: []autoscalingv2.MetricSpec{external("none"), external("few"), external("queue"), external("few")}}}
	if _, err := srv.Create(&hpa); err != nil {
		t.Fatal(err)
	}
	if err := l.RunUntil(loop.Epoch().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := srv.Store().Lookup(apiserver.KindHorizontalPodAutoscaler, "default", "web").(*autoscalingv2.HorizontalPodAutoscaler)
	if st := got.Status.CurrentMetrics; len(st) != 4 || st[0].Type != "" || st[2].External == nil || st[2].External.Metric.Name != "queue" {
		t.Errorf("statuses %+v, want an empty one and that of queue as the third", st)
	}
	if got.Status.DesiredReplicas != 3 {
		t.Errorf("%d replicas are wanted, not 3", got.Status.DesiredReplicas)
	}
	l.NewGroup("test").Go("conflict", func(ctx context.Context) {
		r := &evaluation{c: &Controller{api: api, store: srv.Store(), l: l}, hpa: got, was: got}
		scale, err := r.getScale(ctx, got.Spec.ScaleTargetRef)
		if err != nil {
			t.Error(err)
			return
		}
		other := *srv.Store().Lookup(apiserver.KindReplicationController, "default", "web").(*v1.ReplicationController)
		other.Labels = map[string]string{"by": "another"}
		if _, err := srv.Update(&other, ""); err != nil {
			t.Error(err)
		}
		if err := r.updateScale(ctx, got.Spec.ScaleTargetRef, scale, 4); err != nil {
			t.Errorf("after a conflict: %v", err)
		}
		if is := srv.Store().Lookup(apiserver.KindReplicationController, "default", "web").(*v1.ReplicationController); *is.Spec.Replicas != 4 {
			t.Errorf("%d replicas after a conflict, want 4", *is.Spec.Replicas)
		}
	})
	if err := l.RunUntil(loop.Epoch().Add(21 * time.Second)); err != nil {
		t.Fatal(err)
	}
}
