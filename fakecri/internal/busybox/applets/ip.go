package applets

import (
	"net"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// IP is ip for address, link and route, whose names may be shortened. It shows
// what a pod's network namespace has: lo, eth0 with a made-up MAC, the route by
// the gateway .1 of a /24. What it says of prefixes is an assumption, since a
// simulation has pods' addresses and no networks. Adding and removing is told
// apart by privilege only.
func IP() applet.Applet { return applet.New(runIP, "ip", "[OPTIONS] address|link|route [ARGS]") }

// changeLink is what changes network devices, which are not kept.
func changeLink(c *applet.Call) int {
	if !c.P.Can(kernel.CapNetAdmin) {
		c.Errorf("RTNETLINK answers: Operation not permitted")
		return 2
	}
	return 0
}

func runIP(c *applet.Call) int {
	// These options change nothing in what is shown.
	o := c.Getopt("+46of:s")
	if len(o.Args) == 0 {
		c.Usage()
	}
	ip := net.ParseIP(c.P.Container().Net().IP())
	object := o.Args[0]
	switch {
	// An abbreviation is a prefix of the whole name.
	case strings.HasPrefix("link", object) && len(o.Args) > 1 && slices.Contains([]string{"add", "delete", "set"}, o.Args[1]):
		return changeLink(c)
	case strings.HasPrefix("address", object), strings.HasPrefix("link", object):
		addr := strings.HasPrefix("address", object)
		c.Print("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue qlen 1000\n    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n")
		if addr {
			c.Print("    inet 127.0.0.1/8 scope host lo\n       valid_lft forever preferred_lft forever\n")
		}
		// A namespace without an address has lo alone.
		if ip == nil {
			return 0
		}
		c.Printf("2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1500 qdisc noqueue \n    link/ether %s brd ff:ff:ff:ff:ff:ff\n", applet.Mac(ip))
		if addr {
			bcast := net.IP(append([]byte(nil), ip.To16()...))
			bcast[15] = 255
			c.Printf("    inet %s/24 brd %s scope global eth0\n       valid_lft forever preferred_lft forever\n", ip, bcast)
		}
		return 0
	case strings.HasPrefix("route", object):
		if ip != nil {
			gw := net.IP(append([]byte(nil), ip.To16()...))
			gw[15] = 1
			subnet := net.IP(append([]byte(nil), ip.To16()...))
			subnet[15] = 0
			c.Printf("default via %s dev eth0 \n%s/24 dev eth0 scope link  src %s \n", gw, subnet, ip)
		}
		return 0
	}
	c.Usage()
	return 1
}
