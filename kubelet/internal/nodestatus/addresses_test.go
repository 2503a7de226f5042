package nodestatus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/utils/net"
)

// host is a machine with interfaces, a resolver, and routes.
type host struct {
	interfaces, names string // addresses, separated by spaces
	v4, v6            string // of the default route
}

func (h *host) ValidateNodeIP(_ context.Context, ip net.IP) error {
	if !strings.Contains(" "+h.interfaces+" ", " "+ip.String()+" ") {
		return fmt.Errorf("node IP: %q not found in the host's network interfaces", ip)
	}
	return nil
}

func (h *host) LookupIP(context.Context, string) []net.IP {
	return parse(strings.Fields(h.names)...)
}

func (h *host) DefaultIP(_ context.Context, preferred net.IP) (net.IP, error) {
	for _, text := range map[bool][]string{false: {h.v4, h.v6}, true: {h.v6, h.v4}}[utilnet.IsIPv6(preferred)] {
		if text != "" {
			return utilnet.ParseIPSloppy(text), nil
		}
	}
	return nil, errors.New("no default routes")
}

func parse(list ...string) []net.IP {
	var out []net.IP
	for _, text := range list {
		out = append(out, utilnet.ParseIPSloppy(text))
	}
	return out
}

// addressesOf are a node's addresses and its annotation in a line.
func addressesOf(node *v1.Node) string {
	var out []string
	for _, a := range node.Status.Addresses {
		out = append(out, map[v1.NodeAddressType]string{v1.NodeInternalIP: "ip ", v1.NodeExternalIP: "external ", v1.NodeHostName: "name "}[a.Type]+a.Address)
	}
	text := strings.Join(out, ", ")
	if a, ok := node.Annotations[providedNodeIPAnnotation]; ok {
		text += "; provided " + a
	}
	return text
}

// give gives a node what Of returns.
func give(t *testing.T, a *Addresses, node *v1.Node) (err error) {
	t.Helper()
	node.Status.Addresses, node.Annotations, err = a.Of(t.Context(), node.Name, node.Status.Addresses, node.Annotations)
	return err
}

