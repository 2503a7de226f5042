package workloads

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/usage"
	"github.com/drydock-sim/drydock/sim/apiserver"
)

// programs say what containers do, by their image.
func programs() []fakecri.Program {
	seconds := func(lo, hi int) fakecri.Range {
		return fakecri.Range{Min: time.Duration(lo) * time.Second, Max: time.Duration(hi) * time.Second}
	}
	flaky := fakecri.Behaviour{RunFor: seconds(1, 5), ExitCode: 1}
	return []fakecri.Program{
		{Match: fakecri.Match{Image: "steady*"}, Behaviour: fakecri.Behaviour{CPU: usage.Constant(100)}},
		{Match: fakecri.Match{Image: "slow*"}, Behaviour: fakecri.Behaviour{CPU: usage.Constant(200), OnTerm: fakecri.OnTerm{After: seconds(1, 8)},
			Ports: []fakecri.Port{{Port: 80, After: 4 * time.Second}}}},
		{Match: fakecri.Match{Image: "broken*"}, Behaviour: fakecri.Behaviour{Ports: []fakecri.Port{}}},
		{Match: fakecri.Match{Image: "flaky*"}, Attempts: []fakecri.Behaviour{flaky, flaky, {}}},
		{Match: fakecri.Match{Image: "done*"}, Behaviour: fakecri.Behaviour{RunFor: seconds(2, 40)}},
		{Match: fakecri.Match{Image: "fails*"}, Behaviour: fakecri.Behaviour{RunFor: seconds(1, 10), ExitCode: 3}},
		{Match: fakecri.Match{Image: "once*"}, Attempts: []fakecri.Behaviour{flaky, {RunFor: seconds(2, 20)}}},
	}
}

// workload is what is known of one while a plan is drawn.
type workload struct {
	kind     apiserver.Kind
	ns, name string
	// replicas are those asked for at first, where that can be asked for.
	replicas int
}

func (w *workload) String() string { return fmt.Sprintf("%s %s/%s", w.kind, w.ns, w.name) }

// scales reports whether a workload has replicas.
func (w *workload) scales() bool {
	return w.kind == apiserver.KindDeployment || w.kind == apiserver.KindReplicaSet || w.kind == apiserver.KindStatefulSet
}

// workload draws one, what is there for it, and when it comes.
func (m *maker) workload(i int) {
	w := &workload{ns: one(m, "a", "a", "b"), replicas: m.between(0, 7)}
	w.kind = one(m, apiserver.KindDeployment, apiserver.KindDeployment, apiserver.KindDeployment, apiserver.KindStatefulSet, apiserver.KindStatefulSet,
		apiserver.KindDaemonSet, apiserver.KindJob, apiserver.KindJob, apiserver.KindCronJob, apiserver.KindReplicaSet)
	w.name = fmt.Sprintf("%s%d", strings.ToLower(string(w.kind))[:3], i)
	m.work = append(m.work, w)
	at := m.seconds(25, 90)
	obj := m.object(w)
	m.step(at, func(r *run) { r.create(obj.DeepCopyObject().(apiserver.Object)) }, "%v: %s", w, describe(obj))
	if w.scales() && m.chance(50) {
		m.budget(w, at)
	}
	if w.kind == apiserver.KindDeployment && m.chance(25) {
		m.autoscaler(w, at)
	}
	if w.scales() && m.chance(60) {
		svc := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.name}, Spec: v1.ServiceSpec{
			Selector: map[string]string{"app": w.name}, Ports: []v1.ServicePort{{Port: 80}}, PublishNotReadyAddresses: m.chance(20),
		}}
		m.step(at, func(r *run) { r.create(svc.DeepCopy()) }, "service of %v", w)
	}
}

