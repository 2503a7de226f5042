package admission

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// admitPriority is the plugin Priority (plugin/pkg/admission/priority).
func (p *Plugins) admitPriority(pod *v1.Pod) error {
	var priority int32
	policy := v1.PreemptLowerPriority
	var class *schedulingv1.PriorityClass
	if name := pod.Spec.PriorityClassName; name == "" {
		class = p.defaultPriorityClass()
	} else {
		pc := p.cluster.PriorityClass(name)
		if pc == nil {
			return forbidden(pod, fmt.Sprintf("no PriorityClass with name %v was found", name))
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
	if own := pod.Spec.Priority; own != nil && *own != priority {
		return forbidden(pod, fmt.Sprintf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *own, priority))
	}
	if own := pod.Spec.PreemptionPolicy; own != nil && *own != policy {
		return forbidden(pod, fmt.Sprintf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *own, policy))
	}
	pod.Spec.Priority = &priority
	pod.Spec.PreemptionPolicy = &policy
	return nil
}

// defaultPriorityClass is the global default of the least value, or nil.
func (p *Plugins) defaultPriorityClass() *schedulingv1.PriorityClass {
	var least *schedulingv1.PriorityClass
	for _, pc := range p.cluster.PriorityClasses() {
		if pc.GlobalDefault && (least == nil || pc.Value < least.Value) {
			least = pc
		}
	}
	return least
}

// keepPriority has an update that doesn't say a pod's priority keep it.
func keepPriority(pod, old *v1.Pod) {
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = old.Spec.Priority
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
	}
}
