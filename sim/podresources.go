package sim

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// unregistered warns of resources that a pod on the node asks for, and no device plugin of
// the node offers, nor the machine has: the kubelet runs the pod without, as upstream
// does; and of claims on a node that has no drivers. It has nothing to add to the kubelet's
// log.
func (n *Node) unregistered(pod *v1.Pod) []string {
	extended := pod.Status.ExtendedResourceClaimStatus
	if n.plugins == nil && (len(pod.Spec.ResourceClaims) > 0 || extended != nil) {
		n.warnOnce("claims", fmt.Sprintf(
			"pod %s/%s has claims, and node %s no drivers: every claim is prepared there at once, and containers get nothing with it; give the nodes drivers",
			pod.Namespace, pod.Name, n.name))
	}
	for _, list := range [...][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name := range list[i].Resources.Limits { //drydock:unordered each is told once, and warnings are not hashed
				claimed := extended != nil && slices.ContainsFunc(extended.RequestMappings, func(m v1.ContainerExtendedResourceRequest) bool {
					return m.ContainerName == list[i].Name && m.ResourceName == string(name)
				})
				if claimed || n.offers(name) {
					continue
				}
				n.warnOnce("resource "+string(name), fmt.Sprintf(
					"pod %s/%s: container %s asks for %s, which no device plugin of node %s offers: it runs without; give the nodes devices, or the resource as capacity",
					pod.Namespace, pod.Name, list[i].Name, name, n.name))
			}
		}
	}
	return nil
}

// offers reports whether a resource is the kubelet's own, or there is somebody who has it.
func (n *Node) offers(name v1.ResourceName) bool {
	domain, _, extended := strings.Cut(string(name), "/")
	if !extended || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		return true
	}
	if _, ok := n.machine.capacity[name]; ok {
		return true
	}
	if n.plugins == nil {
		return false
	}
	_, err := n.plugins.Devices(string(name))
	return err == nil
}
