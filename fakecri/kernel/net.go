package kernel

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/drydock-sim/drydock/ground/linux"
	"github.com/drydock-sim/drydock/ground/loop"
)

const (
	// hostUnreachable is how long it takes until a connection to an address
	// that nobody has fails: three ARP requests. The kernel retries ARP each second
	// (mcast_solicit 3).
	hostUnreachable = 3 * time.Second
	// handshake is what a connection costs. A round trip within a node or a rack.
	handshake = 100 * time.Microsecond
	// backlog is how many connections wait for accept(2) at most; programs commonly ask for 128.
	backlog = 128
)

// NetNS is a network namespace: a pod's, or the node's. There are no packets: a connection is two
// pipes, made by Dial at once. Addresses are one for each namespace, and all traffic is TCP.
type NetNS struct {
	m  *Machine
	ip string
	// A listener or a handler has the port, never both.
	open   []*endpoint // by port
	closed bool
}

// endpoint is a port that somebody listens on. gone says that the program has ended: connections
// that are open then are reset.
type endpoint struct {
	port     int
	listener *Listener
	handler  Handler
	gone     bool
}

// HostNet returns the node's network namespace.
func (m *Machine) HostNet() *NetNS { return m.host }

// NewNet returns a network namespace with an address. Others of the node reach
// it by that until Close. The runtime gives the address, of the node's pod range.
func (m *Machine) NewNet(ip string) *NetNS {
	n := &NetNS{m: m, ip: ip}
	m.nets = append(m.nets, n)
	return n
}

// IP returns the namespace's address.
func (n *NetNS) IP() string { return n.ip }

// Close takes the namespace off the node's network and closes what listens. Connections that are
// made stay open until their ends close: a pod's processes are dead before its namespace goes.
func (n *NetNS) Close() {
	n.closed = true
	n.m.nets = slices.DeleteFunc(n.m.nets, func(o *NetNS) bool { return o == n })
	for _, e := range slices.Clone(n.open) {
		e.gone = true
		if e.listener != nil {
			_ = e.listener.Close()
		}
		n.unbind(e)
	}
	n.open = nil
}

// Answer is what a stated program says to a request. After lets a stated server be slow, which
// probes with timeouts are tested by.
type Answer struct {
	// Data is sent back after After.
	Data  []byte
	After time.Duration
	// Close has the connection closed afterwards.
	Close bool
}

// Handler answers for a stated program, without a task: it gets what a client
// has sent on one connection since the last answer, and returns false as long
// as that is no whole request. It must not wait, and not keep the slice. It may be called with
// the same request more than once, longer each time, until it answers: HTTP arrives in parts.
type Handler func(request []byte) (Answer, bool)

// find returns where a port is, or would be, in the sorted list.
func (n *NetNS) find(port int) (int, bool) {
	return slices.BinarySearchFunc(n.open, port, func(e *endpoint, port int) int { return e.port - port })
}

// bind opens a port, and tells whoever watches the node's ports. Port 0 is replaced by a free
// one, as bind(2) does. EADDRINUSE is what a second container of a pod gets that wants the same
// port.
func (n *NetNS) bind(e *endpoint) error {
	if e.port < 0 || e.port > 65535 {
		return linux.EINVAL
	}
	if n.closed {
		return linux.ENETDOWN
	}
	if e.port == 0 {
		e.port = n.m.ephemeral()
	}
	i, taken := n.find(e.port)
	if taken {
		return linux.EADDRINUSE
	}
	n.open = slices.Insert(n.open, i, e)
	n.tell(e.port, true)
	return nil
}

// unbind closes a port, once: the endpoint may have been replaced since. A program may have
// closed the port and another have taken it.
func (n *NetNS) unbind(e *endpoint) {
	e.gone = true
	i, found := n.find(e.port)
	if found && n.open[i] == e {
		n.open = slices.Delete(n.open, i, i+1)
		n.tell(e.port, false)
	}
}