// TestAddresses are the addresses of a node for each way of saying what they are.
func TestAddresses(t *testing.T) {
	const both = "10.0.0.1 10.0.0.2 fd00::1"
	for _, tc := range []struct {
		name string
		host host
		// flags are --node-ip, --hostname-override and --cloud-provider=external.
		nodeIP   string
		hostname string
		external bool
		// has are the node's addresses and its annotation before.
		has, annotation string
		want, err       string
	}{
		{name: "no --node-ip", host: host{interfaces: both, v4: "10.0.0.1", v6: "fd00::1"}, want: "ip 10.0.0.1, name n"},
		{name: "no --node-ip, IPv6 alone", host: host{interfaces: "fd00::1", v6: "fd00::1"}, want: "ip fd00::1, name n"},
		{name: "no --node-ip, and a name in DNS", host: host{interfaces: both, names: "127.0.1.1 fd00::1 10.0.0.2", v4: "10.0.0.1"}, want: "ip 10.0.0.2, name n"},
		{name: "no --node-ip, and a name in DNS of the other family", host: host{interfaces: both, names: "fd00::1", v4: "10.0.0.1"}, want: "ip fd00::1, name n"},
		{name: "no --node-ip, and a name of other machines", host: host{interfaces: both, names: "10.9.9.9", v4: "10.0.0.1"}, want: "ip 10.0.0.1, name n"},
		{name: "no --node-ip, no network", has: "10.0.0.7", want: "ip 10.0.0.7", err: "can't get ip address of node n. error: no default routes"},
		{name: "one", host: host{interfaces: both, names: "10.0.0.1", v4: "10.0.0.1"}, nodeIP: "10.0.0.2", want: "ip 10.0.0.2, name n"},
		{name: "one that the machine hasn't", host: host{interfaces: both, v4: "10.0.0.1"}, nodeIP: "10.0.0.9", has: "10.0.0.7", want: "ip 10.0.0.7",
			err: `failed to validate nodeIP: node IP: "10.0.0.9" not found in the host's network interfaces`},
		{name: "two", host: host{interfaces: both}, nodeIP: "fd00::1,10.0.0.2", want: "ip fd00::1, ip 10.0.0.2, name n"},
		{name: "two, the second of which the machine hasn't", host: host{interfaces: both}, nodeIP: "10.0.0.1,fd00::9",
			err: `failed to validate secondaryNodeIP: node IP: "fd00::9" not found in the host's network interfaces`},
		{name: "::", host: host{interfaces: both, names: "10.0.0.2 fd00::1", v4: "10.0.0.1"}, nodeIP: "::", want: "ip fd00::1, name n"},
		{name: ":: by the route", host: host{interfaces: both, v4: "10.0.0.1", v6: "fd00::1"}, nodeIP: "::", want: "ip fd00::1, name n"},
		{name: "0.0.0.0", host: host{interfaces: both, v4: "10.0.0.1", v6: "fd00::1"}, nodeIP: "0.0.0.0", want: "ip 10.0.0.1, name n"},
		{name: "a name that is an address", host: host{interfaces: both, v4: "10.0.0.1"}, hostname: "10.0.0.2", want: "ip 10.0.0.2, name 10.0.0.2"},
		{name: "a name", host: host{interfaces: both, v4: "10.0.0.1"}, hostname: "worker", want: "ip 10.0.0.1, name worker"},
		{name: "an annotation of before", host: host{interfaces: both, v4: "10.0.0.1"}, nodeIP: "10.0.0.1", annotation: "10.0.0.1", want: "ip 10.0.0.1, name n"},

		{name: "external", host: host{interfaces: both, v4: "10.0.0.1"}, external: true, want: "name n"},
		{name: "external, with addresses", host: host{interfaces: both, v4: "10.0.0.1"}, external: true, has: "52.0.0.1", want: "ip 52.0.0.1"},
		{name: "external, one", host: host{interfaces: both}, external: true, nodeIP: "10.0.0.2", want: "ip 10.0.0.2, name n; provided 10.0.0.2"},
		{name: "external, one, with addresses", host: host{interfaces: both}, external: true, nodeIP: "10.0.0.2", has: "52.0.0.1", want: "ip 52.0.0.1; provided 10.0.0.2"},
		{name: "external, one that the machine hasn't", host: host{interfaces: both}, external: true, nodeIP: "10.0.0.9",
			err: `failed to validate nodeIP: node IP: "10.0.0.9" not found in the host's network interfaces`},
		{name: "external, two", host: host{interfaces: both}, external: true, nodeIP: "10.0.0.1,fd00::1", annotation: "10.0.0.2", want: "ip 10.0.0.1, ip fd00::1, name n; provided 10.0.0.1,fd00::1"},
		{name: "external, ::", host: host{interfaces: both, v4: "10.0.0.1", v6: "fd00::1"}, external: true, nodeIP: "::", annotation: "fd00::1", want: "ip fd00::1, name n"},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		if tc.has != "" {
			node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: tc.has}}
		}
		if tc.annotation != "" {
			node.Annotations = map[string]string{providedNodeIPAnnotation: tc.annotation}
		}
		a := Addresses{Hostname: "n", External: tc.external, Finder: &tc.host, Address: "10.0.0.1"}
		if tc.hostname != "" {
			a.Hostname = tc.hostname
		}
		if tc.nodeIP != "" {
			a.NodeIPs = parse(strings.Split(tc.nodeIP, ",")...)
		}
		was := node.Annotations
		err := give(t, &a, node)
		if text := addressesOf(node); text != tc.want || tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) {
			t.Errorf("%s: %q, %v\nwant %q, %s", tc.name, text, err, tc.want, tc.err)
		}
		if tc.annotation != "" && was[providedNodeIPAnnotation] != tc.annotation {
			t.Errorf("%s: a shared map was written to", tc.name)
		}
	}
}

