package endpointslice

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/dump"

	"github.com/drydock-sim/drydock/sim/controlplane/internal/controller"
)

// endpointsOf makes the Endpoints of a service with these pods, without the time of the
// last change.
func endpointsOf(svc *v1.Service, pods []*v1.Pod) *v1.Endpoints {
	labels := maps.Clone(svc.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, v1.IsHeadlessService)
	if ip := svc.Spec.ClusterIP; ip == "" || ip == v1.ClusterIPNone {
		labels[v1.IsHeadlessService] = ""
	}
	labels[endpointsManagedBy] = endpointController
	e := &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: svc.Namespace, Name: svc.Name, Labels: labels}, Subsets: subsetsOf(svc, pods)}
	if truncate(e.Subsets) {
		e.Annotations = map[string]string{v1.EndpointsOverCapacity: "truncated"}
	}
	return e
}

// offered is one port of a service with the pods that have it.
type offered struct {
	ports           []v1.EndpointPort
	ready, notReady []v1.EndpointAddress
}

// subsetsOf groups the service's ports by the pods that have them: each subset is some
// ports, and the addresses that offer all of them (RepackSubsets of
// pkg/api/v1/endpoints). Subsets and ports are in the order of their hashes, as
// upstream's.
func subsetsOf(svc *v1.Service, pods []*v1.Pod) []v1.EndpointSubset {
	var all []*offered
	find := func(port *v1.EndpointPort) *offered {
		for _, o := range all {
			if port == nil || len(o.ports) == 1 && o.ports[0] == *port {
				return o
			}
		}
		o := &offered{}
		if port != nil {
			o.ports = []v1.EndpointPort{*port}
		}
		all = append(all, o)
		return o
	}
	for _, pod := range pods {
		address, ok := addressIn(svc, pod)
		if !ok {
			continue
		}
		put := func(o *offered) {
			if svc.Spec.PublishNotReadyAddresses || controller.PodReady(pod) {
				o.ready = append(o.ready, address)
			} else {
				o.notReady = append(o.notReady, address)
			}
		}
		if len(svc.Spec.Ports) == 0 && svc.Spec.ClusterIP == v1.ClusterIPNone {
			put(find(nil))
		}
		for i := range svc.Spec.Ports {
			p := &svc.Spec.Ports[i]
			if n, ok := findPort(pod, p); ok {
				put(find(&v1.EndpointPort{Name: p.Name, Port: n, Protocol: p.Protocol, AppProtocol: p.AppProtocol}))
			}
		}
	}
	var out []v1.EndpointSubset
	same := map[string]int{} // addresses → index
	for _, o := range all {
		slices.SortFunc(o.ready, compareAddresses)
		slices.SortFunc(o.notReady, compareAddresses)
		key := addressesKey(o.ready) + " " + addressesKey(o.notReady)
		if i, ok := same[key]; ok {
			out[i].Ports = append(out[i].Ports, o.ports...)
			continue
		}
		same[key] = len(out)
		out = append(out, v1.EndpointSubset{Addresses: o.ready, NotReadyAddresses: o.notReady, Ports: o.ports})
	}
	for i := range out {
		slices.SortFunc(out[i].Ports, func(a, b v1.EndpointPort) int { return bytes.Compare(hashOf(a), hashOf(b)) })
	}
	slices.SortFunc(out, func(a, b v1.EndpointSubset) int { return bytes.Compare(hashOf(a), hashOf(b)) })
	return out
}

// addressIn is a pod's address among a service's; false: it has none.
func addressIn(svc *v1.Service, pod *v1.Pod) (v1.EndpointAddress, bool) {
	if !belongs(pod) || pod.DeletionTimestamp != nil && !svc.Spec.PublishNotReadyAddresses {
		return v1.EndpointAddress{}, false
	}
	family := addressTypes(svc)[0]
	if ip := cmp.Or(strings.TrimPrefix(svc.Spec.ClusterIP, v1.ClusterIPNone), pod.Status.PodIP); len(svc.Spec.IPFamilies) == 0 && strings.Contains(ip, ":") {
		family = discoveryv1.AddressTypeIPv6
	}
	ip := podAddress(pod, family)
	if ip == "" {
		return v1.EndpointAddress{}, false
	}
	out := v1.EndpointAddress{
		IP: ip, NodeName: new(pod.Spec.NodeName),
		TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if pod.Spec.Hostname != "" && pod.Spec.Subdomain == svc.Name {
		out.Hostname = pod.Spec.Hostname
	}
	return out, true
}

func compareAddresses(a, b v1.EndpointAddress) int {
	return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.TargetRef.UID, b.TargetRef.UID))
}

func addressesKey(list []v1.EndpointAddress) string {
	var b strings.Builder
	for i := range list {
		b.WriteString(list[i].IP + "/" + string(list[i].TargetRef.UID) + ",")
	}
	return b.String()
}

// hashOf is DeepHashObject with a hash of 128 bits.
func hashOf(v any) []byte {
	h := fnv.New128a()
	fmt.Fprintf(h, "%v", dump.ForHash(v))
	return h.Sum(nil)
}

// truncate cuts addresses off beyond maxEndpoints, first those that are not ready, and
// of each subset its share (truncateEndpoints). It reports whether it did.
func truncate(subsets []v1.EndpointSubset) bool {
	ready, notReady := 0, 0
	for _, s := range subsets {
		ready += len(s.Addresses)
		notReady += len(s.NotReadyAddresses)
	}
	if ready+notReady <= maxEndpoints {
		return false
	}
	most, total := maxEndpoints-ready, notReady
	if ready > maxEndpoints {
		most, total = maxEndpoints, ready
	}
	left := most
	for i := range subsets {
		s := &subsets[i]
		list := &s.NotReadyAddresses
		if ready > maxEndpoints {
			list, s.NotReadyAddresses = &s.Addresses, nil
		}
		n := min(int(math.Ceil(float64(len(*list))/float64(total)*float64(most))), left)
		*list = (*list)[:min(n, len(*list))]
		left -= len(*list)
	}
	return true
}
