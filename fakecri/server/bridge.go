//go:build linux

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/drydock-sim/drydock/fakecri"
	"github.com/drydock-sim/drydock/fakecri/server/clientio"
	"github.com/drydock-sim/drydock/ground/linux"
)

// bridge opens, on this machine, the ports that pods listen on, so that
// kubelets' probes and other clients reach them: a pod's at its IP, if that is
// one of 127/8, which are all the machine's own; a host port, and one on the
// host's network, at 127.0.0.1 and at the machine's addresses. Whatever the
// address, only connections from the machine itself are taken. A port that
// somebody else has is a warning.
//
// It exists because a kubelet that is a separate process probes a pod by its IP: without the
// bridge no readiness probe of HTTP or TCP could succeed. All fields but s are under mu or never
// change; the runtime calls listening on its loop, sockets have goroutines.
type bridge struct {
	s *Server

	mu sync.Mutex
	// ports are those that pods listen on, by what pods call them, and conns the connections that
	// are open, with the port they came by.
	ports  map[portKey]*bridged
	conns  map[net.Conn]portKey
	own    []netip.Addr // the machine's addresses beside 127/8
	closed bool

	// ctx ends with Close, and work is done when no goroutine of the bridge is left.
	ctx    context.Context // of all connections
	cancel context.CancelFunc
	work   sync.WaitGroup
	health *healthServer
	once   sync.Once
}

// portKey names a port as pods see it.
type portKey struct {
	ip   string // "127.0.0.1" for the host's network
	port int
}

// bridged is a port that a pod listens on. It outlives a listener that closes and opens in one
// step of the loop, see listening. binds is nil until the first is tried.
type bridged struct {
	key portKey
	// open is what the runtime said last; stated says that a stated program has the port.
	open   bool
	stated bool
	binds  []*bind
}

// bind is an address of the machine that leads to a port. Several ports may want one address, as
// two pods do that have the same host port; the first has it.
type bind struct {
	addr     string
	required bool         // its absence is told
	lis      net.Listener // nil while somebody else has it
}

// newBridge returns a bridge that has opened nothing.
func newBridge(s *Server) *bridge {
	b := &bridge{s: s, ports: map[portKey]*bridged{}, conns: map[net.Conn]portKey{}, own: machineAddresses()}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.health = newHealthServer(b)
	return b
}

// apply makes the runtime use it. The runtime is not there yet. The ports that open while the
// runtime is made come to listening as well.
func (b *bridge) apply(o *fakecri.Options) { o.OnListen = b.listening }

// Close closes all ports and their connections. It returns when no connection is left; the loop
// must still run, since their tasks are on it.
func (b *bridge) Close() {
	b.once.Do(func() {
		b.mu.Lock()
		b.closed = true
		for _, p := range b.ports {
			p.close()
		}
		for c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		b.cancel()
		b.health.stop()
	})
	b.work.Wait()
}

// close gives up the port's addresses; connections that are open go on. The accept goroutine of
// each ends by that.
func (p *bridged) close() {
	for _, d := range p.binds {
		if d.lis != nil {
			_ = d.lis.Close()
			d.lis = nil
		}
	}
}

// machineAddresses are the addresses of this machine's interfaces that are not
// 127/8 and not local to a link. They are read once: an interface that comes later is not served.
func machineAddresses() []netip.Addr {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); ok && ip.IsGlobalUnicast() {
			out = append(out, ip)
		}
	}
	return out
}

// listening is fakecri.Options.OnListen. It runs on the loop and must not wait: listening on a
// local port does not.
func (b *bridge) listening(l fakecri.Listening) {
	key := portKey{l.IP, l.Port}
	if l.Host {
		key.ip = "127.0.0.1"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	p := b.ports[key]
	if !l.Open {
		if p != nil {
			p.open = false
			// A program that changes what it says closes and opens in one step. So the close is
			// decided one step later, when the port may be open again.
			b.s.loop.Post(func() { b.closeIfClosed(p) })
		}
		return
	}
	if p == nil {
		p = &bridged{key: key}
		b.ports[key] = p
	}
	p.open, p.stated = true, l.Stated
	if p.binds == nil {
		for _, a := range b.addresses(&l) {
			d := &bind{addr: a.String(), required: a.Addr().IsLoopback()}
			p.binds = append(p.binds, d)
			// Only 127/8 must work: the addresses of interfaces are a convenience, and often
			// taken.
			if err := b.bind(p, d); err != nil && d.required {
				b.s.warn("port %d of %s is not open on this machine: %v", l.Port, key.ip, err)
			}
		}
	}
}

// addresses are where a port is opened. A pod's own IP counts only within 127/8, all of which is
// the machine's without configuration.
func (b *bridge) addresses(l *fakecri.Listening) []netip.AddrPort {
	everywhere := func(port int) []netip.AddrPort {
		out := []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))}
		for _, a := range b.own {
			out = append(out, netip.AddrPortFrom(a, uint16(port)))
		}
		return out
	}
	if l.Host {
		return everywhere(l.Port)
	}
	var out []netip.AddrPort
	if ip, err := netip.ParseAddr(l.IP); err == nil && ip.IsLoopback() {
		out = append(out, netip.AddrPortFrom(ip, uint16(l.Port)))
	}
	for _, m := range l.Mappings {
		out = append(out, mapped(m, everywhere)...)
	}
	return out
}