// TestAddressesChange: what the machine has when asked is what counts, and what
// stays is the same list.
func TestAddressesChange(t *testing.T) {
	h := &host{interfaces: "10.0.0.1 10.0.0.2", v4: "10.0.0.1"}
	a := Addresses{Hostname: "n", Finder: h, Address: "10.0.0.1"}
	var node v1.Node
	set := func() string {
		t.Helper()
		if err := give(t, &a, &node); err != nil {
			t.Fatal(err)
		}
		return addressesOf(&node)
	}
	set()
	first := &node.Status.Addresses[0]
	if set(); &node.Status.Addresses[0] != first {
		t.Error("the same addresses are another list")
	}
	h.v4 = "10.0.0.2"
	if got := set(); got != "ip 10.0.0.2, name n" || first.Address != "10.0.0.1" {
		t.Errorf("after a change: %s, and of before %v", got, first)
	}
	if known := a.Known(); known[0].Address != "10.0.0.2" {
		t.Errorf("known are %v", known)
	}
}

// TestAddressesAreTold: the node's status has other addresses with the next update.
func TestAddressesAreTold(t *testing.T) {
	w := newWorld(t)
	h := &host{interfaces: "10.0.0.1 10.0.0.2", v4: "10.0.0.1"}
	w.opts.Sources.Addresses = (&Addresses{Hostname: "n", Finder: h}).Of
	New(w.opts).Start(w.l.NewGroup("kubelet")) // on the wall clock nothing is elided
	w.run(t, 30*time.Second)
	w.take()
	h.v4 = "10.0.0.2"
	w.run(t, 11*time.Second)
	if calls, _ := w.take(); calls != "patch" || addressesOf(w.api) != "ip 10.0.0.2, name n" {
		t.Errorf("calls %q, addresses %s", calls, addressesOf(w.api))
	}
}

// TestKnownAddresses are those of a kubelet that asks nobody.
func TestKnownAddresses(t *testing.T) {
	for _, tc := range []struct {
		name string
		a    Addresses
		want string
	}{
		{"the machine's", Addresses{Address: "10.0.0.1"}, "ip 10.0.0.1, name n"},
		{"none", Addresses{}, "name n"},
		{"given", Addresses{Address: "10.0.0.1", NodeIPs: parse("10.0.0.2", "fd00::1")}, "ip 10.0.0.2, ip fd00::1, name n"},
		{"a family", Addresses{Address: "fd00::1", NodeIPs: parse("::")}, "ip fd00::1, name n"},
		{"a cloud's to set", Addresses{Address: "10.0.0.1", External: true}, "name n"},
		{"given, with a cloud", Addresses{Address: "10.0.0.1", External: true, NodeIPs: parse("10.0.0.2")}, "ip 10.0.0.2, name n"},
	} {
		tc.a.Hostname = "n"
		if got := addressesOf(&v1.Node{Status: v1.NodeStatus{Addresses: tc.a.Known()}}); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		var node v1.Node
		if err := give(t, &tc.a, &node); err != nil || len(node.Status.Addresses) == 0 || &node.Status.Addresses[0] != &tc.a.Known()[0] {
			t.Errorf("%s: a new node has %v, %v", tc.name, node.Status.Addresses, err)
		}
	}
}

func TestRegisterTaints(t *testing.T) {
	own := make([]v1.Taint, 1, 2)
	own[0].Key = "dedicated"
	got := RegisterTaints(own, true)
	if len(got) != 2 || got[0].Key != "dedicated" || got[1].ToString() != "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule" {
		t.Errorf("with a cloud: %v", got)
	}
	if own[:2][1].Key != "" {
		t.Error("the configuration's list was written to")
	}
	if got := RegisterTaints(own, false); len(got) != 1 {
		t.Errorf("without: %v", got)
	}
}
