// Package addresses gives services their cluster IPs and node ports, in a cluster of
// one family, IPv4. It mirrors pkg/registry/core/service/storage and the allocators
// beside it (ipallocator, portallocator).
//
//   - pool.go: what is taken, and what is free
//   - claim.go: what one write of a service takes
//   - families.go: which families a service has
//   - service.go: a service that is made or changed
//
// Nothing has to be given back after a write that fails: what is taken follows from
// the services that are stored, of which the store tells ([Pool.Stored],
// [Pool.Gone]).
package addresses

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"

	"github.com/drydock-sim/drydock/ground/loop"
)

// The ranges that addresses and ports come from, as kubeadm and kube-apiserver have
// them by default. Those that a user asks for are mostly low, so others come from
// above a lower band while there are any (KEP-3070, KEP-3668).
const (
	ipRange    = "10.96.0.0/16"
	firstPort  = 30000
	lastPort   = 32767
	lowIPs     = 256 // a sixteenth, but 256 at most
	lowPorts   = (lastPort - firstPort + 1) / 32
	portsRange = "30000-32767"
)

// Pool is what of the cluster's service addresses is taken. It is for use by one loop
// at a time.
type Pool struct {
	seed, draws uint64
	prefix      netip.Prefix
	ips         map[netip.Addr]bool
	ports       map[int32]bool
}

// NewPool returns a pool of which nothing is taken. The seed decides in which order
// it gives.
func NewPool(seed uint64) *Pool {
	return &Pool{seed: seed, prefix: netip.MustParsePrefix(ipRange), ips: map[netip.Addr]bool{}, ports: map[int32]bool{}}
}

// First returns the first address, which is that of the API itself.
func (p *Pool) First() string { return p.ip(0).String() }

// Stored takes what a service has that is stored, Gone gives back what one had.
func (p *Pool) Stored(svc *v1.Service) {
	for _, ip := range svc.Spec.ClusterIPs {
		if a, ok := parse(ip); ok {
			p.ips[a] = true
		}
	}
	for _, n := range nodePorts(svc) {
		p.ports[n] = true
	}
}

// Gone is said with Stored.
func (p *Pool) Gone(svc *v1.Service) {
	for _, ip := range svc.Spec.ClusterIPs {
		if a, ok := parse(ip); ok {
			delete(p.ips, a)
		}
	}
	for _, n := range nodePorts(svc) {
		delete(p.ports, n)
	}
}

// nodePorts are the ports of nodes that a service has, also for checks of health.
func nodePorts(svc *v1.Service) []int32 {
	var out []int32
	for i := range svc.Spec.Ports {
		if n := svc.Spec.Ports[i].NodePort; n != 0 {
			out = append(out, n)
		}
	}
	if n := svc.Spec.HealthCheckNodePort; n != 0 {
		out = append(out, n)
	}
	return out
}

// parse reads an address; false: it is none ("None").
func parse(ip string) (netip.Addr, bool) {
	a, ok := netip.AddrFromSlice(netutils.ParseIPSloppy(ip))
	return a.Unmap(), ok
}

// ips are counted from the one after the network's own to the one before the
// broadcast's.
func (p *Pool) ipCount() int { return 1<<(32-p.prefix.Bits()) - 2 }

// ip is the address with that number.
func (p *Pool) ip(n int) netip.Addr {
	b := p.prefix.Addr().As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n) + 1
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// holds reports whether an address is one of those that can be given.
func (p *Pool) holds(a netip.Addr) bool {
	return p.prefix.Contains(a) && a != p.prefix.Addr() && a != p.ip(p.ipCount())
}

// draw returns one of n numbers that is free; false: there is none. It looks from
// anywhere in the band above low on, then below.
func (p *Pool) draw(what string, n, low int, free func(int) bool) (int, bool) {
	p.draws++
	h := loop.Hash(p.seed, []string{what}, p.draws)
	for _, band := range [][2]int{{low, n}, {0, low}} {
		size := band[1] - band[0]
		from := int(h % uint64(size))
		for i := range size {
			if k := band[0] + (from+i)%size; free(k) {
				return k, true
			}
		}
	}
	return 0, false
}
