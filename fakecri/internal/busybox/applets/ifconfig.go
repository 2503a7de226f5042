package applets

import (
	"net"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Ifconfig is ifconfig without arguments, or with -a: lo and, in a network
// namespace of its own, eth0 with the pod's address. Changing interfaces is not
// built.
func Ifconfig() applet.Applet { return applet.New(runIfconfig, "ifconfig", "[-a]") }

func runIfconfig(c *applet.Call) int {
	ip := net.ParseIP(c.P.Container().Net().IP())
	if ip != nil {
		c.Printf("eth0      Link encap:Ethernet  HWaddr %s  \n", strings.ToUpper(applet.Mac(ip).String()))
		// The address has 16 bytes, the last of which is that of IPv4: the network is
		// taken for a /24.
		bcast := net.IP(append([]byte(nil), ip.To16()...))
		bcast[15] = 255
		c.Printf("          inet addr:%s  Bcast:%s  Mask:255.255.255.0\n", ip, bcast)
		c.Print("          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n")
		ifStats(c)
	}
	c.Print("lo        Link encap:Local Loopback  \n          inet addr:127.0.0.1  Mask:255.0.0.0\n          UP LOOPBACK RUNNING  MTU:65536  Metric:1\n")
	ifStats(c)
	return 0
}

// ifStats prints the counters, all 0, since traffic isn't counted.
func ifStats(c *applet.Call) {
	c.Print("          RX packets:0 errors:0 dropped:0 overruns:0 frame:0\n          TX packets:0 errors:0 dropped:0 overruns:0 carrier:0\n" +
		"          collisions:0 txqueuelen:1000 \n          RX bytes:0 (0.0 B)  TX bytes:0 (0.0 B)\n\n")
}
