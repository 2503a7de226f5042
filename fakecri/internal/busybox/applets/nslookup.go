package applets

import (
	"strings"
	"time"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Nslookup is nslookup, of which only the failure is built: it takes the
// resolver's 10 s and warns, so that a scenario that depends on DNS is found
// out rather than silently different. /etc/hosts does not count, as for the
// real one.
func Nslookup() applet.Applet { return applet.New(runNslookup, "nslookup", "HOST [DNS_SERVER]") }

// runNslookup asks nobody: the names of a simulated cluster are not served.
func runNslookup(c *applet.Call) int {
	o := c.Getopt("t:q:d")
	if len(o.Args) == 0 || len(o.Args) > 2 {
		c.Usage()
	}
	// The resolver's default without a nameserver line, see resolv.conf(5).
	server := "127.0.0.1"
	data, _ := c.View().ReadFile("/etc/resolv.conf")
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			server = f[1]
			break
		}
	}
	if len(o.Args) > 1 {
		server = o.Args[1]
	}
	// The wait is virtual time, and so costs a probe its timeout as it would on
	// a node.
	c.Pause(10 * time.Second)
	c.Print(";; connection timed out; no servers could be reached\n\n")
	c.P.Container().Warn("nslookup: there are no name servers in the simulation (" + server + ")")
	return 1
}
