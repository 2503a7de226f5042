package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/kubelet/qos"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
)

// Resized is old with the containers' resources of spec: what the resize
// subresource lets through (dropNonResizeUpdates). Containers that are not the same
// ones are left for validation to refuse, with words that say so.
func Resized(old, spec *v1.PodSpec) v1.PodSpec {
	out := *old
	take := func(was, is []v1.Container) []v1.Container {
		if len(was) != len(is) {
			return is
		}
		dst := append([]v1.Container(nil), was...)
		for i := range dst {
			if dst[i].Name != is[i].Name {
				return is
			}
			dst[i].Resources = is[i].Resources
			dst[i].ResizePolicy = is[i].ResizePolicy
		}
		return dst
	}
	out.Containers = take(old.Containers, spec.Containers)
	out.InitContainers = take(old.InitContainers, spec.InitContainers)
	out.Resources = spec.Resources
	return out
}

// validateResize checks what an update through the resize subresource changes
// (ValidatePodResize). The class of service stays: the kubelet has made the pod's
// cgroup by it. Whether the node has room is not asked here but by admission.
func validateResize(pod, old *v1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validatePod(pod)
	if IsMirror(old) {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == v1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	// What follows compares resources, so the class is computed from the new ones
	// first.
	if qos.Compute(pod) != qos.Class(old) {
		errs = append(errs, field.Invalid(spec, pod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing"))
	}
	if !resizable(old) {
		errs = append(errs, field.Forbidden(spec, "Pod running on node without support for resize"))
	}
	order := append(sameContainers(pod.Spec.Containers, old.Spec.Containers, spec.Child("containers"), "containers"),
		sameContainers(pod.Spec.InitContainers, old.Spec.InitContainers, spec.Child("initContainers"), "initContainers")...)
	// Resources of containers that don't correspond are not worth comparing.
	if len(order) > 0 {
		return append(errs, order...)
	}
	for i := range pod.Spec.Containers {
		is, was := &pod.Spec.Containers[i], &old.Spec.Containers[i]
		errs = append(errs, nothingRemoved(&is.Resources, &was.Resources, "", spec.Child("containers").Index(i).Child("resources"))...)
		if !sameButCPUAndMemory(is, was) {
			errs = append(errs, field.Forbidden(spec, "only cpu and memory resources are mutable"))
		}
	}
	for i := range pod.Spec.InitContainers {
		is, was, p := &pod.Spec.InitContainers[i], &old.Spec.InitContainers[i], spec.Child("initContainers").Index(i)
		errs = append(errs, nothingRemoved(&is.Resources, &was.Resources, "", p.Child("resources"))...)
		if !sameButCPUAndMemory(is, was) {
			errs = append(errs, field.Forbidden(p, "only cpu and memory resources for init or sidecar containers are mutable"))
		}
	}
	return append(errs, validatePodLevelResize(pod.Spec.Resources, old.Spec.Resources, spec)...)
}

// resizable reports whether a pod's node has shown that it knows of resizes: it tells
// what running containers have (isPodResizeRequestSupported).
func resizable(pod *v1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.State.Running != nil {
			return c.Resources != nil
		}
	}
	return true
}

// validatePodLevelResize is validatePodLevelResourcesResize: resources of the pod as a
// whole may come and grow, too.
func validatePodLevelResize(is, was *v1.ResourceRequirements, spec *field.Path) field.ErrorList {
	var none v1.ResourceRequirements
	switch {
	case is == nil && was == nil:
		return nil
	case is == nil:
		return field.ErrorList{field.Forbidden(spec.Child("resources"), "pod-level resources cannot be removed")}
	case was == nil:
		was = &none
	}
	errs := nothingRemoved(is, was, "pod-level ", spec.Child("resources"))
	if !sameOthers(is, was) || !equality.Semantic.DeepEqual(is.Claims, was.Claims) {
		errs = append(errs, field.Forbidden(spec, "only cpu and memory resources are mutable at pod-level"))
	}
	return errs
}

// sameContainers requires that a list has the same containers in the same order;
// what is compared after it goes by position.
func sameContainers(is, was []v1.Container, path *field.Path, what string) field.ErrorList {
	if len(is) != len(was) {
		return field.ErrorList{field.Forbidden(path, what+" may not be added or removed on resize")}
	}
	var errs field.ErrorList
	for i := range is {
		if is[i].Name != was[i].Name {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"), what+" may not be renamed or reordered on resize"))
		}
	}
	return errs
}

// nothingRemoved requires that what had a request or a limit has one: the kubelet
// cannot take a limit away from a running container. whose is "pod-level " of the pod's.
func nothingRemoved(is, was *v1.ResourceRequirements, whose string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, l := range []struct {
		field, what string
		is, was     v1.ResourceList
	}{{"requests", "resource requests", is.Requests, was.Requests}, {"limits", "resource limits", is.Limits, was.Limits}} {
		for _, name := range fields.SortedKeys(l.was) {
			if _, ok := l.is[name]; !ok {
				errs = append(errs, field.Forbidden(path.Child(l.field), whose+l.what+" cannot be removed"))
				break
			}
		}
	}
	return errs
}

// sameButCPUAndMemory compares what a resize may not change of a container. One with
// claims to devices is not resized at all, as upstream.
func sameButCPUAndMemory(is, was *v1.Container) bool {
	return sameOthers(&is.Resources, &was.Resources) && len(was.Resources.Claims) == 0 && equality.Semantic.DeepEqual(is.ResizePolicy, was.ResizePolicy)
}

// sameOthers compares quantities of other resources.
func sameOthers(a, b *v1.ResourceRequirements) bool {
	rest := func(l v1.ResourceList) v1.ResourceList {
		out := v1.ResourceList{}
		for name, q := range l { //drydock:unordered copies a map
			if name != v1.ResourceCPU && name != v1.ResourceMemory {
				out[name] = q
			}
		}
		return out
	}
	return equality.Semantic.DeepEqual(rest(a.Requests), rest(b.Requests)) && equality.Semantic.DeepEqual(rest(a.Limits), rest(b.Limits))
}

// validatePodResources checks pod-level resources by themselves, and that they hold
// what the containers ask for (validatePodResourceConsistency). Only the sum of
// requests is bounded, but each limit by itself: containers may share the pod's
// limit, unless it is of huge pages, which can't be overcommitted.
func (c *checker) validatePodResources(path *field.Path) field.ErrorList {
	s, p := c.spec, path.Child("resources")
	switch {
	case s.Resources == nil:
		return nil
	case s.OS != nil && s.OS.Name == v1.Windows:
		return field.ErrorList{field.Forbidden(p, "may not be set for a windows pod")}
	}
	var errs field.ErrorList
	if s.Resources.Claims != nil {
		errs = append(errs, field.Forbidden(p.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	errs = append(errs, c.validateResources(s.Resources, p, true)...)
	pod := &v1.Pod{Spec: *s}
	holds := func(sum, has v1.ResourceList, what string, counts func(name v1.ResourceName) bool) {
		for _, name := range fields.SortedKeys(sum) {
			all := sum[name]
			if q, ok := has[name]; ok && counts(name) && all.Cmp(q) > 0 {
				errs = append(errs, field.Invalid(p.Child(what).Key(string(name)), q.String(),
					fmt.Sprintf("must be greater than or equal to aggregate container %s of %s", what, all.String())))
			}
		}
	}
	holds(resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{}), s.Resources.Requests, "requests", func(v1.ResourceName) bool { return true })
	holds(resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{}), s.Resources.Limits, "limits", isHugePages)
	for i := range s.Containers {
		l := s.Containers[i].Resources.Limits
		for _, name := range fields.SortedKeys(l) {
			q := l[name]
			if most, ok := s.Resources.Limits[name]; ok && q.Cmp(most) > 0 {
				errs = append(errs, field.Invalid(p.Child("containers").Index(i).Key(string(name)).Child("limits"), q.String(), // upstream's path
					fmt.Sprintf("must be less than or equal to pod limits of %s", most.String())))
			}
		}
	}
	return errs
}
