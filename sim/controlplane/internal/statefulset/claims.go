package statefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// claimName is what the claim of a template is called for a pod
// (getPersistentVolumeClaimName).
func claimName(set, template, pod string) string {
	return template + "-" + set + pod[len(set):]
}

// makeClaims makes the claims of a pod that are missing (createPersistentVolumeClaims).
func (u *update) makeClaims(ctx context.Context, p *v1.Pod) error {
	for i := range u.set.Spec.VolumeClaimTemplates {
		t := &u.set.Spec.VolumeClaimTemplates[i]
		name := claimName(u.set.Name, t.Name, p.Name)
		key := controller.Key{Namespace: u.set.Namespace, Name: name}
		if _, ok := controller.Lookup[*v1.PersistentVolumeClaim](u.c.API, apiserver.KindPersistentVolumeClaim, key); ok {
			continue
		}
		claim := &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: u.set.Namespace, Name: name, Labels: maps.Clone(t.Labels), Annotations: t.Annotations, OwnerReferences: u.claimOwners(nil)},
			Spec:       t.Spec,
		}
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		maps.Copy(claim.Labels, u.set.Spec.Selector.MatchLabels)
		_, err := controller.Create(ctx, u.c.API, claim)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			u.c.events.Eventf(controller.Reference(u.set), v1.EventTypeWarning, "FailedCreate", "Create Claim %s for Pod %s in StatefulSet %s failed error: %s", name, p.Name, u.set.Name, err)
			return fmt.Errorf("failed to create PVC %s: %w", name, err)
		}
		if err == nil {
			u.c.events.Eventf(controller.Reference(u.set), v1.EventTypeNormal, "SuccessfulCreate", "Create Claim %s Pod %s in StatefulSet %s success", name, p.Name, u.set.Name)
		}
	}
	return nil
}

// withClaims are a pod's volumes, with its claims in the place of those of their names
// (updateStorage).
func (u *update) withClaims(volumes []v1.Volume, p *v1.Pod) []v1.Volume {
	var out []v1.Volume
	for i := range u.set.Spec.VolumeClaimTemplates {
		t := &u.set.Spec.VolumeClaimTemplates[i]
		out = append(out, v1.Volume{Name: t.Name, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(u.set.Name, t.Name, p.Name)},
		}})
	}
	for _, v := range volumes {
		if !slices.ContainsFunc(u.set.Spec.VolumeClaimTemplates, func(t v1.PersistentVolumeClaim) bool { return t.Name == v.Name }) {
			out = append(out, v)
		}
	}
	return out
}

// condemnClaims has the claims of a pod that is not wanted go with it, if the set's
// policy says so (updateClaimOwnerRefForSetAndPod).
func (u *update) condemnClaims(ctx context.Context, p *v1.Pod) error {
	policy := u.set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil || policy.WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return nil
	}
	for i := range u.set.Spec.VolumeClaimTemplates {
		key := controller.Key{Namespace: u.set.Namespace, Name: claimName(u.set.Name, u.set.Spec.VolumeClaimTemplates[i].Name, p.Name)}
		claim, ok := controller.Lookup[*v1.PersistentVolumeClaim](u.c.API, apiserver.KindPersistentVolumeClaim, key)
		want := u.claimOwners(p)
		if !ok || equality.Semantic.DeepEqual(claim.OwnerReferences, want) {
			continue
		}
		next := claim.DeepCopy()
		next.OwnerReferences = want
		if _, err := controller.Update(ctx, u.c.API, next, ""); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("claim %s: %w", key, err)
		}
	}
	return nil
}

// claimOwners are those whose end is a claim's: the set, as its policy says, or a pod
// that is condemned.
func (u *update) claimOwners(condemned *v1.Pod) []metav1.OwnerReference {
	policy := u.set.Spec.PersistentVolumeClaimRetentionPolicy
	owner, kind := apiserver.Object(u.set), appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	switch {
	case condemned != nil:
		owner, kind = condemned, v1.SchemeGroupVersion.WithKind("Pod")
	case policy == nil || policy.WhenDeleted != appsv1.DeletePersistentVolumeClaimRetentionPolicyType:
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID()}}
}