// describe says the little that matters of an object.
func describe(obj apiserver.Object) string {
	spec := func(p *v1.PodSpec) string {
		out := fmt.Sprintf("image %s, requests %s", p.Containers[0].Image, list(p.Containers[0].Resources.Requests))
		if p.PriorityClassName != "" {
			out += ", priority " + p.PriorityClassName
		}
		if len(p.NodeSelector) > 0 {
			out += fmt.Sprint(", selector ", p.NodeSelector)
		}
		for _, c := range p.TopologySpreadConstraints {
			out += fmt.Sprintf(", spread over %s by %d (%s)", c.TopologyKey, c.MaxSkew, c.WhenUnsatisfiable)
		}
		if a := p.Affinity; a != nil {
			out += fmt.Sprintf(", affinity node %v pod %v anti %v", a.NodeAffinity != nil, a.PodAffinity != nil, a.PodAntiAffinity != nil)
		}
		return out
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return fmt.Sprintf("%d replicas, %s, %s", *o.Spec.Replicas, o.Spec.Strategy.Type, spec(&o.Spec.Template.Spec))
	case *appsv1.ReplicaSet:
		return fmt.Sprintf("%d replicas, %s", *o.Spec.Replicas, spec(&o.Spec.Template.Spec))
	case *appsv1.StatefulSet:
		return fmt.Sprintf("%d replicas, %s, %s, %s", *o.Spec.Replicas, o.Spec.PodManagementPolicy, o.Spec.UpdateStrategy.Type, spec(&o.Spec.Template.Spec))
	case *appsv1.DaemonSet:
		return spec(&o.Spec.Template.Spec)
	case *batchv1.Job:
		return fmt.Sprintf("%d of %d, %s", *o.Spec.Parallelism, *o.Spec.Completions, spec(&o.Spec.Template.Spec))
	case *batchv1.CronJob:
		return fmt.Sprintf("%s, %s", o.Spec.Schedule, o.Spec.ConcurrencyPolicy)
	}
	return ""
}

func (m *maker) object(w *workload) apiserver.Object {
	meta := metav1.ObjectMeta{Namespace: w.ns, Name: w.name}
	labels := map[string]string{"app": w.name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	n := int32(w.replicas)
	ready := int32(one(m, 0, 0, 0, 5, 15))
	switch w.kind {
	case apiserver.KindDeployment:
		d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: selector, MinReadySeconds: ready, Template: m.template(w, labels)}}
		if m.chance(15) {
			d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		} else {
			surge, short := intstr.FromInt32(int32(m.between(0, 2))), intstr.FromInt32(int32(m.between(0, 2)))
			if m.chance(30) {
				surge = intstr.FromString(one(m, "25%", "50%", "100%"))
			}
			if surge == intstr.FromInt32(0) && short == intstr.FromInt32(0) {
				short = intstr.FromString("30%")
			}
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &short}}
		}
		return d
	case apiserver.KindReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: selector, MinReadySeconds: ready, Template: m.template(w, labels)}}
	case apiserver.KindStatefulSet:
		s := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &n, Selector: selector, MinReadySeconds: ready, Template: m.template(w, labels),
			ServiceName: w.name, PodManagementPolicy: one(m, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)}}
		s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		if m.chance(15) {
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}
		return s
	case apiserver.KindDaemonSet:
		d := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, MinReadySeconds: ready, Template: m.template(w, labels)}}
		d.Spec.Template.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("100m")
		surge, short := intstr.FromInt32(0), intstr.FromInt32(int32(m.between(1, 2)))
		if m.chance(30) {
			surge, short = intstr.FromInt32(1), intstr.FromInt32(0)
		}
		d.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &surge, MaxUnavailable: &short}}
		return d
	case apiserver.KindJob:
		return &batchv1.Job{ObjectMeta: meta, Spec: m.job(w, labels)}
	}
	history := int32(m.between(0, 3))
	return &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
		Schedule: "* * * * *", ConcurrencyPolicy: one(m, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent),
		SuccessfulJobsHistoryLimit: &history, FailedJobsHistoryLimit: &history, JobTemplate: batchv1.JobTemplateSpec{Spec: m.job(w, nil)},
	}}
}

func (m *maker) job(w *workload, labels map[string]string) batchv1.JobSpec {
	completions, parallelism, limit := int32(m.between(1, 6)), int32(m.between(1, 4)), int32(m.between(0, 4))
	spec := batchv1.JobSpec{Completions: &completions, Parallelism: &parallelism, BackoffLimit: &limit, Template: m.template(w, labels)}
	c := &spec.Template.Spec.Containers[0]
	c.Image, c.ReadinessProbe = one(m, "done:1", "done:1", "done:1", "fails:1", "once:1"), nil
	spec.Template.Spec.RestartPolicy = one(m, v1.RestartPolicyNever, v1.RestartPolicyOnFailure)
	if m.chance(40) {
		mode := batchv1.IndexedCompletion
		spec.CompletionMode = &mode
		if m.chance(30) {
			spec.BackoffLimit, spec.BackoffLimitPerIndex = nil, &limit
			spec.Template.Spec.RestartPolicy = v1.RestartPolicyNever
		}
	}
	if m.chance(15) {
		seconds := int64(m.between(30, 200))
		spec.ActiveDeadlineSeconds = &seconds
	}
	return spec
}

