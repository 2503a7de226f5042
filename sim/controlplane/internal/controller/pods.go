package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/drydock-sim/drydock/sim/apiserver"
	"k8s.io/component-helpers/storage/ephemeral"
)

// WithPodCondition returns a status with a condition set, and whether that
// changes anything; a transition time moves only with the condition's status
// (pkg/api/v1/pod UpdatePodCondition).
func WithPodCondition(st *v1.PodStatus, cond v1.PodCondition, now time.Time) (v1.PodStatus, bool) {
	out := *st
	cond.LastTransitionTime = WireTime(now)
	i := slices.IndexFunc(st.Conditions, func(c v1.PodCondition) bool { return c.Type == cond.Type })
	if i < 0 {
		out.Conditions = append(slices.Clone(st.Conditions), cond)
		return out, true
	}
	old := &st.Conditions[i]
	if old.Status == cond.Status {
		cond.LastTransitionTime = old.LastTransitionTime
	}
	if old.Status == cond.Status && old.Reason == cond.Reason && old.Message == cond.Message && old.ObservedGeneration == cond.ObservedGeneration {
		return out, false
	}
	out.Conditions = slices.Clone(st.Conditions)
	out.Conditions[i] = cond
	return out, true
}

// PatchPodStatus sends what differs between a pod's status and another to the
// API. Errors: NotFound; Conflict when the pod was replaced.
func PatchPodStatus(ctx context.Context, api *apiserver.Component, pod *v1.Pod, status *v1.PodStatus) error {
	req := apiserver.Request{Verb: "patch", Resource: "pods/status", Namespace: pod.Namespace, Name: pod.Name}
	err := api.Do(ctx, req, func(s *apiserver.Server) error {
		_, err := s.PatchPodStatus(pod.Namespace, pod.Name, pod.UID, &pod.Status, status)
		return err
	})
	if err != nil {
		return fmt.Errorf("patching the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// PodReady reports whether a pod's condition Ready is True.
func PodReady(pod *v1.Pod) bool {
	c := readyCondition(pod)
	return c != nil && c.Status == v1.ConditionTrue
}

// ReadySince returns when a pod's condition Ready became True; zero when it is not.
func ReadySince(pod *v1.Pod) time.Time {
	if c := readyCondition(pod); c != nil && c.Status == v1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// PodTerminated reports whether a pod has ended.
func PodTerminated(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// ClaimOf is the name of the claim that a volume of a pod is of; "": of none.
func ClaimOf(pod *v1.Pod, v *v1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, v)
	}
	return ""
}

// MostRestarts are the most restarts of a container and of a sidecar
// (maxContainerRestarts).
func MostRestarts(p *v1.Pod) (containers, sidecars int32) {
	for i := range p.Status.ContainerStatuses {
		containers = max(containers, p.Status.ContainerStatuses[i].RestartCount)
	}
	for i := range p.Status.InitContainerStatuses {
		st := &p.Status.InitContainerStatuses[i]
		sidecar := slices.ContainsFunc(p.Spec.InitContainers, func(c v1.Container) bool {
			return c.Name == st.Name && c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		})
		if sidecar {
			sidecars = max(sidecars, st.RestartCount)
		}
	}
	return containers, sidecars
}

// readyCondition is a pod's condition Ready, or nil.
func readyCondition(p *v1.Pod) *v1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodReady {
			return c
		}
	}
	return nil
}
