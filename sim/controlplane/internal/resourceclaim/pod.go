package resourceclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	draclaim "k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// maxGenerateName leaves room for a hyphen and five characters in a name of 63.
const maxGenerateName = 57

// syncPod makes the claims that a pod wants from templates, tells the pod their names,
// and reserves the claims of one that was bound without the scheduler.
func (c *Controller) syncPod(ctx context.Context, key controller.Key) error {
	pod := c.api.Server().Pod(key.Namespace, key.Name)
	if pod == nil || pod.DeletionTimestamp != nil {
		return nil
	}
	var made []v1.PodResourceClaimStatus
	for i := range pod.Spec.ResourceClaims {
		pc := &pod.Spec.ResourceClaims[i]
		name, err := c.ensure(ctx, pod, pc)
		if err != nil {
			c.recorder.Event(controller.Reference(pod), v1.EventTypeWarning, "FailedResourceClaimCreation", fmt.Sprintf("PodResourceClaim %s: %v", pc.Name, err))
			return fmt.Errorf("pod %s, PodResourceClaim %s: %w", key, pc.Name, err)
		}
		if name != "" {
			made = append(made, v1.PodResourceClaimStatus{Name: pc.Name, ResourceClaimName: &name})
		}
	}
	if len(made) > 0 {
		status := pod.Status
		status.ResourceClaimStatuses = withNames(status.ResourceClaimStatuses, made)
		if err := controller.PatchPodStatus(ctx, c.api, pod, &status); err != nil {
			return fmt.Errorf("update pod %s ResourceClaimStatuses: %w", key, err)
		}
	}
	if pod.Spec.NodeName == "" {
		return nil // the scheduler reserves
	}
	return c.reserve(ctx, pod)
}

// withNames returns statuses with those of made in the place of others of their name.
func withNames(statuses, made []v1.PodResourceClaimStatus) []v1.PodResourceClaimStatus {
	out := slices.DeleteFunc(slices.Clone(statuses), func(s v1.PodResourceClaimStatus) bool {
		return slices.ContainsFunc(made, func(m v1.PodResourceClaimStatus) bool { return m.Name == s.Name })
	})
	return append(out, made...)
}

// reserve reserves a pod's claims that have devices.
func (c *Controller) reserve(ctx context.Context, pod *v1.Pod) error {
	for i := range pod.Spec.ResourceClaims {
		name, owned, err := draclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			// The name is on its way to the pod, whose change is a reason to look again.
			return nil //nolint:nilerr // see above
		}
		if name == nil {
			continue
		}
		claim, ok := controller.Lookup[*resourcev1.ResourceClaim](c.api, apiserver.KindResourceClaim, controller.Key{Namespace: pod.Namespace, Name: *name})
		if !ok {
			return nil
		}
		if owned {
			if err := draclaim.IsForPod(pod, claim, false); err != nil {
				return fmt.Errorf("reserving for pod %s: %w", pod.Name, err)
			}
		}
		if !reservable(pod, claim) {
			continue
		}
		next := claim.DeepCopy()
		next.Status.ReservedFor = append(next.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
		if _, err := controller.Update(ctx, c.api, next, "status"); err != nil {
			return fmt.Errorf("reserving claim %s: %w", *name, err)
		}
	}
	return nil
}

// ensure sees to it that the claim is there that a pod wants from a template. It
// returns the name if the pod does not know it yet (handleClaim).
func (c *Controller) ensure(ctx context.Context, pod *v1.Pod, pc *v1.PodResourceClaim) (string, error) {
	name, owned, err := draclaim.Name(pod, pc)
	switch {
	case errors.Is(err, draclaim.ErrClaimNotFound):
	case err != nil:
		return "", fmt.Errorf("checking for claim before creating it: %w", err)
	case name == nil:
		return "", nil
	default:
		claim, ok := controller.Lookup[*resourcev1.ResourceClaim](c.api, apiserver.KindResourceClaim, controller.Key{Namespace: pod.Namespace, Name: *name})
		if ok && (!owned || draclaim.IsForPod(pod, claim, false) == nil) {
			return "", nil
		}
	}
	if pc.ResourceClaimTemplateName == nil {
		return "", nil
	}
	if claim := c.orphan(pod, pc); claim != nil {
		return claim.Name, nil
	}
	key := controller.Key{Namespace: pod.Namespace, Name: *pc.ResourceClaimTemplateName}
	template, ok := controller.Lookup[*resourcev1.ResourceClaimTemplate](c.api, apiserver.KindResourceClaimTemplate, key)
	if !ok {
		return "", fmt.Errorf("resource claim template %q: resourceclaimtemplate.resource.k8s.io %q not found", key.Name, key.Name)
	}
	made, err := controller.Create(ctx, c.api, claimOf(pod, pc, template))
	if err != nil {
		return "", fmt.Errorf("create ResourceClaim : %w", err)
	}
	return made.Name, nil
}

// orphan returns a claim that was made for a pod before the pod was told of it
// (findPodResourceClaim).
func (c *Controller) orphan(pod *v1.Pod, pc *v1.PodResourceClaim) *resourcev1.ResourceClaim {
	for _, key := range c.made[pod.UID] {
		claim, ok := controller.Lookup[*resourcev1.ResourceClaim](c.api, apiserver.KindResourceClaim, key)
		if ok && claim.Annotations[resourcev1.PodResourceClaimAnnotation] == pc.Name {
			return claim
		}
	}
	return nil
}

// claimOf is the claim of a pod from a template.
func claimOf(pod *v1.Pod, pc *v1.PodResourceClaim, t *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaim {
	prefix := pod.Name + "-" + pc.Name + "-"
	if n := len(prefix); n > maxGenerateName {
		// The server would cut at the end, where the claim's name is.
		prefix = pod.Name[:len(pod.Name)*maxGenerateName/n] + "-" + pc.Name[:len(pc.Name)*maxGenerateName/n]
	}
	annotations := maps.Clone(t.Spec.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[resourcev1.PodResourceClaimAnnotation] = pc.Name
	isController := true
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: prefix, Annotations: annotations, Labels: t.Spec.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &isController}},
		},
		Spec: t.Spec.Spec,
	}
}