// template draws pods: what they ask for and where they may be.
func (m *maker) template(w *workload, labels map[string]string) v1.PodTemplateSpec {
	grace := int64(m.between(1, 12))
	t := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": one(m, "x", "y")}}}
	for k, v := range labels {
		t.Labels[k] = v
	}
	c := v1.Container{Name: "main", Image: one(m, "steady:1", "steady:1", "slow:1", "slow:1", "flaky:1", "broken:1"), Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: resource.MustParse(one(m, "100m", "250m", "500m", "1", "1500m")), v1.ResourceMemory: resource.MustParse(one(m, "64Mi", "256Mi", "1Gi", "2Gi")),
	}}}
	if c.Image == "slow:1" || c.Image == "broken:1" {
		c.ReadinessProbe = &v1.Probe{PeriodSeconds: 2, ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	}
	if m.chance(5) {
		c.Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	}
	t.Spec = v1.PodSpec{Containers: []v1.Container{c}, TerminationGracePeriodSeconds: &grace, PriorityClassName: one(m, "", "", "", "low", "high", "polite")}
	if m.chance(12) {
		t.Spec.NodeSelector = map[string]string{"disk": one(m, "ssd", "hdd")}
	}
	if m.chance(15) {
		t.Spec.Tolerations = append(t.Spec.Tolerations, v1.Toleration{Key: "dedicated", Operator: v1.TolerationOpExists})
	}
	if m.chance(15) {
		seconds := int64(m.between(5, 60))
		t.Spec.Tolerations = append(t.Spec.Tolerations, v1.Toleration{Key: "outage", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: one(m, &seconds, nil)})
	}
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": t.Labels["tier"]}}
	if labels != nil {
		own = &metav1.LabelSelector{MatchLabels: labels}
	}
	affinity := &v1.Affinity{}
	if m.chance(10) {
		affinity.NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: one(m, v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn), Values: []string{"a"}}},
		}}}}
	}
	if m.chance(12) {
		affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: one(m, v1.LabelHostname, v1.LabelTopologyZone), LabelSelector: own,
		}}}
	}
	if m.chance(10) {
		affinity.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: one(m, v1.LabelHostname, v1.LabelTopologyZone), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": one(m, "x", "y")}},
		}}}
	}
	if affinity.NodeAffinity != nil || affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil {
		t.Spec.Affinity = affinity
	}
	if m.chance(20) {
		c := v1.TopologySpreadConstraint{MaxSkew: int32(m.between(1, 2)), TopologyKey: one(m, v1.LabelHostname, v1.LabelTopologyZone), LabelSelector: own,
			WhenUnsatisfiable: one(m, v1.DoNotSchedule, v1.DoNotSchedule, v1.ScheduleAnyway)}
		if c.WhenUnsatisfiable == v1.DoNotSchedule && m.chance(20) {
			c.MinDomains = new(int32(2))
		}
		if m.chance(30) {
			honor := v1.NodeInclusionPolicyHonor
			c.NodeTaintsPolicy = &honor
		}
		t.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{c}
	}
	return t
}

// budget draws a PodDisruptionBudget of a workload.
func (m *maker) budget(w *workload, at time.Duration) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.name}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}},
	}}
	n := one(m, intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("30%"), intstr.FromString("60%"))
	text := "minAvailable"
	if m.chance(50) {
		b.Spec.MinAvailable = &n
	} else {
		b.Spec.MaxUnavailable, text = &n, "maxUnavailable"
	}
	if m.chance(30) {
		always := policyv1.AlwaysAllow
		b.Spec.UnhealthyPodEvictionPolicy = &always
	}
	m.step(at, func(r *run) { r.create(b.DeepCopy()) }, "budget of %v: %s %s", w, text, n.String())
}

// autoscaler draws a HorizontalPodAutoscaler of a Deployment.
func (m *maker) autoscaler(w *workload, at time.Duration) {
	lo, target := int32(m.between(1, 3)), int32(one(m, 20, 50, 80))
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.name}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: w.name},
		MinReplicas:    &lo, MaxReplicas: lo + int32(m.between(0, 6)),
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: v1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target}}}},
	}}
	m.step(at, func(r *run) { r.create(h.DeepCopy()) }, "autoscaler of %v: %d to %d, %d%%", w, lo, h.Spec.MaxReplicas, target)
}
