package quota

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/drydock-sim/drydock/kubelet/qos"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/fields"
	"github.com/drydock-sim/drydock/sim/apiserver/internal/kind"
)

// stated are the resources that each container must state where a quota is of them.
var stated = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory,
	v1.ResourceRequestsCPU, v1.ResourceRequestsMemory, v1.ResourceLimitsCPU, v1.ResourceLimitsMemory}

// podEvaluator measures pods.
func podEvaluator(e Evaluator) Evaluator {
	own := append([]v1.ResourceName{v1.ResourcePods, v1.ResourceEphemeralStorage, v1.ResourceRequestsEphemeralStorage, v1.ResourceLimitsEphemeralStorage}, stated...)
	e.resources = func(n v1.ResourceName) bool {
		return slices.Contains(own, n) || fields.HugePages(n) || strings.HasPrefix(string(n), v1.ResourceRequestsHugePagesPrefix) ||
			strings.HasPrefix(string(n), v1.DefaultResourceRequestsPrefix) && !fields.NativeResource(n)
	}
	e.more = func(obj kind.Object, now time.Time) v1.ResourceList {
		pod := obj.(*v1.Pod)
		if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed || expired(&pod.ObjectMeta, now) {
			return nil
		}
		o := resourcehelper.PodResourcesOptions{UseStatusResources: true}
		return computeUsage(resourcehelper.PodRequests(pod, o), resourcehelper.PodLimits(pod, o))
	}
	e.scope = func(obj kind.Object, s v1.ScopedResourceSelectorRequirement) bool {
		return podInScope(obj.(*v1.Pod), s)
	}
	e.missing = func(required []v1.ResourceName, obj kind.Object) string { return podMissing(required, obj.(*v1.Pod)) }
	e.updates = func(obj, old kind.Object, sub string) bool {
		return sub == "resize" || sub == "" && terminating(obj.(*v1.Pod)) != terminating(old.(*v1.Pod))
	}
	return e
}

// computeUsage are requests and limits by the names that quotas have for them
// (podComputeUsageHelper).
func computeUsage(requests, limits v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{v1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}
	for _, n := range fields.SortedKeys(requests) {
		q := requests[n]
		switch {
		case n == v1.ResourceCPU || n == v1.ResourceMemory || n == v1.ResourceEphemeralStorage || fields.HugePages(n):
			out[n], out[v1.DefaultResourceRequestsPrefix+n] = q, q
		case fields.ExtendedResource(n):
			out[v1.DefaultResourceRequestsPrefix+n] = q
		}
	}
	for _, n := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		if q, ok := limits[n]; ok {
			out["limits."+n] = q
		}
	}
	return out
}

// podMissing says which resources the containers of a pod without resources of its own
// must state and don't.
func podMissing(required []v1.ResourceName, pod *v1.Pod) string {
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return ""
	}
	missing := map[v1.ResourceName][]string{}
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			has := computeUsage(list[i].Resources.Requests, list[i].Resources.Limits)
			for _, n := range required {
				if _, ok := has[n]; !ok && slices.Contains(stated, n) {
					missing[n] = append(missing[n], list[i].Name)
				}
			}
		}
	}
	return missingText(missing)
}

func join(list []string) string { return strings.Join(list, ",") }

