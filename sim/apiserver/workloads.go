package apiserver

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// newWorkloadTables returns the tables of the kinds that the kubelet never sees.
func newWorkloadTables() map[Kind]anyTable {
	return map[Kind]anyTable{
		KindDeployment:              newTable[*appsv1.Deployment](),
		KindReplicaSet:              newTable[*appsv1.ReplicaSet](),
		KindStatefulSet:             newTable[*appsv1.StatefulSet](),
		KindDaemonSet:               newTable[*appsv1.DaemonSet](),
		KindControllerRevision:      newTable[*appsv1.ControllerRevision](),
		KindJob:                     newTable[*batchv1.Job](),
		KindCronJob:                 newTable[*batchv1.CronJob](),
		KindPodDisruptionBudget:     newTable[*policyv1.PodDisruptionBudget](),
		KindHorizontalPodAutoscaler: newTable[*autoscalingv2.HorizontalPodAutoscaler](),
		KindEndpointSlice:           newTable[*discoveryv1.EndpointSlice](),
	}
}

// Objects returns the objects of a kind of type T, oldest first. The slice is
// good until the next write. It panics when T is not the kind's type.
func Objects[T tableObject](s *Store, k Kind) []T {
	return s.table(k).(*table[T]).view()
}

// specs returns the specs of two objects of one kind whose generation counts
// the changes of their spec; false for other kinds.
func specs(obj, old Object) (is, was any, ok bool) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &o.Spec, &old.(*appsv1.Deployment).Spec, true
	case *appsv1.ReplicaSet:
		return &o.Spec, &old.(*appsv1.ReplicaSet).Spec, true
	case *appsv1.StatefulSet:
		return &o.Spec, &old.(*appsv1.StatefulSet).Spec, true
	case *appsv1.DaemonSet:
		return &o.Spec, &old.(*appsv1.DaemonSet).Spec, true
	case *batchv1.Job:
		return &o.Spec, &old.(*batchv1.Job).Spec, true
	case *batchv1.CronJob:
		return &o.Spec, &old.(*batchv1.CronJob).Spec, true
	case *policyv1.PodDisruptionBudget:
		return &o.Spec, &old.(*policyv1.PodDisruptionBudget).Spec, true
	case *discoveryv1.EndpointSlice: // its endpoints and ports are its spec
		was := old.(*discoveryv1.EndpointSlice)
		return [2]any{o.Endpoints, o.Ports}, [2]any{was.Endpoints, was.Ports}, true
	}
	return nil, nil, false
}

// countGeneration sets the generation of an object that takes old's place.
func countGeneration(obj, old Object) {
	switch o := obj.(type) {
	case *appsv1.Deployment: // annotations count too (pkg/registry/apps/deployment/strategy.go)
		if !equality.Semantic.DeepEqual(o.Annotations, old.GetAnnotations()) {
			o.Generation = old.GetGeneration() + 1
			return
		}
	case *appsv1.DaemonSet:
		countTemplateGeneration(o, old.(*appsv1.DaemonSet))
	}
	if is, was, ok := specs(obj, old); ok && !equality.Semantic.DeepEqual(is, was) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// hasGeneration tells whether objects of a kind count the changes of their spec.
func hasGeneration(obj Object) bool {
	if k, _ := KindOf(obj); k == KindPod {
		return true
	}
	_, _, ok := specs(obj, obj)
	return ok
}

// resetStatus empties the status of a new object (PrepareForCreate).
func resetStatus(obj Object) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{}
	case *appsv1.ReplicaSet:
		o.Status = appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		o.Status = appsv1.StatefulSetStatus{}
	case *appsv1.DaemonSet:
		o.Status = appsv1.DaemonSetStatus{}
		countTemplateGeneration(o, nil)
	case *batchv1.Job:
		o.Status = batchv1.JobStatus{}
	case *batchv1.CronJob:
		o.Status = batchv1.CronJobStatus{}
	case *policyv1.PodDisruptionBudget:
		o.Status = policyv1.PodDisruptionBudgetStatus{}
	case *autoscalingv2.HorizontalPodAutoscaler:
		o.Status = autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
}

// keepWorkloadPart puts back what an update of the object, or of its status,
// does not reach. false: the kind has no such subresource.
func keepWorkloadPart(obj, old Object, sub string) bool {
	if sub != "" && sub != "status" {
		return false
	}
	status := sub == "status"
	switch o := obj.(type) {
	case *appsv1.Deployment:
		keep(status, &o.Spec, &o.Status, &old.(*appsv1.Deployment).Spec, &old.(*appsv1.Deployment).Status)
	case *appsv1.ReplicaSet:
		keep(status, &o.Spec, &o.Status, &old.(*appsv1.ReplicaSet).Spec, &old.(*appsv1.ReplicaSet).Status)
	case *appsv1.StatefulSet:
		keep(status, &o.Spec, &o.Status, &old.(*appsv1.StatefulSet).Spec, &old.(*appsv1.StatefulSet).Status)
	case *appsv1.DaemonSet:
		keep(status, &o.Spec, &o.Status, &old.(*appsv1.DaemonSet).Spec, &old.(*appsv1.DaemonSet).Status)
	case *batchv1.Job:
		keep(status, &o.Spec, &o.Status, &old.(*batchv1.Job).Spec, &old.(*batchv1.Job).Status)
	case *batchv1.CronJob:
		keep(status, &o.Spec, &o.Status, &old.(*batchv1.CronJob).Spec, &old.(*batchv1.CronJob).Status)
	case *policyv1.PodDisruptionBudget:
		keep(status, &o.Spec, &o.Status, &old.(*policyv1.PodDisruptionBudget).Spec, &old.(*policyv1.PodDisruptionBudget).Status)
	case *autoscalingv2.HorizontalPodAutoscaler:
		keep(status, &o.Spec, &o.Status, &old.(*autoscalingv2.HorizontalPodAutoscaler).Spec, &old.(*autoscalingv2.HorizontalPodAutoscaler).Status)
	default:
		return !status
	}
	return true
}

func keep[Spec, Status any](status bool, spec *Spec, st *Status, wasSpec *Spec, wasStatus *Status) {
	if status {
		*spec = *wasSpec
	} else {
		*st = *wasStatus
	}
}