// tell says that a port was opened or closed.
func (n *NetNS) tell(port int, open bool) {
	if n.m.opts.OnListen != nil {
		n.m.opts.OnListen(n, port, open)
	}
}

// ephemeral counts through the ports that the kernel chooses. They are
// net.ipv4.ip_local_port_range's, in turn; a number that is in use is not skipped, as there are
// more than anybody holds.
func (m *Machine) ephemeral() int {
	m.ports = (m.ports + 1) % 28232
	return 32768 + m.ports
}

// Serve has a handler answer on a port until the function returned is called.
// EADDRINUSE if the port is taken. A handler costs no task, so a thousand stated web servers cost
// nothing while nobody asks.
func (n *NetNS) Serve(port int, h Handler) (stop func(), err error) {
	e := &endpoint{port: port, handler: h}
	if err := n.bind(e); err != nil {
		return nil, err
	}
	return func() { n.unbind(e) }, nil
}

// Listen opens a port; EADDRINUSE if it is taken. Port 0 is any.
func (n *NetNS) Listen(port int) (*Listener, error) {
	l := &Listener{net: n}
	l.e = &endpoint{port: port, listener: l}
	if err := n.bind(l.e); err != nil {
		return nil, err
	}
	return l, nil
}

// Ports lists the ports that somebody listens on.
func (n *NetNS) Ports() []int {
	out := make([]int, len(n.open))
	for i, e := range n.open {
		out[i] = e.port
	}
	return out
}

// Listening reports whether somebody listens on a port.
func (n *NetNS) Listening(port int) bool {
	_, ok := n.find(port)
	return ok
}

// Handler returns the handler that Serve put on a port, or nil.
func (n *NetNS) Handler(port int) Handler {
	if i, ok := n.find(port); ok {
		return n.open[i].handler
	}
	return nil
}

// Route returns the namespace that an address leads to from here, or nil. The whole of 127/8 is
// the namespace itself. Addresses of other nodes are nobody's here: those are Options.Remote's.
func (n *NetNS) Route(ip string) *NetNS {
	if ip == "localhost" || ip == "" || ip == n.ip {
		return n
	}
	a, err := netip.ParseAddr(ip)
	switch {
	case err != nil:
		return nil
	case a.IsUnspecified() || a.IsLoopback() && n.m.netOf(ip) == nil: // sandboxes may have addresses in 127/8
		return n
	case ip == n.m.host.ip:
		return n.m.host
	}
	return n.m.netOf(ip)
}

// netOf returns the sandbox's namespace that has an address, or nil. The list is short: a node
// has some hundred pods at most.
func (m *Machine) netOf(ip string) *NetNS {
	if ip == "127.0.0.1" {
		return nil
	}
	for _, o := range m.nets {
		if o.ip == ip {
			return o
		}
	}
	return nil
}

// Dial connects from this namespace to a port at an IP ("localhost", 127.x and
// the own address are the namespace itself). ECONNREFUSED if nobody listens
// there, EHOSTUNREACH after 3 s if no sandbox has the address. It takes handshake if somebody
// answers. An address without anybody takes as long as ARP does, which is what makes a probe of a
// dead pod's address run into its timeout.
func (n *NetNS) Dial(ctx context.Context, ip string, port int) (*Conn, error) {
	l := n.m.l
	to := n.Route(ip)
	if to == nil {
		if n.m.opts.Remote != nil {
			if h, ok := n.m.opts.Remote(ip, port); ok {
				if err := l.Sleep(ctx, handshake); err != nil {
					return nil, err
				}
				// The address exists elsewhere, and nobody listens there.
				if h == nil {
					return nil, linux.ECONNREFUSED
				}
				return n.connect(nil, &endpoint{port: port, handler: h}, ip), nil
			}
		}
		if c, ok, err := n.dialFar(ctx, ip, port); ok || err != nil {
			return c, err
		}
		if err := l.Sleep(ctx, hostUnreachable); err != nil {
			return nil, err
		}
		return nil, linux.EHOSTUNREACH
	}
	if err := l.Sleep(ctx, handshake); err != nil {
		return nil, err
	}
	i, ok := to.find(port)
	// Looked at after the wait: the listener may have gone during the handshake.
	if !ok || to.closed || n.closed {
		return nil, linux.ECONNREFUSED
	}
	e := to.open[i]
	if e.listener != nil && len(e.listener.queue) >= backlog {
		// SYNs are dropped and sent again after 1, 2, 4 ... 64 s: tcp_syn_retries 6.
		if err := l.Sleep(ctx, 127*time.Second); err != nil { // SYNs that are dropped
			return nil, err
		}
		return nil, linux.ETIMEDOUT
	}
	return n.connect(to, e, ip), nil
}

