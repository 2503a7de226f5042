package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	kubecontainer "github.com/drydock-sim/drydock/kubelet/internal/container"
	kubetypes "github.com/drydock-sim/drydock/kubelet/internal/types"
)

// The operating system and what of it pods can ask for.
const nodeOS = "linux"

// Failure is why a pod does not fit a node.
type Failure struct {
	// Resource is set when the node has too little of something.
	Resource v1.ResourceName
	// Predicate is set otherwise: NodeAffinity, NodeName, NodePorts,
	// TaintToleration.
	Predicate string
	// Detail says what the predicate found.
	Detail                    string
	Requested, Used, Capacity int64
}

// result is the verdict of a failure.
// Reason and message are upstream's, which users and controllers look for.
func (f *Failure) result() PodAdmitResult {
	if f.Resource != "" {
		return PodAdmitResult{
			Reason: "OutOf" + string(f.Resource),
			Message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
				f.Resource, f.Requested, f.Used, f.Capacity),
		}
	}
	return PodAdmitResult{Reason: f.Predicate, Message: fmt.Sprintf("Predicate %s failed: %s", f.Predicate, f.Detail)}
}

// Predicates is the handler that checks whether a pod fits the node.
type Predicates struct {
	// Node returns the node as last seen, or built locally; an error refuses
	// the pod.
	Node func() (*v1.Node, error)
	// FreshNode, if set, reads the node from the API: asked once before a pod
	// is refused for its node selector or affinity alone.
	FreshNode func(ctx context.Context) (*v1.Node, error)
	// Devices, if set, are those that pods of the node have, if the pod is one of them:
	// there are at least as many, whatever the node says.
	Devices func(pod types.UID) v1.ResourceList
	// Preemption, if set, makes room for critical pods.
	Preemption *Preemption
}

// Admit reports whether the pod fits; of several failures it tells the first.
// The checks that need no other pods come first: they are cheap, and most pods
// fit beside the most that is used.
func (p *Predicates) Admit(ctx context.Context, attrs *PodAdmitAttributes) PodAdmitResult {
	node, err := p.Node()
	if err != nil || node == nil {
		return PodAdmitResult{Reason: "InvalidNodeInfo", Message: "Kubelet cannot get node info."}
	}
	pod := attrs.Pod
	if p.Devices != nil {
		node = withDevices(node, p.Devices(pod.UID))
	}
	if r := checkOS(pod); !r.Admit {
		return r
	}
	if c := pod.Spec.SecurityContext; c != nil && c.SupplementalGroupsPolicy != nil && *c.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict &&
		(node.Status.Features == nil || node.Status.Features.SupplementalGroupsPolicy == nil || !*node.Status.Features.SupplementalGroupsPolicy) {
		return PodAdmitResult{Reason: "SupplementalGroupsPolicyNotSupported", Message: "SupplementalGroupsPolicy=Strict is not supported in this node"}
	}
	if attrs.Usage != nil && fitsBeside(pod, attrs.Usage, node) {
		return PodAdmitResult{Admit: true}
	}
	var others []*v1.Pod
	if attrs.OtherPods != nil {
		others = attrs.OtherPods()
	}
	failures := Check(pod, others, node)
	if p.FreshNode != nil && onlyAffinity(failures) {
		if fresh, err := p.FreshNode(ctx); err == nil {
			failures = Check(pod, others, fresh)
		}
	}
	if len(failures) > 0 && p.Preemption != nil && kubetypes.IsCriticalPod(pod) {
		if failures, err = p.Preemption.admit(ctx, pod, others, failures); err != nil {
			return PodAdmitResult{Reason: "UnexpectedAdmissionError", Message: fmt.Sprintf("Unexpected error while attempting to recover from admission failure: %v", err)}
		}
	}
	if len(failures) == 0 {
		return PodAdmitResult{Admit: true}
	}
	return failures[0].result()
}

// withDevices is a node that can be asked for at least so many devices
// (sanitizeNodeAllocatable of cm/devicemanager).
func withDevices(node *v1.Node, devices v1.ResourceList) *v1.Node {
	if len(devices) == 0 {
		return node
	}
	own := *node
	own.Status.Allocatable = maps.Clone(node.Status.Allocatable)
	for name, n := range devices { //drydock:unordered each is on its own
		if have, ok := own.Status.Allocatable[name]; !ok || have.Cmp(n) < 0 {
			own.Status.Allocatable[name] = n
		}
	}
	return &own
}

