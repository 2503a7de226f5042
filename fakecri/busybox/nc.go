package busybox

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/loop"
)

// address finds the IP of a host; false if it has none.
func (c *call) address(host string) (string, bool) {
	if ip := net.ParseIP(host); ip != nil {
		return ip.String(), true
	}
	return c.p.LookupHost(host)
}

// runNc is nc, which takes options of both the small and the common netcat.
func runNc(c *call) int {
	o := c.getopt("+lp:w:i:f:e:zvnus:q:k")
	port := 0
	parsePort := func(s string) int {
		n, ok := parseUint(s)
		if !ok || n > 65535 {
			c.die("bad port '%s'", s)
		}
		return n
	}
	ctx := c.ctx
	var limit time.Duration
	if o.has('w') {
		limit = time.Duration(c.number(o.str('w'))) * time.Second
	}
	args := o.args
	if o.has('l') {
		if o.has('p') {
			port = parsePort(o.str('p'))
		} else if len(args) > 0 {
			port = parsePort(args[len(args)-1])
		}
		if port == 0 {
			c.usage()
		}
		return c.ncListen(o, port, limit)
	}
	if len(args) != 2 {
		c.usage()
	}
	ip, ok := c.address(args[0])
	if !ok {
		c.die("bad address '%s'", args[0])
	}
	port = parsePort(args[1])
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = loop.WithTimeout(c.ctx, limit)
		defer cancel()
	}
	conn, err := c.p.Dial(ctx, ip, port)
	if err != nil {
		if ctx.Err() != nil && c.ctx.Err() == nil {
			c.die("timed out")
		}
		c.die("can't connect to remote host (%s): %s", ip, strerror(err))
	}
	if o.has('v') {
		c.stderr(args[0] + " (" + ip + ":" + itoa(port) + ") open\n")
	}
	if o.has('z') {
		conn.Close()
		return 0
	}
	if o.has('e') {
		return c.ncExec(o.str('e'), conn)
	}
	return c.ncCopy(conn)
}

func (c *call) ncListen(o *options, port int, limit time.Duration) int {
	l, err := c.p.Listen(c.ctx, port)
	if err != nil {
		c.die("bind: %s", strerror(err))
	}
	if o.has('v') {
		c.stderr("listening on [::]:" + itoa(port) + " ...\n")
	}
	for {
		conn, err := l.Accept(c.ctx)
		if errors.Is(err, kernel.ErrInterrupted) {
			continue
		}
		if err != nil {
			c.die("accept: %s", strerror(err))
		}
		if o.has('v') {
			c.stderr("connect to [::]:" + itoa(port) + " from " + conn.RemoteIP() + ":" + itoa(conn.RemotePort()) + "\n")
		}
		if o.count['l'] > 1 || o.has('k') {
			if o.has('e') {
				prog := o.str('e')
				child := c.p.Fork("nc", nil, func(ctx context.Context, p *kernel.Process) int {
					sub := *c
					sub.ctx, sub.p = ctx, p
					sub.out = &writer{c: &sub, f: p.FD(1)}
					return sub.ncExec(prog, conn)
				})
				_ = child
				continue
			}
			c.ncCopy(conn)
			continue
		}
		_ = l.Close()
		if o.has('e') {
			return c.ncExec(o.str('e'), conn)
		}
		return c.ncCopy(conn)
	}
}

// ncExec runs a program on a connection.
func (c *call) ncExec(prog string, conn *kernel.Conn) int {
	c.p.SetFD(0, conn.Dup())
	c.p.SetFD(1, conn.Dup())
	c.p.SetFD(2, conn.Dup())
	return c.become([]string{prog}, nil, cantExec)
}

