package applets

import (
	"errors"
	"net"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Ping is ping, which sends nothing: an address is alive if the node knows it,
// and every answer takes 60 µs. An address of another node is not, so tests of
// networks between nodes must not use ping. Without CAP_NET_RAW it fails as
// BusyBox's does; its heading has been printed by then.
//
// -W, -I, -t, -p, -n, -A, -4 and -6 are read and do nothing.
func Ping() applet.Applet {
	return applet.New(runPing, "ping", "[-c CNT] [-s SIZE] [-w SEC] [-i SEC] [-q] HOST")
}

// runPing answers for the addresses that the node knows; it sends nothing.
func runPing(c *applet.Call) int {
	o := c.Getopt("c:s:t:w:W:I:i:np:qA46")
	if len(o.Args) != 1 {
		c.Usage()
	}
	host := o.Args[0]
	ip, ok := c.Address(host)
	if !ok {
		c.Die("bad address '%s'", host)
	}
	// 56 bytes of data are the default: 64 with the ICMP header, which an
	// answer counts.
	size := int64(56)
	if o.Has('s') {
		size = c.Number(o.Str('s'))
	}
	// Negative means until the deadline or a signal.
	count := int64(-1)
	if o.Has('c') {
		count = c.Number(o.Str('c'))
	}
	period := time.Second
	if o.Has('i') {
		if d, ok := applet.Duration(o.Str('i')); ok {
			period = d
		}
	}
	// -w bounds the whole run in seconds of virtual time.
	deadline := c.P.Now().Add(applet.Forever)
	if o.Has('w') {
		deadline = c.P.Now().Add(time.Duration(c.Number(o.Str('w'))) * time.Second)
	}
	c.Printf("PING %s (%s): %d data bytes\n", host, ip, size)
	c.Out.Flush()
	// The bounding set counts, as ping is setuid or has the capability.
	if !c.P.Container().Bounds(kernel.CapNetRaw) {
		c.Die("permission denied (are you root?)")
	}
	alive := reachable(c, ip)
	sent, received := int64(0), int64(0)
	for ; count < 0 || sent < count; sent++ {
		if sent > 0 {
			c.Pause(period)
			if !c.P.Now().Before(deadline) {
				break
			}
		}
		if alive {
			_ = c.P.Step(c.Ctx, 60*time.Microsecond)
			received++
			if !o.Has('q') {
				c.Printf("%d bytes from %s: seq=%d ttl=64 time=0.060 ms\n", size+8, ip, sent)
				c.Out.Flush()
			}
		}
	}
	// It waits for the last answer in vain.
	if !alive {
		c.Pause(min(10*time.Second, max(0, deadline.Sub(c.P.Now()))))
	}
	// In whole per cent, rounded down as BusyBox's integer division does.
	loss := int64(0)
	if sent > 0 {
		loss = (sent - received) * 100 / sent
	}
	c.Printf("\n--- %s ping statistics ---\n%d packets transmitted, %d packets received, %d%% packet loss\n", host, sent, received, loss)
	if received > 0 {
		c.Print("round-trip min/avg/max = 0.060/0.060/0.060 ms\n")
		return 0
	}
	return 1
}

// reachable reports whether some host of the node has the address: a refused
// connection is an answer too.
func reachable(c *applet.Call, ip string) bool {
	if parsed := net.ParseIP(ip); parsed != nil && parsed.IsLoopback() {
		return true
	}
	// Port 7 is echo, which normally nobody listens on. Whether it is open does
	// not matter: a refusal proves that the host is there.
	conn, err := c.P.Dial(c.Ctx, ip, 7)
	if err == nil {
		conn.Close()
		return true
	}
	return errors.Is(err, linux.ECONNREFUSED)
}
