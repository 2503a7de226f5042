package apiserver

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setTemplateDefaults fills in what a pod template left out. What is a default
// of pods only (requests from limits, service links, host ports) the pods that
// are made of it get (pkg/apis/core/v1/defaults.go SetDefaults_PodSpec).
func setTemplateDefaults(t *v1.PodTemplateSpec) { setPodSpecDefaults(&t.Spec, true) }

// The defaults of group apps (pkg/apis/apps/v1/defaults.go).

func setDeploymentDefaults(d *appsv1.Deployment) {
	s := &d.Spec
	setTemplateDefaults(&s.Template)
	setPtr(&s.Replicas, 1)
	setDefault(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if s.Strategy.RollingUpdate == nil {
			s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		setPtr(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPtr(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setPtr(&s.RevisionHistoryLimit, 10)
	setPtr(&s.ProgressDeadlineSeconds, 600)
}

func setReplicaSetDefaults(rs *appsv1.ReplicaSet) {
	setTemplateDefaults(&rs.Spec.Template)
	setPtr(&rs.Spec.Replicas, 1)
}

func setDaemonSetDefaults(ds *appsv1.DaemonSet) {
	s := &ds.Spec
	setTemplateDefaults(&s.Template)
	u := &s.UpdateStrategy
	setDefault(&u.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if u.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if u.RollingUpdate == nil {
			u.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		setPtr(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPtr(&u.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setPtr(&s.RevisionHistoryLimit, 10)
}

// countTemplateGeneration sets the number of a daemon set's template, which the
// server alone counts and shows as an annotation
// (pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/v1/conversion.go). old
// is nil for a new one.
func countTemplateGeneration(ds, old *appsv1.DaemonSet) {
	from := ds
	if old != nil {
		from = old
	}
	n, err := strconv.ParseInt(from.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	if old != nil && !equality.Semantic.DeepEqual(&ds.Spec.Template, &old.Spec.Template) {
		n++
	}
	text := strconv.FormatInt(n, 10)
	if ds.Annotations[appsv1.DeprecatedTemplateGeneration] != text {
		a := maps.Clone(ds.Annotations)
		if a == nil {
			a = map[string]string{}
		}
		a[appsv1.DeprecatedTemplateGeneration] = text
		ds.Annotations = a
	}
}

// Dropped lists, in words with field paths, what of a manifest the API takes out
// because the field's gate is off at v1.36 (dropStatefulSetDisabledFields of
// pkg/registry/apps/statefulset/strategy.go).
func Dropped(obj Object) []string {
	if set, ok := obj.(*appsv1.StatefulSet); ok {
		if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
			return []string{"spec.updateStrategy.rollingUpdate.maxUnavailable: dropped, the gate MaxUnavailableStatefulSet is off"}
		}
	}
	return nil
}

func setStatefulSetDefaults(set *appsv1.StatefulSet) {
	s := &set.Spec
	setTemplateDefaults(&s.Template)
	setDefault(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	u := &s.UpdateStrategy
	if u.Type == "" {
		u.Type = appsv1.RollingUpdateStatefulSetStrategyType
		if u.RollingUpdate == nil {
			u.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
	}
	if u.Type == appsv1.RollingUpdateStatefulSetStrategyType && u.RollingUpdate != nil {
		setPtr(&u.RollingUpdate.Partition, 0)
		u.RollingUpdate.MaxUnavailable = nil // see Dropped
	}
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	setDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setPtr(&s.Replicas, 1)
	setPtr(&s.RevisionHistoryLimit, 10)
}
