package statefulset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestOwners holds whose end is a claim's, and which claims are left alone, to upstream's
// isClaimOwnerUpToDate.
func TestOwners(t *testing.T) {
	const retain, del = appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	yes := true
	ref := func(version, kind, name, uid string, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid), Controller: controller}
	}
	bySet, byPod := ref("apps/v1", "StatefulSet", "db", "set", &yes), ref("v1", "Pod", "db-0", "pod", &yes)
	other := ref("v1", "ConfigMap", "any", "other", &yes)
	for _, c := range []struct {
		name            string
		scaled, deleted appsv1.PersistentVolumeClaimRetentionPolicyType
		replicas        int32
		owners          []metav1.OwnerReference
		settled         bool
	}{
		{"both retain: nobody", retain, retain, 1, nil, true},
		{"the policy was Delete before", retain, retain, 1, []metav1.OwnerReference{bySet}, false},
		{"somebody else's claim that is to stay", retain, retain, 1, []metav1.OwnerReference{other}, true},
		{"with the set", retain, del, 1, nil, false},
		{"with the set, and it does", retain, del, 1, []metav1.OwnerReference{bySet}, true},
		{"with the set, though its pod is not wanted", retain, del, 0, []metav1.OwnerReference{bySet}, true},
		{"an owner that is no controller", retain, del, 1, []metav1.OwnerReference{ref("apps/v1", "StatefulSet", "db", "set", nil)}, false},
		{"with the pod that is wanted: nobody", del, retain, 1, nil, true},
		{"with the pod that is not", del, retain, 0, nil, false},
		{"with the pod that is not, and it does", del, retain, 0, []metav1.OwnerReference{byPod}, true},
		{"the pod is wanted again", del, retain, 1, []metav1.OwnerReference{byPod}, false},
		{"both delete: with the set", del, del, 1, []metav1.OwnerReference{bySet}, true},
		{"both delete: with the pod that is not wanted", del, del, 0, []metav1.OwnerReference{bySet}, false},
		{"both delete: with that pod alone", del, del, 0, []metav1.OwnerReference{byPod}, true},
		{"a predecessor of the set has it", del, del, 1, []metav1.OwnerReference{ref("apps/v1", "StatefulSet", "db", "before", &yes)}, true},
		{"a predecessor of the pod has it", del, del, 1, []metav1.OwnerReference{ref("v1", "Pod", "db-0", "before", &yes)}, true},
		{"somebody else controls it", del, del, 1, []metav1.OwnerReference{other}, true},
		{"somebody else and the set control it", del, del, 1, []metav1.OwnerReference{other, bySet}, false},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "set"}, Spec: appsv1.StatefulSetSpec{Replicas: &c.replicas,
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: c.scaled, WhenDeleted: c.deleted}}}
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", UID: "pod"}}
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-0", OwnerReferences: c.owners}}
		if got := (&update{set: set}).settled(claim, pod); got != c.settled {
			t.Errorf("%s: settled %v, want %v", c.name, got, c.settled)
		}
	}
}
