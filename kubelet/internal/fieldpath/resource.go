package fieldpath

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// defaulted are the limits that a container without them takes over from its
// pod or node when the downward API asks.
var defaulted = [...]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}

// ResourceValue is what a resourceFieldRef of the container c of the pod reads:
// the quantity divided by the divisor, rounded up. A limit of cpu, memory or
// ephemeral storage that is missing or zero is that of the pod, or else of
// allocatable, which is the node's.
func ResourceValue(ref *v1.ResourceFieldSelector, pod *v1.Pod, c *v1.Container, allocatable v1.ResourceList) (string, error) {
	if ref.ContainerName != "" {
		if c = findContainer(pod, ref.ContainerName); c == nil {
			return "", fmt.Errorf("container %s not found", ref.ContainerName)
		}
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	known := kind == "limits" || kind == "requests"
	switch n := v1.ResourceName(name); {
	case !known:
	case n == v1.ResourceCPU, n == v1.ResourceMemory, n == v1.ResourceEphemeralStorage, strings.HasPrefix(name, v1.ResourceHugePagesPrefix):
		q := c.Resources.Requests[n]
		if kind == "limits" {
			q = limit(pod, c, n, allocatable)
		}
		return divide(q, ref.Divisor, n == v1.ResourceCPU), nil
	}
	return "", fmt.Errorf("unsupported container resource : %v", ref.Resource)
}

// limit is the container's limit, or what stands for it.
func limit(pod *v1.Pod, c *v1.Container, name v1.ResourceName, allocatable v1.ResourceList) resource.Quantity {
	q := c.Resources.Limits[name]
	if !q.IsZero() {
		return q
	}
	for _, d := range defaulted {
		if d != name {
			continue
		}
		if r := pod.Spec.Resources; r != nil {
			if own, ok := r.Limits[name]; ok && !own.IsZero() {
				return own
			}
		}
		if a, ok := allocatable[name]; ok {
			return a
		}
	}
	return q
}

// divide rounds up, so that a small amount doesn't become none. Without a
// divisor it is 1, of CPU one core.
func divide(q, divisor resource.Quantity, milli bool) string {
	n, d := q.Value(), divisor.Value()
	if milli {
		n, d = q.MilliValue(), divisor.MilliValue()
	}
	if divisor.IsZero() || d == 0 {
		d = 1
		if milli {
			d = 1000
		}
	}
	out := n / d
	if n%d > 0 {
		out++
	}
	return strconv.FormatInt(out, 10)
}

// findContainer finds a regular or init container, the only ones that a
// reference may name.
func findContainer(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [...][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