// DialHandler connects to a handler that nobody can reach otherwise, as if it
// served the port of this namespace. Port forwarding
// uses it for programs that are stated to answer on any port.
func (n *NetNS) DialHandler(port int, h Handler) *Conn {
	return n.connect(n, &endpoint{port: port, handler: h}, "127.0.0.1")
}

// connect makes the two ends of a connection. The client's end is returned; the other is queued
// at the listener, or is the handler itself.
func (n *NetNS) connect(to *NetNS, e *endpoint, ip string) *Conn {
	if ip == "localhost" {
		ip = "127.0.0.1"
	}
	there := &pipe{readers: 1, writers: 1}
	back := &pipe{readers: 1, writers: 1}
	local := n.ip
	if to == n {
		local = ip
	}
	c := &Conn{l: n.m.l, in: back, out: there, refs: 1, localIP: local, localPort: n.m.ephemeral(), remoteIP: ip, remotePort: e.port}
	if e.handler != nil {
		c.server = e
		// Answers of one connection come in the order of its requests.
		c.stream = n.m.l.NewStream()
		return c
	}
	s := &Conn{l: n.m.l, in: there, out: back, refs: 1, localIP: ip, localPort: e.port, remoteIP: local, remotePort: c.localPort}
	e.listener.queue = append(e.listener.queue, s)
	e.listener.ready.Notify()
	return c
}

// Listener is an open port. queue has the connections that are made and not accepted; who
// connects does not wait for that.
type Listener struct {
	net    *NetNS
	e      *endpoint
	queue  []*Conn
	ready  loop.Signal
	closed bool
	owner  *Process
}

// Accept waits for a connection. ErrInterrupted as for File.Read; EINVAL when
// the listener is closed.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	for len(l.queue) == 0 {
		if l.closed {
			l.ready.Notify()
			return nil, linux.EINVAL
		}
		if err := wait(ctx, &l.ready); err != nil {
			return nil, err
		}
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	if len(l.queue) > 0 {
		l.ready.Notify()
	}
	if p := From(ctx); p != nil {
		c.keepFor(p)
	}
	return c, nil
}

// Port returns the port.
func (l *Listener) Port() int { return l.e.port }

// Close frees the port; connections that nobody accepted are reset. Called twice it does nothing:
// the process closes it at its death, too.
func (l *Listener) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	l.net.unbind(l.e)
	for _, c := range l.queue {
		c.out.reset = true
		_ = c.Close()
	}
	l.queue = nil
	l.ready.Notify()
	if l.owner != nil {
		l.owner.Disown(l)
	}
	return nil
}

// Conn is one end of a connection; it is a File. Its ends share two pipes, crosswise; closing one
// end breaks what it wrote to and ends what it read.
type Conn struct {
	l       *loop.Loop
	in, out *pipe
	refs    int
	// outDone says that CloseWrite was called: in then still delivers.
	outDone bool
	owner   *Process

	localIP, remoteIP     string
	localPort, remotePort int

	// Of one whose other end is a stated program.
	server *endpoint
	// far, if any, is the way to the other end, on another machine.
	far FarWriter
	// request is what was sent since the last answer, stream the order of answers.
	request []byte
	stream  uint64
}