// checkOS refuses pods for another operating system, in whichever way they say
// so (upstream rejectPodAdmissionBasedOnOSSelector and -Field).
func checkOS(pod *v1.Pod) PodAdmitResult {
	if os, ok := pod.Labels[v1.LabelOSStable]; ok && os != nodeOS {
		return PodAdmitResult{
			Reason:  "PodOSSelectorNodeLabelDoesNotMatch",
			Message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
		}
	}
	if pod.Spec.OS != nil && string(pod.Spec.OS.Name) != nodeOS {
		return PodAdmitResult{Reason: "PodOSNotSupported", Message: "Failed to admit pod as the OS field doesn't match node OS"}
	}
	return PodAdmitResult{Admit: true}
}

// onlyAffinity reports whether nothing else was wrong. The labels that are known
// may be old, so such a pod is judged again by the node that the API has now.
func onlyAffinity(failures []Failure) bool {
	if slices.ContainsFunc(failures, func(f Failure) bool { return f.Predicate != "NodeAffinity" }) {
		return false
	}
	return len(failures) > 0
}

// Check returns all reasons why the pod does not fit beside the others, in the
// order in which the kubelet tells them.
// All are found, since preemption only helps if none but resources is among
// them.
func Check(pod *v1.Pod, others []*v1.Pod, node *v1.Node) []Failure {
	out := checkResources(pod, len(others), func() requests { return sumUsed(others) }, node)
	ports := portConflict(pod, others)
	return checkNode(out, pod, ports, node)
}

// fitsBeside reports whether Check finds nothing beside any pods that take no more
// than that of the node; it may not tell so of a pod that wants ports of the node.
func fitsBeside(pod *v1.Pod, u *Usage, node *v1.Node) bool {
	ports := eachHostPort(pod, func(*v1.ContainerPort) bool { return true })
	out := checkResources(pod, u.pods, func() requests { return u.requests }, node)
	return len(checkNode(out, pod, ports, node)) == 0
}

// checkNode appends the reasons that are not about resources. ports tells that the
// pod's ports are taken.
func checkNode(out []Failure, pod *v1.Pod, ports bool, node *v1.Node) []Failure {
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); !ok || err != nil {
		out = append(out, Failure{Predicate: "NodeAffinity", Detail: "node(s) didn't match Pod's node affinity/selector"})
	}
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		out = append(out, Failure{Predicate: "NodeName", Detail: "node(s) didn't match the requested node name"})
	}
	if ports {
		out = append(out, Failure{Predicate: "NodePorts", Detail: "node(s) didn't have free ports for the requested pod ports"})
	}
	if !kubetypes.IsStaticPod(pod) && !toleratesNoExecute(pod, node.Spec.Taints) {
		out = append(out, Failure{Predicate: "TaintToleration", Detail: "node(s) had taints that the pod didn't tolerate"})
	}
	return out
}

// checkResources is about a number of other pods, and what they use.
func checkResources(pod *v1.Pod, others int, usage func() requests, node *v1.Node) []Failure {
	var out []Failure
	alloc := node.Status.Allocatable
	if pods := quantity(alloc, v1.ResourcePods); int64(others)+1 > pods {
		out = append(out, Failure{Resource: v1.ResourcePods, Requested: 1, Used: int64(others), Capacity: pods})
	}
	want := podRequests(withoutClaimed(pod))
	if want.none() {
		return out
	}
	used := usage()
	check := func(name v1.ResourceName, want, used, capacity int64) {
		if want > 0 && want > capacity-used {
			out = append(out, Failure{Resource: name, Requested: want, Used: used, Capacity: capacity})
		}
	}
	cpu := alloc[v1.ResourceCPU]
	check(v1.ResourceCPU, want.milliCPU, used.milliCPU, cpu.MilliValue())
	check(v1.ResourceMemory, want.memory, used.memory, quantity(alloc, v1.ResourceMemory))
	check(v1.ResourceEphemeralStorage, want.storage, used.storage, quantity(alloc, v1.ResourceEphemeralStorage))
	for _, s := range want.scalars {
		// A plugin's resource that the node doesn't know is none of the kubelet's
		// business; Kubernetes' own, such as huge pages, always are.
		if _, known := alloc[s.name]; !known && strings.Contains(string(s.name), "/") && !strings.Contains(string(s.name), v1.ResourceDefaultNamespacePrefix) {
			continue
		}
		check(s.name, s.value, used.scalar(s.name), quantity(alloc, s.name))
	}
	return out
}