// ncCopy copies both ways until the other side is done. The end of the input is
// passed on, and what then comes back is still shown.
func (c *call) ncCopy(conn *kernel.Conn) int {
	defer conn.Close()
	if f := c.p.FD(0); f != nil {
		c.p.Group().Go("nc", func(ctx context.Context) {
			buf := make([]byte, 4096)
			for {
				n, err := f.Read(ctx, buf)
				if n > 0 {
					if _, werr := conn.Write(ctx, buf[:n]); werr != nil {
						return
					}
				}
				if err != nil && !errors.Is(err, kernel.ErrInterrupted) || n == 0 && err == nil {
					_ = conn.CloseWrite()
					return
				}
			}
		})
	} else {
		_ = conn.CloseWrite()
	}
	buf := make([]byte, 4096)
	for {
		n, err := stream{c, conn}.Read(buf)
		if n > 0 {
			_, _ = c.out.Write(buf[:n])
			c.out.flush()
		}
		if err != nil {
			if err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
				return 1
			}
			return 0
		}
	}
}

// runPing answers for the addresses that the node knows; it sends nothing.
func runPing(c *call) int {
	o := c.getopt("c:s:t:w:W:I:i:np:qA46")
	if len(o.args) != 1 {
		c.usage()
	}
	host := o.args[0]
	ip, ok := c.address(host)
	if !ok {
		c.die("bad address '%s'", host)
	}
	size := int64(56)
	if o.has('s') {
		size = c.number(o.str('s'))
	}
	count := int64(-1)
	if o.has('c') {
		count = c.number(o.str('c'))
	}
	period := time.Second
	if o.has('i') {
		if d, ok := duration(o.str('i')); ok {
			period = d
		}
	}
	deadline := c.p.Now().Add(forever)
	if o.has('w') {
		deadline = c.p.Now().Add(time.Duration(c.number(o.str('w'))) * time.Second)
	}
	c.printf("PING %s (%s): %d data bytes\n", host, ip, size)
	c.out.flush()
	if !c.p.Container().Bounds(kernel.CapNetRaw) {
		c.die("permission denied (are you root?)")
	}
	alive := c.reachable(ip)
	sent, received := int64(0), int64(0)
	for ; count < 0 || sent < count; sent++ {
		if sent > 0 {
			c.pause(period)
			if !c.p.Now().Before(deadline) {
				break
			}
		}
		if alive {
			_ = c.p.Step(c.ctx, 60*time.Microsecond)
			received++
			if !o.has('q') {
				c.printf("%d bytes from %s: seq=%d ttl=64 time=0.060 ms\n", size+8, ip, sent)
				c.out.flush()
			}
		}
	}
	if !alive {
		c.pause(min(10*time.Second, max(0, deadline.Sub(c.p.Now()))))
	}
	loss := int64(0)
	if sent > 0 {
		loss = (sent - received) * 100 / sent
	}
	c.printf("\n--- %s ping statistics ---\n%d packets transmitted, %d packets received, %d%% packet loss\n", host, sent, received, loss)
	if received > 0 {
		c.print("round-trip min/avg/max = 0.060/0.060/0.060 ms\n")
		return 0
	}
	return 1
}

// reachable tells whether some host of the node has the address: a refused
// connection is an answer too.
func (c *call) reachable(ip string) bool {
	if parsed := net.ParseIP(ip); parsed != nil && parsed.IsLoopback() {
		return true
	}
	conn, err := c.p.Dial(c.ctx, ip, 7)
	if err == nil {
		conn.Close()
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// runNslookup asks nobody: the names of a simulated cluster are not served.
func runNslookup(c *call) int {
	o := c.getopt("t:q:d")
	if len(o.args) == 0 || len(o.args) > 2 {
		c.usage()
	}
	server := "127.0.0.1"
	data, _ := c.view().ReadFile("/etc/resolv.conf")
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			server = f[1]
			break
		}
	}
	if len(o.args) > 1 {
		server = o.args[1]
	}
	c.pause(10 * time.Second)
	c.print(";; connection timed out; no servers could be reached\n\n")
	c.p.Container().Warn("nslookup: there are no name servers in the simulation (" + server + ")")
	return 1
}

func runNetstat(c *call) int {
	o := c.getopt("laentuwxrWp")
	if o.has('r') {
		return runRoute(c)
	}
	kind := "w/o servers"
	if o.has('a') {
		kind = "servers and established"
	} else if o.has('l') {
		kind = "only servers"
	}
	c.printf("Active Internet connections (%s)\nProto Recv-Q Send-Q Local Address           Foreign Address         State       \n", kind)
	if !o.has('l') && !o.has('a') || o.has('u') && !o.has('t') {
		return 0
	}
	for _, port := range c.p.Container().Net().Listeners() {
		c.printf("tcp   %6d %6d %-23s %-23s %-12s\n", 0, 0, "0.0.0.0:"+itoa(port), "0.0.0.0:*", "LISTEN")
	}
	return 0
}

