package applets

import (
	"net"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Route is route, and netstat -r: the two routes of a pod, in a /24 of its own
// as ip says it. Changing them is not built: arguments are not looked at.
func Route() applet.Applet { return applet.New(runRoute, "route", "[-n]") }

// runRoute derives the routes from the pod's address alone: the gateway is .1
// of its /24, as a bridge plugin would set it.
func runRoute(c *applet.Call) int {
	c.Print("Kernel IP routing table\nDestination     Gateway         Genmask         Flags Metric Ref    Use Iface\n")
	ip := net.ParseIP(c.P.Container().Net().IP())
	// route shows IPv4's table; a pod without such an address has only the
	// headings.
	if ip == nil || ip.To4() == nil {
		return 0
	}
	v4 := ip.To4()
	gw, subnet := net.IPv4(v4[0], v4[1], v4[2], 1), net.IPv4(v4[0], v4[1], v4[2], 0)
	c.Printf("%-15s %-15s %-15s UG    0      0        0 eth0\n", "0.0.0.0", gw, "0.0.0.0")
	c.Printf("%-15s %-15s %-15s U     0      0        0 eth0\n", subnet, "0.0.0.0", "255.255.255.0")
	return 0
}
