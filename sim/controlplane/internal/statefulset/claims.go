package statefulset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// claimName is what the claim of a template is called for a pod
// (getPersistentVolumeClaimName).
func claimName(set, template, pod string) string {
	return template + "-" + set + pod[len(set):]
}

// makeClaims makes the claims of a pod that are missing (createPersistentVolumeClaims). One that
// is being deleted is not the pod's any more, and its successor can't come before it is gone.
func (u *update) makeClaims(ctx context.Context, p *v1.Pod) error {
	var errs []error
	for i := range u.set.Spec.VolumeClaimTemplates {
		t := &u.set.Spec.VolumeClaimTemplates[i]
		name := claimName(u.set.Name, t.Name, p.Name)
		if is, ok := u.claim(name); ok {
			if is.DeletionTimestamp != nil {
				errs = append(errs, fmt.Errorf("pvc %s is being deleted", name))
			}
			continue
		}
		claim := &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: u.set.Namespace, Name: name, Labels: maps.Clone(t.Labels), Annotations: t.Annotations},
			Spec:       t.Spec,
		}
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		maps.Copy(claim.Labels, u.set.Spec.Selector.MatchLabels)
		_, err := controller.Create(ctx, u.c.API, claim)
		if err != nil {
			errs = append(errs, fmt.Errorf("failed to create PVC %s: %w", name, err))
		}
		switch ref := controller.Reference(u.set); {
		case err == nil:
			u.c.events.Eventf(ref, v1.EventTypeNormal, "SuccessfulCreate", "Create Claim %s Pod %s in StatefulSet %s success", name, p.Name, u.set.Name)
		case !apierrors.IsAlreadyExists(err):
			u.c.events.Eventf(ref, v1.EventTypeWarning, "FailedCreate", "Create Claim %s for Pod %s in StatefulSet %s failed error: %s", name, p.Name, u.set.Name, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// claim is one of the set's claims.
func (u *update) claim(name string) (*v1.PersistentVolumeClaim, bool) {
	return controller.Lookup[*v1.PersistentVolumeClaim](u.c.API, apiserver.KindPersistentVolumeClaim, controller.Key{Namespace: u.set.Namespace, Name: name})
}

// claimsOf are the claims of a pod that there are.
func (u *update) claimsOf(p *v1.Pod) (out []*v1.PersistentVolumeClaim) {
	for i := range u.set.Spec.VolumeClaimTemplates {
		if claim, ok := u.claim(claimName(u.set.Name, u.set.Spec.VolumeClaimTemplates[i].Name, p.Name)); ok {
			out = append(out, claim)
		}
	}
	return out
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

// Kinds of owners of claims. A claim whose policy is Delete has a controller, with whose end it
// goes: the set, or the pod once that is not wanted any more. So the garbage collector does what
// the policy says (KEP-1847).
const (
	setKind = "StatefulSet"
	podKind = "Pod"
)

// versioned is a kind with its group and version.
func versioned(kind string) schema.GroupVersionKind {
	if kind == podKind {
		return v1.SchemeGroupVersion.WithKind(kind)
	}
	return appsv1.SchemeGroupVersion.WithKind(kind)
}

// names reports whether a reference is to an object of that kind and name, whoever it was.
func names(ref *metav1.OwnerReference, o metav1.Object, kind string) bool {
	return ref.APIVersion == versioned(kind).GroupVersion().String() && ref.Kind == kind && ref.Name == o.GetName()
}

// stale reports whether a claim is owned by a predecessor of the object (hasStaleOwnerRef).
func stale(claim *v1.PersistentVolumeClaim, o metav1.Object, kind string) bool {
	i := slices.IndexFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool { return names(&r, o, kind) })
	return i >= 0 && claim.OwnerReferences[i].UID != o.GetUID()
}

// owns reports whether the object itself owns a claim, as its controller or not.
func owns(o metav1.Object, claim *v1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.GetUID() })
}

// owners are who is to own a pod's claims.
func (u *update) owners(p *v1.Pod) (set, pod bool) {
	policy := u.set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return false, false
	}
	_, o := ordinalOf(p)
	wanted := o >= u.start() && o < u.start()+int(*u.set.Spec.Replicas)
	scaled := policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	deleted := policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	return deleted && (wanted || !scaled), scaled && !wanted
}

// foreign reports whether somebody else controls a claim that the policy is about
// (hasUnexpectedController).
func (u *update) foreign(claim *v1.PersistentVolumeClaim, p *v1.Pod) bool {
	const retain = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if policy := u.set.Spec.PersistentVolumeClaimRetentionPolicy; policy == nil || policy.WhenScaled == retain && policy.WhenDeleted == retain {
		return false
	}
	return slices.ContainsFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool {
		switch {
		case names(&r, u.set, setKind):
			return r.UID != u.set.UID
		case names(&r, p, podKind):
			return r.UID != p.UID
		}
		return r.Controller != nil && *r.Controller
	})
}

// settled reports whether a claim's owners are right (isClaimOwnerUpToDate). One of a predecessor
// is left to the garbage collector, one of a foreign controller to that.
func (u *update) settled(claim *v1.PersistentVolumeClaim, p *v1.Pod) bool {
	if stale(claim, u.set, setKind) || stale(claim, p, podKind) {
		return true
	}
	if u.foreign(claim, p) {
		return !owns(u.set, claim) && !owns(p, claim)
	}
	if slices.ContainsFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool {
		return (r.UID == u.set.UID || r.UID == p.UID) && (r.Controller == nil || !*r.Controller)
	}) {
		return false
	}
	set, pod := u.owners(p)
	return owns(u.set, claim) == set && owns(p, claim) == pod
}

// claimsSettled reports whether all claims of a pod have the right owners
// (ClaimsMatchRetentionPolicy).
func (u *update) claimsSettled(p *v1.Pod) bool {
	return !slices.ContainsFunc(u.claimsOf(p), func(c *v1.PersistentVolumeClaim) bool { return !u.settled(c, p) })
}

// settleClaims gives a pod's claims the right owners (UpdatePodClaimForRetentionPolicy).
func (u *update) settleClaims(ctx context.Context, p *v1.Pod) error {
	for _, claim := range u.claimsOf(p) {
		foreign := u.foreign(claim, p)
		if foreign {
			// The words are upstream's.
			u.c.events.Eventf(controller.Reference(u.set), v1.EventTypeWarning, "ConflictingController",
				"PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim", claim.Name)
		}
		if u.settled(claim, p) {
			continue
		}
		next := claim.DeepCopy()
		next.OwnerReferences = slices.DeleteFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool { return names(&r, u.set, setKind) || names(&r, p, podKind) })
		if set, pod := u.owners(p); !foreign && set {
			next.OwnerReferences = append(next.OwnerReferences, *metav1.NewControllerRef(u.set, versioned(setKind)))
		} else if !foreign && pod {
			next.OwnerReferences = append(next.OwnerReferences, *metav1.NewControllerRef(p, versioned(podKind)))
		}
		if _, err := controller.Update(ctx, u.c.API, next, ""); err != nil {
			return fmt.Errorf("could not update claim %s for delete policy ownerRefs: %w", claim.Name, err)
		}
	}
	return nil
}

// leftBehind reports whether a pod that is to be made would get a claim that goes with its
// predecessor (PodClaimIsStale).
func (u *update) leftBehind(p *v1.Pod) bool {
	policy := u.set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil || policy.WhenScaled == appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		return false
	}
	return slices.ContainsFunc(u.claimsOf(p), func(c *v1.PersistentVolumeClaim) bool { return stale(c, p, podKind) })
}
