package eviction

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The messages of statuses and events. They are API: each ends with a space.
const (
	nodeConditionMessage      = "The node had condition: %v. "
	nodeLowMessage            = "The node was low on resource: %v. "
	thresholdMessage          = "Threshold quantity: %v, available: %v. "
	containerMessage          = "Container %s was using %s, request is %s, has larger consumption of %v. "
	podMessage                = "Pod %s was using %s, request is %s, has larger consumption of %v. "
	emptyDirMessage           = "Usage of EmptyDir volume %q exceeds the limit %q. "
	podEphemeralMessage       = "Pod ephemeral local storage usage exceeds the total limit of containers %s. "
	containerEphemeralMessage = "Container %s exceeded its local ephemeral storage limit %q. "
)

// The keys of an eviction event's annotations.
const (
	offendingContainersKey      = "offending_containers"
	offendingContainersUsageKey = "offending_containers_usage"
	offendingPodKey             = "offending_pod"
	offendingPodUsageKey        = "offending_pod_usage"
	starvedResourceKey          = "starved_resource"
)

// evictionMessage says why a pod is evicted for a resource, and which of its
// containers use more of it than they asked for. thresholds are those that
// pods are evicted for in this pass, in their order.
func evictionMessage(name v1.ResourceName, pod *v1.Pod, stats *statsapi.PodStats, thresholds []Threshold, seen observations) (string, map[string]string) {
	annotations := map[string]string{}
	var b strings.Builder
	fmt.Fprintf(&b, nodeLowMessage, name)
	if want, have, ok := thresholdOf(name, thresholds, seen); ok {
		fmt.Fprintf(&b, thresholdMessage, want.String(), have.String())
	}
	if stats == nil {
		return b.String(), annotations
	}
	if name == v1.ResourceMemory && stats.Memory != nil && resourcehelper.IsPodLevelResourcesSet(pod) {
		if request, ok := pod.Spec.Resources.Requests[v1.ResourceMemory]; ok {
			usage := resource.NewQuantity(memoryUsage(stats.Memory), resource.BinarySI).String()
			fmt.Fprintf(&b, podMessage, pod.Name, usage, request.String(), name)
			annotations[offendingPodKey], annotations[offendingPodUsageKey] = pod.Name, usage
		}
	}
	var names, usages []string
	for i := range stats.Containers {
		c := &stats.Containers[i]
		spec := containerOf(pod, c.Name)
		if spec == nil {
			continue
		}
		used, ok := containerUsage(c, name)
		if request := spec.Resources.Requests[name]; ok && request.CmpInt64(used) < 0 {
			usage := resource.NewQuantity(used, resource.BinarySI).String()
			fmt.Fprintf(&b, containerMessage, c.Name, usage, request.String(), name)
			names, usages = append(names, c.Name), append(usages, usage)
		}
	}
	annotations[offendingContainersKey] = strings.Join(names, ",")
	annotations[offendingContainersUsageKey] = strings.Join(usages, ",")
	annotations[starvedResourceKey] = string(name)
	return b.String(), annotations
}

// thresholdOf returns the first threshold that is about a resource, and what
// there was of it.
func thresholdOf(name v1.ResourceName, thresholds []Threshold, seen observations) (want, have resource.Quantity, ok bool) {
	for i := range thresholds {
		t := &thresholds[i]
		f := t.Signal.facts()
		if o, seen := seen.of(t.Signal); seen && f.resource == name {
			return t.Value.Of(o.capacity), *resource.NewQuantity(o.available, f.format), true
		}
	}
	return want, have, false
}

// containerOf finds a regular or init container by its name.
func containerOf(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [...][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// containerUsage is what a container uses of a resource, if that is counted
// container by container and known.
func containerUsage(c *statsapi.ContainerStats, name v1.ResourceName) (int64, bool) {
	switch name {
	case v1.ResourceEphemeralStorage:
		if c.Rootfs != nil && c.Rootfs.UsedBytes != nil && c.Logs != nil && c.Logs.UsedBytes != nil {
			return int64(*c.Rootfs.UsedBytes + *c.Logs.UsedBytes), true
		}
	case v1.ResourceMemory:
		if c.Memory != nil && c.Memory.WorkingSetBytes != nil {
			return int64(*c.Memory.WorkingSetBytes), true
		}
	}
	return 0, false
}
