package applets

import (
	"slices"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
)

// Nslookup is nslookup, for addresses of names by the server of /etc/resolv.conf; that
// file's search list counts. Where there is none it takes the resolver's 10 s and warns,
// so that a scenario that depends on DNS is found out rather than silently different.
// /etc/hosts does not count, as for the real one.
func Nslookup() applet.Applet { return applet.New(runNslookup, "nslookup", "HOST [DNS_SERVER]") }

func runNslookup(c *applet.Call) int {
	o := c.Getopt("t:q:d")
	if len(o.Args) == 0 || len(o.Args) > 2 {
		c.Usage()
	}
	name, ips, server, asked := kernel.ResolveHost(c.Ctx, c.P, o.Args[0])
	if server == "" {
		server = "127.0.0.1" // the resolver's default, see resolv.conf(5)
	}
	if len(o.Args) > 1 && o.Args[1] != server {
		server, asked = o.Args[1], false
	}
	if !asked {
		// The wait is virtual time, and so costs a probe its timeout as it would on
		// a node.
		c.Pause(10 * time.Second)
		c.Print(";; connection timed out; no servers could be reached\n\n")
		c.P.Container().Warn("nslookup: there is no name server in the simulation at " + server)
		return 1
	}
	c.Printf("Server:\t\t%s\nAddress:\t%s:53\n\n", server, server)
	if len(ips) == 0 {
		c.Printf("** server can't find %s: NXDOMAIN\n\n", o.Args[0])
		return 1
	}
	for _, ip := range slices.Sorted(slices.Values(ips)) {
		c.Printf("Name:\t%s\nAddress: %s\n", name, ip)
	}
	c.Print("\n")
	return 0
}
