package podnet

import "net/netip"

// ipPool hands out pod IPs: those never used first, then those freed, the one
// freed longest ago first, so that an address comes back as late as possible. IPAM of the bridge
// plugin's host-local goes round the range in the same spirit.
type ipPool struct {
	Prefix netip.Prefix
	// next is the lowest address that was never used.
	next  netip.Addr
	freed []netip.Addr
}

// init has the pool begin anew with a prefix.
func (p *ipPool) init(cidr string) {
	p.Prefix = netip.MustParsePrefix(cidr).Masked()
	// The network's own address and the bridge's, which is the gateway, are
	// not for pods.
	p.next = p.Prefix.Addr().Next().Next()
}

// last reports whether a is the broadcast address of an IPv4 network.
func (p *ipPool) last(a netip.Addr) bool { return a.Is4() && !p.Prefix.Contains(a.Next()) }

// Take returns a free address; ok is false when there is none.
func (p *ipPool) Take() (netip.Addr, bool) {
	if p.next.IsValid() && p.Prefix.Contains(p.next) && !p.last(p.next) {
		a := p.next
		p.next = a.Next()
		return a, true
	}
	if len(p.freed) == 0 {
		return netip.Addr{}, false
	}
	a := p.freed[0]
	p.freed = p.freed[1:]
	return a, true
}

// Free gives back an address. The address must have come from Take, and is given back once.
func (p *ipPool) Free(a netip.Addr) { p.freed = append(p.freed, a) }
