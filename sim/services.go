package sim

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

// This file is what pods' processes find beyond their node: the cluster's names, services
// and other nodes. It stands for a name server, kube-proxy and the network, as far as
// connections need them; how much goes over them, and how fast, is nowhere.

// hop is how long a packet takes from node to node: the least that loops allow.
const hop = 5 * time.Millisecond

// services is a node's view of the cluster's services, watched from the first lookup on:
// a node whose processes look nothing up has none.
type services struct {
	n      *Node
	began  bool
	listed [2]loop.Event
	all    map[types.NamespacedName]*v1.Service
	slices map[types.NamespacedName]*discoveryv1.EndpointSlice
	draws  uint64
}

var _ fakecri.Far = (*services)(nil)

// begin watches services and their endpoints, and waits until both are known.
func (s *services) begin(ctx context.Context) error {
	if !s.began {
		s.began = true
		g := s.n.l.Root()
		s.n.client.WatchServices(g, func(list []*v1.Service) {
			s.all = map[types.NamespacedName]*v1.Service{}
			for _, svc := range list {
				s.all[types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}] = svc
			}
			s.listed[0].Fire()
		}, func(t watch.EventType, svc *v1.Service) {
			key := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
			if t == watch.Deleted {
				delete(s.all, key)
			} else {
				s.all[key] = svc
			}
		})
		s.n.client.WatchEndpointSlices(g, func(list []*discoveryv1.EndpointSlice) {
			s.slices = map[types.NamespacedName]*discoveryv1.EndpointSlice{}
			for _, e := range list {
				s.slices[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] = e
			}
			s.listed[1].Fire()
		}, func(t watch.EventType, e *discoveryv1.EndpointSlice) {
			key := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
			if t == watch.Deleted {
				delete(s.slices, key)
			} else {
				s.slices[key] = e
			}
		})
	}
	for i := range s.listed {
		if err := s.listed[i].Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// slicesOf are the slices of a service, by name.
func (s *services) slicesOf(key types.NamespacedName) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for _, e := range s.slices { //drydock:unordered sorted below
		if e.Namespace == key.Namespace && e.Labels[discoveryv1.LabelServiceName] == key.Name {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func endpointReady(e *discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready
}

// addressOf is a service's address: the one that the API has given it, else one made of
// its name, since services get addresses only where clients come in.
func addressOf(svc *v1.Service) string {
	if ip := svc.Spec.ClusterIP; ip != "" {
		return ip
	}
	h := loop.Hash(0, []string{"service", svc.Namespace, svc.Name})
	return fmt.Sprintf("10.%d.%d.%d", 104+h%8, h>>8&255, 1+h>>16%254)
}

// Lookup implements fakecri.Far, as CoreDNS' plugin kubernetes: SERVICE.NAMESPACE.svc.DOMAIN
// is the service's address or, of a headless one, those of its ready endpoints, and
// HOSTNAME before it the endpoint of that name.
func (s *services) Lookup(ctx context.Context, server, name string) ([]string, bool) {
	if !slices.Contains(s.n.config.ClusterDNS, server) {
		return nil, false
	}
	rest, ok := strings.CutSuffix(name, ".svc."+s.n.config.ClusterDomain)
	if !ok {
		return nil, true
	}
	parts := strings.Split(rest, ".")
	if len(parts) != 2 && len(parts) != 3 || s.begin(ctx) != nil {
		return nil, true
	}
	key := types.NamespacedName{Namespace: parts[len(parts)-1], Name: parts[len(parts)-2]}
	svc := s.all[key]
	switch {
	case svc == nil:
		return nil, true
	case svc.Spec.Type == v1.ServiceTypeExternalName:
		if to := strings.TrimSuffix(svc.Spec.ExternalName, "."); to != name && len(parts) == 2 {
			return s.Lookup(ctx, server, to)
		}
		return nil, true
	case len(parts) == 2 && svc.Spec.ClusterIP != v1.ClusterIPNone:
		return []string{addressOf(svc)}, true
	}
	var ips []string
	for _, slice := range s.slicesOf(key) {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			named := len(parts) == 2 || e.Hostname != nil && *e.Hostname == parts[0]
			if endpointReady(e) && named && slice.AddressType == discoveryv1.AddressTypeIPv4 {
				ips = append(ips, e.Addresses[0])
			}
		}
	}
	return ips, true
}

// Service implements fakecri.Far, as kube-proxy: any of the ready endpoints, each as
// likely as the others.
func (s *services) Service(ctx context.Context, address string, at int) (ip string, port int, ok bool) {
	// Addresses of pods, of nodes and of nothing are none of a service's, and nobody need
	// be asked.
	if a, err := netip.ParseAddr(address); err != nil || !a.Is4() || s.n.cluster.nodeAt(a) != nil || s.begin(ctx) != nil {
		return "", 0, false
	}
	var key types.NamespacedName
	for k, svc := range s.all { //drydock:unordered the least of those found
		if svc.Spec.ClusterIP != v1.ClusterIPNone && svc.Spec.Type != v1.ServiceTypeExternalName && addressOf(svc) == address && (!ok || k.String() < key.String()) {
			key, ok = k, true
		}
	}
	if !ok {
		return "", 0, false
	}
	svc := s.all[key]
	i := slices.IndexFunc(svc.Spec.Ports, func(p v1.ServicePort) bool { return int(p.Port) == at && p.Protocol != v1.ProtocolUDP })
	if i < 0 {
		return "", 0, false // no rule is for it: it goes where nobody answers
	}
	type target struct {
		ip   string
		port int
	}
	var to []target
	for _, slice := range s.slicesOf(key) {
		for _, p := range slice.Ports {
			if p.Port == nil || (p.Name == nil && svc.Spec.Ports[i].Name != "") || p.Name != nil && *p.Name != svc.Spec.Ports[i].Name {
				continue
			}
			for j := range slice.Endpoints {
				if endpointReady(&slice.Endpoints[j]) {
					to = append(to, target{slice.Endpoints[j].Addresses[0], int(*p.Port)})
				}
			}
		}
	}
	if len(to) == 0 {
		return "", 0, true
	}
	s.draws++
	t := to[s.n.l.Uint64("kube-proxy", key.String(), s.draws)%uint64(len(to))]
	return t.ip, t.port, true
}

// nodeAt returns the node that has an address or the pods of it; nil for none.
func (c *Cluster) nodeAt(a netip.Addr) *Node {
	b := a.As4()
	if index := (int(b[1])-128)<<8 | int(b[2]); b[0] == 10 && b[1] >= 128 && index < len(c.nodes) {
		return c.nodes[index]
	}
	for _, n := range c.nodes {
		if n.machine != nil && n.machine.NodeIP() == a.String() {
			return n
		}
	}
	return nil
}

// farWire carries one connection between two nodes. Each side's fields belong to its loop.
type farWire struct {
	from, to *Node
	stream   uint64
	end      *fakecri.FarEnd
	conn     *fakecri.Conn // at the other node; nil until it is there, and again after its end
}

// Dial implements fakecri.Far.
func (s *services) Dial(ctx context.Context, ip string, port int, end *fakecri.FarEnd) (fakecri.FarWriter, bool, error) {
	a, err := netip.ParseAddr(ip)
	if err != nil || !a.Is4() {
		return nil, false, nil
	}
	to := s.n.cluster.nodeAt(a)
	if to == nil || to == s.n || to.rt == nil {
		return nil, false, nil
	}
	s.draws++
	w := &farWire{from: s.n, to: to, end: end, stream: loop.Hash(s.draws, []string{"wire", s.n.name, to.name})}
	var answered loop.Event
	var refused error
	w.there(func() {
		to.l.Root().Go("connection from "+w.from.name, func(ctx context.Context) {
			conn, err := to.dialIn(ctx, ip, port)
			w.conn = conn
			w.back(func() { refused = err; answered.Fire() })
			if err == nil {
				w.pump(ctx, conn)
			}
		})
	})
	if err := answered.Wait(ctx); err != nil {
		w.Close()
		return nil, true, err
	}
	return w, true, refused
}

// dialIn connects to a pod of the node.
func (n *Node) dialIn(ctx context.Context, ip string, port int) (*fakecri.Conn, error) {
	if n.off {
		if err := n.l.Sleep(ctx, 3*time.Second); err != nil {
			return nil, err
		}
		return nil, linux.EHOSTUNREACH
	}
	return n.rt.Dial(ctx, ip, port)
}

// there and back have fn run on the other node's loop, and on the one that dialled.
func (w *farWire) there(fn func()) { w.from.l.Send(w.to.l, hop, w.stream, fn) }
func (w *farWire) back(fn func())  { w.to.l.Send(w.from.l, hop, w.stream, fn) }

// pump sends back what the other end says.
func (w *farWire) pump(ctx context.Context, conn *fakecri.Conn) {
	defer func() { w.conn = nil; _ = conn.Close() }()
	buf := make([]byte, 16<<10)
	for {
		k, err := conn.Read(ctx, buf)
		if k > 0 {
			data := slices.Clone(buf[:k])
			w.back(func() { w.end.Deliver(data) })
		}
		if err != nil {
			reset := err == linux.ECONNRESET //nolint:errorlint // the kernel's own
			w.back(func() { w.end.End(reset) })
			return
		}
	}
}

// Write implements fakecri.FarWriter.
func (w *farWire) Write(b []byte) {
	data := slices.Clone(b)
	w.there(func() {
		if w.conn != nil {
			w.conn.Push(data)
		}
	})
}

// CloseWrite implements fakecri.FarWriter.
func (w *farWire) CloseWrite() {
	w.there(func() {
		if w.conn != nil {
			_ = w.conn.CloseWrite()
		}
	})
}

// Close implements fakecri.FarWriter.
func (w *farWire) Close() {
	w.there(func() {
		if c := w.conn; c != nil {
			w.conn = nil
			_ = c.Close()
		}
	})
}