// mac derives a hardware address from an IP, as bridges do for pods.
func mac(ip net.IP) net.HardwareAddr {
	v4 := ip.To4()
	if v4 == nil {
		v4 = net.IP{0, 0, 0, 0}
	}
	return net.HardwareAddr{0x0a, 0x58, v4[0], v4[1], v4[2], v4[3]}
}

func runIfconfig(c *call) int {
	ip := net.ParseIP(c.p.Container().Net().IP())
	if ip != nil {
		c.printf("eth0      Link encap:Ethernet  HWaddr %s  \n", strings.ToUpper(mac(ip).String()))
		bcast := net.IP(append([]byte(nil), ip.To16()...))
		bcast[15] = 255
		c.printf("          inet addr:%s  Bcast:%s  Mask:255.255.255.0\n", ip, bcast)
		c.print("          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n")
		c.ifStats()
	}
	c.print("lo        Link encap:Local Loopback  \n          inet addr:127.0.0.1  Mask:255.0.0.0\n          UP LOOPBACK RUNNING  MTU:65536  Metric:1\n")
	c.ifStats()
	return 0
}

func (c *call) ifStats() {
	c.print("          RX packets:0 errors:0 dropped:0 overruns:0 frame:0\n          TX packets:0 errors:0 dropped:0 overruns:0 carrier:0\n" +
		"          collisions:0 txqueuelen:1000 \n          RX bytes:0 (0.0 B)  TX bytes:0 (0.0 B)\n\n")
}

func runIP(c *call) int {
	o := c.getopt("+46of:s")
	if len(o.args) == 0 {
		c.usage()
	}
	ip := net.ParseIP(c.p.Container().Net().IP())
	object := o.args[0]
	switch {
	case strings.HasPrefix("link", object) && len(o.args) > 1 && slices.Contains([]string{"add", "delete", "set"}, o.args[1]):
		return c.changeLink()
	case strings.HasPrefix("address", object), strings.HasPrefix("link", object):
		addr := strings.HasPrefix("address", object)
		c.print("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue qlen 1000\n    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n")
		if addr {
			c.print("    inet 127.0.0.1/8 scope host lo\n       valid_lft forever preferred_lft forever\n")
		}
		if ip == nil {
			return 0
		}
		c.printf("2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1500 qdisc noqueue \n    link/ether %s brd ff:ff:ff:ff:ff:ff\n", mac(ip))
		if addr {
			bcast := net.IP(append([]byte(nil), ip.To16()...))
			bcast[15] = 255
			c.printf("    inet %s/24 brd %s scope global eth0\n       valid_lft forever preferred_lft forever\n", ip, bcast)
		}
		return 0
	case strings.HasPrefix("route", object):
		if ip != nil {
			gw := net.IP(append([]byte(nil), ip.To16()...))
			gw[15] = 1
			subnet := net.IP(append([]byte(nil), ip.To16()...))
			subnet[15] = 0
			c.printf("default via %s dev eth0 \n%s/24 dev eth0 scope link  src %s \n", gw, subnet, ip)
		}
		return 0
	}
	c.usage()
	return 1
}

func runRoute(c *call) int {
	c.print("Kernel IP routing table\nDestination     Gateway         Genmask         Flags Metric Ref    Use Iface\n")
	ip := net.ParseIP(c.p.Container().Net().IP())
	if ip == nil || ip.To4() == nil {
		return 0
	}
	v4 := ip.To4()
	gw, subnet := net.IPv4(v4[0], v4[1], v4[2], 1), net.IPv4(v4[0], v4[1], v4[2], 0)
	c.printf("%-15s %-15s %-15s UG    0      0        0 eth0\n", "0.0.0.0", gw, "0.0.0.0")
	c.printf("%-15s %-15s %-15s U     0      0        0 eth0\n", subnet, "0.0.0.0", "255.255.255.0")
	return 0
}
