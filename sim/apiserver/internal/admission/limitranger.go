package admission

import (
	"fmt"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kinds"
)

// limitAnnotation says what a limit range has set of a pod.
const limitAnnotation = "kubernetes.io/limit-ranger"

// mutateLimits is the plugin LimitRanger (plugin/pkg/admission/limitranger): what a
// pod's containers leave out, they have of the namespace's limit ranges.
func (p *Plugins) mutateLimits(r *Request) error {
	pod, ok := r.Object.(*v1.Pod)
	if !ok || r.Old != nil && r.Old.GetDeletionTimestamp() != nil {
		return nil
	}
	return p.eachLimitRange(r.Namespace, func(l *v1.LimitRange) error {
		limits, requests := v1.ResourceList{}, v1.ResourceList{}
		for _, item := range l.Spec.Limits {
			if item.Type == v1.LimitTypeContainer {
				maps.Copy(limits, item.Default)
				maps.Copy(requests, item.DefaultRequest)
			}
		}
		var said []string
		for i := range pod.Spec.Containers {
			said = setContainerLimits(&pod.Spec.Containers[i], limits, requests, "container", said)
		}
		for i := range pod.Spec.InitContainers {
			said = setContainerLimits(&pod.Spec.InitContainers[i], limits, requests, "init container", said)
		}
		if len(said) > 0 {
			annotations := maps.Clone(pod.Annotations) // a manifest's may be shared
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[limitAnnotation] = "LimitRanger plugin set: " + strings.Join(said, "; ")
			pod.Annotations = annotations
		}
		return nil
	})
}

// setContainerLimits gives a container what it lacks, and says what that was.
func setContainerLimits(c *v1.Container, limits, requests v1.ResourceList, what string, said []string) []string {
	add := func(to *v1.ResourceList, from v1.ResourceList) string {
		var names []string
		for _, name := range fields.SortedKeys(from) {
			if _, has := (*to)[name]; has {
				continue
			}
			if len(names) == 0 {
				if *to = maps.Clone(*to); *to == nil {
					*to = v1.ResourceList{}
				}
			}
			(*to)[name] = from[name]
			names = append(names, string(name))
		}
		return strings.Join(names, ", ")
	}
	if names := add(&c.Resources.Requests, requests); names != "" {
		said = append(said, fmt.Sprintf("%s request for %s %s", names, what, c.Name))
	}
	if names := add(&c.Resources.Limits, limits); names != "" {
		said = append(said, fmt.Sprintf("%s limit for %s %s", names, what, c.Name))
	}
	return said
}

// validateLimits refuses a pod or a claim that is not within the namespace's limits.
func (p *Plugins) validateLimits(r *Request) error {
	if r.Old != nil && r.Old.GetDeletionTimestamp() != nil {
		return nil
	}
	return p.eachLimitRange(r.Namespace, func(l *v1.LimitRange) error {
		var errs []error
		for i := range l.Spec.Limits {
			switch obj := r.Object.(type) {
			case *v1.Pod:
				errs = append(errs, podLimits(&l.Spec.Limits[i], obj)...)
			case *v1.PersistentVolumeClaim:
				errs = append(errs, claimLimits(&l.Spec.Limits[i], obj)...)
			}
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			return r.forbidden(err.Error())
		}
		return nil
	})
}

// eachLimitRange calls fn for the limit ranges of a namespace until it returns an error.
func (p *Plugins) eachLimitRange(namespace string, fn func(*v1.LimitRange) error) error {
	var err error
	p.cluster.Each(kinds.LimitRange, func(o kind.Object) bool {
		if o.GetNamespace() == namespace {
			err = fn(o.(*v1.LimitRange))
		}
		return err == nil
	})
	return err
}

// podLimits says what of a pod is not within an item of a limit range.
func podLimits(item *v1.LimitRangeItem, pod *v1.Pod) (errs []error) {
	switch item.Type {
	case v1.LimitTypeContainer:
		for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range list {
				errs = append(errs, within(item, list[i].Resources.Requests, list[i].Resources.Limits)...)
			}
		}
	case v1.LimitTypePod:
		o := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
		errs = within(item, resourcehelper.PodRequests(pod, o), resourcehelper.PodLimits(pod, o))
	}
	return errs
}

// claimLimits is podLimits for a claim, which has requests only.
func claimLimits(item *v1.LimitRangeItem, claim *v1.PersistentVolumeClaim) (errs []error) {
	if item.Type != v1.LimitTypePersistentVolumeClaim {
		return nil
	}
	requests := claim.Spec.Resources.Requests
	for _, name := range fields.SortedKeys(item.Min) {
		errs = append(errs, atLeast(item, name, requests, nil))
	}
	for _, name := range fields.SortedKeys(item.Max) {
		most := item.Max[name]
		request, has := requests[name]
		switch {
		case !has:
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s.  No request is specified", name, item.Type, &most))
		case request.Cmp(most) > 0:
			errs = append(errs, fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, item.Type, &most, &request))
		}
	}
	return errs
}

// within says what of requests and limits is not within an item.
func within(item *v1.LimitRangeItem, requests, limits v1.ResourceList) (errs []error) {
	for _, name := range fields.SortedKeys(item.Min) {
		errs = append(errs, atLeast(item, name, requests, limits))
	}
	for _, name := range fields.SortedKeys(item.Max) {
		errs = append(errs, atMost(item, name, requests, limits))
	}
	for _, name := range fields.SortedKeys(item.MaxLimitRequestRatio) {
		errs = append(errs, withinRatio(item, name, requests, limits))
	}
	return errs
}

func atLeast(item *v1.LimitRangeItem, name v1.ResourceName, requests, limits v1.ResourceList) error {
	least := item.Min[name]
	request, requested := requests[name]
	limit, limited := limits[name]
	switch {
	case !requested:
		return fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", name, item.Type, &least)
	case request.Cmp(least) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but request is %s", name, item.Type, &least, &request)
	case limited && limit.Cmp(least) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but limit is %s", name, item.Type, &least, &limit)
	}
	return nil
}

func atMost(item *v1.LimitRangeItem, name v1.ResourceName, requests, limits v1.ResourceList) error {
	most := item.Max[name]
	request, requested := requests[name]
	limit, limited := limits[name]
	switch {
	case !limited:
		return fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", name, item.Type, &most)
	case limit.Cmp(most) > 0:
		return fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", name, item.Type, &most, &limit)
	case requested && request.Cmp(most) > 0:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, item.Type, &most, &request)
	}
	return nil
}

func withinRatio(item *v1.LimitRangeItem, name v1.ResourceName, requests, limits v1.ResourceList) error {
	most := item.MaxLimitRequestRatio[name]
	request, requested := requests[name]
	limit, limited := limits[name]
	switch {
	case !requested || request.IsZero():
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, item.Type, &most)
	case !limited || limit.IsZero():
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, item.Type, &most)
	}
	a, b := limit.Value(), request.Value()
	if a <= resource.MaxMilliValue && b <= resource.MaxMilliValue {
		a, b = limit.MilliValue(), request.MilliValue()
	}
	if ratio := float64(a) / float64(b); ratio > most.AsApproximateFloat64() {
		return fmt.Errorf("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, item.Type, &most, ratio)
	}
	return nil
}