// withoutClaimed is a pod without the extended resources for which the scheduler has claimed devices
// of drivers (removeMissingExtendedResources).
func withoutClaimed(pod *v1.Pod) *v1.Pod {
	if pod.Status.ExtendedResourceClaimStatus == nil {
		return pod
	}
	mappings := pod.Status.ExtendedResourceClaimStatus.RequestMappings
	drop := func(list []v1.Container) []v1.Container {
		list = slices.Clone(list)
		for i := range list {
			c := &list[i]
			c.Resources.Requests = maps.Clone(c.Resources.Requests)
			for _, m := range mappings {
				if m.ContainerName == c.Name {
					delete(c.Resources.Requests, v1.ResourceName(m.ResourceName))
				}
			}
		}
		return list
	}
	out := *pod
	out.Spec.Containers, out.Spec.InitContainers = drop(pod.Spec.Containers), drop(pod.Spec.InitContainers)
	return &out
}

// quantity is an amount in whole units, 0 for none.
func quantity(l v1.ResourceList, name v1.ResourceName) int64 {
	q := l[name]
	return q.Value()
}

// portConflict reports whether a host port that the pod wants is taken.
func portConflict(pod *v1.Pod, others []*v1.Pod) bool {
	var want []v1.ContainerPort
	eachHostPort(pod, func(p *v1.ContainerPort) bool { want = append(want, *p); return false })
	if len(want) == 0 {
		return false
	}
	return slices.ContainsFunc(others, func(o *v1.Pod) bool {
		return eachHostPort(o, func(p *v1.ContainerPort) bool {
			return slices.ContainsFunc(want, func(w v1.ContainerPort) bool { return samePort(&w, p) })
		})
	})
}

// eachHostPort calls f for the host ports of regular containers and sidecars
// until it returns true.
func eachHostPort(pod *v1.Pod, f func(*v1.ContainerPort) bool) bool {
	each := func(c *v1.Container) bool {
		for i := range c.Ports {
			if c.Ports[i].HostPort > 0 && f(&c.Ports[i]) {
				return true
			}
		}
		return false
	}
	for i := range pod.Spec.Containers {
		if each(&pod.Spec.Containers[i]) {
			return true
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; kubecontainer.IsRestartableInit(c) && each(c) {
			return true
		}
	}
	return false
}

// samePort reports whether two host ports can't both be had: an address that is
// any conflicts with each.
func samePort(a, b *v1.ContainerPort) bool {
	protocol := func(p *v1.ContainerPort) v1.Protocol {
		if p.Protocol == "" {
			return v1.ProtocolTCP
		}
		return p.Protocol
	}
	anyIP := func(p *v1.ContainerPort) bool { return p.HostIP == "" || p.HostIP == "0.0.0.0" }
	return a.HostPort == b.HostPort && protocol(a) == protocol(b) && (anyIP(a) || anyIP(b) || a.HostIP == b.HostIP)
}

// toleratesNoExecute reports whether a pod may stay on a node: NoSchedule
// taints concern the scheduler alone.
func toleratesNoExecute(pod *v1.Pod, taints []v1.Taint) bool {
	for i := range taints {
		if taints[i].Effect != v1.TaintEffectNoExecute {
			continue
		}
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t v1.Toleration) bool { return Tolerates(&t, &taints[i]) }) {
			return false
		}
	}
	return true
}

// Tolerates reports whether a toleration is for a taint.
func Tolerates(t *v1.Toleration, taint *v1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", v1.TolerationOpEqual:
		return t.Value == taint.Value
	case v1.TolerationOpExists:
		return true
	}
	return false
}