// terminating reports whether a pod ends by itself.
func terminating(pod *v1.Pod) bool {
	return pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

// podInScope is podMatchesScopeFunc.
func podInScope(pod *v1.Pod, s v1.ScopedResourceSelectorRequirement) bool {
	switch s.ScopeName {
	case v1.ResourceQuotaScopeTerminating:
		return terminating(pod)
	case v1.ResourceQuotaScopeNotTerminating:
		return !terminating(pod)
	case v1.ResourceQuotaScopeBestEffort:
		return qos.Compute(pod) == v1.PodQOSBestEffort
	case v1.ResourceQuotaScopeNotBestEffort:
		return qos.Compute(pod) != v1.PodQOSBestEffort
	case v1.ResourceQuotaScopePriorityClass:
		return selects(s, pod.Spec.PriorityClassName)
	case v1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(pod.Spec.Affinity)
	}
	return false
}

// crossesNamespaces reports whether a pod looks at pods of other namespaces.
func crossesNamespaces(a *v1.Affinity) bool {
	if a == nil {
		return false
	}
	crosses := func(t v1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }
	weighted := func(t v1.WeightedPodAffinityTerm) bool { return crosses(t.PodAffinityTerm) }
	if p := a.PodAffinity; p != nil && (slices.ContainsFunc(p.RequiredDuringSchedulingIgnoredDuringExecution, crosses) || slices.ContainsFunc(p.PreferredDuringSchedulingIgnoredDuringExecution, weighted)) {
		return true
	}
	p := a.PodAntiAffinity
	return p != nil && (slices.ContainsFunc(p.RequiredDuringSchedulingIgnoredDuringExecution, crosses) || slices.ContainsFunc(p.PreferredDuringSchedulingIgnoredDuringExecution, weighted))
}

// serviceEvaluator measures services: by intent, since ports are not allocated yet.
func serviceEvaluator(e Evaluator) Evaluator {
	e.resources = func(n v1.ResourceName) bool {
		return n == v1.ResourceServices || n == v1.ResourceServicesNodePorts || n == v1.ResourceServicesLoadBalancers
	}
	e.updates = func(_, _ kind.Object, sub string) bool { return sub == "" }
	e.more = func(obj kind.Object, _ time.Time) v1.ResourceList {
		svc := obj.(*v1.Service)
		ports, balancers := 0, 0
		switch svc.Spec.Type {
		case v1.ServiceTypeNodePort:
			ports = len(svc.Spec.Ports)
		case v1.ServiceTypeLoadBalancer:
			balancers, ports = 1, len(svc.Spec.Ports)
			if allocate := svc.Spec.AllocateLoadBalancerNodePorts; allocate != nil && !*allocate {
				ports = 0
				for _, p := range svc.Spec.Ports {
					if p.NodePort != 0 {
						ports++
					}
				}
			}
		}
		return v1.ResourceList{
			v1.ResourceServices:              *resource.NewQuantity(1, resource.DecimalSI),
			v1.ResourceServicesNodePorts:     *resource.NewQuantity(int64(ports), resource.DecimalSI),
			v1.ResourceServicesLoadBalancers: *resource.NewQuantity(int64(balancers), resource.DecimalSI),
		}
	}
	return e
}

// byClass stands between the name of a storage class and a resource that is claimed of it.
const byClass = ".storageclass.storage.k8s.io/"

// claimEvaluator measures claims of volumes, in all and by storage class.
func claimEvaluator(e Evaluator) Evaluator {
	own := []v1.ResourceName{v1.ResourcePersistentVolumeClaims, v1.ResourceRequestsStorage}
	e.resources = func(n v1.ResourceName) bool {
		return slices.Contains(own, n) || slices.ContainsFunc(own, func(o v1.ResourceName) bool { return strings.HasSuffix(string(n), byClass+string(o)) })
	}
	e.updates = func(_, _ kind.Object, sub string) bool { return sub == "" || sub == "status" }
	e.scope = func(obj kind.Object, s v1.ScopedResourceSelectorRequirement) bool {
		return s.ScopeName == v1.ResourceQuotaScopeVolumeAttributesClass && claimInClass(obj.(*v1.PersistentVolumeClaim), s)
	}
	e.more = func(obj kind.Object, _ time.Time) v1.ResourceList {
		claim := obj.(*v1.PersistentVolumeClaim)
		class := volumehelpers.GetPersistentVolumeClaimClass(claim)
		out := v1.ResourceList{}
		add := func(n v1.ResourceName, q resource.Quantity) {
			out[n] = q
			if class != "" {
				out[v1.ResourceName(class+byClass)+n] = q
			}
		}
		add(v1.ResourcePersistentVolumeClaims, *resource.NewQuantity(1, resource.DecimalSI))
		if size, ok := claim.Spec.Resources.Requests[v1.ResourceStorage]; ok {
			if has, ok := claim.Status.AllocatedResources[v1.ResourceStorage]; ok && has.Cmp(size) > 0 {
				size = has
			}
			size = size.DeepCopy()
			size.RoundUp(0)
			add(v1.ResourceRequestsStorage, size)
		}
		return out
	}
	return e
}

// claimInClass reports whether one of the classes of attributes that a claim names or
// has is selected.
func claimInClass(claim *v1.PersistentVolumeClaim, s v1.ScopedResourceSelectorRequirement) bool {
	var names []string
	add := func(name *string) {
		if name != nil && *name != "" {
			names = append(names, *name)
		}
	}
	add(claim.Spec.VolumeAttributesClassName)
	add(claim.Status.CurrentVolumeAttributesClassName)
	if m := claim.Status.ModifyVolumeStatus; m != nil {
		add(&m.TargetVolumeAttributesClassName)
	}
	if len(names) == 0 {
		return selects(s, "")
	}
	return slices.ContainsFunc(names, func(n string) bool { return selects(s, n) })
}

// deviceEvaluator measures claims of devices by their classes. Of alternatives the most of each class
// counts, and of all devices that fit as many as a claim can get. That a class stands behind an
// extended resource is not looked at: only pods count for such
// (pkg/quota/v1/evaluator/core/resource_claims.go).
func deviceEvaluator(e Evaluator) Evaluator {
	e.resources = func(n v1.ResourceName) bool { return strings.HasSuffix(string(n), v1.ResourceClaimsPerClass) }
	e.updates = func(_, _ kind.Object, sub string) bool { return sub == "" }
	e.more = func(obj kind.Object, _ time.Time) v1.ResourceList {
		devices := map[string]int64{}
		for _, r := range obj.(*resourcev1.ResourceClaim).Spec.Devices.Requests {
			if r.Exactly != nil {
				devices[r.Exactly.DeviceClassName] += mostDevices(r.Exactly.AllocationMode, r.Exactly.Count)
				continue
			}
			most := map[string]int64{}
			for i := range r.FirstAvailable {
				s := &r.FirstAvailable[i]
				most[s.DeviceClassName] = max(most[s.DeviceClassName], mostDevices(s.AllocationMode, s.Count))
			}
			for _, class := range fields.SortedKeys(most) {
				devices[class] += most[class]
			}
		}
		out := v1.ResourceList{}
		for _, class := range fields.SortedKeys(devices) {
			out[v1.ResourceName(class+v1.ResourceClaimsPerClass)] = *resource.NewQuantity(devices[class], resource.DecimalSI)
		}
		return out
	}
	return e
}

// mostDevices is how many devices a request can get.
func mostDevices(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return count
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	}
	return 0
}
