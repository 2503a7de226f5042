package binder

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

func sortedNames(list v1.ResourceList) []v1.ResourceName {
	out := make([]v1.ResourceName, 0, len(list))
	for name := range list { //drydock:unordered sorted below
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// nonMissing is what missing requests count for in the order of nodes.
func nonMissing() v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(defaultMilliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(defaultMemory, resource.BinarySI),
	}
}

func tolerates(list []v1.Toleration, t *v1.Taint) bool {
	return corev1helper.TolerationsTolerateTaint(klog.Logger{}, list, t, false)
}

func sameTaints(a, b []v1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y v1.Taint) bool { return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect })
}

func sameLabels(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	same := true
	for k, v := range a { //drydock:unordered all must hold
		o, ok := b[k]
		same = same && ok && o == v
	}
	return same
}
