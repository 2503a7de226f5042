package expect

import (
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// PodReady reports whether a pod's Ready condition is true. It is k8s.io/kubectl's idea of ready:
// the condition, not the containers.
func PodReady(p *v1.Pod) bool {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == v1.PodReady {
			return p.Status.Conditions[i].Status == v1.ConditionTrue
		}
	}
	return false
}

// nodeReady is whether a node's Ready condition is true.
func nodeReady(v ref.Val) ref.Val {
	n := v.Value().(*v1.Node)
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == v1.NodeReady {
			return types.Bool(n.Status.Conditions[i].Status == v1.ConditionTrue)
		}
	}
	return types.False
}

// readyFuncs are the overloads of ready() for workloads: what kubectl rollout status waits for,
// and that the replicas are ready.
func readyFuncs() []cel.FunctionOpt {
	return []cel.FunctionOpt{
		readyOverload("ready_deployment", deploymentReady), readyOverload("ready_replica_set", replicaSetReady),
		readyOverload("ready_stateful_set", statefulSetReady), readyOverload("ready_daemon_set", daemonSetReady),
	}
}

func deploymentReady(d *appsv1.Deployment) bool {
	wanted, st := ptr.Deref(d.Spec.Replicas, 1), &d.Status
	return seen(d, st.ObservedGeneration) && st.UpdatedReplicas >= wanted && st.Replicas <= st.UpdatedReplicas && st.ReadyReplicas >= wanted
}

func replicaSetReady(r *appsv1.ReplicaSet) bool {
	return seen(r, r.Status.ObservedGeneration) && r.Status.ReadyReplicas >= ptr.Deref(r.Spec.Replicas, 1)
}

func statefulSetReady(s *appsv1.StatefulSet) bool {
	wanted, st, u := ptr.Deref(s.Spec.Replicas, 1), &s.Status, &s.Spec.UpdateStrategy
	if !seen(s, st.ObservedGeneration) || st.ReadyReplicas < wanted {
		return false
	}
	// Pods that somebody replaces by hand, or before the partition, keep their revision.
	if u.Type != appsv1.RollingUpdateStatefulSetStrategyType || st.UpdateRevision == st.CurrentRevision {
		return true
	}
	if u.RollingUpdate != nil {
		wanted -= ptr.Deref(u.RollingUpdate.Partition, 0)
	}
	return st.UpdatedReplicas >= wanted
}

func daemonSetReady(d *appsv1.DaemonSet) bool {
	st := &d.Status
	rolls := d.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
	return seen(d, st.ObservedGeneration) && st.NumberReady >= st.DesiredNumberScheduled && (!rolls || st.UpdatedNumberScheduled >= st.DesiredNumberScheduled)
}

func readyOverload[T any](id string, ready func(*T) bool) cel.FunctionOpt {
	typ := types.NewObjectType(typeName(reflect.TypeFor[T]()))
	return cel.Overload(id, []*types.Type{typ}, types.BoolType, cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Bool(ready(v.Value().(*T))) }))
}

// seen reports whether an object is there and its controller knows its newest spec.
func seen(o metav1.Object, observed int64) bool {
	return o.GetUID() != "" && observed >= o.GetGeneration()
}
