package expect

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestReadyWorkloads: a workload is ready when its controller has seen it and all that it wants is
// there, of the newest template.
func TestReadyWorkloads(t *testing.T) {
	c := compiler(t)
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u", Generation: 2}
	for _, tc := range []struct {
		name string
		d    appsv1.Deployment
		want bool
	}{
		{"ready", appsv1.Deployment{Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3}}, true},
		{"not all", appsv1.Deployment{Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 2}}, false},
		{"of the old template", appsv1.Deployment{Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, ReadyReplicas: 3}}, false},
		{"with an old one beside", appsv1.Deployment{Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 3, ReadyReplicas: 4}}, false},
		{"not seen", appsv1.Deployment{Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3}}, false},
	} {
		tc.d.ObjectMeta, tc.d.Spec.Replicas = meta, ptr.To[int32](3)
		s := sample()
		s.deployments = []*appsv1.Deployment{&tc.d}
		if got := holds(t, c, s, `ready(deployment("web"))`); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	if holds(t, c, sample(), `ready(deployment("none")) || ready(daemonSet("none")) || ready(statefulSet("none")) || ready(replicaSet("none"))`) {
		t.Error("what isn't there is ready")
	}
}

// TestReadySets has the other workloads.
func TestReadySets(t *testing.T) {
	meta := metav1.ObjectMeta{UID: "u", Generation: 2}
	onDelete, rolling := appsv1.OnDeleteStatefulSetStrategyType, appsv1.RollingUpdateStatefulSetStrategyType
	set := func(strategy appsv1.StatefulSetUpdateStrategyType, partition, ready, updated int32, revision string) bool {
		s := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy}},
			Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, ReadyReplicas: ready, UpdatedReplicas: updated, CurrentRevision: "a", UpdateRevision: revision}}
		if strategy == rolling {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition}
		}
		return statefulSetReady(s)
	}
	daemons := func(strategy appsv1.DaemonSetUpdateStrategyType, wanted, ready, updated int32) bool {
		return daemonSetReady(&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: strategy}},
			Status: appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: wanted, NumberReady: ready, UpdatedNumberScheduled: updated}})
	}
	for _, tc := range []struct {
		name      string
		got, want bool
	}{
		{"StatefulSet", set(rolling, 0, 3, 3, "a"), true},
		{"one is missing", set(rolling, 0, 2, 3, "a"), false},
		{"it rolls", set(rolling, 0, 3, 2, "b"), false},
		{"down to its partition", set(rolling, 1, 3, 2, "b"), true},
		{"its pods are replaced by hand", set(onDelete, 0, 3, 0, "b"), true},
		{"DaemonSet", daemons(appsv1.RollingUpdateDaemonSetStrategyType, 2, 2, 2), true},
		{"a node without", daemons(appsv1.RollingUpdateDaemonSetStrategyType, 2, 1, 2), false},
		{"a DaemonSet rolls", daemons(appsv1.RollingUpdateDaemonSetStrategyType, 2, 2, 1), false},
		{"replaced by hand", daemons(appsv1.OnDeleteDaemonSetStrategyType, 2, 2, 1), true},
		{"no node", daemons(appsv1.RollingUpdateDaemonSetStrategyType, 0, 0, 0), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v", tc.name, tc.got)
		}
	}
}

func holds(t *testing.T, c *Compiler, s State, expr string) bool {
	t.Helper()
	e := New([]*Expectation{compile(t, c, Source{Form: At, T: End, Expr: expr})}, s, Options{})
	e.Begin()
	return e.Finish(0, false)[0].Outcome == Held
}
