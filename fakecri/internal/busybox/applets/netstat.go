package applets

import "github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"

// Netstat is netstat: ports that are listened on, with -l or -a, and routes
// with -r. Established connections are not listed, nor UDP and Unix sockets; -p
// shows no program.
func Netstat() applet.Applet { return applet.New(runNetstat, "netstat", "[-ral] [-tuwx] [-en]") }

// runNetstat prints the headings even where there is nothing to list, as the
// real one does. -r shows the same table as route.
func runNetstat(c *applet.Call) int {
	o := c.Getopt("laentuwxrWp")
	if o.Has('r') {
		return runRoute(c)
	}
	kind := "w/o servers"
	if o.Has('a') {
		kind = "servers and established"
	} else if o.Has('l') {
		kind = "only servers"
	}
	c.Printf("Active Internet connections (%s)\nProto Recv-Q Send-Q Local Address           Foreign Address         State       \n", kind)
	// Without either only connections would be listed, and there are none to
	// show.
	if !o.Has('l') && !o.Has('a') || o.Has('u') && !o.Has('t') {
		return 0
	}
	// Every listener is shown on the wildcard address: a simulated port belongs
	// to the pod's network, not to one of its addresses.
	for _, port := range c.P.Container().Net().Listeners() {
		c.Printf("tcp   %6d %6d %-23s %-23s %-12s\n", 0, 0, "0.0.0.0:"+applet.Itoa(port), "0.0.0.0:*", "LISTEN")
	}
	return 0
}
