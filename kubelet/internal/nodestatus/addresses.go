package nodestatus

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"

	v1 "k8s.io/api/core/v1"
	utilnet "k8s.io/utils/net"
)

// The names of k8s.io/cloud-provider/api.
const (
	taintExternalCloudProvider = "node.cloudprovider.kubernetes.io/uninitialized"
	providedNodeIPAnnotation   = "alpha.kubernetes.io/provided-node-ip"
)

// RegisterTaints returns those of a new node: the configuration's, and with an
// external cloud provider one that stays until that has seen to the node. The
// argument is shared.
func RegisterTaints(taints []v1.Taint, external bool) []v1.Taint {
	if !external {
		return taints
	}
	return slices.Concat(taints, []v1.Taint{{Key: taintExternalCloudProvider, Value: "true", Effect: v1.TaintEffectNoSchedule}})
}

// AddressFinder tells the addresses of a machine as they are now. Calls may wait.
type AddressFinder interface {
	// ValidateNodeIP returns why an address can't be the node's; nil if it can.
	ValidateNodeIP(ctx context.Context, ip net.IP) error
	// LookupIP returns what a name stands for, as DNS and the machine's files have it;
	// nothing if they don't know it.
	LookupIP(ctx context.Context, host string) []net.IP
	// DefaultIP returns the address of the interface that has the default route, of
	// IPv6 if preferred says so and of IPv4 otherwise, if it has one of that family.
	DefaultIP(ctx context.Context, preferred net.IP) (net.IP, error)
}

// Addresses say what a node's addresses are (pkg/kubelet/nodestatus, NodeAddress).
type Addresses struct {
	// Hostname is the node's name on its machine.
	Hostname string
	// NodeIPs are --node-ip: none, one, or one of each family. One that is
	// unspecified ("::") stands for the family alone.
	NodeIPs []net.IP
	// External says that a cloud provider outside sets addresses: what is there
	// stays.
	External bool
	// Finder looks for addresses each time; nil: the machine has Address for good, and
	// NodeIPs are right.
	Finder  AddressFinder
	Address string
	// last are those that were found last, or kept for good. Shared.
	last []v1.NodeAddress
}

// Of returns the addresses of a node that has some and annotations, and what its annotations
// become: with an external cloud provider one tells it --node-ip. What it is given is shared, and
// returned where nothing changes. On an error addresses are as they were.
func (a *Addresses) Of(ctx context.Context, node string, have []v1.NodeAddress, annotations map[string]string) ([]v1.NodeAddress, map[string]string, error) {
	if a.Finder != nil {
		for i, name := range [...]string{"nodeIP", "secondaryNodeIP"} {
			if ip := a.specified(i); ip != nil {
				if err := a.Finder.ValidateNodeIP(ctx, ip); err != nil {
					return have, annotations, fmt.Errorf("failed to validate %s: %w", name, err)
				}
			}
		}
	}
	annotations = a.annotated(annotations)
	if a.External && len(have) > 0 {
		return have, annotations, nil
	}
	if a.Finder != nil && len(a.given()) == 0 && !a.waits() {
		ip, err := a.find(ctx, node)
		if ip == nil {
			return have, annotations, fmt.Errorf("can't get ip address of node %s. error: %w", node, err)
		}
		if list := a.list(ip.String()); !slices.Equal(list, a.last) {
			a.last = list
		}
	}
	if list := a.Known(); !slices.Equal(list, have) {
		have = list
	}
	return have, annotations, nil
}

// Known are the addresses that the kubelet itself would give the node, without
// looking for them: those of the last Of, or what it was given. Shared.
func (a *Addresses) Known() []v1.NodeAddress {
	if a.last == nil {
		ips := a.given()
		if len(ips) == 0 && a.Address != "" {
			ips = []string{a.Address}
		}
		if a.waits() {
			ips = nil
		}
		a.last = a.list(ips...)
	}
	return a.last
}

// waits reports whether a new node has no address until the cloud provider gives it
// one.
func (a *Addresses) waits() bool { return a.External && len(a.NodeIPs) == 0 }

// list makes a list of the node's addresses.
func (a *Addresses) list(ips ...string) []v1.NodeAddress {
	out := make([]v1.NodeAddress, 0, len(ips)+1)
	for _, ip := range ips {
		out = append(out, v1.NodeAddress{Type: v1.NodeInternalIP, Address: ip})
	}
	return append(out, v1.NodeAddress{Type: v1.NodeHostName, Address: a.Hostname})
}

// specified is the address of --node-ip of that index; nil: there is none, or only a
// family.
func (a *Addresses) specified(i int) net.IP {
	if i >= len(a.NodeIPs) || a.NodeIPs[i].IsUnspecified() {
		return nil
	}
	return a.NodeIPs[i]
}

// given are the addresses of --node-ip as text.
func (a *Addresses) given() []string {
	var out []string
	for i := range a.NodeIPs {
		if ip := a.specified(i); ip != nil {
			out = append(out, ip.String())
		}
	}
	return out
}

// annotated tells an external cloud provider which addresses the node was given, and
// takes away what told another.
func (a *Addresses) annotated(had map[string]string) map[string]string {
	want := ""
	if ip := a.specified(0); a.External && ip != nil {
		want = ip.String()
		if second := a.specified(1); second != nil {
			want += "," + second.String()
		}
	}
	have, ok := had[providedNodeIPAnnotation]
	if have == want && ok == (want != "") {
		return had
	}
	out := make(map[string]string, len(had)+1)
	maps.Copy(out, had)
	if want != "" {
		out[providedNodeIPAnnotation] = want
	} else {
		delete(out, providedNodeIPAnnotation)
	}
	return out
}

// find looks for the node's address where --node-ip gives none: its name, if that is
// one; what DNS has for its name; the interface with the default route. IPv4 is
// preferred unless --node-ip is of IPv6.
func (a *Addresses) find(ctx context.Context, node string) (net.IP, error) {
	if ip := utilnet.ParseIPSloppy(a.Hostname); ip != nil {
		return ip, nil
	}
	var preferred net.IP
	if len(a.NodeIPs) > 0 {
		preferred = a.NodeIPs[0]
	}
	v6 := utilnet.IsIPv6(preferred)
	var found net.IP
	for _, ip := range a.Finder.LookupIP(ctx, node) {
		if a.Finder.ValidateNodeIP(ctx, ip) != nil {
			continue
		}
		if utilnet.IsIPv6(ip) == v6 {
			return ip, nil
		}
		if found == nil {
			found = ip
		}
	}
	if found != nil {
		return found, nil
	}
	return a.Finder.DefaultIP(ctx, preferred)
}
