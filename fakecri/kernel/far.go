package kernel

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/ground/linux"
)

// Far is what lies beyond a machine: the cluster's names, its services' addresses, and
// other machines. Its methods may wait.
type Far interface {
	// Lookup returns the addresses of a name, in full and without the dot at its end, as
	// the name server at that address has it; asked is false if there is none at it.
	Lookup(ctx context.Context, server, name string) (ips []string, asked bool)
	// Service finds who is to answer at an address of a service; ok is false of any other
	// address, and ip is "" if nobody is ready.
	Service(ctx context.Context, address string, at int) (ip string, port int, ok bool)
	// Dial connects to an address of another machine, and has the end hear of what comes
	// from there. ok is false if no machine has the address.
	Dial(ctx context.Context, ip string, port int, end *FarEnd) (w FarWriter, ok bool, err error)
}

// FarWriter takes what is sent to another machine, in order. Its methods don't wait.
type FarWriter interface {
	Write(b []byte)
	CloseWrite()
	Close()
}

// FarEnd is the near end of a connection to another machine, for who carries it.
type FarEnd struct{ c *Conn }

// Deliver says what came.
func (e *FarEnd) Deliver(b []byte) {
	e.c.in.buf = append(e.c.in.buf, b...)
	e.c.in.readable.Notify()
}

// End says that nothing will come any more; reset: since the other end is gone.
func (e *FarEnd) End(reset bool) {
	e.c.in.writers, e.c.in.reset = 0, reset
	if reset {
		e.c.out.readers = 0
	}
	e.c.in.readable.Notify()
}

// dialFar connects to an address that is none of the machine's. ok is false if nobody
// has it.
func (n *NetNS) dialFar(ctx context.Context, ip string, port int) (c *Conn, ok bool, err error) {
	far := n.m.opts.Far
	if far == nil {
		return nil, false, nil
	}
	if to, at, service := far.Service(ctx, ip, port); service {
		if to == "" {
			if err := n.m.l.Sleep(ctx, handshake); err != nil {
				return nil, true, err
			}
			return nil, true, linux.ECONNREFUSED
		}
		ip, port = to, at
		if n.Route(ip) != nil {
			c, err := n.Dial(ctx, ip, port)
			return c, true, err
		}
	}
	c = n.connect(nil, &endpoint{port: port, handler: func([]byte) (Answer, bool) { return Answer{}, false }}, ip)
	w, ok, err := far.Dial(ctx, ip, port, &FarEnd{c})
	if !ok || err != nil {
		return nil, ok, err
	}
	c.far = w
	return c, true, nil
}

// Push is Write that doesn't wait, for what came from another machine.
func (c *Conn) Push(b []byte) {
	switch {
	case c.refs == 0 || c.outDone || c.out.readers == 0:
	case c.server != nil:
		_, _ = c.Write(context.Background(), b)
	default:
		c.out.buf = append(c.out.buf, b...)
		c.out.readable.Notify()
	}
}

// resolver is what /etc/resolv.conf says.
type resolver struct {
	server string
	search []string
	ndots  int
}

// readResolver reads a container's /etc/resolv.conf.
func readResolver(v *View) resolver {
	r := resolver{ndots: 1}
	data, _ := v.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "nameserver" && r.server == "":
			r.server = f[1]
		case f[0] == "search":
			r.search = f[1:]
		case f[0] == "options":
			for _, o := range f[1:] {
				if n, ok := strings.CutPrefix(o, "ndots:"); ok && len(n) == 1 && n[0] >= '0' && n[0] <= '9' {
					r.ndots = int(n[0] - '0')
				}
			}
		}
	}
	return r
}

// candidates are the names that a resolver asks for in turn (resolv.conf(5)).
func (r *resolver) candidates(host string) []string {
	if full, ok := strings.CutSuffix(host, "."); ok {
		return []string{full}
	}
	var out []string
	for _, s := range r.search {
		out = append(out, host+"."+strings.TrimSuffix(s, "."))
	}
	if strings.Count(host, ".") >= r.ndots {
		return slices.Insert(out, 0, host)
	}
	return append(out, host)
}

// ResolveHost returns the addresses of a host and the name that has them, by the name
// server that the process's /etc/resolv.conf names; asked is false if there is none. It
// may wait.
func ResolveHost(ctx context.Context, p *Process, host string) (name string, ips []string, server string, asked bool) {
	root := &View{ns: p.view.ns}
	r := readResolver(root)
	if p.c == nil || r.server == "" || p.c.Net().m.opts.Far == nil {
		return "", nil, r.server, false
	}
	for _, name := range r.candidates(host) {
		ips, asked = p.c.Net().m.opts.Far.Lookup(ctx, r.server, strings.ToLower(name))
		if !asked || len(ips) > 0 {
			return name, ips, r.server, asked
		}
	}
	return "", nil, r.server, true
}

// LookupHost returns an address of a name by /etc/hosts and then by the name server, or
// of an IP itself. The file is read as root: whether the process may read it makes no
// difference to a resolver's answer in practice, since the kubelet writes it for all.
func (p *Process) LookupHost(ctx context.Context, host string) (ip string, ok bool) {
	if ip, ok := hostsFile(p, host); ok {
		return ip, true
	}
	if _, ips, _, _ := ResolveHost(ctx, p, host); len(ips) > 0 {
		return ips[0], true
	}
	return "", false
}

// hostsFile is LookupHost without the name server.
func hostsFile(p *Process, host string) (ip string, ok bool) {
	if _, err := netip.ParseAddr(host); err == nil {
		return host, true
	}
	root := &View{ns: p.view.ns}
	data, _ := root.ReadFile("/etc/hosts")
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) > 1 && slices.ContainsFunc(f[1:], func(n string) bool { return strings.EqualFold(n, host) }) {
			if a, err := netip.ParseAddr(f[0]); err == nil && a.Is4() {
				return f[0], true
			}
		}
	}
	if host == "localhost" || p.c != nil && host == p.c.Hostname() {
		return "127.0.0.1", true
	}
	return "", false
}