// Read is of File.
func (c *Conn) Read(ctx context.Context, b []byte) (int, error) {
	if c.refs == 0 {
		return 0, errBadFD
	}
	return c.in.read(ctx, b)
}

// Write is of File. To a handler nothing waits: it takes everything, and its answer comes after
// its own delay.
func (c *Conn) Write(ctx context.Context, b []byte) (int, error) {
	if c.refs == 0 {
		return 0, errBadFD
	}
	if c.outDone || c.out.readers == 0 {
		return 0, brokenPipe(ctx)
	}
	if c.far != nil {
		c.far.Write(b)
		return len(b), nil
	}
	if c.server == nil {
		return c.out.write(ctx, b)
	}
	c.request = append(c.request, b...)
	a, ok := Answer{}, true
	// A program that has ended answers no more; the empty Answer resets the connection below.
	if !c.server.gone {
		a, ok = c.server.handler(c.request)
	}
	if !ok {
		return len(b), nil
	}
	c.request = nil
	answer := func() {
		if c.server.gone { // the program has ended meanwhile
			c.in.reset = true
			a = Answer{Close: true}
		}
		c.in.buf = append(c.in.buf, a.Data...)
		if a.Close {
			c.in.writers = 0
			c.out.readers = 0
		}
		c.in.readable.Notify()
	}
	if a.After <= 0 {
		answer()
	} else {
		c.l.Root().AfterInStream(c.stream, a.After, answer)
	}
	return len(b), nil
}

// CloseWrite says that no more will be sent. It is shutdown(2) with SHUT_WR.
func (c *Conn) CloseWrite() error {
	if !c.outDone {
		c.outDone = true
		c.out.closeWriter()
		if c.far != nil {
			c.far.CloseWrite()
		}
	}
	return nil
}

// Close is of File. A reset, as Linux sends it, is what the other side sees as ECONNRESET.
func (c *Conn) Close() error {
	if c.refs == 0 {
		return nil
	}
	c.refs--
	if c.refs > 0 {
		return nil
	}
	if len(c.in.buf) > 0 { // data that nobody will read resets the connection
		c.out.reset = true
	}
	_ = c.CloseWrite()
	c.in.closeReader()
	if c.far != nil {
		c.far.Close()
	}
	if c.owner != nil {
		c.owner.Disown(c)
	}
	return nil
}

// Dup is of File.
func (c *Conn) Dup() File {
	c.refs++
	return c
}

// Path is as /proc shows it.
func (c *Conn) Path() string { return "socket:[1]" }

// keepFor closes the connection when the process dies. A program that dies must not leave its
// peers waiting for ever.
func (c *Conn) keepFor(p *Process) {
	c.owner = p
	p.Own(c)
}

// LocalIP is the address of this end.
func (c *Conn) LocalIP() string { return c.localIP }

// LocalPort is the port of this end.
func (c *Conn) LocalPort() int { return c.localPort }

// RemoteIP is the address of the other end.
func (c *Conn) RemoteIP() string { return c.remoteIP }

// RemotePort is the port of the other end.
func (c *Conn) RemotePort() int { return c.remotePort }

// Listen opens a port in the process's network namespace. It closes with the
// process. Ports below 1024 are for everybody, as container runtimes set it. A connection's
// descriptors are not in the process's table, so it is owned.
func (p *Process) Listen(_ context.Context, port int) (*Listener, error) {
	if p.dead {
		return nil, errBadFD
	}
	l, err := p.c.Net().Listen(port)
	if err != nil {
		return nil, err
	}
	l.owner = p
	p.owned = append(p.owned, l)
	return l, nil
}

// Dial connects to a port at an IP or a host name (ENOENT if nobody has it). It closes
// with the process.
func (p *Process) Dial(ctx context.Context, host string, port int) (*Conn, error) {
	ip, ok := p.LookupHost(ctx, host)
	if !ok {
		return nil, linux.ENOENT
	}
	c, err := p.c.Net().Dial(ctx, ip, port)
	if err != nil {
		return nil, err
	}
	c.keepFor(p)
	return c, nil
}
