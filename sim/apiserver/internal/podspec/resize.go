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
	if class := qos.Compute(pod); class != qos.Class(old) {
		errs = append(errs, field.Invalid(spec, class, "Pod QOS Class may not change as a result of resizing"))
	}
	order := append(sameContainers(pod.Spec.Containers, old.Spec.Containers, spec.Child("containers"), "containers"),
		sameContainers(pod.Spec.InitContainers, old.Spec.InitContainers, spec.Child("initContainers"), "initContainers")...)
	// Resources of containers that don't correspond are not worth comparing.
	if len(order) > 0 {
		return append(errs, order...)
	}
	other := false
	for _, l := range []struct {
		name    string
		is, was []v1.Container
	}{{"containers", pod.Spec.Containers, old.Spec.Containers}, {"initContainers", pod.Spec.InitContainers, old.Spec.InitContainers}} {
		for i := range l.is {
			p := spec.Child(l.name).Index(i).Child("resources")
			errs = append(errs, nothingRemoved(&l.is[i].Resources, &l.was[i].Resources, p)...)
			other = other || !sameButCPUAndMemory(&l.is[i].Resources, &l.was[i].Resources)
		}
	}
	// Pod-level resources may come and grow by a resize, too.
	var none v1.ResourceRequirements
	is, was := pod.Spec.Resources, old.Spec.Resources
	if is == nil {
		is = &none
	}
	if was == nil {
		was = &none
	}
	errs = append(errs, nothingRemoved(is, was, spec.Child("resources"))...)
	if other || !sameButCPUAndMemory(is, was) {
		errs = append(errs, field.Forbidden(spec, "only cpu and memory resources are mutable"))
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
// cannot take a limit away from a running container.
func nothingRemoved(is, was *v1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, l := range []struct {
		field, what string
		is, was     v1.ResourceList
	}{{"requests", "resource requests", is.Requests, was.Requests}, {"limits", "resource limits", is.Limits, was.Limits}} {
		for _, name := range fields.SortedKeys(l.was) {
			if _, ok := l.is[name]; !ok {
				errs = append(errs, field.Forbidden(path.Child(l.field), l.what+" cannot be removed"))
				break
			}
		}
	}
	return errs
}

// sameButCPUAndMemory compares what a resize may not change: every other resource,
// and claims.
func sameButCPUAndMemory(a, b *v1.ResourceRequirements) bool {
	rest := func(l v1.ResourceList) v1.ResourceList {
		out := v1.ResourceList{}
		for name, q := range l { //drydock:unordered copies a map
			if name != v1.ResourceCPU && name != v1.ResourceMemory {
				out[name] = q
			}
		}
		return out
	}
	return equality.Semantic.DeepEqual(rest(a.Requests), rest(b.Requests)) && equality.Semantic.DeepEqual(rest(a.Limits), rest(b.Limits)) &&
		equality.Semantic.DeepEqual(a.Claims, b.Claims)
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
