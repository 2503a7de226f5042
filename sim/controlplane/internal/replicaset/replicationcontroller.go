package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// NewReplicationControllers starts a controller of ReplicationControllers, which are
// ReplicaSets to it, as upstream (pkg/controller/replication).
func NewReplicationControllers(opts controller.Options) *Controller[*v1.ReplicationController] {
	type rc = *v1.ReplicationController
	selector := func(o rc) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: o.Spec.Selector} }
	return start(opts, like[rc]{
		kind: apiserver.KindReplicationController, queue: "replicationmanager", source: "replication-controller",
		set: func(o rc) *appsv1.ReplicaSet {
			return &appsv1.ReplicaSet{
				ObjectMeta: o.ObjectMeta,
				Spec:       appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas, MinReadySeconds: o.Spec.MinReadySeconds, Selector: selector(o)},
				Status:     setStatus(&o.Status),
			}
		},
		template: func(o rc) *v1.PodTemplateSpec { return o.Spec.Template },
		selector: selector,
		minReady: func(o rc) int32 { return o.Spec.MinReadySeconds },
		with: func(o rc, st appsv1.ReplicaSetStatus) rc {
			next := *o
			next.Status = replicationStatus(&st)
			return &next
		},
		family: func(rc) []rc { return nil }, // upstream looks at ReplicaSets, of a controller that there isn't
	})
}

// setStatus and replicationStatus turn one status into the other. Of pods that end, a
// ReplicationController doesn't tell.
func setStatus(st *v1.ReplicationControllerStatus) appsv1.ReplicaSetStatus {
	out := appsv1.ReplicaSetStatus{
		Replicas: st.Replicas, FullyLabeledReplicas: st.FullyLabeledReplicas, ReadyReplicas: st.ReadyReplicas,
		AvailableReplicas: st.AvailableReplicas, ObservedGeneration: st.ObservedGeneration,
	}
	for _, c := range st.Conditions {
		out.Conditions = append(out.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	return out
}

func replicationStatus(st *appsv1.ReplicaSetStatus) v1.ReplicationControllerStatus {
	out := v1.ReplicationControllerStatus{
		Replicas: st.Replicas, FullyLabeledReplicas: st.FullyLabeledReplicas, ReadyReplicas: st.ReadyReplicas,
		AvailableReplicas: st.AvailableReplicas, ObservedGeneration: st.ObservedGeneration,
	}
	for _, c := range st.Conditions {
		out.Conditions = append(out.Conditions, v1.ReplicationControllerCondition{
			Type: v1.ReplicationControllerConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	return out
}