// mapped is where a port mapping leads from; its host IP may say everywhere. It is a container
// port with hostPort, as the CRI hands it over.
func mapped(m *runtimeapi.PortMapping, everywhere func(int) []netip.AddrPort) []netip.AddrPort {
	port := m.GetHostPort()
	if port <= 0 || port > 65535 {
		return nil
	}
	if ip, err := netip.ParseAddr(m.GetHostIp()); err == nil && !ip.IsUnspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(ip, uint16(port))}
	}
	return everywhere(int(port))
}

// bind opens one address of a port. Failing leaves d.lis nil, so the address is tried again when
// somebody gives it up.
func (b *bridge) bind(p *bridged, d *bind) error {
	lis, err := net.Listen("tcp", d.addr)
	if err != nil {
		return err
	}
	d.lis = lis
	b.work.Go(func() { b.accept(p.key, lis) })
	return nil
}

// closeIfClosed closes a port that was not opened again; what waited for its
// addresses gets them.
func (b *bridge) closeIfClosed(p *bridged) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.open || b.closed || b.ports[p.key] != p {
		return
	}
	delete(b.ports, p.key)
	p.close()
	if p.stated {
		// A stated program has nobody who would close its connections.
		for c, key := range b.conns {
			if key == p.key {
				_ = c.Close()
			}
		}
	}
	freed := map[string]bool{}
	for _, d := range p.binds {
		freed[d.addr] = true
	}
	for _, o := range b.ports {
		for _, d := range o.binds {
			// One of those that wait gets it, whichever comes first in the map.
			if d.lis == nil && freed[d.addr] && o.open && b.bind(o, d) == nil {
				delete(freed, d.addr)
			}
		}
	}
}

// acceptPause is how long a port waits after it could not take a connection.
const acceptPause = 50 * time.Millisecond

// accept takes connections until the port closes. Its errors are of the machine (too many files),
// and pass, so it pauses and goes on.
func (b *bridge) accept(key portKey, lis net.Listener) {
	for {
		conn, err := lis.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file descriptor, or the like
			time.Sleep(acceptPause)
			continue
		}
		// A pod's port must not be open to the network: containers here have no firewall.
		if !b.ours(conn.RemoteAddr()) {
			_ = conn.Close()
			continue
		}
		b.mu.Lock()
		p := b.ports[key]
		if b.closed || p == nil {
			b.mu.Unlock()
			_ = conn.Close()
			continue
		}
		stated := p.stated
		b.conns[conn] = key
		// Started under the lock, so that Close, which sets closed first, waits for it.
		b.work.Go(func() { b.serve(conn, key, stated) })
		b.mu.Unlock()
	}
}

// ours reports whether an address is this machine's.
func (b *bridge) ours(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return false
	}
	ip := ap.Addr().Unmap().WithZone("")
	return ip.IsLoopback() || slices.Contains(b.own, ip)
}

// serve hands one connection to whoever listens in the pod. What a client sends to a stated
// program is looked at first, as that program speaks nothing but HTTP/1 itself. Errors have
// nobody to be told to but the client, who sees a reset.
func (b *bridge) serve(raw net.Conn, key portKey, stated bool) {
	defer func() {
		b.mu.Lock()
		delete(b.conns, raw)
		b.mu.Unlock()
		_ = raw.Close()
	}()
	conn := raw
	if stated {
		var served bool
		var err error
		if conn, served, err = b.sniff(conn, key.ip, key.port); served || err != nil {
			return
		}
	}
	err := b.s.relay(b.ctx, &b.work, conn, func(ctx context.Context, c *fakecri.Client, f *clientio.Duplex) error {
		to, err := b.s.rt.Dial(ctx, key.ip, key.port)
		if err != nil {
			return fmt.Errorf("%s: %w", net.JoinHostPort(key.ip, strconv.Itoa(key.port)), err)
		}
		defer func() { _ = to.Close() }()
		return b.s.rt.Join(ctx, f, to)
	})
	var errno linux.Errno
	// An error of the connection within the pod, such as ECONNREFUSED.
	if tcp, ok := raw.(*net.TCPConn); ok && errors.As(err, &errno) {
		_ = tcp.SetLinger(0) // a reset, as the program's own end would be
	}
}
