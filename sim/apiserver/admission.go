package apiserver

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	resourcehelper "k8s.io/component-helpers/resource"
)

const (
	// defaultTolerationSeconds is how long a pod tolerates a node that is not
	// ready or unreachable, unless it says otherwise.
	defaultTolerationSeconds = int64(300)

	defaultServiceAccount = "default"
)

// admitPod runs the admission plugins of a pod's creation: ServiceAccount
// (the name only), DefaultTolerationSeconds, Priority and RuntimeClass.
func (s *Store) admitPod(pod *v1.Pod) error {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; !mirror {
		if pod.Spec.ServiceAccountName == "" {
			pod.Spec.ServiceAccountName = defaultServiceAccount
		}
		pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	}
	addDefaultTolerations(&pod.Spec)
	if err := s.admitPriority(pod); err != nil {
		return err
	}
	return s.admitRuntimeClass(pod)
}

// addDefaultTolerations is the plugin DefaultTolerationSeconds
// (plugin/pkg/admission/defaulttolerationseconds).
func addDefaultTolerations(spec *v1.PodSpec) {
	var notReady, unreachable bool
	for _, t := range spec.Tolerations {
		if t.Effect != v1.TaintEffectNoExecute && t.Effect != "" {
			continue
		}
		notReady = notReady || t.Key == v1.TaintNodeNotReady || t.Key == ""
		unreachable = unreachable || t.Key == v1.TaintNodeUnreachable || t.Key == ""
	}
	add := func(key string) {
		seconds := defaultTolerationSeconds
		spec.Tolerations = append(spec.Tolerations, v1.Toleration{
			Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: &seconds})
	}
	if !notReady {
		add(v1.TaintNodeNotReady)
	}
	if !unreachable {
		add(v1.TaintNodeUnreachable)
	}
}

// admissionName is what errors of admission call a new object. Upstream generates
// names after it, so an object without one goes by its generateName
// (apiserver pkg/admission/errors.go).
func admissionName(obj Object) string {
	if g := obj.GetGenerateName(); g != "" && strings.HasPrefix(obj.GetName(), g) {
		return g
	}
	return obj.GetName()
}

// admitPriority is the plugin Priority (plugin/pkg/admission/priority).
func (s *Store) admitPriority(pod *v1.Pod) error {
	var priority int32
	policy := v1.PreemptLowerPriority
	var class *schedulingv1.PriorityClass
	if name := pod.Spec.PriorityClassName; name == "" {
		class = s.defaultPriorityClass()
	} else {
		pc, ok := s.priorityClasses.Get("", name)
		if !ok {
			return apierrors.NewForbidden(s.info(KindPod).GroupResource(), admissionName(pod), fmt.Errorf("no PriorityClass with name %v was found", name))
		}
		class = pc
	}
	if class != nil {
		pod.Spec.PriorityClassName = class.Name
		priority = class.Value
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	if p := pod.Spec.Priority; p != nil && *p != priority {
		return apierrors.NewForbidden(s.info(KindPod).GroupResource(), admissionName(pod), fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *p, priority))
	}
	if p := pod.Spec.PreemptionPolicy; p != nil && *p != policy {
		return apierrors.NewForbidden(s.info(KindPod).GroupResource(), admissionName(pod), fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *p, policy))
	}
	pod.Spec.Priority = &priority
	pod.Spec.PreemptionPolicy = &policy
	return nil
}

// defaultPriorityClass is the global default of the least value, or nil.
func (s *Store) defaultPriorityClass() *schedulingv1.PriorityClass {
	var least *schedulingv1.PriorityClass
	for _, pc := range s.priorityClasses.View() {
		if pc.GlobalDefault && (least == nil || pc.Value < least.Value) {
			least = pc
		}
	}
	return least
}

// admitResize refuses a resize that the pod's node could never hold
// (upstream: an admission plugin since v1.36, kubernetes/kubernetes pull 136043).
func (s *Store) admitResize(pod *v1.Pod) error {
	node, ok := s.nodes.Get("", pod.Spec.NodeName)
	if !ok {
		return nil
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		want, have := requests[name], node.Status.Allocatable[name]
		if !have.IsZero() && want.Cmp(have) > 0 {
			return apierrors.NewForbidden(s.info(KindPod).GroupResource(), pod.Name, fmt.Errorf("the resize asks for %s %s, more than node %s can allocate (%s)", want.String(), name, node.Name, have.String()))
		}
	}
	return nil
}
